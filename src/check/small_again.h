/* The way into a cell of accesses that a call makes again, one at a time: most meet nothing but such as they have met before, and
 * take the place that they had.  What an access has found out about the traits that it met decides then, without a look at those;
 * what it meets for the first time, or in conflict, or in part, goes the way of all others (small.c), under the same lock.  S1 to
 * S4 are small.c's.  A held entry is pending like those of underway.c, which has no list to keep of it.  again.c is one with it,
 * and held.h. */
#ifndef ORIEL_CHECK_SMALL_AGAIN_H
#define ORIEL_CHECK_SMALL_AGAIN_H

#include "base/atomic.h"
#include "base/delay.h"
#include "check/cells.h"
#include "check/loops.h"

#define ORIEL_SMALL_INLINE static inline __attribute__((always_inline))

/* The cell of the byte is about to be used: its lines are asked for, since a lock waits for them in vain. */
ORIEL_SMALL_INLINE struct oriel_history_spot oriel_history_expect(oriel_place place, int64_t offset)
{
    const struct oriel_history *history = oriel_board_at(place);
    uint64_t number = (uint64_t)offset >> ORIEL_PAGE_SHIFT;
    const struct oriel_page_bucket *bucket = oriel_page_bucket(&history->records.pages, number);
    struct oriel_page *page = oriel_page_in(bucket, number);
    if (oriel_likely(page != NULL)) {
        const struct oriel_cell *cell = &page->cells[(uint64_t)offset >> ORIEL_CELL_SHIFT & (ORIEL_PAGE_CELLS - 1)];
        __builtin_prefetch(cell, 1);
        __builtin_prefetch(&cell->entries[ORIEL_CELL_ENTRIES / 2], 1);
    }
    return (struct oriel_history_spot){bucket, page};
}

static inline struct oriel_cell *oriel_again_cell(struct oriel_page *page, uint64_t at)
{
    return &page->cells[at >> ORIEL_CELL_SHIFT & (ORIEL_PAGE_CELLS - 1)];
}

/* What accesses of a trait are to those of another that they meet. */
struct oriel_met {
    oriel_place mine;
    oriel_place trait;
    int32_t origin; /* of the other */
    bool peaceful;  /* they never conflict */
    bool gives_way; /* the other, when it is ordered before */
};
enum { ORIEL_METS = 256 };
extern struct oriel_met oriel_mets[ORIEL_METS] __attribute__((visibility("hidden"))); /* small_again.c's own */

static inline struct oriel_met *oriel_again_met(oriel_place mine, oriel_place trait)
{
    _Static_assert(ORIEL_METS == 1 << 8, "as many as eight bits tell apart");
    return &oriel_mets[(mine + (trait << 7)) * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

/* Where the access can stand, when nothing that is there is more than can be decided so; NULL: something is. */
ORIEL_SMALL_INLINE struct oriel_cell_entry *oriel_again_look(struct oriel_cell *whole, uint64_t mine, bool repeats,
                                                             const oriel_tick *clock)
{
    uint64_t last = mine << 6 & ORIEL_ENTRY_FIRST; /* as the first of an entry stands */
    uint64_t first = mine >> 6 & ORIEL_ENTRY_LAST;
    struct oriel_cell_entry *spot = NULL;
    struct oriel_cell *cell = whole;
    do {
#pragma GCC unroll 7
        for (struct oriel_cell_entry *entry = cell->entries; entry < cell->entries + ORIEL_CELL_ENTRIES; entry++) {
            uint64_t what = entry->what;
            if (what == 0) {
                if (spot == NULL && !oriel_entry_pending(oriel_cell_ticks(entry)))
                    spot = entry;
                continue;
            }
            if ((what & ORIEL_ENTRY_FIRST) > last || (what & ORIEL_ENTRY_LAST) < first)
                continue;
            uint64_t ticks = oriel_cell_ticks(entry);
            if (what == mine && repeats && !oriel_entry_pending(ticks)) {
                spot = entry; /* the same again */
                continue;
            }
            oriel_place trait = what >> ORIEL_ENTRY_TRAIT;
            const struct oriel_met *met = oriel_again_met(mine >> ORIEL_ENTRY_TRAIT, trait);
            if (met->trait != trait || met->mine != mine >> ORIEL_ENTRY_TRAIT)
                return NULL;
            bool known = !oriel_entry_pending(ticks) && oriel_entry_complete(ticks) <= clock[met->origin];
            if (!known && !met->peaceful)
                return NULL;
            if (!known || !met->gives_way)
                continue;
            if ((what & ORIEL_ENTRY_FIRST) < (mine & ORIEL_ENTRY_FIRST) || (what & ORIEL_ENTRY_LAST) > (mine & ORIEL_ENTRY_LAST))
                return NULL;
            oriel_cell_empty(entry);
            spot = spot == NULL ? entry : spot;
        }
        cell = oriel_board_at(cell->next);
    } while (oriel_unlikely(cell != NULL));
    return spot;
}

/* In small_again.c: the way of all others, under the cell's lock; NULL: the board is full. */
struct oriel_cell_entry *oriel_small_enter_as_all(struct oriel_arrival *arrival, oriel_place history,
                                                  oriel_place trait, const struct oriel_extent *run, struct oriel_cell *cell);

/* As oriel_history_add_again, where nothing else of this process is pending in the history, and one thread makes all calls: the
 * caller holds it, and has to end that by one of the two that follow.  NULL, and nothing has happened: it is one for
 * oriel_history_add_again. */
ORIEL_SMALL_INLINE struct oriel_cell_entry *
oriel_history_hold(oriel_place place, struct oriel_history_spot spot, const struct oriel_access *access, oriel_place trait,
                   const struct oriel_extent *run, oriel_conflict_fn *tell, void *closure)
{
    struct oriel_arrival arrival;
    uint64_t at = (uint64_t)run->offset;
    uint64_t first = at & (ORIEL_CELL_BYTES - 1);
    uint64_t last = first + run->len_bytes - 1;
    const oriel_tick *clock = oriel_order_moment_clock(access->moment);
    if (oriel_unlikely(spot.page == NULL || trait == 0 || last >= ORIEL_CELL_BYTES || clock == NULL ||
                       !oriel_underway_room(1) || !oriel_loop_leave(oriel_loop_of(place, trait, run->offset), run->offset)))
        return NULL;
    uint64_t mine = trait << ORIEL_ENTRY_TRAIT | first << 14 | last << 8 | access->flags;
    struct oriel_cell *cell = oriel_again_cell(spot.page, at);
    uint64_t bit = UINT64_C(1) << (at >> ORIEL_CELL_SHIFT & (ORIEL_PAGE_CELLS - 1));
    oriel_board_word_lock(&cell->owner);
    if (oriel_unlikely((atomic_load(&spot.page->used) & bit) == 0))
        atomic_fetch_or(&spot.page->used, bit); /* S2 */
    struct oriel_cell_entry *entry = oriel_again_look(cell, mine, oriel_cell_repeats(access), clock);
    oriel_delay();
    if (oriel_unlikely(entry == NULL)) {
        oriel_arrival_begin(&arrival, place, access, tell, closure, true);
        entry = oriel_small_enter_as_all(&arrival, place, trait, run, cell);
    } else if (entry->what == mine) {
        atomic_store_explicit(&entry->ticks, oriel_entry_ticks(access->issued, ORIEL_TICK_PENDING), memory_order_relaxed);
    } else {
        oriel_cell_fill(entry, mine, oriel_entry_ticks(access->issued, ORIEL_TICK_PENDING));
    }
    oriel_delay();
    bool wide = atomic_load(&spot.bucket->wide) != 0; /* S2 */
    oriel_board_word_unlock(&cell->owner);
    if (oriel_unlikely(wide && entry != NULL)) {
        oriel_arrival_begin(&arrival, place, access, tell, closure, true);
        oriel_arrival_meet_tree(&arrival, place, run);
    }
    return entry;
}

/* It is complete. */
ORIEL_SMALL_INLINE void oriel_history_held_complete(struct oriel_cell_entry *entry, oriel_tick now)
{
    uint64_t issued = atomic_load_explicit(&entry->ticks, memory_order_relaxed) >> 16;
    atomic_store_explicit(&entry->ticks, oriel_entry_ticks(issued, now), memory_order_release);
}

/* It stands like one that was added, in a cell. */
ORIEL_SMALL_INLINE void oriel_history_held_release(oriel_place place, struct oriel_history_spot spot,
                                                   struct oriel_cell_entry *entry, const struct oriel_access *access,
                                                   int64_t offset)
{
    oriel_underway_add(place, oriel_again_cell(spot.page, (uint64_t)offset), entry, access->group, access->origin);
}

#endif
