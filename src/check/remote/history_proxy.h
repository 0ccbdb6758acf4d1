/* Histories of members' parts of windows, in the shared memory of this node or another one. A
 * number that is valid on all nodes identifies a part of a window over several nodes. history.h
 * describes the functions. */
#ifndef ORIEL_CHECK_REMOTE_HISTORY_PROXY_H
#define ORIEL_CHECK_REMOTE_HISTORY_PROXY_H

#include "check/access/history.h"

/* Creates a history on this node for use by other nodes; returns its number. 0: the shared memory
 * is full. */
uint64_t oriel_part_open(void);

/* Opens a history of this node for other nodes, which may be open already; the same. */
uint64_t oriel_part_share(oriel_shm_offset history);

/* Frees the history, which other nodes may be using. */
void oriel_part_close(oriel_shm_offset history);

/* What a handle's owner has stored under its key, on this node or another one. */
enum { ORIEL_PART_HANDLE = 101, ORIEL_PART_HANDLE_BYTES = 256 }; /* words[0]: above order.h's */
bool oriel_part_load_handle(const struct oriel_key *key, void *out);
bool oriel_part_load_here(const struct oriel_key *key, void *out); /* on this node */

/* A request of another node uses the history, which stays until oriel_part_leave. False: no such
 * part, or a closed one. */
bool oriel_part_enter(oriel_shm_offset history);
void oriel_part_leave(oriel_shm_offset history);

/* Converts a number to this process's view: the history's offset on this node, or a part on another
 * node. */
oriel_shm_offset oriel_part_of(uint64_t number);
bool oriel_part_is_remote(oriel_shm_offset part);

uint64_t oriel_part_add(oriel_shm_offset part, const struct oriel_access *access,
                        const struct oriel_access_extent *extents, size_t count,
                        oriel_conflict_fn *tell, void *closure);

/* All outstanding accesses of the origin, and those of the ticket. */
void oriel_part_complete(oriel_shm_offset part, int32_t origin, uint64_t ticket, oriel_tick now);
void oriel_part_complete_one(oriel_shm_offset part, uint64_t ticket, oriel_tick now);
void oriel_part_flag(oriel_shm_offset part, int32_t origin, uint8_t flags);
void oriel_part_request_done(oriel_shm_offset part, uint64_t ticket);

#endif
