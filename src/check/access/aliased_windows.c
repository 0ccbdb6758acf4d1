/* Each history has a list of those beside it.  What is added comes to its front, under one lock of the machine; what is taken out
 * goes under the list's lock as well, which who looks into another history holds meanwhile: so the other stays.  Order of locks:
 * the machine's, then a list's, then that of the history that is looked into; nobody takes a second one of a kind. */
#include "check/access/aliased_windows.h"

#include "base/atomic.h"
#include "base/delay.h"
#include "check/access/cell_store.h"
#include "check/access/insert.h"

enum { KEY_BESIDE = 101 }; /* words[0] of the machine's lock, above windows_create.c's */

struct beside {
    oriel_shm_offset next;
    oriel_shm_offset history;
    int64_t shift; /* to an offset there from the one here */
};

/* How a conflict in another history is told in the words of this one. */
struct from_beside {
    oriel_conflict_fn *tell;
    void *closure;
    int64_t shift;
};

static void init_lock(void *at)
{
    oriel_shm_lock_init(at);
}

/* NULL: the board is full. */
static struct oriel_shm_lock *machines_lock(void)
{
    struct oriel_key key = {.words = {KEY_BESIDE}};
    return oriel_shm_at(oriel_shm_find(&key, sizeof(struct oriel_shm_lock), init_lock));
}

static struct beside *find(const struct oriel_history *history, oriel_shm_offset other,
                           int64_t shift)
{
    struct beside *at = oriel_shm_at(atomic_load(&history->beside));
    while (at != NULL && (at->history != other || at->shift != shift))
        at = oriel_shm_at(at->next);
    return at;
}

/* Under the machine's lock. */
static void add(struct oriel_history_bytes to, struct oriel_history_bytes other)
{
    struct oriel_history *history = oriel_shm_at(to.history);
    int64_t shift = other.offset - to.offset;
    oriel_shm_offset place =
        find(history, other.history, shift) != NULL ? 0 : oriel_shm_allocate(sizeof(struct beside));
    if (place == 0)
        return;
    *(struct beside *)oriel_shm_at(place) = (struct beside){
        .next = atomic_load(&history->beside), .history = other.history, .shift = shift};
    atomic_store(&history->beside, place);
}

/* Small accesses there look for more than cells from now on, and find the list. */
static void widen(struct oriel_history_bytes bytes, uint64_t len_bytes)
{
    oriel_history_widen(bytes.history, bytes.offset, bytes.offset + (int64_t)len_bytes);
}

void oriel_history_beside(struct oriel_history_bytes one, struct oriel_history_bytes other,
                          uint64_t len_bytes)
{
    struct oriel_shm_lock *lock = machines_lock();
    if (lock == NULL)
        return;
    oriel_shm_lock(lock);
    add(one, other);
    add(other, one);
    oriel_shm_unlock(lock);
    oriel_delay();
    widen(one, len_bytes);
    widen(other, len_bytes);
}

static void tell_from_beside(const struct oriel_conflict *conflict, void *closure)
{
    const struct from_beside *from = closure;
    struct oriel_conflict told = *conflict;
    if (oriel_access_is_local(&conflict->earlier))
        return;
    told.offset -= from->shift;
    told.beside = true;
    from->tell(&told, from->closure);
}

static void meet(const struct oriel_insertion *arrival, const struct beside *other,
                 const struct oriel_access_extent *extents, size_t count)
{
    struct from_beside from = {
        .tell = arrival->tell, .closure = arrival->closure, .shift = other->shift};
    for (size_t i = 0; i < count; i++) {
        struct oriel_access_extent there = extents[i];
        there.offset += other->shift;
        oriel_history_look(other->history, arrival->access, &there, 1, tell_from_beside, &from);
    }
}

void oriel_beside_meet(const struct oriel_insertion *arrival,
                       const struct oriel_access_extent *extents, size_t count)
{
    struct oriel_history *history = arrival->history;
    if (oriel_likely(atomic_load(&history->beside) == 0) || oriel_access_is_local(arrival->access))
        return;
    oriel_shm_lock(&history->beside_lock);
    for (const struct beside *at = oriel_shm_at(atomic_load(&history->beside)); at != NULL;
         at = oriel_shm_at(at->next))
        meet(arrival, at, extents, count);
    oriel_shm_unlock(&history->beside_lock);
}

/* Under the machine's lock: the history's list has none of the other's any more. */
static void take_out(struct oriel_history *history, oriel_shm_offset other)
{
    oriel_shm_lock(&history->beside_lock);
    struct beside *before = NULL;
    for (oriel_shm_offset place = atomic_load(&history->beside); place != 0;) {
        struct beside *at = oriel_shm_at(place);
        oriel_shm_offset next = at->next;
        if (at->history != other) {
            before = at;
        } else {
            if (before == NULL)
                atomic_store(&history->beside, next);
            else
                before->next = next;
            oriel_shm_free(place, sizeof *at);
        }
        place = next;
    }
    oriel_shm_unlock(&history->beside_lock);
}

void oriel_beside_end(oriel_shm_offset place)
{
    struct oriel_history *history = oriel_shm_at(place);
    if (atomic_load(&history->beside) == 0)
        return;
    struct oriel_shm_lock *lock = machines_lock();
    oriel_shm_lock(lock);
    while (atomic_load(&history->beside) != 0) {
        const struct beside *first = oriel_shm_at(atomic_load(&history->beside));
        oriel_shm_offset other = first->history;
        take_out(oriel_shm_at(other), place);
        take_out(history, other);
    }
    oriel_shm_unlock(lock);
}
