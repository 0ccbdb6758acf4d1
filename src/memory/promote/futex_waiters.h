/* Threads that wait at futexes in pages that have moved.  write_barrier.c calls, once for all that has moved, under promote.c's
 * mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_FUTEX_WAITERS_H
#define ORIEL_MEMORY_PROMOTE_FUTEX_WAITERS_H

#include <stdint.h>

/* Lets the threads that wait at process-shared futexes in [start, end) begin to wait anew. */
void oriel_waiters_restart(uintptr_t start, uintptr_t end);

#endif
