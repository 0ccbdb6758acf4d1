/* Per-thread cache of what call sites have found out about their operations. A loop repeats the
 * same operation at other offsets. A cached fact depends on the arguments and the window only.
 * Epochs, and everything else that a call can change, are checked each time, or counted in
 * oriel_check_changes. */
#ifndef ORIEL_CHECK_INTERCEPT_CALLSITE_CACHE_H
#define ORIEL_CHECK_INTERCEPT_CALLSITE_CACHE_H

#include "base/tls_cache.h"
#include "check/access/cell_repeat.h"
#include "check/local/short_buffers.h"
#include "check/window/operation.h"

enum {
    ORIEL_CALLSITE_SITES = 64, /* a power of 2 */
    ORIEL_CALLSITE_LOOKS = 4,  /* consecutive slots that a site may occupy */
};

struct oriel_callsite {
    _Alignas(512) const void *address; /* the alignment finds a slot without a multiplication */
    MPI_Win win;
    uint64_t generation; /* of the datatypes */
    MPI_Datatype origin_datatype;
    MPI_Datatype target_datatype;
    MPI_Datatype result_datatype;
    MPI_Op op;
    MPI_Count origin_count;
    MPI_Count target_count;
    MPI_Count result_count;
    uint64_t version; /* of the windows */
    struct oriel_site site;
    enum oriel_operator applied;
    bool fetches;
    const struct oriel_type *origin_type;
    const struct oriel_type *target_type;
    const struct oriel_type *result_type;
    uint64_t items;
    uint64_t moving_bytes;

    /* of a small operation; window NULL: it is not small, or the window needs more */
    struct oriel_checked *window;
    uint64_t target_bytes;
    uint64_t phases;       /* bits of an offset that are 0 at the start of a whole element */
    uint64_t origin_bytes; /* 0: no origin buffer */
    uint64_t result_bytes;
    oriel_shm_offset trait; /* 0: not known yet; of access */
    bool writes_words;
    bool repeats;
    struct oriel_access access; /* the last access from this site */
    int32_t target;             /* from here on: the operation between begin and end */
    int64_t offset;
    struct oriel_word_clock *word; /* NULL: not found yet */

    /* of an operation that fits the pending slot (pending_slot.h) */
    uint64_t ready; /* valid as long as this equals oriel_check_changes */
    struct oriel_window_target *paths;
    uint32_t ranks;
    const _Atomic uint32_t *bulk; /* oriel_window_has_bulk */
    uint64_t what;                /* the entry's word at the start of a cell, and its screen */
    uint64_t screen;
    const void *origin; /* the last buffers, known to be apart */
    const void *compare;
    const void *result;
    struct oriel_conflict_place place;
    struct oriel_callsite_arrival arrival;
    struct oriel_cell_entry *entry;
};

/* The exported functions are inlined with constant arguments: the compiler decides most of this. */
#define ORIEL_CALLSITE_INLINE static inline __attribute__((always_inline))

extern _Thread_local struct oriel_callsite oriel_agains[ORIEL_CALLSITE_SITES]
    __attribute__((visibility("hidden")));

/* A site that is not in its first slot: its slot, or else the slot that it may use, a free one if
 * possible. */
struct oriel_callsite *oriel_callsite_elsewhere(const void *address, MPI_Win win, uint64_t first);

ORIEL_CALLSITE_INLINE bool oriel_callsite_is_of(const struct oriel_callsite *again,
                                                const void *address, MPI_Win win)
{
    return oriel_likely(again->address == address && again->win == win);
}

ORIEL_CALLSITE_INLINE struct oriel_callsite *oriel_callsite_place(const void *address, MPI_Win win)
{
    uint64_t key = (uint64_t)(uintptr_t)address + (uint64_t)(uintptr_t)win;
    uint64_t first = (key ^ key >> 6) % ORIEL_CALLSITE_SITES;
    struct oriel_callsite *again = &oriel_agains[first];
    return oriel_callsite_is_of(again, address, win)
               ? again
               : oriel_callsite_elsewhere(address, win, first);
}

ORIEL_CALLSITE_INLINE uint64_t oriel_callsite_version(void)
{
    return atomic_load_explicit(&oriel_checked_version, memory_order_acquire);
}

/* Operator and result; puts and gets have none. */
ORIEL_CALLSITE_INLINE bool oriel_callsite_computes_alike(const struct oriel_callsite *again,
                                                         const struct oriel_operation *operation)
{
    if (operation->swaps)
        return true;
    bool element = operation->call == ORIEL_CALL_Fetch_and_op; /* one datatype, one element */
    return again->op == operation->op && again->fetches == (operation->result_addr != NULL) &&
           (element || (again->result_datatype == operation->result_datatype &&
                        again->result_count == operation->result_count));
}

/* Whether the arguments equal those of the last operation. The windows may have changed since. */
ORIEL_CALLSITE_INLINE bool oriel_callsite_is_alike(const struct oriel_callsite *again,
                                                   const struct oriel_operation *operation)
{
    bool element = operation->call == ORIEL_CALL_Fetch_and_op ||
                   operation->call == ORIEL_CALL_Compare_and_swap;
    return oriel_likely(again->address == operation->address && again->win == operation->win &&
                        again->site.call == operation->call &&
                        again->generation == oriel_tls_cache_begin() &&
                        again->target_datatype == operation->target_datatype &&
                        (element || (again->target_count == operation->target_count &&
                                     again->origin_datatype == operation->origin_datatype &&
                                     again->origin_count == operation->origin_count)) &&
                        (operation->kind != ORIEL_ACCESS_ACCUMULATE ||
                         oriel_callsite_computes_alike(again, operation)));
}

/* --- small operations next to others --- */

/* Everything before the call of a small operation of plain bytes in a lock epoch. This thread has
 * made it from this call site before, on this window, with these datatypes, counts and operator.
 * tried: oriel_pending_slot_go failed. Returns false without side effects if the window is another
 * one, or something about it is wrong. */
bool oriel_callsite_go(struct oriel_callsite *again, bool tried, int32_t target, MPI_Aint disp,
                       const void *origin, const void *compare, const void *result);

/* After the call: it has fetched, or it was refused. */
void oriel_callsite_take(const struct oriel_callsite *again);
void oriel_callsite_refuse(const struct oriel_callsite *again);

/* The buffers of such an operation. */
unsigned oriel_callsite_runs(const struct oriel_callsite *again, const void *origin,
                             const void *compare, const void *result,
                             struct oriel_short_buffer_run runs[ORIEL_SHORT_BUFFER_RUNS]);

/* Whether none of the buffers can overlap the memory of windows, or what the operation writes
 * there. */
bool oriel_callsite_is_apart(const struct oriel_callsite *again, const void *origin,
                             const void *compare, const void *result);

/* --- operations of any size --- */

/* Whether the operation is known: then site and types are filled in, and the arguments are
 * right. */
bool oriel_callsite_fill(struct oriel_operation *operation);

/* Stores an operation whose arguments were right. Its window, site and types are filled in. */
void oriel_callsite_keep(const struct oriel_operation *operation);

#endif
