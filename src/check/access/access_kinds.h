/* Traits: the fields that all accesses of one call have in common (origin, kind, operator, element,
 * flags, site). Each trait is stored once in the checker's shared memory, for all processes, and is
 * never freed. Small accesses refer to it by its offset. */
#ifndef ORIEL_CHECK_ACCESS_ACCESS_KINDS_H
#define ORIEL_CHECK_ACCESS_ACCESS_KINDS_H

#include "check/access/history.h"

/* Returns the offset of the access's trait: the access without clock snapshot, numbers and group.
 * 0: the shared memory is full. */
oriel_shm_offset oriel_trait_of(const struct oriel_access *access);

static inline const struct oriel_access *oriel_trait_at(oriel_shm_offset trait)
{
    return oriel_shm_at(trait);
}

#endif
