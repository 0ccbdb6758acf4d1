/* A vector clock: for each rank of MPI_COMM_WORLD the number that is known of it.  The width is fixed when the process starts;
 * a process's own clock is changed by its own threads only, under order.h's lock.  Every file of check/ may call. */
#ifndef ORIEL_CHECK_ORDER_CLOCK_H
#define ORIEL_CHECK_ORDER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t oriel_tick;

enum {
    ORIEL_TICK_PENDING = 0
}; /* of a completion: not complete.  Clocks start at 1 for oneself, 0 for others */

/* into[i] = max(into[i], from[i]). */
void oriel_clock_take(oriel_tick *into, const oriel_tick *from, int width);

#endif
