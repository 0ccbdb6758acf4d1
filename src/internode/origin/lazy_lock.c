/* Lazy locks: a lock of an internode target that its epoch does not wait for. Lock, put and unlock
 * leave together and need one round trip.
 *
 *   K1: The lock is the first request of its epoch, so it reaches the target first (net.h, N1).
 *   K2: The target defers operations, flushes and the unlock of an origin until its lock is
 *       acquired (target_sync.c, deferred_queue.c). Then it executes them in their order, before
 *       anything else of this origin.
 *   K3: If the target refuses the lock, it executes nothing of the epoch, up to the unlock. The
 *       replies to the unlock and to all other requests report that. The origin records the failure
 *       in the lock's reply for the next call that completes operations. It starts no RDMA, since
 *       RDMA knows of no lock.
 *   K4: Before the lock's reply arrives, the origin requests and acquires no other lock. This
 *       includes windows that the host serves. So locks are acquired in the order of the calls, as
 *       if each call waited.
 *
 * So a process has at most one such lock. It has none if several threads may be in calls at once:
 * they would wait for each other's locks. The origin bounds what the target defers to
 * ORIEL_LAZY_LOCK_BYTES (K5): a longer message waits for the lock first. RDMA puts and gets take
 * effect at once, so they wait for the lock, too. */
#include "internode/origin/origin_sync.h"

#include "internode/origin/origin_peers.h"
#include "internode/origin/target_flags.h"

#include <stdlib.h>

uint32_t oriel_lazy_lock_outstanding;

static struct {
    struct oriel_window *window;
    struct oriel_internode_question *question;
    size_t left_bytes;
    int32_t target;
} lazy;

void oriel_lazy_lock_begin(struct oriel_window *window, int32_t target,
                           struct oriel_internode_question *question)
{
    lazy.window = window;
    lazy.question = question;
    lazy.left_bytes = ORIEL_LAZY_LOCK_BYTES;
    lazy.target = target;
    oriel_lazy_lock_outstanding = 1;
}

void oriel_lazy_lock_await(void)
{
    if (!oriel_lazy_lock_outstanding)
        return;
    oriel_lazy_lock_outstanding = 0;
    enum oriel_status status =
        oriel_internode_question_await(lazy.window, lazy.target, &lazy.question);
    if (status != ORIEL_OK) /* K3 */
        oriel_internode_operation_failed(lazy.window->internode, status, 0, oriel_fail_message(),
                                         true);
    if (status != ORIEL_OK) /* K3: RDMA is refused, too */
        oriel_internode_flag_set(lazy.window->internode, lazy.target, ORIEL_INTERNODE_LOCK_REFUSED);
    free(lazy.question);
}

void oriel_lazy_lock_free(const struct oriel_internode *internode)
{
    if (oriel_lazy_lock_outstanding && lazy.window->internode == internode) {
        oriel_internode_question_abandon(lazy.question);
        oriel_lazy_lock_outstanding = 0;
    }
}

static bool is_at(const struct oriel_window *window, int32_t target)
{
    return oriel_unlikely(oriel_lazy_lock_outstanding) && lazy.window == window &&
           (target < 0 || target == lazy.target);
}

void oriel_lazy_lock_await_at(const struct oriel_window *window, int32_t target)
{
    if (is_at(window, target))
        oriel_lazy_lock_await();
}

void oriel_lazy_lock_before_message(const struct oriel_window *window, int32_t target,
                                    const struct iovec *data, unsigned pieces)
{
    size_t len_bytes = sizeof(struct oriel_internode_head);
    if (!is_at(window, target))
        return;
    for (unsigned i = 0; i < pieces; i++)
        len_bytes += data[i].iov_len;
    if (len_bytes > lazy.left_bytes)
        oriel_lazy_lock_await(); /* K5 */
    else
        lazy.left_bytes -= len_bytes;
}
