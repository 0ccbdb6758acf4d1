/* Histories of one memory: windows may have bytes in common, and each has a history of its own. An
 * access to one window is also compared with the other's history. Loads and stores are not: they
 * are in all of these histories (local_accesses.c).
 *
 * Each pair of accesses meets. An access is in its own history before it looks into the overlapping
 * one: history.c for the tree, or cell_store.c's S2 by the marks that oriel_history_beside sets and
 * nothing lowers. So of two accesses the one that looks later finds the other, if it knows of the
 * other history. A process that uses a window has known the overlapping ones since before the
 * members left its creation. An access to an older window may come before its process knows of the
 * newer one; the newer window's access finds it. */
#ifndef ORIEL_CHECK_ACCESS_ALIASED_WINDOWS_H
#define ORIEL_CHECK_ACCESS_ALIASED_WINDOWS_H

#include "check/access/history.h"

struct oriel_insertion; /* insert.h */

/* Bytes of a history's memory. */
struct oriel_history_bytes {
    oriel_shm_offset history;
    int64_t offset;
};

/* So many bytes are the same memory in both, which this process's windows have and keep until it has left them.  No room: a
 * possible miss, which the board counts. */
void oriel_history_beside(struct oriel_history_bytes one, struct oriel_history_bytes other,
                          uint64_t len_bytes);

/* Compares an access that stands in its own history with those beside it. */
void oriel_beside_meet(const struct oriel_insertion *arrival,
                       const struct oriel_access_extent *extents, size_t count);

/* The history is about to go: nobody uses it any more but those that look from beside. */
void oriel_beside_end(oriel_shm_offset history);

#endif
