/* What history.c, insert.c, compact.c and aliased_windows.c share: the history as it lies in the board, and the lists of what is
 * pending in it.  Everything is under the history's lock.  Nobody else may include it. */
#ifndef ORIEL_CHECK_ACCESS_INSERT_H
#define ORIEL_CHECK_ACCESS_INSERT_H

#include "check/access/history.h"
#include "check/access/record_tree.h"
#include "check/order/order.h"

enum {
    ORIEL_LANES = 64,
    ORIEL_INSERTION_JOINS = 4,       /* an access joins with so many that stand */
    ORIEL_INSERTION_TOLD = 16,       /* pairs of sites that are told of one access */
    ORIEL_HISTORY_SWEEP_FIRST = 256, /* records before it is shortened for the first time */
};

struct oriel_history_hint {
    oriel_record_number number;
    uint32_t serial;
};

/* By origin, or by group: what is pending, and where a loop was last. */
struct oriel_history_lane {
    oriel_record_number pending;    /* the newest first */
    struct oriel_history_hint last; /* added last, and before that */
    struct oriel_history_hint previous;
    struct oriel_history_hint done; /* completed last */
};

struct oriel_history {
    struct oriel_shm_lock lock;
    uint32_t busy;
    uint32_t sweep_at;                 /* records */
    struct oriel_shm_lock beside_lock; /* aliased_windows.c */
    _Atomic oriel_shm_offset beside;
    struct oriel_history_lane lanes[ORIEL_LANES];
    struct oriel_records records;
};

/* An access on its way in. */
struct oriel_insertion {
    struct oriel_history *history;
    const struct oriel_access *access;
    const oriel_tick *
        clock; /* NULL: the board had no room for it; then it is ordered behind all that is complete */
    oriel_conflict_fn *tell;
    void *closure;
    bool stays;
    int told;
    struct oriel_site sites[ORIEL_INSERTION_TOLD];
    size_t near;  /* records at or around its bytes */
    size_t joins; /* those with which it can be one */
    oriel_record_number join[ORIEL_INSERTION_JOINS];
};

/* Not a word more than is needed: it is made for most accesses. */
static inline void oriel_insertion_begin(struct oriel_insertion *arrival, oriel_shm_offset history,
                                         const struct oriel_access *access, oriel_conflict_fn *tell,
                                         void *closure, bool stays)
{
    arrival->history = oriel_shm_at(history);
    arrival->access = access;
    arrival->clock = oriel_order_snapshot_clock(access->moment);
    arrival->tell = tell;
    arrival->closure = closure;
    arrival->stays = stays;
    arrival->told = 0;
}

/* In history.c: who comes to a cell of the bytes from low to high looks for more than cells from now on. */
void oriel_history_widen(oriel_shm_offset history, int64_t low, int64_t high);

/* In history.c: compares one that stands in a cell with what stands in the tree. */
void oriel_insertion_meet_tree(struct oriel_insertion *arrival, oriel_shm_offset history,
                               const struct oriel_access_extent *runs);

static inline bool oriel_access_pending(const struct oriel_access *access)
{
    return access->complete == ORIEL_TICK_PENDING;
}

/* The lane of an origin's pending accesses (group 0), or of a group's. */
struct oriel_history_lane *oriel_history_lane_of(struct oriel_history *history, int32_t origin,
                                                 uint64_t group);
struct oriel_history_lane *oriel_history_lane_of_access(struct oriel_history *history,
                                                        const struct oriel_access *access);

/* In history.c: takes the history's lock, and gives it back. */
struct oriel_history *oriel_history_enter(oriel_shm_offset history);
void oriel_history_exit(struct oriel_history *history);

/* Into its lane, and out of it. */
void oriel_history_chain(struct oriel_history *history, oriel_record_number number);
void oriel_history_unchain(struct oriel_history *history, oriel_record_number number);

/* Out of everything. */
void oriel_history_discard(struct oriel_history *history, oriel_record_number number);

struct oriel_history_hint oriel_history_hint_at(struct oriel_history *history,
                                                oriel_record_number number);

/* Of a record; those of one access that stays alone are chained by their tickets, in the place of its moment. */
uint64_t oriel_history_ticket(struct oriel_history *history, oriel_record_number number);

/* The record, unless it has gone: then NULL. */
struct oriel_record *oriel_history_follow(struct oriel_history *history,
                                          struct oriel_history_hint hint);

/* Fewer records, if any can go; and when the next time is. */
void oriel_history_shorten(struct oriel_history *history);

/* Differ in nothing but when they are complete; and not in that either. */
bool oriel_access_alike(const struct oriel_access *a, const struct oriel_access *b);
bool oriel_access_may_be_one(const struct oriel_access *a, const struct oriel_access *b);

/* Takes the bytes of runs from a record; what it cannot express, or has no room for, stays. */
void oriel_history_take_bytes(struct oriel_history *history, oriel_record_number number,
                              const struct oriel_access_extent *runs);

/* Whether the access is issued behind what the origin has completed with that number. */
static inline bool oriel_insertion_knows(const struct oriel_insertion *arrival, int32_t origin,
                                         oriel_tick complete) /* 1 */
{
    return origin == arrival->access->origin || arrival->clock == NULL ||
           complete <= arrival->clock[origin];
}

/* Tells the conflict at those bytes, once for each site that was there. */
void oriel_insertion_tell(struct oriel_insertion *arrival, const struct oriel_access *earlier,
                          int64_t offset, uint64_t len_bytes);

/* Compares with what stands at the bytes and tells conflicts; for an access that stays it takes away what that supersedes, and
 * finds what it can join.  again: only the last. */
void oriel_insertion_meet(struct oriel_insertion *arrival, const struct oriel_access_extent *runs,
                          bool again);

/* The record that has the bytes from now on, and the mark that they have got (cell_store.c, S2); 0: the board is full. */
oriel_record_number oriel_insertion_keep(struct oriel_insertion *arrival,
                                         const struct oriel_access_extent *runs);

#endif
