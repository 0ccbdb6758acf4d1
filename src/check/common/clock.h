/* A vector clock: an array with the known number of each rank of MPI_COMM_WORLD. The width is fixed
 * when the process starts. Only a process's own threads change its clock, under order.c's mutex. */
#ifndef ORIEL_CHECK_COMMON_CLOCK_H
#define ORIEL_CHECK_COMMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t oriel_tick;

enum {
    ORIEL_TICK_PENDING = 0
}; /* of a completion: not complete. Clocks start at 1 for the own rank, 0 for others */

/* into[i] = max(into[i], from[i]). */
void oriel_clock_take(oriel_tick *into, const oriel_tick *from, int width);

#endif
