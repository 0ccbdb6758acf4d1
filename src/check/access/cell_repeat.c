/* The general path of a repeated access whose cell has something new to it. It stores the traits
 * that the access meets in the table of met traits. Everything is under the cell's lock. */
#include "check/access/cell_repeat.h"

#include "check/access/stride_detect.h"

struct oriel_met oriel_mets[ORIEL_METS];

/* Adds to the table the traits that the access overlaps in the cell. */
static void met_traits_insert(oriel_shm_offset mine, const struct oriel_access *access,
                              const struct oriel_coming *coming, struct oriel_cell *whole)
{
    for (struct oriel_cell *cell = whole; cell != NULL; cell = oriel_shm_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            uint64_t what = cell->entries[i].what;
            oriel_shm_offset trait = what >> ORIEL_ENTRY_TRAIT;
            if (what == 0 || oriel_entry_first(what) > coming->last ||
                oriel_entry_last(what) < coming->first)
                continue;
            const struct oriel_access *other = oriel_trait_at(trait);
            *oriel_callsite_met(mine, trait) =
                (struct oriel_met){.mine = mine,
                                   .trait = trait,
                                   .origin = other->origin,
                                   .peaceful = !oriel_access_conflicts(other, access),
                                   .gives_way = oriel_access_supersedes(access, other)};
        }
}

static struct oriel_cell_entry *cell_enter_general(const struct oriel_callsite_arrival *again,
                                                   uint64_t mine, uint64_t at,
                                                   struct oriel_cell *cell)
{
    struct oriel_insertion arrival;
    uint64_t first = oriel_entry_first(mine);
    oriel_insertion_begin(&arrival, again->history, again->access, again->tell, again->closure,
                          true);
    struct oriel_coming coming =
        oriel_cell_coming(&arrival, again->history, mine & ~ORIEL_ENTRY_BYTES, at,
                          oriel_entry_last(mine) - first + 1);
    met_traits_insert(mine >> ORIEL_ENTRY_TRAIT, again->access, &coming, cell);
    struct oriel_cell_entry *entry = oriel_cell_enter(&coming, cell);
    oriel_insertion_end(&arrival);
    return entry;
}

/* Entries whose bytes were removed from the cell are nowhere until this access is stored, in the
 * tree if it continues a loop. It conflicts with everything that they conflicted with, and is
 * compared with every access that is stored in between. */
struct oriel_cell_entry *oriel_callsite_enter(const struct oriel_callsite_arrival *again,
                                              const struct oriel_history_spot *spot, uint64_t mine,
                                              oriel_tick issued, uint64_t at,
                                              struct oriel_cell_entry *entry)
{
    struct oriel_loop *loop = oriel_loop_of(again->history, mine >> ORIEL_ENTRY_TRAIT, (int64_t)at);
    uint64_t bit = UINT64_C(1) << (at >> ORIEL_CELL_SHIFT & (ORIEL_PAGE_CELLS - 1));
    if (!oriel_loop_leave(loop, (int64_t)at))
        return NULL;
    if ((atomic_load(&spot->page->used) & bit) == 0)
        atomic_fetch_or(&spot->page->used, bit); /* S2 */
    struct oriel_cell *cell = oriel_callsite_cell(spot->page, at);
    if (entry == NULL)
        return cell_enter_general(again, mine, at, cell);
    oriel_cell_fill(entry, mine, oriel_entry_ticks(issued, ORIEL_TICK_PENDING));
    if (oriel_unlikely(cell->next != 0))
        oriel_cell_shorten(cell);
    return entry;
}

void oriel_callsite_meet_tree(const struct oriel_callsite_arrival *again, uint64_t mine,
                              uint64_t at)
{
    struct oriel_insertion arrival;
    uint64_t len_bytes = oriel_entry_last(mine) - oriel_entry_first(mine) + 1;
    struct oriel_access_extent run = {.offset = (int64_t)at, .len_bytes = len_bytes, .count = 1};
    oriel_insertion_begin(&arrival, again->history, again->access, again->tell, again->closure,
                          true);
    oriel_insertion_meet_tree(&arrival, again->history, &run);
    oriel_insertion_end(&arrival);
}
