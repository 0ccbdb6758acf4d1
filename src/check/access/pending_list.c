/* The pending accesses of this process in cells: a short list, which a flush reads without a search
 * or a lock. Every process leaves a pending entry in its place, and only its origin writes its
 * ticks: one store completes it. If its bytes are removed meanwhile, it stays an entry until then.
 * Processes with MPI calls from several threads have no list. */
#include "check/access/cell_store.h"

#include "base/atomic.h"

struct oriel_pending_list oriel_pending_list;

const struct oriel_pending_access *oriel_pending_list_find(const struct oriel_cell_entry *entry)
{
    for (unsigned i = 0; i < oriel_pending_list.count; i++)
        if (oriel_pending_list.list[i].entry == entry)
            return &oriel_pending_list.list[i];
    return NULL;
}

static void complete_entry(struct oriel_cell_entry *entry, oriel_tick now)
{
    uint64_t ticks = atomic_load_explicit(&entry->ticks, memory_order_relaxed);
    atomic_store_explicit(&entry->ticks, oriel_entry_completed(ticks >> 16, now),
                          memory_order_release);
}

void oriel_pending_list_complete(oriel_shm_offset history, int32_t origin, uint64_t group,
                                 oriel_tick now)
{
    for (unsigned i = oriel_pending_list.count; i-- > 0;) {
        const struct oriel_pending_access *one = &oriel_pending_list.list[i];
        if (one->history != history ||
            (one->group == 0 ? one->origin != origin : one->group != group))
            continue;
        complete_entry(one->entry, now);
        if (i != --oriel_pending_list.count)
            oriel_pending_list.list[i] = oriel_pending_list.list[oriel_pending_list.count];
    }
}

void oriel_pending_list_end(oriel_shm_offset history, uint64_t group)
{
    for (unsigned i = 0; i < oriel_pending_list.count;) {
        struct oriel_pending_access *one = &oriel_pending_list.list[i];
        if (one->history != history || one->group != group) {
            i++;
            continue;
        }
        oriel_shm_word_lock(&one->cell->owner);
        one->entry->what = 0;
        atomic_store_explicit(&one->entry->ticks, 0, memory_order_relaxed);
        oriel_shm_word_unlock(&one->cell->owner);
        oriel_pending_list.list[i] = oriel_pending_list.list[--oriel_pending_list.count];
    }
}

/* Merges a pending access into another that it has become like. Otherwise programs that never
 * complete their operations would accumulate entries. Under the cell's lock. */
static bool merge_pending(const struct oriel_pending_access *one)
{
    for (unsigned i = 0; i < oriel_pending_list.count; i++) {
        const struct oriel_pending_access *other = &oriel_pending_list.list[i];
        if (other == one || other->cell != one->cell || other->group != one->group ||
            other->origin != one->origin ||
            !oriel_entry_joins(other->entry->what, one->entry->what))
            continue;
        other->entry->what = oriel_entry_join(other->entry->what, one->entry->what);
        one->entry->what = 0;
        atomic_store_explicit(&one->entry->ticks, 0, memory_order_relaxed);
        return true;
    }
    return false;
}

void oriel_pending_list_flag(oriel_shm_offset history, int32_t origin, uint8_t flags)
{
    for (unsigned i = oriel_pending_list.count; i-- > 0;) {
        struct oriel_pending_access *one = &oriel_pending_list.list[i];
        uint8_t had = (uint8_t)one->entry->what;
        if (one->history != history || (had & flags) == flags || one->group != 0 ||
            one->origin != origin)
            continue;
        oriel_shm_word_lock(&one->cell->owner);
        bool joined = false;
        if (one->entry->what != 0) {
            one->entry->what |= flags;
            joined = merge_pending(one);
        }
        oriel_shm_word_unlock(&one->cell->owner);
        if (joined)
            oriel_pending_list.list[i] = oriel_pending_list.list[--oriel_pending_list.count];
    }
}

void oriel_pending_list_leave(oriel_shm_offset history)
{
    for (unsigned i = 0; i < oriel_pending_list.count;)
        if (oriel_pending_list.list[i].history == history)
            oriel_pending_list.list[i] = oriel_pending_list.list[--oriel_pending_list.count];
        else
            i++;
}
