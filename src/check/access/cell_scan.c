/* Who comes to cells that others have entered: an access for the tree, which is compared with what stands there (cell_store.c, S2),
 * and memory that is given back, whose bytes go from them (S3).  history.c calls. */
#include "check/access/cell_internal.h"

#include "check/access/strided_sets.h"

typedef void cell_fn(struct oriel_cell *cell, int64_t base, void *closure);

/* Cells from first to last, counted from offset 0. */
struct cells {
    uint64_t first;
    uint64_t last;
    cell_fn *act;
    void *closure;
};

static void visit_page(const struct cells *cells, struct oriel_page *page)
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

/* Calls act for each cell that has been used and has bytes from low to high, with its lock held.  Of bytes that are farther apart
 * than there are buckets each bucket is looked through once.  No cell has bytes below 0, where another window's may begin
 * (aliased_windows.c). */
static void visit(const struct oriel_pages *pages, int64_t low, int64_t high, cell_fn *act,
                  void *closure)
{
    if (low < 0)
        low = 0;
    if (low >= high)
        return;
    const struct cells cells = {(uint64_t)low >> ORIEL_CELL_SHIFT,
                                ((uint64_t)high - 1) >> ORIEL_CELL_SHIFT, act, closure};
    uint64_t first = cells.first / ORIEL_PAGE_CELLS;
    uint64_t last = cells.last / ORIEL_PAGE_CELLS;
    bool wide = last - first >= pages->count;
    for (uint64_t i = 0; i < pages->count && wide; i++)
        for (struct oriel_page *page =
                 oriel_shm_at(atomic_load(&oriel_page_bucket(pages, i)->first));
             page != NULL; page = oriel_shm_at(page->next))
            if (page->number >= first && page->number <= last)
                visit_page(&cells, page);
    for (uint64_t number = first; number <= last && !wide; number++) {
        struct oriel_page *page = oriel_page_find(pages, number);
        if (page != NULL)
            visit_page(&cells, page);
    }
}

struct visiting {
    struct oriel_insertion *arrival;
    const struct oriel_access_extent *runs;
};

static void meet_wide(struct oriel_cell *whole, int64_t base, void *closure)
{
    struct visiting *visiting = closure;
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

void oriel_small_meet(struct oriel_insertion *arrival, const struct oriel_access_extent *runs)
{
    struct visiting visiting = {arrival, runs};
    visit(&arrival->history->records.pages, runs->offset, oriel_byte_runs_end(runs), meet_wide,
          &visiting);
}

/* What lies behind the hole, which is in the middle of the entry, becomes an entry of its own; without room it is lost. */
static void part(struct oriel_cell *whole, struct oriel_cell_entry *entry, uint64_t behind)
{
    uint64_t ticks = oriel_cell_ticks(entry);
    bool pending = oriel_entry_pending(ticks);
    const struct oriel_pending_access *one = pending ? oriel_pending_list_find(entry) : NULL;
    struct oriel_cell_entry *more = oriel_cell_free_entry(whole);
    if (more == NULL || (pending && (one == NULL || !oriel_pending_list_room(1))))
        return;
    oriel_cell_fill(more, oriel_entry_with(entry->what, behind, oriel_entry_last(entry->what)),
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

static void forget_cell(struct oriel_cell *whole, int64_t base, void *closure)
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
                part(whole, entry, coming.last + 1);
                entry->what = oriel_entry_with(what, first, coming.first - 1);
            } else {
                oriel_cell_take(&coming, entry);
            }
        }
}

void oriel_small_forget(struct oriel_history *history, int64_t low, int64_t high)
{
    struct hole hole = {low, high};
    visit(&history->records.pages, low, high, forget_cell, &hole);
}
