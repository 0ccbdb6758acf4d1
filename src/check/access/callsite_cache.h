/* What call sites have found out about their operations: a loop makes the same one again and again, at other places.  What is
 * kept depends on arguments and window alone; epochs and whatever else a call can change are looked at each time, or counted
 * (oriel_check_changes).  windows_operate.c and pending_slot.h call. */
#ifndef ORIEL_CHECK_ACCESS_CALLSITE_CACHE_H
#define ORIEL_CHECK_ACCESS_CALLSITE_CACHE_H

#include "base/tls_cache.h"
#include "check/access/cell_repeat.h"
#include "check/intercept/windows_operate.h"
#include "check/local/short_buffers.h"

enum {
    ORIEL_CALLSITE_SITES = 64, /* a power of 2 */
    ORIEL_CALLSITE_LOOKS = 4,  /* places, one behind the other, at which a site may stand */
};

struct oriel_callsite {
    _Alignas(512) const void *address; /* a place in the table is found without a multiplication */
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

    /* of a small one; window NULL: it is not small, or the window wants more */
    struct oriel_checked *window;
    uint64_t target_bytes;
    uint64_t origin_bytes; /* 0: there is no origin */
    uint64_t result_bytes;
    oriel_shm_offset trait; /* 0: not known yet; of access */
    bool writes_words;
    bool repeats;
    struct oriel_access access; /* as the last one was */
    int32_t target;             /* from here on of the one that is between begin and end */
    int64_t offset;
    struct oriel_word_clock *word; /* NULL: it is looked for */

    /* of one that nothing stands beside (pending_slot.h) */
    uint64_t ready; /* true as long as this is oriel_check_changes */
    struct oriel_window_target *ways;
    uint32_t ranks;
    const _Atomic uint32_t *bulk; /* oriel_window_has_bulk */
    uint64_t what; /* as it stands in an entry, at the beginning of a cell; and its screen */
    uint64_t screen;
    const void *origin; /* the last buffers, which are apart */
    const void *compare;
    const void *result;
    struct oriel_conflict_place place;
    struct oriel_callsite_arrival arrival;
    struct oriel_cell_entry *entry;
};

/* The exported functions ask with what they know of themselves: most of it is decided then. */
#define ORIEL_CALLSITE_INLINE static inline __attribute__((always_inline))

extern _Thread_local struct oriel_callsite oriel_agains[ORIEL_CALLSITE_SITES]
    __attribute__((visibility("hidden")));

/* Of a site that is not at its first place: where it is, or else whose place it may have, which is a free one if there is one. */
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

/* Operator and result, which puts and gets have none of. */
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

/* Whether its arguments are the same as those of the last one; the windows may be others by now. */
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

/* --- a small one beside others --- */

/* All that is to be done before the call, for a small operation of plain bytes in a lock's epoch that this thread has made from
 * this call site before, on this window and with these datatypes, counts and operator.  tried: oriel_pending_slot_go was.  False, and
 * nothing has happened: the window is another one, or something about it is wrong. */
bool oriel_callsite_go(struct oriel_callsite *again, bool tried, int32_t target, MPI_Aint disp,
                       const void *origin, const void *compare, const void *result);

/* Behind it: it has fetched; or it was refused. */
void oriel_callsite_take(const struct oriel_callsite *again);
void oriel_callsite_refuse(const struct oriel_callsite *again);

/* The buffers of such an operation. */
unsigned oriel_callsite_runs(const struct oriel_callsite *again, const void *origin,
                             const void *compare, const void *result,
                             struct oriel_short_buffer_run runs[ORIEL_SHORT_BUFFER_RUNS]);

/* Whether none of them may lie in memory of windows, or in what the operation writes there. */
bool oriel_callsite_is_apart(const struct oriel_callsite *again, const void *origin,
                             const void *compare, const void *result);

/* --- any size --- */

/* Whether such an operation is known: then site and types are filled in, and the arguments are right. */
bool oriel_callsite_fill(struct oriel_operation *operation);

/* The arguments were right; window, site and types are filled in. */
void oriel_callsite_keep(const struct oriel_operation *operation);

#endif
