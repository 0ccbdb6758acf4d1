/* Regions of the program: oriel_region_begin and oriel_region_end (oriel/oriel.h). Each thread has
 * a stack of open ones, and sums of its calls while the stack is not empty: a region's sums are the
 * difference between its end and its beginning. Threads without an open region pay one test for
 * each call. Private to observe/, except for the two functions behind the public ones. */
#ifndef ORIEL_OBSERVE_STATS_PROGRAM_REGION_H
#define ORIEL_OBSERVE_STATS_PROGRAM_REGION_H

#include "base/atomic.h"

#include <stddef.h>
#include <stdint.h>

/* The public functions. Without observation they return at once. */
void oriel_program_region_begin(const char *name);
void oriel_program_region_end(const char *name);

/* When observation begins; and when it ends, which also ends all open regions, with a warning. */
void oriel_program_regions_start(void);
void oriel_program_regions_stop(void);

/* Sums over one thread's calls, which only that thread changes. */
struct oriel_thread_sums {
    _Atomic uint64_t calls_ns, waiting_ns, operations, bytes;
};

/* This thread's; NULL: it has no open region. */
extern _Thread_local struct oriel_thread_sums *oriel_region_sums
    __attribute__((visibility("hidden")));

/* Add to the sums of the thread's open regions. */
void oriel_program_region_add_time(uint64_t time_ns, uint64_t waiting_ns);
void oriel_program_region_add_operation(uint64_t bytes);

/* The same, of any thread. */
static inline void oriel_program_region_count_time(uint64_t time_ns, uint64_t waiting_ns)
{
    if (oriel_unlikely(oriel_region_sums != NULL))
        oriel_program_region_add_time(time_ns, waiting_ns);
}

static inline void oriel_program_region_count_operation(uint64_t bytes)
{
    if (oriel_unlikely(oriel_region_sums != NULL))
        oriel_program_region_add_operation(bytes);
}

#endif
