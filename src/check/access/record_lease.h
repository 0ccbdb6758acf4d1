/* Records of the tree that are lent: when such a record was complete, and what of it is pending, then stands in a line of its
 * origin's own, which comes again to its bytes, or to some of them, without the history's lock and lines, as long as nobody has
 * come there whom that concerns.  Long accesses of windows and loops of small ones have them, one run of bytes each, where one
 * thread makes all calls; the argument is in record_lease.c.  windows_access.c and callsite_cache.c come; history.c and its files settle. */
#ifndef ORIEL_CHECK_ACCESS_RECORD_LEASE_H
#define ORIEL_CHECK_ACCESS_RECORD_LEASE_H

#include "check/access/insert.h"

/* --- by the origin, with no lock held --- */

/* Whether a pending access to one run of bytes, without a request, is the same as a record that is lent, or as a part of it: it
 * stands there then, and oriel_history_complete completes it.  False, and nothing has happened: it has to be added. */
bool oriel_record_lease_come(oriel_shm_offset history, const struct oriel_access *access,
                             const struct oriel_access_extent *run);

/* Complete with now: what came without a group, and what came with this one; or the latter alone. */
void oriel_record_lease_complete(oriel_shm_offset history, uint64_t group, oriel_tick now,
                                 bool alone);

/* What came without a group, and is pending, stands in the tree. */
void oriel_record_lease_list(oriel_shm_offset history);

/* This process uses the history no more; nor the board. */
void oriel_record_lease_leave(oriel_shm_offset history);
void oriel_record_lease_stop(void);

/* --- under the history's lock --- */

/* By its origin, which has just completed it: it is lent if it has come often, and may be. */
void oriel_record_lease_offer(oriel_shm_offset place, struct oriel_history *history,
                              oriel_record_number number);

/* Its origin comes without the lock no more.  True: it is lent no more either, and may be changed. */
bool oriel_record_lease_recall(struct oriel_record *record);

/* The same of all records around the bytes from low to high; and of a history that is about to be emptied. */
void oriel_record_lease_recall_around(struct oriel_history *history, int64_t low, int64_t high);
void oriel_record_lease_recall_all(struct oriel_history *history);

/* One that is lent is met by an access: it is recalled if that concerns it, and conflicts are told.  True: it is lent no more. */
bool oriel_record_lease_meet(struct oriel_insertion *arrival, struct oriel_record *record,
                             const struct oriel_access_extent *runs);

#endif
