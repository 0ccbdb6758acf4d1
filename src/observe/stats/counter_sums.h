/* Sums of the counters of this process, over its windows and threads. This header does not need
 * mpi.h. */
#ifndef ORIEL_OBSERVE_STATS_COUNTER_SUMS_H
#define ORIEL_OBSERVE_STATS_COUNTER_SUMS_H

#include <stdbool.h>
#include <stdint.h>

enum oriel_counter_quantity {
    /* of the calls of a kind, enum oriel_trace_kind */
    ORIEL_QUANTITY_CALLS,
    ORIEL_QUANTITY_BYTES,
    ORIEL_QUANTITY_TIME_NS,
    ORIEL_QUANTITY_WAITING_NS,
    /* of the operations on a path, enum oriel_counted_path */
    ORIEL_QUANTITY_PATH_OPERATIONS,
    ORIEL_QUANTITY_PATH_BYTES,
    /* by the window's ranks: of a cause, enum oriel_counted_cause, and of operations */
    ORIEL_QUANTITY_CAUSED_NS,
    ORIEL_QUANTITY_TARGET_OPERATIONS,
    ORIEL_QUANTITY_TARGET_BYTES,
};

/* True for a quantity that is known for each rank of a window. */
static inline bool oriel_counter_is_by_rank(enum oriel_counter_quantity quantity)
{
    return quantity >= ORIEL_QUANTITY_CAUSED_NS;
}

/* Writes the sums since the process started: of the window with that id, or of all windows if it is
 * 0. item is the kind, path or cause. If n is above 1, the window has n ranks and sums has one
 * number for each, otherwise sums has one for all ranks. Not in a forked child. */
void oriel_counter_sum(enum oriel_counter_quantity quantity, unsigned item, uint64_t window_id,
                       uint32_t n, uint64_t *sums);

#endif
