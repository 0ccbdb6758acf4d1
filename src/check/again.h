/* What call sites have found out about their operations: a loop makes the same one again and again, at other places.  What is
 * kept depends on arguments and window alone; the epoch, the range and whatever can change are looked at each time.
 * windows_operate.c calls. */
#ifndef ORIEL_CHECK_AGAIN_H
#define ORIEL_CHECK_AGAIN_H

#include "base/recent.h"
#include "check/brief.h"
#include "check/windows_operate.h"

enum { ORIEL_AGAIN_SITES = 64 }; /* a power of 2 */

struct oriel_again {
    _Alignas(256) const void *address; /* a place in the table is found without a multiplication */
    MPI_Win win;
    uint64_t version;    /* of the windows */
    uint64_t generation; /* of the datatypes */
    MPI_Datatype origin_datatype;
    MPI_Datatype target_datatype;
    MPI_Datatype result_datatype;
    MPI_Op op;
    MPI_Count origin_count;
    MPI_Count target_count;
    MPI_Count result_count;
    enum oriel_operator applied;
    bool fetches;
    bool writes_words; /* of a small one */
    const struct oriel_type *origin_type;
    const struct oriel_type *target_type;
    const struct oriel_type *result_type;
    uint64_t items;
    struct oriel_site site;

    /* of a small one; window NULL: it is not small, or the window wants more */
    struct oriel_checked *window;
    uint64_t target_bytes;
    uint64_t origin_bytes;      /* 0: there is no origin */
    uint64_t result_bytes;
    oriel_place trait;          /* 0: not known yet; of access */
    struct oriel_access access; /* as the last one was */
    int32_t target;             /* from here on of the one that is between begin and end */
    int64_t offset;
    struct oriel_word *word;    /* NULL: it is looked for */
};

/* The exported functions ask with what they know of themselves: most of it is decided then. */
#define ORIEL_AGAIN_INLINE static inline __attribute__((always_inline))

extern _Thread_local struct oriel_again oriel_agains[ORIEL_AGAIN_SITES] __attribute__((visibility("hidden"))); /* again.c's own */

ORIEL_AGAIN_INLINE struct oriel_again *oriel_again_place(const struct oriel_operation *operation)
{
    uint64_t key = (uint64_t)(uintptr_t)operation->address + (uint64_t)(uintptr_t)operation->win;
    return &oriel_agains[(key ^ key >> 6) % ORIEL_AGAIN_SITES];
}

ORIEL_AGAIN_INLINE uint64_t oriel_again_version(void)
{
    return atomic_load_explicit(&oriel_checked_version, memory_order_acquire);
}

/* Operator and result, which puts and gets have none of. */
ORIEL_AGAIN_INLINE bool oriel_again_computes_alike(const struct oriel_again *again, const struct oriel_operation *operation)
{
    return again->op == operation->op && again->fetches == (operation->result_addr != NULL) &&
           again->result_datatype == operation->result_datatype && again->result_count == operation->result_count;
}

/* NULL: nothing is kept of it. */
ORIEL_AGAIN_INLINE struct oriel_again *oriel_again_find(const struct oriel_operation *operation)
{
    struct oriel_again *again = oriel_again_place(operation);
    __asm__("" : "+r"(again)); /* gcc would compute the place anew for each comparison */
    if (oriel_likely(again->address == operation->address && again->win == operation->win &&
                     again->site.call == operation->call && again->version == oriel_again_version() &&
                     again->generation == oriel_recent_begin() && again->target_datatype == operation->target_datatype &&
                     again->target_count == operation->target_count && again->origin_datatype == operation->origin_datatype &&
                     again->origin_count == operation->origin_count &&
                     (operation->kind != ORIEL_ACCESS_ACCUMULATE || oriel_again_computes_alike(again, operation))))
        return again;
    return NULL;
}

/* --- the short way --- */

bool oriel_again_go(struct oriel_again *again, int32_t target, MPI_Aint disp, const void *origin, const void *compare,
                    const void *result);
void oriel_again_take(const struct oriel_again *again);
void oriel_again_refuse(const struct oriel_again *again);

/* All that is to be done before the call, for a small operation of plain bytes in a lock's epoch that this thread has made from
 * this call site before, on this window and with these datatypes, counts and operator.  NULL, and nothing has happened: it is
 * another one, or something about it is wrong. */
ORIEL_AGAIN_INLINE struct oriel_again *oriel_again_begin(const struct oriel_operation *operation)
{
    struct oriel_again *again = oriel_again_find(operation);
    if (oriel_likely(again != NULL && oriel_again_go(again, operation->target_rank, operation->target_disp,
                                                     operation->origin_addr, operation->compare_addr, operation->result_addr)))
        return again;
    return NULL;
}

/* And behind it, with its code. */
ORIEL_AGAIN_INLINE void oriel_again_end(const struct oriel_again *again, const struct oriel_operation *operation, int code)
{
    if (oriel_unlikely(code != MPI_SUCCESS))
        oriel_again_refuse(again);
    else if (operation->kind == ORIEL_ACCESS_ACCUMULATE && again->fetches)
        oriel_again_take(again);
}

/* The buffers of such an operation. */
unsigned oriel_again_runs(const struct oriel_again *again, const void *origin, const void *compare, const void *result,
                          struct oriel_brief_run runs[ORIEL_BRIEF_RUNS]);

/* --- any size --- */

/* Whether such an operation is known: then site and types are filled in, and the arguments are right. */
bool oriel_again_fill(struct oriel_operation *operation);

/* The arguments were right; window, site and types are filled in. */
void oriel_again_keep(const struct oriel_operation *operation);

#endif
