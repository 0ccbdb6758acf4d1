/* The path into a cell for an access that a call site repeats, one at a time. Most such accesses
 * overlap only traits that they have met before, and reuse the entry that they had. The table of
 * met traits then decides, without reading the traits themselves. An access takes the general path
 * (cell_store.c), under the same lock, if it meets a trait for the first time, in conflict, or in
 * part. S1 to S4 are those of cell_store.c. An entry in the pending slot is pending like those of
 * pending_list.c, but is in no list. */
#ifndef ORIEL_CHECK_ACCESS_CELL_REPEAT_H
#define ORIEL_CHECK_ACCESS_CELL_REPEAT_H

#include "base/atomic.h"
#include "base/delay.h"
#include "check/access/cell_internal.h"
#include "check/order/own_clock.h"

#define ORIEL_SMALL_INLINE static inline __attribute__((always_inline))

static inline struct oriel_cell *oriel_callsite_cell(struct oriel_page *page, uint64_t at)
{
    return &page->cells[at >> ORIEL_CELL_SHIFT & (ORIEL_PAGE_CELLS - 1)];
}

static inline struct oriel_history_ground oriel_history_ground(oriel_shm_offset history)
{
    const struct oriel_pages *pages =
        &((const struct oriel_history *)oriel_shm_at(history))->records.pages;
    return (struct oriel_history_ground){oriel_page_bucket(pages, 0), pages->count - 1};
}

/* Prefetches the lines of a byte's cell for writing, because acquiring the lock would wait for
 * them. */
ORIEL_SMALL_INLINE struct oriel_history_spot
oriel_history_expect(const struct oriel_history_ground *ground, uint64_t at)
{
    uint64_t number = at >> ORIEL_PAGE_SHIFT;
    const struct oriel_page_bucket *bucket = &ground->buckets[number & ground->last];
    struct oriel_page *page = oriel_page_in(bucket, number);
    if (oriel_likely(page != NULL)) {
        const struct oriel_cell *cell = oriel_callsite_cell(page, at);
        oriel_prefetch_to_write(cell);
        oriel_prefetch_to_write(&cell->entries[ORIEL_CELL_ENTRIES / 2]);
    }
    return (struct oriel_history_spot){bucket, page};
}

/* The relation between accesses of one trait (mine) and of another that they overlap. */
struct oriel_met {
    oriel_shm_offset mine;
    oriel_shm_offset trait;
    int32_t origin; /* of the other */
    bool peaceful;  /* they never conflict */
    bool gives_way; /* the other is removed when it is ordered before */
};
enum { ORIEL_METS = 256 };
extern struct oriel_met oriel_mets[ORIEL_METS]
    __attribute__((visibility("hidden"))); /* defined in cell_repeat.c */

static inline struct oriel_met *oriel_callsite_met(oriel_shm_offset mine, oriel_shm_offset trait)
{
    _Static_assert(ORIEL_METS == 1 << 8, "eight bits distinguish them");
    return &oriel_mets[(mine + (trait << 7)) * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

/* Returns the entry that the access can use, if the table of met traits decides about everything in
 * the cell. NULL: it does not. */
ORIEL_SMALL_INLINE struct oriel_cell_entry *oriel_callsite_look(struct oriel_cell *whole,
                                                                uint64_t mine, uint64_t screen,
                                                                bool repeats,
                                                                const oriel_tick *clock)
{
    struct oriel_cell_entry *spot = NULL;
    struct oriel_cell *cell = whole;
    do {
#pragma GCC unroll 7
        for (struct oriel_cell_entry *entry = cell->entries;
             entry < cell->entries + ORIEL_CELL_ENTRIES; entry++) {
            uint64_t what = entry->what;
            if (oriel_likely(oriel_entry_is_apart(what, screen)))
                continue;
            if (what == 0)
                continue;
            if (what == mine && repeats && !oriel_entry_pending(oriel_cell_ticks(entry))) {
                spot = entry; /* an equal access, complete */
                continue;
            }
            uint64_t ticks = oriel_cell_ticks(entry);
            oriel_shm_offset trait = what >> ORIEL_ENTRY_TRAIT;
            const struct oriel_met *met = oriel_callsite_met(mine >> ORIEL_ENTRY_TRAIT, trait);
            if (met->trait != trait || met->mine != mine >> ORIEL_ENTRY_TRAIT)
                return NULL;
            bool known = !oriel_entry_pending(ticks) &&
                         oriel_entry_complete(ticks) <=
                             clock[oriel_clock_index(met->origin, oriel_entry_complete(ticks))];
            if (!met->peaceful && !known)
                return NULL;
            if (!known || !met->gives_way)
                continue;
            if (oriel_entry_first(what) < oriel_entry_first(mine) ||
                oriel_entry_last(what) > oriel_entry_last(mine))
                return NULL;
            oriel_cell_empty(entry);
            spot = spot == NULL ? entry : spot;
        }
        cell = oriel_shm_at(cell->next);
    } while (oriel_unlikely(cell != NULL));
    return oriel_likely(spot != NULL) ? spot : oriel_cell_free_entry(whole);
}

/* A repeated access, in a history. */
struct oriel_callsite_arrival {
    oriel_shm_offset history;
    const struct oriel_access *access;
    oriel_conflict_fn *tell;
    void *closure;
};

/* In cell_repeat.c. Requires the cell's lock, and a cell without an equal access. entry: where the
 * access can be stored, or NULL for the general path. Returns NULL as oriel_history_hold does. */
struct oriel_cell_entry *oriel_callsite_enter(const struct oriel_callsite_arrival *again,
                                              const struct oriel_history_spot *spot, uint64_t mine,
                                              oriel_tick issued, uint64_t at,
                                              struct oriel_cell_entry *entry);

/* In cell_repeat.c: compares with the records of the tree around the bytes. */
void oriel_callsite_meet_tree(const struct oriel_callsite_arrival *again, uint64_t mine,
                              uint64_t at);

/* Like oriel_history_add_again. Requires that this process has nothing else outstanding in the
 * history, that its list has room for one more (oriel_pending_list_room), and that one thread makes
 * all calls. mine: the entry's word, in one cell of the page; screen: of mine. The caller keeps the
 * entry pending, and ends that with one of the next two functions. Returns NULL without side
 * effects if the access continues a loop, or the shared memory is full. */
ORIEL_SMALL_INLINE struct oriel_cell_entry *
oriel_history_hold(const struct oriel_callsite_arrival *again,
                   const struct oriel_history_spot *spot, uint64_t mine, uint64_t screen,
                   bool repeats, oriel_tick issued, uint64_t at)
{
    struct oriel_cell *cell = oriel_callsite_cell(spot->page, at);
    oriel_shm_word_lock(&cell->owner);
    struct oriel_cell_entry *entry = oriel_callsite_look(
        cell, mine, screen, repeats, (const oriel_tick *)oriel_order_own.row->known);
    oriel_delay();
    if (oriel_likely(entry != NULL && entry->what == mine))
        atomic_store_explicit(&entry->ticks, oriel_entry_ticks(issued, ORIEL_TICK_PENDING),
                              memory_order_relaxed);
    else
        entry = oriel_callsite_enter(again, spot, mine, issued, at, entry);
    oriel_delay();
    bool wide = atomic_load(&spot->bucket->wide) != 0; /* S2 */
    oriel_shm_word_unlock(&cell->owner);
    if (oriel_unlikely(wide && entry != NULL))
        oriel_callsite_meet_tree(again, mine, at);
    return entry;
}

/* Completes the entry. */
ORIEL_SMALL_INLINE void oriel_history_held_complete(struct oriel_cell_entry *entry,
                                                    oriel_tick issued, oriel_tick now)
{
    atomic_store_explicit(&entry->ticks, oriel_entry_completed(issued, now), memory_order_release);
}

/* Moves the entry to the list of pending entries. */
static inline void oriel_history_held_release(oriel_shm_offset place, struct oriel_cell *cell,
                                              struct oriel_cell_entry *entry,
                                              const struct oriel_access *access)
{
    oriel_pending_list_add(place, cell, entry, access->group, access->origin);
}

#endif
