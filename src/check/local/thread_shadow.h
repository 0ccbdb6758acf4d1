/* What each thread has loaded and stored since the process's clock last changed: the same access is
 * not recorded twice. Any thread may use it. */
#ifndef ORIEL_CHECK_LOCAL_THREAD_SHADOW_H
#define ORIEL_CHECK_LOCAL_THREAD_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the thread has recorded the same access already; marks it as recorded. Accesses that
 * cross words are always new. */
bool oriel_shadow_knows(uint64_t address, uint64_t len_bytes, bool writes);

/* Empties the shadows of all threads: there is a new access to compare with. */
void oriel_shadows_empty(void);

#endif
