/* Small accesses in cells. The argument, in addition to history.c's:
 *
 * S1: The entries of a cell are under the cell's lock. Two small accesses to one byte therefore
 *     meet: the second to acquire the lock finds the first.
 * S2: An access that enters the tree raises wide of its buckets, under the history's lock. After a
 *     full fence it scans the cells of its bytes. The record that it becomes keeps these marks.
 *     They are lowered with the record, or once the access is part of another one. A small access
 *     reads wide while it holds its cell's lock, after it has stored its entry. If it reads 0, its
 *     section came before the other's scan of that cell, which finds the entry. If not, it
 *     continues with the tree, under the history's lock, after the other has released it. (Where
 *     each finds the other, both report: it is one finding.) A cell is scanned if its bit in used
 *     is set. The bit is set before wide is read.
 * S3: Only its origin changes a pending entry (pending_list.c). The entry keeps its place until it
 *     is complete, so the store that completes it needs no lock. A reader that sees the old number
 *     treats the access as pending. No clock of that reader contradicts this, because completion
 *     comes before any release of a clock.
 * S4: An entry is free if it has no bytes and is not pending. It is filled bytes last, and emptied
 *     bytes first: a process that dies in between leaves a free one.
 * S5: A cell that had no room has further parts. They are freed when few entries are left, under
 *     the cell's lock. Before that, complete entries are copied into the first part. A pending
 *     entry keeps its place (S3), and the parts stay. No process keeps an address in a cell without
 *     its lock.
 * S6: A record that becomes part of another, or is cut, has scanned the cells long before: only
 *     wide leads to its bytes. So the new record is marked before the old one is removed, and wide
 *     is never 0 in between.
 *
 * cell_repeat.h has a shorter path into a cell. */
#include "check/access/cell_internal.h"

#include "base/atomic.h"
#include "base/delay.h"
#include "check/access/stride_detect.h"
#include "check/order/order.h"

#include <stdlib.h>

enum {
    CELLS_MOST = 4, /* of one access */
    CELL_ROOM = 2,  /* free entries of a cell when it frees its further parts */
};

_Thread_local struct oriel_loop oriel_loops[ORIEL_LOOPS];

static struct oriel_access entry_access(const struct oriel_cell_entry *entry, uint64_t ticks)
{
    struct oriel_access access = *oriel_cell_trait(entry->what);
    access.flags = (uint8_t)entry->what;
    access.issued = ticks >> 16;
    access.complete = oriel_entry_pending(ticks) ? ORIEL_TICK_PENDING : oriel_entry_complete(ticks);
    return access;
}

/* Merges the access into the entry if the two are complete together (history.c, 2). */
static bool entry_merge(struct oriel_coming *coming, struct oriel_cell_entry *entry, uint64_t ticks)
{
    uint64_t what = entry->what;
    if (!oriel_entry_joins(what, coming->what))
        return false;
    if (oriel_entry_pending(coming->ticks)) {
        const struct oriel_pending_access *one =
            oriel_entry_pending(ticks) ? oriel_pending_list_find(entry) : NULL;
        if (one == NULL || one->history != coming->history ||
            one->group != coming->arrival->access->group)
            return false;
    } else if (oriel_entry_pending(ticks) ||
               oriel_entry_complete(ticks) != oriel_entry_complete(coming->ticks)) {
        return false;
    }
    entry->what = oriel_entry_join(what, coming->what);
    coming->merged = true;
    return true;
}

void oriel_cell_claim(struct oriel_coming *coming, struct oriel_cell_entry *entry)
{
    uint64_t first = oriel_entry_first(entry->what);
    uint64_t last = oriel_entry_last(entry->what);
    if (first < coming->first && last > coming->last)
        return;
    if (first < coming->first) {
        entry->what = oriel_entry_with(entry->what, first, coming->first - 1);
    } else if (last > coming->last) {
        entry->what = oriel_entry_with(entry->what, coming->last + 1, last);
    } else {
        oriel_cell_empty(entry);
        coming->spot = coming->spot == NULL ? entry : coming->spot;
    }
}

void oriel_cell_meet(struct oriel_coming *coming, struct oriel_cell_entry *entry)
{
    struct oriel_insertion *arrival = coming->arrival;
    uint64_t what = entry->what;
    const struct oriel_access *trait = oriel_cell_trait(what);
    bool conflicts = oriel_access_conflicts(trait, arrival->access);
    uint64_t ticks = oriel_cell_ticks(entry);
    bool known = !oriel_entry_pending(ticks) &&
                 oriel_insertion_knows(arrival, trait->origin, oriel_entry_complete(ticks));
    if (!known && conflicts) {
        struct oriel_access earlier = entry_access(entry, ticks);
        uint64_t first =
            oriel_entry_first(what) > coming->first ? oriel_entry_first(what) : coming->first;
        uint64_t last =
            oriel_entry_last(what) < coming->last ? oriel_entry_last(what) : coming->last;
        oriel_insertion_report(arrival, &earlier, coming->base + (int64_t)first, last - first + 1);
    }
    if (!arrival->stays)
        return;
    if (known && oriel_access_supersedes(arrival->access, trait))
        oriel_cell_claim(coming, entry); /* 3 */
    else if (coming->what != 0 && !coming->merged)
        entry_merge(coming, entry, ticks);
}

/* In a full cell: merges neighbours, and removes entries that every rank knows to be complete. */
static void cell_compact(struct oriel_cell *whole)
{
    oriel_tick *floor = calloc((size_t)oriel_order_width(), sizeof *floor);
    if (floor != NULL)
        oriel_order_floor(floor);
    for (struct oriel_cell *cell = whole; cell != NULL; cell = oriel_shm_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            struct oriel_cell_entry *entry = &cell->entries[i];
            uint64_t ticks = oriel_cell_ticks(entry);
            if (entry->what == 0 || oriel_entry_pending(ticks))
                continue;
            if (floor != NULL &&
                oriel_entry_complete(ticks) <=
                    floor[oriel_clock_index(oriel_cell_trait(entry->what)->origin,
                                            oriel_entry_complete(ticks))]) { /* 4 */
                oriel_cell_empty(entry);
                continue;
            }
            for (int k = 0; k < i; k++) {
                struct oriel_cell_entry *other = &cell->entries[k];
                struct oriel_coming coming = {.what = entry->what, .ticks = ticks};
                if (other->what != 0 && entry_merge(&coming, other, oriel_cell_ticks(other))) {
                    oriel_cell_empty(entry);
                    break;
                }
            }
        }
    free(floor);
}

/* S4 */
static bool entry_is_free(const struct oriel_cell_entry *entry)
{
    return entry->what == 0 && !oriel_entry_pending(oriel_cell_ticks(entry));
}

struct oriel_cell_entry *oriel_cell_free_entry(struct oriel_cell *cell)
{
    for (; cell != NULL; cell = oriel_shm_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++)
            if (entry_is_free(&cell->entries[i]))
                return &cell->entries[i];
    return NULL;
}

/* Counts the used entries of a cell. *pending: an entry in a further part is pending. */
static unsigned cell_used_entries(struct oriel_cell *whole, bool *pending)
{
    unsigned standing = 0;
    *pending = false;
    for (struct oriel_cell *cell = whole; cell != NULL; cell = oriel_shm_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            standing += !entry_is_free(&cell->entries[i]);
            *pending |= cell != whole && oriel_entry_pending(oriel_cell_ticks(&cell->entries[i]));
        }
    return standing;
}

/* S5 */
void oriel_cell_shorten(struct oriel_cell *whole)
{
    bool pending;
    if (cell_used_entries(whole, &pending) > ORIEL_CELL_ENTRIES - CELL_ROOM || pending)
        return;
    while (whole->next != 0) {
        oriel_shm_offset place = whole->next;
        struct oriel_cell *cell = oriel_shm_at(place);
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++)
            if (!entry_is_free(&cell->entries[i]))
                oriel_cell_fill(oriel_cell_free_entry(whole), cell->entries[i].what,
                                oriel_cell_ticks(&cell->entries[i]));
        whole->next = cell->next;
        oriel_shm_free(place, sizeof *cell);
    }
}

struct oriel_cell_entry *oriel_cell_make_room(struct oriel_cell *whole)
{
    struct oriel_cell_entry *entry = oriel_cell_free_entry(whole);
    if (entry != NULL)
        return entry;
    oriel_shm_offset place = oriel_shm_allocate(sizeof(struct oriel_cell));
    struct oriel_cell *more = oriel_shm_at(place);
    if (more == NULL)
        return NULL;
    more->next = whole->next;
    whole->next = place;
    return &more->entries[0];
}

/* The entry has the access's trait and flags. */
static void compare_alike_entry(struct oriel_coming *coming, struct oriel_cell_entry *entry)
{
    uint64_t what = entry->what;
    uint64_t ticks = oriel_cell_ticks(entry);
    if (oriel_entry_first(what) <= coming->last && oriel_entry_last(what) >= coming->first)
        oriel_cell_meet(coming, entry);
    else if (!coming->merged)
        entry_merge(coming, entry, ticks);
}

/* Most entries of a cell have other bytes: the loop skips them in a few instructions. */
static inline __attribute__((always_inline)) void compare_cell_entries(struct oriel_coming *coming,
                                                                       struct oriel_cell *whole)
{
    uint64_t mine = coming->what;
    uint64_t screen = oriel_entry_screen(mine);
    struct oriel_cell *cell = whole;
    do {
        for (struct oriel_cell_entry *entry = cell->entries;
             entry < cell->entries + ORIEL_CELL_ENTRIES; entry++) {
            uint64_t what = entry->what;
            if (what == 0) {
                if (coming->spot == NULL && !oriel_entry_pending(oriel_cell_ticks(entry)))
                    coming->spot = entry;
            } else if (((what ^ mine) & ~ORIEL_ENTRY_BYTES) == 0) {
                if (what == mine && coming->repeats &&
                    !oriel_entry_pending(oriel_cell_ticks(entry)))
                    coming->spot = entry; /* an equal access */
                else
                    compare_alike_entry(coming, entry);
            } else if (!oriel_entry_is_apart(what, screen)) {
                oriel_cell_meet(coming, entry);
            }
        }
        cell = oriel_shm_at(cell->next);
    } while (oriel_unlikely(cell != NULL));
}

struct oriel_cell_entry *oriel_cell_enter(struct oriel_coming *coming, struct oriel_cell *cell)
{
    compare_cell_entries(coming, cell);
    oriel_delay();
    if (coming->merged)
        return NULL;
    struct oriel_cell_entry *entry = coming->spot;
    if (entry == NULL) {
        cell_compact(cell);
        entry = oriel_cell_make_room(cell);
    }
    if (entry != NULL)
        oriel_cell_fill(entry, coming->what, coming->ticks);
    if (oriel_unlikely(cell->next != 0))
        oriel_cell_shorten(cell);
    return entry;
}

/* Returns false if the shared memory is full. */
static inline __attribute__((always_inline)) bool
enter_cell(struct oriel_coming *coming, struct oriel_page *page, unsigned which,
           const struct oriel_page_bucket *bucket, bool *wide)
{
    struct oriel_cell *cell = &page->cells[which];
    uint64_t bit = UINT64_C(1) << which;
    oriel_shm_word_lock(&cell->owner);
    if (oriel_unlikely((atomic_load(&page->used) & bit) == 0))
        atomic_fetch_or(&page->used, bit); /* S2 */
    struct oriel_cell_entry *entry = oriel_cell_enter(coming, cell);
    if (entry != NULL && oriel_entry_pending(coming->ticks))
        oriel_pending_list_add(coming->history, cell, entry, coming->arrival->access->group,
                               coming->arrival->access->origin);
    bool is_stored = coming->merged || entry != NULL;
    oriel_delay();
    if (oriel_unlikely(atomic_load(&bucket->wide) != 0)) /* S2 */
        *wide = true;
    oriel_shm_word_unlock(&cell->owner);
    return is_stored;
}

/* --- the interface --- */

static bool access_is_small(const struct oriel_access *access,
                            const struct oriel_access_extent *runs, unsigned *cells)
{
    uint64_t low = (uint64_t)runs->offset;
    uint64_t high = low + runs->len_bytes - 1;
    uint64_t borders = (high >> ORIEL_CELL_SHIFT) - (low >> ORIEL_CELL_SHIFT);
    if (runs->count != 1 || (access->flags & ORIEL_ACCESS_ALONE) != 0 || borders >= CELLS_MOST)
        return false;
    *cells = (unsigned)borders + 1;
    return !oriel_access_pending(access) || oriel_pending_list_room(*cells);
}

/* Stores bytes of one cell, of the page; what: the word without them. Returns false if the shared
 * memory is full. */
static inline __attribute__((always_inline)) bool
enter_page_cell(struct oriel_history_spot spot, struct oriel_insertion *arrival,
                oriel_shm_offset place, uint64_t what, uint64_t at, uint64_t len_bytes, bool *wide)
{
    struct oriel_coming coming = oriel_cell_coming(arrival, place, what, at, len_bytes);
    return enter_cell(&coming, spot.page, at >> ORIEL_CELL_SHIFT & (ORIEL_PAGE_CELLS - 1),
                      spot.bucket, wide);
}

static bool enter_cell_part(struct oriel_insertion *arrival, oriel_shm_offset place, uint64_t what,
                            uint64_t at, uint64_t len_bytes, bool *wide)
{
    const struct oriel_pages *pages = &arrival->history->records.pages;
    struct oriel_history_spot spot = {.bucket = oriel_page_bucket(pages, at >> ORIEL_PAGE_SHIFT)};
    spot.page = oriel_page_in(spot.bucket, at >> ORIEL_PAGE_SHIFT);
    if (oriel_unlikely(spot.page == NULL))
        spot.page = oriel_page_make(pages, at >> ORIEL_PAGE_SHIFT);
    return spot.page != NULL && enter_page_cell(spot, arrival, place, what, at, len_bytes, wide);
}

static bool enter_cell_parts(struct oriel_insertion *arrival, oriel_shm_offset place, uint64_t what,
                             const struct oriel_access_extent *runs, bool *wide)
{
    uint64_t high = (uint64_t)runs->offset + runs->len_bytes;
    for (uint64_t at = (uint64_t)runs->offset; at < high;) {
        uint64_t end = (at | (ORIEL_CELL_BYTES - 1)) + 1;
        end = end < high ? end : high;
        if (!enter_cell_part(arrival, place, what, at, end - at, wide))
            return false;
        at = end;
    }
    return true;
}

/* The entry's word without its bytes; 0: the access belongs in the tree. */
static inline uint64_t entry_word_of(const struct oriel_access *access, oriel_shm_offset place,
                                     oriel_shm_offset *known,
                                     const struct oriel_access_extent *runs)
{
    if (oriel_unlikely(*known == 0))
        *known = oriel_trait_of(access);
    oriel_shm_offset trait = *known;
    if (trait == 0 || oriel_loop_continues(oriel_loop_of(place, trait, runs->offset), runs))
        return 0;
    return trait << ORIEL_ENTRY_TRAIT | access->flags;
}

static inline enum oriel_small small_result(bool is_stored, bool wide)
{
    return !is_stored             ? ORIEL_SMALL_NOT
           : oriel_unlikely(wide) ? ORIEL_SMALL_AND_WIDE
                                  : ORIEL_SMALL_STANDS;
}

enum oriel_small oriel_small_add(struct oriel_insertion *arrival, oriel_shm_offset place,
                                 oriel_shm_offset *known, const struct oriel_access_extent *runs)
{
    unsigned cells;
    bool wide = false;
    if (!access_is_small(arrival->access, runs, &cells))
        return ORIEL_SMALL_NOT;
    uint64_t what = entry_word_of(arrival->access, place, known, runs);
    bool is_stored = what != 0 && enter_cell_parts(arrival, place, what, runs, &wide);
    return small_result(is_stored, wide);
}

enum oriel_small oriel_small_add_at(struct oriel_insertion *arrival, oriel_shm_offset place,
                                    struct oriel_history_spot spot, oriel_shm_offset *known,
                                    const struct oriel_access_extent *run)
{
    uint64_t at = (uint64_t)run->offset;
    bool wide = false;
    if (oriel_unlikely(spot.page == NULL ||
                       (at & (ORIEL_CELL_BYTES - 1)) + run->len_bytes > ORIEL_CELL_BYTES ||
                       !oriel_pending_list_room(1)))
        return oriel_small_add(arrival, place, known, run);
    uint64_t what = entry_word_of(arrival->access, place, known, run);
    bool is_stored = oriel_likely(what != 0) &&
                     enter_page_cell(spot, arrival, place, what, at, run->len_bytes, &wide);
    return small_result(is_stored, wide);
}
