/* How much memory and address space this process may still take.  Read afresh at each call, since other processes change
 * it.  file.c and creation ask before they promise memory. */
#ifndef ORIEL_MEMORY_MEMORY_LIMITS_H
#define ORIEL_MEMORY_MEMORY_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that the machine can still give, swap included; UINT64_MAX when it does not tell.  More is refused. */
uint64_t oriel_limit_available(void);

/* So many ranks run on this machine; 0: nobody knows, and each processor may have one.  Before this there is one. */
void oriel_limit_share(uint32_t ranks_here);

enum oriel_room {
    ORIEL_ROOM_NONE, /* more than is available: to be refused */
    ORIEL_ROOM_AT_TOUCH, /* pages are to come when they are touched: if all do, somebody may run out of memory */
    ORIEL_ROOM_RESERVED, /* pages may be reserved */
};

/* What the machine and the memory cgroups of this process have room for: that many bytes for each rank of the machine, or for all
 * together, and as much left over. */
enum oriel_room oriel_limit_room(uint64_t len_bytes, bool of_all);

/* What is reserved under valgrind, which reads all of it when it looks for lost memory: it takes a signal for every word that lies
 * behind the end of the file, so that the file has its full length at once. */
#define ORIEL_VALGRIND_RESERVE (UINT64_C(64) << 20)

/* Address space to reserve for one process's memory file: ORIEL_RESERVE, else physical memory rounded up to a power of two, less
 * where address space is limited or many processes have to map each other, and little under valgrind; 0 where so little is left that the host would
 * miss what a memory file takes. */
uint64_t oriel_limit_reserve(void);

/* For tests: a folder in the place of the machine's root. */
extern const char *oriel_limit_root;

#endif
