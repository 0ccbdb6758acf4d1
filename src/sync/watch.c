/* Asks the kernel whether the ranks that block a wait are alive.  Access words are read as their owners wrote them: a word
 * is set before its owner can block anybody and cleared after it cannot any more, so a dead blocker is always seen.  A process
 * whose words nobody has been told of has set none of them (access.c).  Waits of sync/ and ops/ call, at most every 100 ms. */
#include "sync/watch.h"

static enum oriel_status check(const struct oriel_window *window, int32_t win_rank)
{
    const struct oriel_peer *peer = window->group->peers[win_rank];
    if (oriel_peer_alive(peer))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died", (int)win_rank, (int)peer->identity.pid);
}

enum oriel_status oriel_watch_rank(void *context)
{
    const struct oriel_watched *watched = context;
    return check(watched->window, watched->win_rank);
}

/* Where all wait and many are there, each looks at few at a time, first at those behind it, and goes on where it stopped; who
 * finds one dead leaves and says so by broken, so that then all look at all. */
enum oriel_status oriel_watch_all(void *context)
{
    static _Thread_local int32_t looked;
    const struct oriel_watched *watched = context;
    const struct oriel_window *window = watched->window;
    bool is_broken = window->common != NULL && oriel_load_acquire(&window->common->broken) != 0;
    int32_t count = is_broken ? window->n : oriel_watch_share(window->n);
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 1; i <= count && status == ORIEL_OK; i++)
        status = check(window, (int32_t)(((int64_t)window->rank + looked + i) % window->n));
    looked = (int32_t)(((int64_t)looked + count) % window->n);
    return status;
}

/* Whether rank i can keep others from a lock on target, or from lock_all when target is negative. */
static bool blocks(const struct oriel_window *window, int32_t i, int32_t target)
{
    struct oriel_control *control = oriel_window_control(window, i);
    uint64_t offset = atomic_load_explicit(&control->access_offset, memory_order_acquire);
    const _Atomic uint8_t *access = offset == 0 ? NULL : (const _Atomic uint8_t *)(window->control_bases[i] + offset);
    if (target >= 0)
        return (access != NULL && atomic_load_explicit(&access[target], memory_order_acquire) != ORIEL_ACCESS_NONE) ||
               oriel_load_acquire(&control->lock_all) != 0;
    for (int32_t t = 0; access != NULL && t < window->n; t++) {
        uint8_t state = atomic_load_explicit(&access[t], memory_order_acquire);
        if (state == ORIEL_ACCESS_WAITING || state == ORIEL_ACCESS_EXCLUSIVE)
            return true;
    }
    return false;
}

static enum oriel_status watch_blockers(const struct oriel_window *window, int32_t target)
{
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++)
        if (i != window->rank && blocks(window, i, target))
            status = check(window, i);
    return status;
}

enum oriel_status oriel_watch_lock(void *context)
{
    const struct oriel_watched *watched = context;
    return watch_blockers(watched->window, watched->win_rank);
}

enum oriel_status oriel_watch_locks(void *context)
{
    const struct oriel_watched *watched = context;
    return watch_blockers(watched->window, -1);
}
