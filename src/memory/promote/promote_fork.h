/* What fork makes of promoted memory.  The child gets its own pages at the same addresses: those that a window holds only in
 * part, with other things of the program beside it, as they are at the fork; all others as a private mapping of the file, whose
 * untouched pages show what the parent writes later, until it releases them: then they stay as they are (fork_leases.h).  promote.c
 * calls, whose mutex keeps promotions and forks apart. */
#ifndef ORIEL_MEMORY_PROMOTE_PROMOTE_FORK_H
#define ORIEL_MEMORY_PROMOTE_PROMOTE_FORK_H

#include "memory/promote/promoted_ranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A held range of bytes. */
struct oriel_pending_slot {
    uintptr_t base;
    uintptr_t end;
};

/* The list of what is held.  prepare makes room for one more, so that add cannot fail. */
bool oriel_pending_slot_prepare(void);
void oriel_pending_slot_add(const struct oriel_pending_slot *added);
void oriel_pending_slot_forget(const struct oriel_pending_slot *which);
size_t oriel_pending_slot_count(void);

/* Before the fork; in the parent after it, which waits until the child has copied; in the child. */
void oriel_promote_fork_before(const struct oriel_promoted_ranges *runs);
void oriel_promote_fork_parent(void);
void oriel_promote_fork_child(const struct oriel_promoted_ranges *runs);

#endif
