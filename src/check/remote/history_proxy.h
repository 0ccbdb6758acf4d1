/* Histories of members' parts of windows, on this machine's board or on another's.  A part of a window over several machines is
 * named by a number that means the same on all of them; history.h says what the functions do.  windows*.c call; remote_answer.c
 * enters for others. */
#ifndef ORIEL_CHECK_REMOTE_HISTORY_PROXY_H
#define ORIEL_CHECK_REMOTE_HISTORY_PROXY_H

#include "check/access/history.h"

/* A history on this board that other machines may work on, by the number that they know; 0: the board is full. */
uint64_t oriel_part_open(void);
void oriel_part_close(oriel_shm_offset history);

/* Another machine works on it, and it stays until that has left; false: it is none, or closed. */
bool oriel_part_enter(oriel_shm_offset history);
void oriel_part_leave(oriel_shm_offset history);

/* From a number to this process's view: the history's place here, or a place elsewhere. */
oriel_shm_offset oriel_part_of(uint64_t number);
bool oriel_part_is_far(oriel_shm_offset part);

uint64_t oriel_part_add(oriel_shm_offset part, const struct oriel_access *access,
                        const struct oriel_access_extent *extents, size_t count,
                        oriel_conflict_fn *tell, void *closure);

/* All pending accesses of the origin, and those of the ticket. */
void oriel_part_complete(oriel_shm_offset part, int32_t origin, uint64_t ticket, oriel_tick now);
void oriel_part_complete_one(oriel_shm_offset part, uint64_t ticket, oriel_tick now);
void oriel_part_flag(oriel_shm_offset part, int32_t origin, uint8_t flags);
void oriel_part_request_done(oriel_shm_offset part, uint64_t ticket);

#endif
