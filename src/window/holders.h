/* Memory handles: parts of a rank's window memory that other processes of its node open as windows
 * of their own (include/oriel/ext.h). The owner of the memory has one struct oriel_handle_area per
 * handle in its memory file. A process that has opened the handle is a holder, and has an entry in
 * the area. It uses the owner's control words, so its locks and accumulates exclude those of the
 * owner's window. sync/holder_epochs.c has the argument.
 *
 * Areas are never freed: a holder may look at one at any time. An area is reused for another handle
 * when its handle is withdrawn and no entry in it is needed. */
#ifndef ORIEL_WINDOW_HOLDERS_H
#define ORIEL_WINDOW_HOLDERS_H

#include "window/window.h"

enum { ORIEL_HOLDERS_MOST = 1023, ORIEL_HANDLE_AREAS_MOST = 1 << 20 };

struct oriel_holder {
    /* oriel_identity_own_word of the process; 0: a free entry. Written by that process alone, once
     * it has the entry. */
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t process;
    /* enum oriel_access_state to the memory: NONE, WAITING, SHARED, EXCLUSIVE, NOCHECK or LOST */
    _Atomic uint32_t state;
    /* 1: process is the owner, on behalf of a process on another node. Written before the state */
    _Atomic uint32_t is_far;
};

/* The words from key on describe the handle. The owner writes them before the key, and no holder
 * reads them before it has found its key. */
struct oriel_handle_area {
    uint64_t next;   /* offset of the owner's previous area; 0: none. Constant, as the next */
    uint32_t number; /* among the owner's areas, from 0 */
    _Atomic uint32_t withdrawn; /* 1 from the handle's withdrawal on */
    struct oriel_event left;    /* epochs that ended since then */
    _Atomic uint32_t used;      /* entries that were ever used: the first ones */
    /* of the window's control words; 0 once no holder touches them any more */
    _Atomic uint64_t control_offset;
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t key; /* random; 0: no handle */
    uint64_t common_offset;                         /* in the leader's file */
    /* of struct oriel_identity [member_count]: the window's processes by rank, 0 on other nodes */
    uint64_t members_offset;
    uint32_t member_count;
    uint32_t has_agent;     /* the owner's agent runs */
    uint64_t window_number; /* for messages */
    struct oriel_identity leader;
    struct oriel_identity memory; /* of the file that contains the memory */
    struct oriel_target target;   /* the part, as rank 0 of a holder's window */
    struct oriel_holder holders[ORIEL_HOLDERS_MOST];
};

/* The owner's areas, the newest first. */
struct oriel_handle_list {
    _Atomic uint64_t first; /* offset; 0: none */
};

/* A window that was opened from a handle. No rank of it is this process: window->rank is -1. Its
 * common words are this process's own, in which bulk_targets is 1. So this process never updates
 * an element outside the accumulate lock (sync/atomic_mode.h). In bulk mode it waits for the
 * processes of the owner's window, whose files it has therefore open.
 *
 * A process on another node has no entry: area and entry are NULL. The owner has a window of two
 * ranks for it, itself and that process, with an entry. The process's messages name that window,
 * and the owner's agent does with it what a process of its node would do
 * (create/memory_serve.c). */
struct oriel_holding {
    struct oriel_handle_area *area;
    struct oriel_holder *entry;
    uint64_t key;
    struct oriel_common *owner_common; /* of the owner's window */
    /* of that window, by its ranks; NULL for a process on another node, or dead */
    struct oriel_peer **members;
    int32_t member_count;
    int32_t owner_world_rank; /* for reports; -1: unknown */
    uint32_t name;            /* of the entry, in an accumulate lock */
    /* window->access: ABSENT, WAITING in a lock call, SHARED while the entry's state is a lock */
    _Atomic uint8_t access[ORIEL_CACHE_LINE];
    struct oriel_common *common;
    uint64_t common_bytes;
};

/* Set in an accumulate lock's word if a holder has the lock; the rest is the number of its area and
 * of its entry. */
#define ORIEL_HOLDER_NAME UINT32_C(0x40000000)

static inline uint32_t oriel_holder_name(const struct oriel_handle_area *area,
                                         const struct oriel_holder *entry)
{
    return ORIEL_HOLDER_NAME | area->number << 10 | (uint32_t)(entry - area->holders);
}

/* Whether the window was opened from a handle. Then it has only passive-target epochs, and this
 * process has no memory in it. */
static inline bool oriel_window_is_opened(const struct oriel_window *window)
{
    return window->holding != NULL;
}

/* ORIEL_E_PEER if the holder with this name has died. The name is of an accumulate lock at a target
 * on this node. */
enum oriel_status oriel_holders_check_name(const struct oriel_window *window, int32_t target,
                                           uint32_t name);

/* ORIEL_E_PEER if a holder of target's memory has died while it waited for target's lock or had it.
 * no_readers: holders of a shared lock do not count. */
enum oriel_status oriel_holders_check_queue(const struct oriel_window *window, int32_t target,
                                            bool no_readers);

/* ORIEL_E_PEER if a process of the owner's window has died: that of one rank, or any for -1. */
enum oriel_status oriel_holding_check_members(const struct oriel_holding *holding, int32_t rank);

#endif
