/* Addresses where a finished promotion may have left a boundary between two mappings that were one
 * before. Parking (parked_mapping.h) lets the kernel merge them again, but not after every action
 * of the program, nor in every kernel. A process can have only 65,530 mappings. promote.c's mutex
 * protects the list. */
#ifndef ORIEL_MEMORY_PROMOTE_SPLIT_MAPPINGS_H
#define ORIEL_MEMORY_PROMOTE_SPLIT_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORIEL_SPLIT_MAPPINGS_MAX 4096

/* Records that [start, end) is private again. A repeated boundary counts once. */
void oriel_split_mappings_add(uintptr_t start, uintptr_t end);

/* Whether more than `most` recorded addresses are boundaries of mappings now. Removes the addresses
 * that are no longer boundaries. */
bool oriel_split_mappings_exceed(size_t most);

#endif
