/* The way into a cell of accesses that a call makes again, one at a time: most meet nothing but such as they have met before, and
 * take the place that they had.  What an access has found out about the traits that it met decides then, without a look at those;
 * what it meets for the first time, or in conflict, or in part, goes the way of all others (small.c), under the same lock.  S1 to
 * S4 are small.c's.  A held entry is pending like those of underway.c, which has no list to keep of it.  again.c calls. */
#include "check/cells.h"

#include "base/atomic.h"
#include "base/delay.h"
#include "check/loops.h"
#include "check/order.h"

static inline struct oriel_cell *cell_of(struct oriel_page *page, uint64_t at)
{
    return &page->cells[at >> ORIEL_CELL_SHIFT & (ORIEL_PAGE_CELLS - 1)];
}

static inline struct oriel_history_met *met_of(struct oriel_history_again *again, oriel_place trait)
{
    _Static_assert(ORIEL_HISTORY_MET == 1 << 4, "as many as four bits tell apart");
    return &again->met[trait * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

/* Where the access can stand, when nothing that is there is more than can be decided so; NULL: something is. */
static inline __attribute__((always_inline)) struct oriel_cell_entry *look(struct oriel_cell *whole, uint64_t mine, bool repeats,
                                                                           const oriel_tick *clock,
                                                                           struct oriel_history_again *again)
{
    uint64_t last = mine << 6 & ORIEL_ENTRY_FIRST; /* as the first of an entry stands */
    uint64_t first = mine >> 6 & ORIEL_ENTRY_LAST;
    struct oriel_cell_entry *spot = NULL;
    struct oriel_cell *cell = whole;
    do {
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
            const struct oriel_history_met *met = met_of(again, trait);
            if (met->trait != trait)
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

/* What the access meets in the cell, for the next time. */
static void get_to_know(struct oriel_history_again *again, const struct oriel_access *access, const struct oriel_coming *coming,
                        struct oriel_cell *whole)
{
    for (struct oriel_cell *cell = whole; cell != NULL; cell = oriel_board_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            uint64_t what = cell->entries[i].what;
            if (what == 0 || oriel_entry_first(what) > coming->last || oriel_entry_last(what) < coming->first)
                continue;
            const struct oriel_access *trait = oriel_cell_trait(what);
            *met_of(again, what >> ORIEL_ENTRY_TRAIT) =
                (struct oriel_history_met){.trait = what >> ORIEL_ENTRY_TRAIT,
                                           .origin = trait->origin,
                                           .peaceful = !oriel_access_conflicts(trait, access),
                                           .gives_way = oriel_access_supersedes(access, trait)};
        }
}

static __attribute__((noinline)) struct oriel_cell_entry *enter_as_all(struct oriel_arrival *arrival, oriel_place place,
                                                                       struct oriel_history_again *again,
                                                                       const struct oriel_extent *run, struct oriel_cell *cell)
{
    uint64_t what = again->trait << ORIEL_ENTRY_TRAIT | arrival->access->flags;
    struct oriel_coming coming = oriel_cell_coming(arrival, place, what, (uint64_t)run->offset, run->len_bytes);
    get_to_know(again, arrival->access, &coming, cell);
    return oriel_cell_enter(&coming, cell);
}

struct oriel_cell_entry *oriel_history_hold(oriel_place place, struct oriel_history_spot spot, const struct oriel_access *access,
                                            struct oriel_history_again *again, const struct oriel_extent *run,
                                            oriel_conflict_fn *tell, void *closure)
{
    struct oriel_arrival arrival;
    uint64_t at = (uint64_t)run->offset;
    uint64_t first = at & (ORIEL_CELL_BYTES - 1);
    uint64_t last = first + run->len_bytes - 1;
    const oriel_tick *clock = oriel_order_moment_clock(access->moment);
    if (oriel_unlikely(spot.page == NULL || again->trait == 0 || last >= ORIEL_CELL_BYTES || clock == NULL ||
                       !oriel_underway_room(1) || !oriel_loop_leave(oriel_loop_of(place, again->trait, run->offset), run->offset)))
        return NULL;
    uint64_t mine = again->trait << ORIEL_ENTRY_TRAIT | first << 14 | last << 8 | access->flags;
    struct oriel_cell *cell = cell_of(spot.page, at);
    uint64_t bit = UINT64_C(1) << (at >> ORIEL_CELL_SHIFT & (ORIEL_PAGE_CELLS - 1));
    oriel_board_word_lock(&cell->owner);
    if (oriel_unlikely((atomic_load(&spot.page->used) & bit) == 0))
        atomic_fetch_or(&spot.page->used, bit); /* S2 */
    struct oriel_cell_entry *entry = look(cell, mine, oriel_cell_repeats(access), clock, again);
    oriel_delay();
    if (oriel_unlikely(entry == NULL)) {
        oriel_arrival_begin(&arrival, place, access, tell, closure, true);
        entry = enter_as_all(&arrival, place, again, run, cell);
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

void oriel_history_held_complete(struct oriel_cell_entry *entry, oriel_tick now)
{
    uint64_t issued = atomic_load_explicit(&entry->ticks, memory_order_relaxed) >> 16;
    atomic_store_explicit(&entry->ticks, oriel_entry_ticks(issued, now), memory_order_release);
}

void oriel_history_held_release(oriel_place place, struct oriel_history_spot spot, struct oriel_cell_entry *entry,
                                const struct oriel_access *access, int64_t offset)
{
    oriel_underway_add(place, cell_of(spot.page, (uint64_t)offset), entry, access->group, access->origin);
}

struct oriel_history_spot oriel_history_expect(oriel_place place, int64_t offset)
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
