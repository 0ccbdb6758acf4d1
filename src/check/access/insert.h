/* The layout of a history in the checker's shared memory, and the lists of its pending records.
 * Everything is under the history's lock. Private to check/access/. */
#ifndef ORIEL_CHECK_ACCESS_INSERT_H
#define ORIEL_CHECK_ACCESS_INSERT_H

#include "base/atomic.h"
#include "check/access/history.h"
#include "check/access/record_tree.h"
#include "check/order/order.h"

enum {
    ORIEL_LANES = 64,
    ORIEL_INSERTION_JOINS = 4,       /* most stored records that an access is merged with */
    ORIEL_INSERTION_REPORTED = 16,   /* most pairs of sites that are reported for one access */
    ORIEL_HISTORY_SWEEP_FIRST = 256, /* records before it is compacted for the first time */
};

struct oriel_history_hint {
    oriel_record_number number;
    uint32_t serial;
};

/* Per origin, or per group: the pending records, and the last records of a loop. */
struct oriel_history_lane {
    oriel_record_number pending;    /* the newest first */
    struct oriel_history_hint last; /* added last; previous: before that */
    struct oriel_history_hint previous;
    struct oriel_history_hint done; /* completed last */
};

struct oriel_history {
    struct oriel_shm_lock lock;
    uint32_t busy;
    uint32_t sweep_at;                /* compacted when it has more records */
    struct oriel_shm_lock alias_lock; /* aliased_windows.c */
    _Atomic oriel_shm_offset alias;
    struct oriel_history_lane lanes[ORIEL_LANES];
    struct oriel_records records;
};

/* An access that is being inserted. */
struct oriel_insertion {
    struct oriel_history *history;
    const struct oriel_access *access;
    /* NULL: the shared memory had no room for it; the access then counts as ordered after all
     * complete ones */
    const oriel_tick *clock;
    oriel_conflict_fn *tell;
    void *closure;
    bool stays;
    int reported;
    struct oriel_insertion_conflict {
        struct oriel_access earlier;
        int64_t offset;
        uint64_t len_bytes;
    } conflicts[ORIEL_INSERTION_REPORTED];
    size_t near;  /* records at or around its bytes */
    size_t joins; /* those that it can be merged with */
    oriel_record_number join[ORIEL_INSERTION_JOINS];
};

/* Sets no more fields than needed, because most accesses use it. */
static inline void oriel_insertion_begin(struct oriel_insertion *arrival, oriel_shm_offset history,
                                         const struct oriel_access *access, oriel_conflict_fn *tell,
                                         void *closure, bool stays)
{
    arrival->history = oriel_shm_at(history);
    arrival->access = access;
    arrival->clock = oriel_order_snapshot_clock(access->snapshot);
    arrival->tell = tell;
    arrival->closure = closure;
    arrival->stays = stays;
    arrival->reported = 0;
}

/* In history.c. From now on accesses to cells of the bytes from low to high continue with the
 * tree. */
void oriel_history_widen(oriel_shm_offset history, int64_t low, int64_t high);

/* In history.c. Compares an access that is stored in a cell with the records of the tree. */
void oriel_insertion_meet_tree(struct oriel_insertion *arrival, oriel_shm_offset history,
                               const struct oriel_access_extent *runs);

static inline bool oriel_access_pending(const struct oriel_access *access)
{
    return access->complete == ORIEL_TICK_PENDING;
}

/* Whether it is in a lane: it is pending, or may be completed once more. */
static inline bool oriel_access_is_open(const struct oriel_access *access)
{
    return oriel_access_pending(access) || access->group != 0;
}

/* The lane of an origin's open accesses (group 0), or of a group's. */
struct oriel_history_lane *oriel_history_lane_of(struct oriel_history *history, int32_t origin,
                                                 uint64_t group);
struct oriel_history_lane *oriel_history_lane_of_access(struct oriel_history *history,
                                                        const struct oriel_access *access);

/* In history.c. Acquires and releases the history's lock. */
struct oriel_history *oriel_history_enter(oriel_shm_offset history);
void oriel_history_exit(struct oriel_history *history);

/* Inserts the record into its lane, and removes it. */
void oriel_history_chain(struct oriel_history *history, oriel_record_number number);
void oriel_history_unchain(struct oriel_history *history, oriel_record_number number);

/* Removes the record from its lane and from the tree, and frees it. */
void oriel_history_discard(struct oriel_history *history, oriel_record_number number);

struct oriel_history_hint oriel_history_hint_at(struct oriel_history *history,
                                                oriel_record_number number);

/* The ticket of a record. The records of one access with ORIEL_ACCESS_ALONE are chained by their
 * tickets, which are stored in snapshot. */
uint64_t oriel_history_ticket(struct oriel_history *history, oriel_record_number number);

/* Returns the record, or NULL if it was freed. */
struct oriel_record *oriel_history_follow(struct oriel_history *history,
                                          struct oriel_history_hint hint);

/* Removes records that are no longer needed, and sets when that is done next. */
void oriel_history_shorten(struct oriel_history *history);

/* Whether the accesses differ at most in when they were issued and completed. may_be_one: they also
 * have one completion, and may be merged. */
bool oriel_access_alike(const struct oriel_access *a, const struct oriel_access *b);
bool oriel_access_may_be_one(const struct oriel_access *a, const struct oriel_access *b);

/* Removes the bytes of runs from a record. Returns false if they stay, because no records can
 * represent the rest, or there is no room. */
bool oriel_history_take_bytes(struct oriel_history *history, oriel_record_number number,
                              const struct oriel_access_extent *runs);

/* Whether the access was issued after the origin's completion with that number. Where the order of
 * threads is tracked, the number is of the thread that completed it. */
static inline bool oriel_insertion_knows(const struct oriel_insertion *arrival, int32_t origin,
                                         oriel_tick complete) /* 1 */
{
    return (oriel_clock_shift == 0 && origin == arrival->access->origin) ||
           arrival->clock == NULL ||
           complete <= arrival->clock[oriel_clock_index(origin, complete)];
}

/* Notes the conflict at those bytes, once for each site of an earlier access. Adjacent bytes of the
 * same site are added to it: cells and records divide accesses. */
void oriel_insertion_report(struct oriel_insertion *arrival, const struct oriel_access *earlier,
                            int64_t offset, uint64_t len_bytes);

/* Reports what was noted. Each access ends with it. */
void oriel_insertion_tell(const struct oriel_insertion *arrival);
static inline void oriel_insertion_end(const struct oriel_insertion *arrival)
{
    if (oriel_unlikely(arrival->reported > 0))
        oriel_insertion_tell(arrival);
}

/* Compares the access with the records at its bytes and reports conflicts. For an access that will
 * be stored, also removes what it supersedes, and collects the records that it can be merged with.
 * again: only collects. */
void oriel_insertion_meet(struct oriel_insertion *arrival, const struct oriel_access_extent *runs,
                          bool again);

/* Stores the access. Returns the record that now has its bytes and their mark (cell_store.c, S2);
 * 0: the shared memory is full. */
oriel_record_number oriel_insertion_keep(struct oriel_insertion *arrival,
                                         const struct oriel_access_extent *runs);

#endif
