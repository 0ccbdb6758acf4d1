/* The numbers of a vector clock: an array with the known number of each rank of MPI_COMM_WORLD. The
 * width is fixed when the process starts. Only a process's own threads change its clock, under
 * order.c's mutex. */
#ifndef ORIEL_CHECK_COMMON_CLOCK_H
#define ORIEL_CHECK_COMMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t oriel_tick;

/* The tick of a completion that is outstanding. Clocks start at 1 for the own rank, 0 for
 * others. */
enum { ORIEL_TICK_PENDING = 0 };

#endif
