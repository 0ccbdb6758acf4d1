/* Uses of buffers that are not over: for each group where it has left accesses, and which pages are watched for it.  local_accesses.c
 * calls, under its lock. */
#ifndef ORIEL_CHECK_LOCAL_BUFFER_USES_H
#define ORIEL_CHECK_LOCAL_BUFFER_USES_H

#include "check/shm/shm.h"

#include <stdbool.h>
#include <stddef.h>

struct oriel_use_range {
    uint64_t low;
    uint64_t high;
};

struct oriel_use {
    uint64_t group;
    size_t histories_count;
    size_t histories_room;
    oriel_shm_offset *histories;
    size_t ranges_count;
    size_t ranges_room;
    struct oriel_use_range *ranges; /* of addresses */
    struct oriel_use *next;         /* of the unused ones */
};

/* The group's, NULL when it has none. */
struct oriel_use *oriel_use_find(uint64_t group);

/* The group's, made where it has none; NULL: no memory. */
struct oriel_use *oriel_use_of(uint64_t group);

/* Whether any group has one. */
extern size_t oriel_uses_open __attribute__((visibility("hidden")));
static inline bool oriel_uses_are_open(void)
{
    return oriel_uses_open > 0;
}

/* An access of the group goes to the history; false: no memory to remember it. */
bool oriel_use_note(struct oriel_use *use, oriel_shm_offset history);

/* These addresses are watched for it, or were already. */
void oriel_use_watch(struct oriel_use *use, uint64_t low, uint64_t high);

/* It is over: its pages are watched no more. */
void oriel_use_end(struct oriel_use *use);

/* The history goes: nobody may complete anything there. */
void oriel_uses_forget(oriel_shm_offset history);

/* All are over. */
void oriel_uses_clear(void);

#endif
