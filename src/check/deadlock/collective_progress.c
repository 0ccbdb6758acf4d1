/* Progress of collective calls on communicators and windows, and the locks that members hold. A
 * member writes its own slot and its own row of locks, in its node's shared memory. It records a
 * call before entering it, where others may wait for it, and clears a lock before the call that
 * lets others proceed. */
#include "check/deadlock/wait_internal.h"
#include "check/order/order.h"

#include <string.h>

static struct oriel_key progress_key(uint64_t id, bool is_window)
{
    return (struct oriel_key){.words = {UINT64_C(0x47415448), id, is_window, 0}}; /* "GATH" */
}

struct oriel_collective_progress *oriel_collective_progress_find(uint64_t id, bool is_window, int n,
                                                                 const int *world_ranks)
{
    struct oriel_key key = progress_key(id, is_window);
    bool has_locks = is_window && n <= ORIEL_COLLECTIVE_PROGRESS_LOCKS;
    struct oriel_collective_progress *progress =
        oriel_shm_at(oriel_shm_find(&key, oriel_collective_progress_bytes(n, has_locks), NULL));
    uint32_t members_here = 0;
    if (progress == NULL)
        return NULL;
    progress->id = id;
    progress->is_window = is_window; /* all members write the same values */
    progress->has_locks = has_locks;
    for (int i = 0; i < n; i++) {
        int world_rank = world_ranks == NULL ? i : world_ranks[i];
        atomic_store_explicit(&progress->slots[i].world_rank, world_rank + 1, memory_order_relaxed);
        members_here += oriel_order_is_here(world_rank);
    }
    progress->members_here = members_here;
    progress->n = n;
    return progress;
}

static bool member_leave(void *at, bool made, void *closure)
{
    struct oriel_collective_progress *progress = at;
    (void)made;
    (void)closure;
    return atomic_fetch_add(&progress->left, 1) + 1 < progress->members_here;
}

void oriel_collective_progress_leave(struct oriel_collective_progress *progress, uint64_t id)
{
    if (progress == NULL)
        return;
    struct oriel_key key = progress_key(id, progress->is_window != 0);
    oriel_shm_work(&key, 0, member_leave, NULL);
}

uint64_t oriel_collective_progress_arrive(struct oriel_collective_progress *progress, int member,
                                          uint16_t call)
{
    struct oriel_collective_progress_slot *slot = &progress->slots[member];
    uint64_t number = atomic_load_explicit(&slot->number, memory_order_relaxed) + 1;
    atomic_store_explicit(&slot->calls[number % ORIEL_COLLECTIVE_PROGRESS_CALLS], call,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->number, number, memory_order_release);
    return number;
}

void oriel_collective_progress_return(struct oriel_collective_progress *progress, int member)
{
    struct oriel_collective_progress_slot *slot = &progress->slots[member];
    uint64_t number = atomic_load_explicit(&slot->number, memory_order_relaxed);
    atomic_store_explicit(&slot->number, number - 1, memory_order_release);
}

uint64_t oriel_collective_progress_arrive_last(struct oriel_collective_progress *progress,
                                               int member)
{
    atomic_store_explicit(&progress->slots[member].last, 1, memory_order_release);
    return (uint64_t)ORIEL_COLLECTIVE_PROGRESS_LAST;
}

void oriel_collective_progress_hold(struct oriel_collective_progress *progress, int member,
                                    int target, enum oriel_holding how)
{
    if (progress->has_locks != 0)
        atomic_store_explicit(oriel_collective_progress_holds(progress, member, target),
                              (uint8_t)how, memory_order_release);
}

void oriel_collective_progress_lock_site(struct oriel_collective_progress *progress, int member,
                                         uint16_t number)
{
    atomic_store_explicit(&progress->slots[member].lock_site, number, memory_order_relaxed);
}

struct progress_copy {
    void *out;
    size_t room_bytes, len_bytes;
};

static bool progress_copy(void *at, bool made, void *closure)
{
    const struct oriel_collective_progress *progress = at;
    struct progress_copy *into = closure;
    size_t len_bytes = oriel_collective_progress_bytes(progress->n, progress->has_locks != 0);
    (void)made;
    if (progress->n > 0 && len_bytes <= into->room_bytes) {
        memcpy(into->out, at, len_bytes);
        into->len_bytes = len_bytes;
    }
    return true;
}

size_t oriel_collective_progress_copy(uint64_t id, bool is_window, void *out, size_t room_bytes)
{
    struct oriel_key key = progress_key(id, is_window);
    struct progress_copy into = {.out = out, .room_bytes = room_bytes};
    oriel_shm_work(&key, 0, progress_copy, &into);
    return into.len_bytes;
}
