/* The regions that a member has attached to a dynamic window: a list in the board, under the lock of the window's notes.  member_state.c
 * calls. */
#ifndef ORIEL_CHECK_ORDER_ATTACHED_REGIONS_H
#define ORIEL_CHECK_ORDER_ATTACHED_REGIONS_H

#include "check/order/member_state.h"

void oriel_attached_add(oriel_shm_offset *list, struct oriel_member_range region);

/* The one that begins there. */
void oriel_attached_remove(oriel_shm_offset *list, uint64_t address);
void oriel_attached_empty(oriel_shm_offset *list);

/* Whether count runs, from *run on at equal distances, lie in regions, which may touch.  If not, *run is the first that does not,
 * and *nearest the region that lies nearest to what it lacks.  Takes a time that depends on the regions alone. */
bool oriel_attached_has(oriel_shm_offset list, struct oriel_member_range *run, uint64_t count,
                        int64_t stride_bytes, struct oriel_member_range *nearest);

#endif
