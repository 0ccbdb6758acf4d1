/* What the files of cells share: an access that is about to be stored in a cell, and the steps that
 * storing and scanning have in common. Everything is under the cell's lock. */
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

/* An access that is about to be stored in one cell. */
struct oriel_coming {
    struct oriel_insertion *arrival;
    int64_t base; /* offset of the cell's first byte */
    uint64_t first;
    uint64_t last;
    uint64_t what; /* the entry's word; 0: the access is only compared */
    uint64_t ticks;
    oriel_shm_offset history;
    bool merged;
    bool repeats;                  /* it replaces an equal access that is complete */
    struct oriel_cell_entry *spot; /* an entry that it can use */
};

/* Whether the access replaces an equal one that is complete. */
static inline bool oriel_cell_repeats(const struct oriel_access *access)
{
    return (access->flags & ORIEL_ACCESS_SAME_OP) == 0 || access->kind == ORIEL_ACCESS_PUT;
}

/* Prepares the part of the access within one cell: len_bytes at `at`. what: the entry's word
 * without its bytes. */
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

/* In cell_store.c. Compares the access with all entries of the cell, then stores it. Returns NULL
 * if it was merged into an entry (merged is set), or the shared memory is full. */
struct oriel_cell_entry *oriel_cell_enter(struct oriel_coming *coming, struct oriel_cell *cell);

/* Compares the access with an entry that has some of its bytes, and reports a conflict. For an
 * access that will be stored, removes the bytes that it supersedes, or merges the two. */
void oriel_cell_meet(struct oriel_coming *coming, struct oriel_cell_entry *entry);

/* Removes the access's bytes from the entry. An entry that would become two stays unchanged. */
void oriel_cell_claim(struct oriel_coming *coming, struct oriel_cell_entry *entry);

/* NULL: the cell has none. */
struct oriel_cell_entry *oriel_cell_free_entry(struct oriel_cell *cell);

/* Returns a free entry of the cell, which grows if it has none; NULL: the shared memory is full. */
struct oriel_cell_entry *oriel_cell_make_room(struct oriel_cell *whole);

/* Frees the further parts of a cell, because every later access would search them. Does so only if
 * few entries are in use, and none in the further parts is pending. Their entries move to the first
 * part (cell_store.c, S5). */
void oriel_cell_shorten(struct oriel_cell *whole);

#endif
