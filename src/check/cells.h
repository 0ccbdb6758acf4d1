/* What the files of cells share: an access on its way into one, and the steps that both who enters and who visits take there.
 * Everything is under the cell's lock.  small.c and small_visits.c alone include it. */
#ifndef ORIEL_CHECK_CELLS_H
#define ORIEL_CHECK_CELLS_H

#include "check/pages.h"
#include "check/small.h"
#include "check/traits.h"

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
    struct oriel_arrival *arrival;
    int64_t base; /* of the cell */
    uint64_t first;
    uint64_t last;
    uint64_t what; /* as it will stand; 0: it does not */
    uint64_t ticks;
    oriel_place history;
    bool merged;
    bool repeats;                  /* one that is complete gives way to an equal one */
    struct oriel_cell_entry *spot; /* where it can stand */
};

/* Bytes of both: compares, and for an access that stays takes away what it supersedes. */
void oriel_cell_meet(struct oriel_coming *coming, struct oriel_cell_entry *entry);

/* Takes the bytes from first to last; what would be two entries then stays as it is. */
void oriel_cell_take(struct oriel_coming *coming, struct oriel_cell_entry *entry);

/* NULL: there is none. */
struct oriel_cell_entry *oriel_cell_free_entry(struct oriel_cell *cell);

#endif
