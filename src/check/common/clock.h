/* The numbers of a vector clock: an array with the known number of each rank of MPI_COMM_WORLD, or
 * of each thread of each rank (thread_order.h). The width is fixed when the process starts. Only a
 * process's own threads change its clocks (order.c). */
#ifndef ORIEL_CHECK_COMMON_CLOCK_H
#define ORIEL_CHECK_COMMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t oriel_tick;

/* The tick of a completion that is outstanding. Clocks start at 1 for the own rank, 0 for
 * others. */
enum { ORIEL_TICK_PENDING = 0 };

/* A rank has 1 << oriel_clock_shift numbers, one per thread slot. 0, unless the order of threads is
 * tracked: all threads of a rank then share its number. The low bits of a number are its slot, so a
 * number alone shows which thread it is of. */
enum { ORIEL_CLOCK_THREADS_SHIFT = 4, ORIEL_CLOCK_THREADS = 1 << ORIEL_CLOCK_THREADS_SHIFT };
extern unsigned oriel_clock_shift __attribute__((visibility("hidden")));

/* The distance from a number to the next of the same thread. */
static inline oriel_tick oriel_clock_step(void)
{
    return (oriel_tick)1 << oriel_clock_shift;
}

/* The index in a clock of the thread that has this number. */
static inline int oriel_clock_index(int world_rank, oriel_tick tick)
{
    return (int)((unsigned)world_rank << oriel_clock_shift | (tick & (oriel_clock_step() - 1)));
}

#endif
