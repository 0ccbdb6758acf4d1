/* Threads that wait on futexes in pages that have moved. promote.c's mutex protects all of this. */
#ifndef ORIEL_MEMORY_PROMOTE_FUTEX_WAITERS_H
#define ORIEL_MEMORY_PROMOTE_FUTEX_WAITERS_H

#include <stdint.h>

/* Makes the threads that wait on process-shared futexes in [start, end) restart their wait. */
void oriel_futex_waiters_restart(uintptr_t start, uintptr_t end);

#endif
