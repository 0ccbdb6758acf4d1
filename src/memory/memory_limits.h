/* How much more memory and address space this process may use. Each call reads the current values,
 * because other processes change them. */
#ifndef ORIEL_MEMORY_MEMORY_LIMITS_H
#define ORIEL_MEMORY_MEMORY_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes available on this node, including swap; UINT64_MAX if unknown. Larger allocations fail. */
uint64_t oriel_memory_limits_available(void);

/* Sets the number of ranks on this node. 0: unknown, so one per processor is assumed. The initial
 * value is 1. */
void oriel_memory_limits_set_ranks(uint32_t ranks_here);

enum oriel_room {
    ORIEL_ROOM_NONE, /* more than is available: the allocation fails */
    /* pages are populated at first touch; if all are touched, a rank may run out of memory */
    ORIEL_ROOM_AT_TOUCH,
    ORIEL_ROOM_RESERVED, /* pages may be reserved */
};

/* Whether the node and this process's memory cgroups have room for len_bytes per rank of the node,
 * or in total if of_all is true. As much again must remain available. */
enum oriel_room oriel_memory_limits_room(uint64_t len_bytes, bool of_all);

/* The usual reserve under valgrind. Its leak search reads the whole reserve, and each word after
 * the end of the file costs a signal. Therefore the file has its full length from its first
 * allocation on, whatever the reserve is. */
#define ORIEL_VALGRIND_RESERVE (UINT64_C(64) << 20)

/* Address space to reserve for one process's memory file: ORIEL_RESERVE, or physical memory rounded
 * up to a power of two. The result is smaller where address space is limited or many processes map
 * each other, and small under valgrind. 0 where so little is left that the host would lack the
 * address space of a memory file. */
uint64_t oriel_memory_limits_reserve(void);

/* For tests: a folder used in place of the root folder. */
extern const char *oriel_memory_limits_root;

#endif
