/* Histories of one memory: windows may have bytes in common, and each has a history of its own.  An access to the one is compared
 * with what stands in the other, too.  Loads and stores are not: they stand in all of them (local_accesses.c).
 *
 * That each pair meets: an access stands in its own history before it looks into the one beside it (history.c: the tree's, or
 * cell_store.c's S2 by the marks that oriel_history_beside sets and nothing takes back); so of two accesses the one that looks
 * later finds the other, if it knows of the other history.  Who uses a window knows of those that are beside it since before the
 * members left its creation.  Who uses an older window and comes before it knows of the newer one is found by the newer one's.
 * window_memory.c and history.c call. */
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
