/* What an access that comes again does in a cell where something is new to it: the way of all others, and what it has met is
 * known the next time.  small_again.h calls, under the cell's lock. */
#include "check/small_again.h"

struct oriel_met oriel_mets[ORIEL_METS];

/* What the access meets in the cell, for the next time. */
static void get_to_know(oriel_place mine, const struct oriel_access *access, const struct oriel_coming *coming,
                        struct oriel_cell *whole)
{
    for (struct oriel_cell *cell = whole; cell != NULL; cell = oriel_board_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            uint64_t what = cell->entries[i].what;
            oriel_place trait = what >> ORIEL_ENTRY_TRAIT;
            if (what == 0 || oriel_entry_first(what) > coming->last || oriel_entry_last(what) < coming->first)
                continue;
            const struct oriel_access *other = oriel_trait_at(trait);
            *oriel_again_met(mine, trait) = (struct oriel_met){.mine = mine,
                                                               .trait = trait,
                                                               .origin = other->origin,
                                                               .peaceful = !oriel_access_conflicts(other, access),
                                                               .gives_way = oriel_access_supersedes(access, other)};
        }
}

struct oriel_cell_entry *oriel_small_enter_as_all(struct oriel_arrival *arrival, oriel_place place,
                                                  oriel_place trait, const struct oriel_extent *run, struct oriel_cell *cell)
{
    uint64_t what = trait << ORIEL_ENTRY_TRAIT | arrival->access->flags;
    struct oriel_coming coming = oriel_cell_coming(arrival, place, what, (uint64_t)run->offset, run->len_bytes);
    get_to_know(trait, arrival->access, &coming, cell);
    return oriel_cell_enter(&coming, cell);
}
