/* The regions that a member has attached to a dynamic window: a list in the checker's shared
 * memory, under the lock of the window's member states. */
#ifndef ORIEL_CHECK_ORDER_ATTACHED_REGIONS_H
#define ORIEL_CHECK_ORDER_ATTACHED_REGIONS_H

#include "check/order/member_state.h"

void oriel_attached_add(oriel_shm_offset *list, struct oriel_member_range region);

/* Removes the region that begins at the address. */
void oriel_attached_remove(oriel_shm_offset *list, uint64_t address);
void oriel_attached_empty(oriel_shm_offset *list);

/* Whether count runs at equal distances, the first one *run, are in regions, which may touch. If
 * not, *run is the first run that is not, and *nearest the region nearest to its missing bytes. The
 * cost depends on the number of regions only. */
bool oriel_attached_has(oriel_shm_offset list, struct oriel_member_range *run, uint64_t count,
                        int64_t stride_bytes, struct oriel_member_range *nearest);

#endif
