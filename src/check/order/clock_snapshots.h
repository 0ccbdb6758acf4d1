/* Snapshots of this process's clock in the checker's shared memory, which accesses refer to.
 * order.c's mutex protects all of this. */
#ifndef ORIEL_CHECK_ORDER_CLOCK_SNAPSHOTS_H
#define ORIEL_CHECK_ORDER_CLOCK_SNAPSHOTS_H

#include "check/order/own_clock.h"

/* Starts with clocks of clock_width numbers and an empty cache. */
void oriel_clock_snapshots_start(int clock_width);

/* Returns a snapshot of the row of `mine` with a reference for the caller: the cached one, unless
 * it is of another row, or the row has another number of its own, or another count of merges, than
 * when it was made. Returns 0 when the shared memory is full. */
oriel_shm_offset oriel_clock_snapshot_of(const struct oriel_order_own *mine);

/* Drops the cached snapshot. */
void oriel_clock_snapshots_drop(void);

/* NULL for 0. */
const oriel_tick *oriel_clock_snapshot_clock(oriel_shm_offset place);

#endif
