/* What each thread has loaded and stored since the process's number was what it is: nothing is told twice.  local_accesses.c calls, any
 * thread. */
#ifndef ORIEL_CHECK_LOCAL_THREAD_SHADOW_H
#define ORIEL_CHECK_LOCAL_THREAD_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the thread has done the same already; if not, it has now.  Accesses that cross words are always new. */
bool oriel_shadow_knows(uint64_t address, uint64_t len_bytes, bool writes);

/* Of all threads: there is something that they must be compared with anew. */
void oriel_shadows_empty(void);

#endif
