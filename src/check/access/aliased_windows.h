/* Histories of one memory: windows may have bytes in common, and each has a history of its own. An
 * access to one window is also compared with the other's history. Loads and stores are not: they
 * are in all of these histories (local_accesses.c).
 *
 * Each pair of accesses meets. An access is in its own history before it reads the overlapping one.
 * For the tree, history.c orders this; for cells, S2 of cell_store.c, by the marks that
 * oriel_history_add_alias sets and nothing lowers. So of two accesses the one that reads later
 * finds the other, if its process knows of the other history. A process that uses a window has
 * known the overlapping ones since before the members left its creation. An access to an older
 * window may be earlier than its process knows of the newer one; the newer window's access finds
 * it. */
#ifndef ORIEL_CHECK_ACCESS_ALIASED_WINDOWS_H
#define ORIEL_CHECK_ACCESS_ALIASED_WINDOWS_H

#include "check/access/history.h"

struct oriel_insertion; /* insert.h */

/* Bytes of a history's memory. */
struct oriel_history_bytes {
    oriel_shm_offset history;
    int64_t offset;
};

/* Registers that len_bytes of both histories are the same memory. This process's windows have these
 * bytes, and keep them until the process has left the histories. If the shared memory is full,
 * conflicts may be missed (counted). */
void oriel_history_add_alias(struct oriel_history_bytes one, struct oriel_history_bytes other,
                             uint64_t len_bytes);

/* Compares an access that is stored in its own history with those that overlap it. */
void oriel_alias_compare(const struct oriel_insertion *arrival,
                         const struct oriel_access_extent *extents, size_t count);

/* Removes the history from all lists before it is freed. No process uses it any more, except
 * through overlapping histories. */
void oriel_alias_end(oriel_shm_offset history);

#endif
