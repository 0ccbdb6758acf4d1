/* Scans of cells. A cell holds the recorded small accesses to 64 bytes. An access that is
 * recorded in the tree instead is first compared with the entries of the cells of its bytes
 * (cell_store.c, S2). When memory is detached or freed, its bytes are removed from the
 * entries (S3). */
#include "check/access/cell_internal.h"

#include "check/access/strided_sets.h"

typedef void cell_fn(struct oriel_cell *cell, int64_t base, void *closure);

/* Cells from first to last, counted from offset 0. */
struct cell_range {
    uint64_t first;
    uint64_t last;
    cell_fn *act;
    void *closure;
};

static void scan_page(const struct cell_range *cells, struct oriel_page *page)
{
    uint64_t begin = page->number * ORIEL_PAGE_CELLS;
    uint64_t at = cells->first > begin ? cells->first - begin : 0;
    for (uint64_t used = atomic_load(&page->used) >> at; used != 0; used >>= 1, at++) {
        unsigned skip = (unsigned)__builtin_ctzll(used);
        at += skip;
        used >>= skip;
        if (begin + at > cells->last)
            break;
        struct oriel_cell *cell = &page->cells[at];
        oriel_shm_word_lock(&cell->owner);
        cells->act(cell, (int64_t)((begin + at) << ORIEL_CELL_SHIFT), cells->closure);
        oriel_shm_word_unlock(&cell->owner);
    }
}

/* Calls act, with the cell's lock held, for each used cell that has bytes from low to high. If the
 * range has more pages than there are buckets, each bucket is searched once. Offsets below 0 come
 * from overlapping windows (aliased_windows.c), and have no cells. */
static void scan_cells(const struct oriel_pages *pages, int64_t low, int64_t high, cell_fn *act,
                       void *closure)
{
    if (low < 0)
        low = 0;
    if (low >= high)
        return;
    const struct cell_range cells = {(uint64_t)low >> ORIEL_CELL_SHIFT,
                                     ((uint64_t)high - 1) >> ORIEL_CELL_SHIFT, act, closure};
    uint64_t first = cells.first / ORIEL_PAGE_CELLS;
    uint64_t last = cells.last / ORIEL_PAGE_CELLS;
    bool wide = last - first >= pages->count;
    for (uint64_t i = 0; i < pages->count && wide; i++)
        for (struct oriel_page *page =
                 oriel_shm_at(atomic_load(&oriel_page_bucket(pages, i)->first));
             page != NULL; page = oriel_shm_at(page->next))
            if (page->number >= first && page->number <= last)
                scan_page(&cells, page);
    for (uint64_t number = first; number <= last && !wide; number++) {
        struct oriel_page *page = oriel_page_find(pages, number);
        if (page != NULL)
            scan_page(&cells, page);
    }
}

struct cell_comparison {
    struct oriel_insertion *arrival;
    const struct oriel_access_extent *runs;
};

static void compare_cell(struct oriel_cell *whole, int64_t base, void *closure)
{
    struct cell_comparison *visiting = closure;
    const struct oriel_access_extent *runs = visiting->runs;
    for (struct oriel_cell *cell = whole; cell != NULL; cell = oriel_shm_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            uint64_t what = cell->entries[i].what;
            uint64_t first = oriel_entry_first(what);
            struct oriel_access_extent bytes = {base + (int64_t)first,
                                                oriel_entry_last(what) - first + 1, 1, 0};
            int64_t offset;
            uint64_t len_bytes;
            if (what == 0 || !oriel_byte_runs_meet(&bytes, runs, &offset, &len_bytes))
                continue;
            struct oriel_coming coming = {.arrival = visiting->arrival,
                                          .base = base,
                                          .first = (uint64_t)(offset - base),
                                          .last = (uint64_t)(offset - base) + len_bytes - 1};
            oriel_cell_meet(&coming, &cell->entries[i]);
        }
}

void oriel_small_compare(struct oriel_insertion *arrival, const struct oriel_access_extent *runs)
{
    struct cell_comparison visiting = {arrival, runs};
    scan_cells(&arrival->history->records.pages, runs->offset, oriel_byte_runs_end(runs),
               compare_cell, &visiting);
}

/* Stores the bytes after a hole in the middle of the entry as a new entry. If the shared memory is
 * full they are dropped: a conflict may be missed, and none is invented. */
static void split_entry(struct oriel_cell *whole, struct oriel_cell_entry *entry, uint64_t rest)
{
    uint64_t ticks = oriel_cell_ticks(entry);
    bool pending = oriel_entry_pending(ticks);
    const struct oriel_pending_access *one = pending ? oriel_pending_list_find(entry) : NULL;
    if (pending && (one == NULL || !oriel_pending_list_room(1)))
        return;
    struct oriel_cell_entry *more = oriel_cell_make_room(whole);
    if (more == NULL)
        return;
    oriel_cell_fill(more, oriel_entry_with(entry->what, rest, oriel_entry_last(entry->what)),
                    ticks);
    if (pending) {
        struct oriel_pending_access other = *one;
        oriel_pending_list_add(other.history, other.cell, more, other.group, other.origin);
    }
}

struct hole {
    int64_t low;
    int64_t high;
};

static void remove_cell_bytes(struct oriel_cell *whole, int64_t base, void *closure)
{
    const struct hole *hole = closure;
    struct oriel_coming coming = {.first = hole->low > base ? (uint64_t)(hole->low - base) : 0,
                                  .last = hole->high < base + ORIEL_CELL_BYTES
                                              ? (uint64_t)(hole->high - 1 - base)
                                              : ORIEL_CELL_BYTES - 1};
    for (struct oriel_cell *cell = whole; cell != NULL; cell = oriel_shm_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            struct oriel_cell_entry *entry = &cell->entries[i];
            uint64_t what = entry->what;
            uint64_t first = oriel_entry_first(what);
            uint64_t last = oriel_entry_last(what);
            if (what == 0 || first > coming.last || last < coming.first)
                continue;
            if (oriel_entry_pending(oriel_cell_ticks(entry)) && first >= coming.first &&
                last <= coming.last) {
                entry->what = 0; /* S3 */
            } else if (first < coming.first && last > coming.last) {
                split_entry(whole, entry, coming.last + 1);
                entry->what = oriel_entry_with(what, first, coming.first - 1);
            } else {
                oriel_cell_claim(&coming, entry);
            }
        }
}

void oriel_small_forget(struct oriel_history *history, int64_t low, int64_t high)
{
    struct hole hole = {low, high};
    scan_cells(&history->records.pages, low, high, remove_cell_bytes, &hole);
}
