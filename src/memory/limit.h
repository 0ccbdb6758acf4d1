/* How much memory and address space this process may still take.  Read afresh at each call, since other processes change
 * it.  file.c and creation ask before they promise memory. */
#ifndef ORIEL_MEMORY_LIMIT_H
#define ORIEL_MEMORY_LIMIT_H

#include <stdint.h>

/* Bytes that the machine and this process's memory cgroup can still give; UINT64_MAX when neither tells. */
uint64_t oriel_limit_available(void);

/* Address space to reserve for one process's memory file: ORIEL_RESERVE, else physical memory rounded up to a power of two,
 * less where address space is limited or many processes have to map each other; 0 where so little is left that the host would
 * miss what a memory file takes. */
uint64_t oriel_limit_reserve(void);

#endif
