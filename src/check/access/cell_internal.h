/* What the files of cells share: an access on its way into one, and the steps that both who enters and who visits take there.
 * Everything is under the cell's lock.  cell_store.c, cell_scan.c and cell_repeat.h alone include it. */
#ifndef ORIEL_CHECK_ACCESS_CELL_INTERNAL_H
#define ORIEL_CHECK_ACCESS_CELL_INTERNAL_H

#include "base/atomic.h"
#include "check/access/access_kinds.h"
#include "check/access/cell_store.h"
#include "check/access/history_pages.h"

static inline const struct oriel_access *oriel_cell_trait(uint64_t what)
{
    return oriel_trait_at(what >> ORIEL_ENTRY_TRAIT);
}

static inline uint64_t oriel_cell_ticks(const struct oriel_cell_entry *entry)
{
    return atomic_load_explicit(&entry->ticks, memory_order_acquire);
}

static inline void oriel_cell_empty(struct oriel_cell_entry *entry)
{
    entry->what = 0;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&entry->ticks, 0, memory_order_relaxed);
}

static inline void oriel_cell_fill(struct oriel_cell_entry *entry, uint64_t what, uint64_t ticks)
{
    entry->what = 0; /* S4 */
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&entry->ticks, ticks, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    entry->what = what;
}

/* An access on its way into one cell. */
struct oriel_coming {
    struct oriel_insertion *arrival;
    int64_t base; /* of the cell */
    uint64_t first;
    uint64_t last;
    uint64_t what; /* as it will stand; 0: it does not */
    uint64_t ticks;
    oriel_shm_offset history;
    bool merged;
    bool repeats;                  /* one that is complete gives way to an equal one */
    struct oriel_cell_entry *spot; /* where it can stand */
};

/* What equal accesses that are complete give way to. */
static inline bool oriel_cell_repeats(const struct oriel_access *access)
{
    return (access->flags & ORIEL_ACCESS_SAME_OP) == 0 || access->kind == ORIEL_ACCESS_PUT;
}

/* Bytes of one cell; what: without them. */
static inline struct oriel_coming oriel_cell_coming(struct oriel_insertion *arrival,
                                                    oriel_shm_offset history, uint64_t what,
                                                    uint64_t at, uint64_t len_bytes)
{
    const struct oriel_access *access = arrival->access;
    uint64_t first = at & (ORIEL_CELL_BYTES - 1);
    uint64_t last = first + len_bytes - 1;
    return (struct oriel_coming){.arrival = arrival,
                                 .base = (int64_t)(at - first),
                                 .first = first,
                                 .last = last,
                                 .what = oriel_entry_with(what, first, last),
                                 .ticks = oriel_entry_ticks(access->issued, access->complete),
                                 .history = history,
                                 .repeats = oriel_cell_repeats(access)};
}

/* In cell_store.c: meets all that stands there, and then stands there itself.  NULL: in an entry with others (merged), or the board is
 * full. */
struct oriel_cell_entry *oriel_cell_enter(struct oriel_coming *coming, struct oriel_cell *cell);

/* Bytes of both: compares, and for an access that stays takes away what it supersedes. */
void oriel_cell_meet(struct oriel_coming *coming, struct oriel_cell_entry *entry);

/* Takes the bytes from first to last; what would be two entries then stays as it is. */
void oriel_cell_take(struct oriel_coming *coming, struct oriel_cell_entry *entry);

/* NULL: there is none. */
struct oriel_cell_entry *oriel_cell_free_entry(struct oriel_cell *cell);

/* Of a cell that had no room once: where few entries are left, those that are complete come into its first part, and the others
 * are given back, through which everyone would have to look for ever.  What is pending stays where it is. */
void oriel_cell_shorten(struct oriel_cell *whole);

#endif
