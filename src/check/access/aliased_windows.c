/* Each history has a list of the histories that overlap it. An element is inserted at the front,
 * under one lock of the node. It is removed under that lock and the list's lock. A process that
 * reads another history holds the list's lock meanwhile, so the other history is not freed. Order
 * of locks: the node's, then a list's, then that of the history that is read. No thread acquires
 * two of one kind. */
#include "check/access/aliased_windows.h"

#include "base/atomic.h"
#include "base/delay.h"
#include "check/access/cell_store.h"
#include "check/access/insert.h"

enum { KEY_ALIASES = 101 }; /* words[0] of the node's lock; above those of windows_create.c */

struct alias {
    oriel_shm_offset next;
    oriel_shm_offset history;
    int64_t shift; /* from an offset in this history to the other's */
};

/* Converts a conflict in an overlapping history to offsets of this one. */
struct alias_report {
    oriel_conflict_fn *tell;
    void *closure;
    int64_t shift;
};

static void alias_lock_init(void *at)
{
    oriel_shm_lock_init(at);
}

/* NULL: the shared memory is full. */
static struct oriel_shm_lock *alias_node_lock(void)
{
    struct oriel_key key = {.words = {KEY_ALIASES}};
    return oriel_shm_at(oriel_shm_find(&key, sizeof(struct oriel_shm_lock), alias_lock_init));
}

static struct alias *alias_find(const struct oriel_history *history, oriel_shm_offset other,
                                int64_t shift)
{
    struct alias *at = oriel_shm_at(atomic_load(&history->alias));
    while (at != NULL && (at->history != other || at->shift != shift))
        at = oriel_shm_at(at->next);
    return at;
}

/* Under the node's lock. */
static void alias_insert(struct oriel_history_bytes to, struct oriel_history_bytes other)
{
    struct oriel_history *history = oriel_shm_at(to.history);
    int64_t shift = other.offset - to.offset;
    oriel_shm_offset place = alias_find(history, other.history, shift) != NULL
                                 ? 0
                                 : oriel_shm_allocate(sizeof(struct alias));
    if (place == 0)
        return;
    *(struct alias *)oriel_shm_at(place) = (struct alias){
        .next = atomic_load(&history->alias), .history = other.history, .shift = shift};
    atomic_store(&history->alias, place);
}

/* From now on small accesses to these bytes continue with the tree, and find the list. */
static void alias_mark_wide(struct oriel_history_bytes bytes, uint64_t len_bytes)
{
    oriel_history_widen(bytes.history, bytes.offset, bytes.offset + (int64_t)len_bytes);
}

void oriel_history_add_alias(struct oriel_history_bytes one, struct oriel_history_bytes other,
                             uint64_t len_bytes)
{
    struct oriel_shm_lock *lock = alias_node_lock();
    if (lock == NULL)
        return;
    oriel_shm_lock(lock);
    alias_insert(one, other);
    alias_insert(other, one);
    oriel_shm_unlock(lock);
    oriel_delay();
    alias_mark_wide(one, len_bytes);
    alias_mark_wide(other, len_bytes);
}

static void alias_report_conflict(const struct oriel_conflict *conflict, void *closure)
{
    const struct alias_report *from = closure;
    struct oriel_conflict reported = *conflict;
    if (oriel_access_is_local(&conflict->earlier))
        return;
    reported.offset -= from->shift;
    reported.alias = true;
    from->tell(&reported, from->closure);
}

static void alias_compare(const struct oriel_insertion *arrival, const struct alias *other,
                          const struct oriel_access_extent *extents, size_t count)
{
    struct alias_report from = {
        .tell = arrival->tell, .closure = arrival->closure, .shift = other->shift};
    for (size_t i = 0; i < count; i++) {
        struct oriel_access_extent there = extents[i];
        there.offset += other->shift;
        oriel_history_look(other->history, arrival->access, &there, 1, alias_report_conflict,
                           &from);
    }
}

void oriel_alias_compare(const struct oriel_insertion *arrival,
                         const struct oriel_access_extent *extents, size_t count)
{
    struct oriel_history *history = arrival->history;
    if (oriel_likely(atomic_load(&history->alias) == 0) || oriel_access_is_local(arrival->access))
        return;
    oriel_shm_lock(&history->alias_lock);
    for (const struct alias *at = oriel_shm_at(atomic_load(&history->alias)); at != NULL;
         at = oriel_shm_at(at->next))
        alias_compare(arrival, at, extents, count);
    oriel_shm_unlock(&history->alias_lock);
}

/* Under the node's lock. Removes all elements of the other history from the history's list. */
static void alias_remove(struct oriel_history *history, oriel_shm_offset other)
{
    oriel_shm_lock(&history->alias_lock);
    struct alias *before = NULL;
    for (oriel_shm_offset place = atomic_load(&history->alias); place != 0;) {
        struct alias *at = oriel_shm_at(place);
        oriel_shm_offset next = at->next;
        if (at->history != other) {
            before = at;
        } else {
            if (before == NULL)
                atomic_store(&history->alias, next);
            else
                before->next = next;
            oriel_shm_free(place, sizeof *at);
        }
        place = next;
    }
    oriel_shm_unlock(&history->alias_lock);
}

void oriel_alias_end(oriel_shm_offset place)
{
    struct oriel_history *history = oriel_shm_at(place);
    if (atomic_load(&history->alias) == 0)
        return;
    struct oriel_shm_lock *lock = alias_node_lock();
    oriel_shm_lock(lock);
    while (atomic_load(&history->alias) != 0) {
        const struct alias *first = oriel_shm_at(atomic_load(&history->alias));
        oriel_shm_offset other = first->history;
        alias_remove(oriel_shm_at(other), place);
        alias_remove(history, other);
    }
    oriel_shm_unlock(lock);
}
