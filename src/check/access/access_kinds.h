/* What the accesses of one call have in common: origin, kind, operator, element, promises, site.  Each stands once in the board,
 * for all processes, for as long as the board is there; small accesses refer to it by place. history.c's files call. */
#ifndef ORIEL_CHECK_ACCESS_ACCESS_KINDS_H
#define ORIEL_CHECK_ACCESS_ACCESS_KINDS_H

#include "check/access/history.h"

/* The access without moment, numbers and group.  0: the board is full. */
oriel_shm_offset oriel_trait_of(const struct oriel_access *access);

static inline const struct oriel_access *oriel_trait_at(oriel_shm_offset trait)
{
    return oriel_shm_at(trait);
}

#endif
