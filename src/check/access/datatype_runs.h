/* The bytes that a buffer's datatype names, as runs at equal distances, without padding. A list
 * belongs to the thread that opened it. That thread closes it, also after a failed open. */
#ifndef ORIEL_CHECK_ACCESS_DATATYPE_RUNS_H
#define ORIEL_CHECK_ACCESS_DATATYPE_RUNS_H

#include "base/status.h"
#include "check/access/history.h"
#include "datatype/datatype.h"

#include <stddef.h>

enum { ORIEL_EXTENTS_OWN = 8 };

struct oriel_extents {
    size_t count;
    size_t room;
    struct oriel_access_extent *list; /* own, or from malloc */
    struct oriel_access_extent own[ORIEL_EXTENTS_OWN];
};

/* Opens the bytes of count items of the type, the first at offset: a byte of a window, or an
 * address. If the items have more than most_bytes, the list has those that move first.
 * ORIEL_E_NO_MEM: memory is exhausted. */
enum oriel_status oriel_extents_open(struct oriel_extents *extents, const struct oriel_type *type,
                                     uint64_t count, int64_t offset, uint64_t most_bytes);

/* The same for all bytes, from the handle. ORIEL_E_TYPE: it is not a committed datatype. */
enum oriel_status oriel_extents_open_of(struct oriel_extents *extents, MPI_Datatype datatype,
                                        uint64_t count, int64_t offset);

void oriel_extents_close(struct oriel_extents *extents);

#endif
