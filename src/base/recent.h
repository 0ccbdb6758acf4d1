/* What this thread used last: one window and one datatype, so that the data path finds both in two loads.  An entry counts
 * only while its generation is the process's, which every free of a window or of a derived datatype moves on.  window/ and
 * ops/ fill it, the data path reads it. */
#ifndef ORIEL_BASE_RECENT_H
#define ORIEL_BASE_RECENT_H

#include "base/atomic.h"

#include <stdbool.h>

struct oriel_recent {
    uint64_t generation; /* 0, which is no generation, in a fresh thread */
    uint64_t window_key; /* the host's handle */
    void *window;        /* struct oriel_window */
    uint64_t type_key;   /* the host's handle */
    const void *type;    /* struct oriel_type */
    /* of accumulates, without generations: handles of predefined operators and datatypes are for ever */
    void *single;           /* this thread's slot (sync/singles.h); NULL before it has one */
    uint64_t operator_key;  /* the last operator and datatype of one element that have a native kernel; NO_KEY before, and where
                             * there is no slot */
    uint64_t element_key;
    void (*kernel)(void);   /* oriel_element */
    uint64_t element_mask;  /* its size - 1 */
};
extern _Thread_local struct oriel_recent oriel_recent;
extern _Atomic uint64_t oriel_recent_generation;

#define ORIEL_RECENT_NO_KEY UINT64_C(0xffffffff00000000) /* neither a widened int nor a pointer of a program */

static inline bool oriel_recent_is_valid(void)
{
    return oriel_recent.generation == atomic_load_explicit(&oriel_recent_generation, memory_order_relaxed);
}

/* The generation that a table must be read in for its answer to be kept; to be read before the table. */
static inline uint64_t oriel_recent_begin(void)
{
    return atomic_load_explicit(&oriel_recent_generation, memory_order_acquire);
}

void oriel_recent_keep_window(uint64_t generation, uint64_t key, void *window);
void oriel_recent_keep_type(uint64_t generation, uint64_t key, const void *type);

/* No thread may use what it has kept any more. */
void oriel_recent_invalidate(void);

#endif
