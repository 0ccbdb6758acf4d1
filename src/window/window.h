/* A window of this process.  Everything but the epoch words is written once, before creation returns.  api/ finds it from
 * the host's handle (window/handle.h), sync/ and rma/ work on it; nothing here needs mpi.h. */
#ifndef ORIEL_WINDOW_WINDOW_H
#define ORIEL_WINDOW_WINDOW_H

#include "window/group.h"
#include "window/shared.h"

enum oriel_flavour {
    ORIEL_FLAVOUR_CREATE,
    ORIEL_FLAVOUR_ALLOCATE,
    ORIEL_FLAVOUR_SHARED,
    ORIEL_FLAVOUR_DYNAMIC,
};

/* Which access epochs this process has open.  FENCE may stand with none of the others but USED. */
enum oriel_epoch {
    ORIEL_EPOCH_FENCE = 1, /* the last fence did not promise NOSUCCEED */
    ORIEL_EPOCH_USED = 2,  /* an operation followed that fence */
    ORIEL_EPOCH_LOCK_ALL = 4,
    ORIEL_EPOCH_START = 8,
    ORIEL_EPOCH_TRUSTED = 16, /* with LOCK_ALL: it had MPI_MODE_NOCHECK */
    ORIEL_EPOCH_ALL_TARGETS =
        ORIEL_EPOCH_LOCK_ALL | ORIEL_EPOCH_USED, /* either allows operations to every target */
};

/* The members of the group of the last start or post, as own entries for them, kept for the next one. */
struct oriel_members {
    struct oriel_pscw_counter **partners; /* NULL: none so far */
    int32_t count;
    uint64_t
        group; /* the host's handle, while that means the same group (api/synchronise.c); 0: not known */
    uint64_t groups_freed; /* by the program before these were found */
};

struct oriel_window_host; /* the host's objects of this window: window/host_objects.h */

struct oriel_window {
    /* the data path's words */
    int32_t n;
    int32_t rank;
    int32_t here;           /* ranks of this machine; all others have ORIEL_BY_NETWORK */
    int32_t leader;         /* the lowest of them: common lies in its memory file */
    _Atomic uint32_t epoch; /* enum oriel_epoch */
    const struct oriel_target *targets; /* by win_rank, shared */
    char *const *memory_bases; /* by win_rank: of the memory file that holds a target's window */
    _Atomic(_Atomic uint8_t *)
        access; /* by win_rank: the own access words, or the group's absent ones (sync/access_words.c) */
    /* synchronisation */
    char *const *control_bases; /* by win_rank: of a rank's own memory file */
    struct oriel_common *common;
    struct oriel_control *control;
    uint32_t
        arrivals; /* of all ranks, that open the barrier that this process entered last (sync/barrier.c) */
    _Atomic(struct oriel_pscw_counter *)
        recent_partner; /* the own entry that was looked up last; NULL before */
    struct oriel_members
        started; /* targets of start epochs; changed by who sets ORIEL_EPOCH_START while not accessing */
    struct oriel_members posted; /* origins of exposure epochs; changed by who sets exposed */
    _Atomic uint32_t accessing;  /* 1 from the end of a start to the end of its complete */
    _Atomic uint32_t exposed;    /* an exposure epoch is open */
    uint32_t
        tests_in_vain; /* of that epoch: now and then a poll gives the processor away and looks for the dead */
    uint64_t looked_ns;
    /* the rest */
    struct oriel_group *group;
    struct oriel_internode *far; /* NULL: all ranks are on this machine (internode/internode.h) */
    struct oriel_deferred
        *deferred; /* NULL: no operation of this process waits here (rma/deferred.h) */
    struct oriel_peer *
        *memory_peers; /* own array where some memory lies in another process's file, else NULL */
    char **own_memory_bases; /* likewise */
    void *base; /* of the own window; NULL for a dynamic one and for size 0 of Win_create */
    int64_t control_offset; /* -1 before it is allocated; likewise below */
    int64_t common_offset;  /* the leader's */
    int64_t memory_offset;  /* what free gives back */
    struct oriel_own_memory *
        own_memory; /* of MPI_Win_create, unless all of it lies in memory files: create/user_memory.h */
    _Atomic(struct oriel_attached *)
        attached; /* a dynamic window's, from the first attach on (create/attach.c) */
    struct oriel_region_arrays
        *region_arrays; /* of the own table of regions, from its first on (create/regions.c) */
    uint64_t serial;    /* of all windows that this process ever made, from 1 */
    uint64_t id;        /* the same on all ranks, and no other window's of the job */
    enum oriel_flavour flavour;
    bool
        by_agent; /* what lies in no memory file is reached by its owner's agent, not by CMA; the same on all ranks */
    bool ending;    /* in the barrier of MPI_Win_free, or past it */
    bool abandoned; /* after a death: it waits for those that live to leave it as well (free.c) */
    bool
        parted; /* MPI_Win_free has passed its barrier: a second try, after a callback failed, must not wait again */
    struct oriel_window *next_leaving;
    struct oriel_window_host *host;
};

static inline struct oriel_control *oriel_window_control(const struct oriel_window *window,
                                                         int32_t win_rank)
{
    return (struct oriel_control *)(window->control_bases[win_rank] +
                                    window->targets[win_rank].control_offset);
}

static inline _Atomic uint8_t *oriel_window_access(const struct oriel_window *window)
{
    return atomic_load_explicit(&window->access, memory_order_acquire);
}

/* enum oriel_access to a target. */
static inline uint8_t oriel_window_access_to(const struct oriel_window *window, int32_t win_rank)
{
    return atomic_load_explicit(&oriel_window_access(window)[win_rank], memory_order_relaxed);
}

/* Where this process loads and stores byte offset of a target's ORIEL_BY_ARENA window; a layout's own place may lie before it. */
static inline char *oriel_window_direct(const struct oriel_window *window, int32_t win_rank,
                                        uint64_t offset_bytes)
{
    return (char *)((uintptr_t)window->memory_bases[win_rank] + window->targets[win_rank].offset +
                    offset_bytes);
}

#endif
