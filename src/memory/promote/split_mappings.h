/* Places where a promotion that has ended may have left a boundary between two mappings which were one before.  The stash
 * (parked_mapping.h) lets the kernel join them again, but not whatever the program does meanwhile, nor every kernel; and a process may
 * have 65,530 mappings only.  promote.c and demote.c call, under promote.c's mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_SPLIT_MAPPINGS_H
#define ORIEL_MEMORY_PROMOTE_SPLIT_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORIEL_SCARS_MAX 4096

/* [start, end) is private again.  The same boundary counts once. */
void oriel_scars_note(uintptr_t start, uintptr_t end);

/* Whether more than most have been noted that are boundaries of mappings today: those that are not are forgotten then. */
bool oriel_scars_exceed(size_t most);

#endif
