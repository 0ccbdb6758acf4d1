/* The accesses to one memory, and their conflicts: one rank's part of a window (in the checker's
 * shared memory, for all processes), or a process's own buffers. Bytes are exact: an access is a
 * set of runs at equal distances. An access is added before it is issued, and compared with all
 * stored accesses. It stays pending until its completion is reported. Accesses that can no longer
 * conflict with anything are removed: those that a later, ordered one covers, and those that all
 * ranks know to be complete. Adjacent accesses of one origin, clock snapshot, kind and site are
 * merged. Thread- and process-safe. */
#ifndef ORIEL_CHECK_ACCESS_HISTORY_H
#define ORIEL_CHECK_ACCESS_HISTORY_H

#include "check/common/access_types.h"

/* Makes an empty history in the checker's shared memory, for a memory of about that size (0:
 * unknown). Returns 0 when the shared memory is full. */
oriel_shm_offset oriel_history_make(uint64_t size_bytes);
void oriel_history_free(oriel_shm_offset history);

/* This process adds nothing more. Each process calls this before the last one frees the history. */
void oriel_history_leave(oriel_shm_offset history);

/* Adds an access to count extents and reports each conflict of it with an unordered one, at most
 * one per pair of sites. Returns the ticket by which the origin completes it. It is 0 if the access
 * is already complete, or the shared memory is full (counted). Without ORIEL_ACCESS_ALONE and
 * group, only oriel_history_complete of its origin is certain to complete it. */
uint64_t oriel_history_add(oriel_shm_offset history, const struct oriel_access *access,
                           const struct oriel_access_extent *extents, size_t count,
                           oriel_conflict_fn *tell, void *closure);

/* Where its cells are found, as long as the history exists. */
struct oriel_history_ground {
    const struct oriel_page_bucket *buckets;
    uint64_t last; /* of them: a power of 2, less 1 */
};

/* Where the cell of a byte is. */
struct oriel_history_spot {
    const struct oriel_page_bucket *bucket;
    struct oriel_page *page; /* NULL: not made yet */
};

/* Like oriel_history_add, for one run of plain bytes that is pending, without ORIEL_ACCESS_ALONE.
 * spot: of its first byte. *trait: 0 at first, and reused for accesses that differ only in numbers
 * and bytes. Returns whether the access is in cells alone, where oriel_history_complete_cells finds
 * it. */
bool oriel_history_add_again(oriel_shm_offset history, struct oriel_history_spot spot,
                             const struct oriel_access *access, oriel_shm_offset *trait,
                             const struct oriel_access_extent *run, oriel_conflict_fn *tell,
                             void *closure);

/* Compares like oriel_history_add, and stores nothing: for accesses that cannot matter to any later
 * one. */
void oriel_history_look(oriel_shm_offset history, const struct oriel_access *access,
                        const struct oriel_access_extent *extents, size_t count,
                        oriel_conflict_fn *tell, void *closure);

/* Completes all pending accesses of the origin without a group, and those of the group (0: none),
 * with its number now. (A flush, an unlock, the end of an epoch.) */
void oriel_history_complete(oriel_shm_offset history, int32_t origin, uint64_t group,
                            oriel_tick now);

/* The same if all of them are in cells (oriel_history_add_again). */
void oriel_history_complete_cells(oriel_shm_offset history, int32_t origin, uint64_t group,
                                  oriel_tick now);

/* Completes the access with this ticket. (A request of a buffer.) */
void oriel_history_complete_one(oriel_shm_offset history, uint64_t ticket, oriel_tick now);

/* Removes the access with this ticket: the buffer is the program's again. Only for histories of
 * such accesses: those that it has superseded do not come back. */
void oriel_history_end_one(oriel_shm_offset history, uint64_t ticket);

/* Sets flags of an origin's pending accesses. The second marks the request of the access with this
 * ticket as done. */
void oriel_history_flag(oriel_shm_offset history, int32_t origin, uint8_t flags);
void oriel_history_request_done(oriel_shm_offset history, uint64_t ticket);

/* Removes the bytes: memory that was freed or detached. */
void oriel_history_forget(oriel_shm_offset history, int64_t offset, uint64_t len_bytes);

/* The accesses stored now, and the bytes that they use; for tests and the summary. */
void oriel_history_size(oriel_shm_offset history, uint64_t *accesses, uint64_t *bytes);

/* The conflict table alone: whether two unordered accesses to the same bytes are an error
 * (MPI-4.1, 13.7). */
bool oriel_access_conflicts(const struct oriel_access *a, const struct oriel_access *b);

/* The size of an accumulate's elements, less 1: a mask, because all sizes are powers of 2. 0 for
 * elements of an unknown type. */
static inline uint64_t oriel_element_last_byte(const struct oriel_access *access)
{
    return access->element < ORIEL_KIND_COUNT ? oriel_kinds[access->element].extent_bytes - 1 : 0;
}

/* Whether every access that conflicts with the earlier one also conflicts with the later one. The
 * earlier one is ordered before it. */
bool oriel_access_supersedes(const struct oriel_access *later, const struct oriel_access *earlier);

#endif
