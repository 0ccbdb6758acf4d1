/* From a buffer's datatype to the bytes that it names, as the history wants them: runs at equal distances, padding left out.
 * A list belongs to the thread that opened it, and is closed by it, also when opening failed.  windows*.c and local_accesses.c call. */
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

/* The bytes of count items of the type, the first at offset: a window's byte, or an address.  Of more than most_bytes those that
 * move first.  ORIEL_E_NO_MEM: memory is exhausted. */
enum oriel_status oriel_extents_open(struct oriel_extents *extents, const struct oriel_type *type,
                                     uint64_t count, int64_t offset, uint64_t most_bytes);

/* All of them, from the handle; ORIEL_E_TYPE for what is not a committed datatype. */
enum oriel_status oriel_extents_open_of(struct oriel_extents *extents, MPI_Datatype datatype,
                                        uint64_t count, int64_t offset);

void oriel_extents_close(struct oriel_extents *extents);

#endif
