/* This process's clock as it was at a moment, in the board: what accesses are stamped with.  order.c calls, under its lock; what
 * others call is in order.h. */
#ifndef ORIEL_CHECK_ORDER_CLOCK_SNAPSHOTS_H
#define ORIEL_CHECK_ORDER_CLOCK_SNAPSHOTS_H

#include "check/order/rank_clocks.h"

/* Of clocks of so many numbers; nothing is kept yet. */
void oriel_moments_start(int clock_width);

/* The row's clock now, with a reference for the caller: the one that is kept, unless the rank's own number has changed since. 0
 * when the board is full. */
oriel_shm_offset oriel_moment_of_row(const struct oriel_rank *row, int rank);

/* The clock has changed: what is kept is of before. */
void oriel_moments_drop(void);

/* NULL of 0. */
const oriel_tick *oriel_moment_clock(oriel_shm_offset place);

#endif
