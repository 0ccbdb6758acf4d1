/* Notifications. A counter is 64 bits, so it never overflows. arrived is written by all origins of
 * the node and by the owner's agent's thread for other nodes; taken is private to the owner.
 *
 * The origin:
 *
 *   N1: the operation takes effect: it is executed before the call goes on, or the agent's thread
 *       has executed it. Operations that the origin queued before it (rma/deferred.c) are executed
 *       first.
 *   N2: arrived += 1 (seq_cst)
 *   N3: loads sleepers (seq_cst); if it is not 0, any += 1 (seq_cst), and wakes the sleepers of any
 *       and of arrived
 *
 * The owner:
 *
 *   T1: loads arrived (acquire); goes on if arrived - taken >= count
 *   T2: taken += count, if it is still what T1 compared with
 *   S:  otherwise it waits until the low half of arrived reaches that of taken + count, with
 *       sleepers as in base/wait.h, and begins again
 *
 *   P1: N1 is before N2 in program order, and N2 releases; T1 acquires. So what the origin's thread
 *       did before N2 is visible after T2. A get has loaded before N2.
 *   P2: each notification is taken once: T2 succeeds for one thread only for each value of taken,
 *       and never takes more than T1 has found.
 *   P3: the low half is enough in S: arrived is less than count, at most 2^31 - 1, below the value
 *       that S waits for, and S looks far more often than arrived grows by 2^31.
 *
 * A wait for any of several counters:
 *
 *   A1: sleepers += 1 at each of them (seq_cst)
 *   A2: loads any
 *   A3: takes a notification that is there (T1, T2)
 *   A4: waits until any differs from A2's value, then goes back to A2
 *
 *   P4: no notification is missed. In the one order of seq_cst operations N3 precedes A1, and so N2
 *       precedes A3, which finds it; or N3 finds the sleeper and changes any. If A2 loads the new
 *       value, N2 is visible to A3. If not, A4 ends.
 *
 * A process that notifies itself:
 *
 *   P5: it subtracts 1 from taken instead, which has the same effect in T1 and needs no cache line
 *       that others write. Only if no other thread may be in a call: taken then has one writer, S
 *       is not in progress, and program order is P1. Both words are modulo 2^64.
 *
 * Death: a rank that dies between N1 and N2 has not notified. A waiter asks every 100 ms whether a
 * rank of the window has died, since any may be the one that it waits for. */
#include "sync/notify.h"

#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "memory/file.h"

#include <stdlib.h>

/* A wait looks at its counter LOOKS times, for a microsecond or two, before it does anything
 * else. Each look takes the cache line from the origins. So it pauses before the next one for about
 * as long as the missing notifications need. */
enum { LOOKS = 2000, LOOKS_PER_PAUSE = 10, PAUSES_PER_MISSING = 4, PAUSES_MOST = 100 };

enum oriel_status oriel_notifications_make(struct oriel_window *window, uint32_t count,
                                           bool has_threads)
{
    uint64_t offset;
    if (count == 0)
        return ORIEL_OK;
    struct oriel_notifications *own = calloc(1, sizeof *own + count * sizeof own->taken[0]);
    if (own == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for %u counters of notifications", count);
    const uint64_t len_bytes =
        sizeof(struct oriel_notify_area) + count * sizeof(struct oriel_notify_counter);
    enum oriel_status status = oriel_file_alloc(len_bytes, 2 * ORIEL_CACHE_LINE, &offset);
    if (status != ORIEL_OK) {
        free(own);
        return status;
    }
    own->count = count;
    own->has_threads = has_threads;
    own->area = (struct oriel_notify_area *)(oriel_file_base() + offset);
    window->notifications = own;
    window->control->notify_offset = offset;
    window->control->notify_count = count;
    return ORIEL_OK;
}

void oriel_notifications_close(struct oriel_window *window)
{
    if (window->notifications == NULL)
        return;
    oriel_file_free(window->control->notify_offset);
    free(window->notifications);
    window->notifications = NULL;
}

enum oriel_status oriel_notify_check(const struct oriel_window *window, int32_t target, int number)
{
    const uint32_t count = oriel_window_control(window, target)->notify_count;
    if (oriel_likely((uint32_t)number < count))
        return ORIEL_OK;
    if (count == 0)
        return oriel_fail(ORIEL_E_ARG,
                          "rank %d has no counters of notifications: the info key "
                          "oriel_notifications had no number from 1 to 65536 at its creation",
                          (int)target);
    return oriel_fail(ORIEL_E_ARG, "notification number %d: rank %d has the numbers 0 to %u",
                      number, (int)target, count - 1);
}

void oriel_notify_wake(struct oriel_notify_area *area, struct oriel_notify_counter *counter)
{
    oriel_event_signal(&area->any);
    oriel_wake_sleepers(&counter->arrived_low);
}

enum oriel_status oriel_notify_missed(struct oriel_window *window)
{
    static _Thread_local struct oriel_polling polling;
    struct oriel_watched watched = {.window = window, .win_rank = -1};
    return oriel_polling_missed(&polling) ? oriel_liveness_any(&watched) : ORIEL_OK;
}

/* Returns whether the counter has reached the wanted value. On several nodes a wait serves
 * messages, so it does not spin first. */
static bool notify_spin(const struct oriel_notify_counter *counter, uint32_t wanted)
{
    for (int looks = oriel_wait_may_spin() ? LOOKS : 0; looks > 0; looks--) {
        const int32_t missing = (int32_t)(wanted - oriel_load_acquire(&counter->arrived_low));
        if (missing <= 0)
            return true;
        int32_t pauses = missing > PAUSES_MOST / PAUSES_PER_MISSING
                             ? PAUSES_MOST
                             : PAUSES_PER_MISSING * (missing - 1);
        for (looks -= pauses * LOOKS_PER_PAUSE; pauses > 0; pauses--)
            oriel_cpu_relax();
    }
    return false;
}

enum oriel_status oriel_notify_wait(struct oriel_window *window, uint32_t number, uint32_t count)
{
    struct oriel_notifications *own = window->notifications;
    struct oriel_notify_counter *counter = &own->area->counters[number];
    struct oriel_watched watched = {.window = window, .win_rank = -1};
    const struct oriel_watch watch = {oriel_liveness_any, &watched, ORIEL_WAITING_NOTIFICATION};
    enum oriel_status status = ORIEL_OK;
    while (status == ORIEL_OK && !oriel_notify_take(own, number, count)) {
        const uint64_t taken = atomic_load_explicit(&own->taken[number], memory_order_relaxed);
        const uint32_t wanted = (uint32_t)taken + count;
        if (window->internode != NULL || !notify_spin(counter, wanted))
            status = oriel_internode_wait(window, &counter->arrived_low, &counter->sleepers, wanted,
                                          &watch); /* S */
    }
    return status;
}

/* A3 */
static bool take_any(struct oriel_notifications *own, int n, const int numbers[], int *index)
{
    for (int i = 0; i < n; i++)
        if (oriel_notify_take(own, (uint32_t)numbers[i], 1)) {
            *index = i;
            return true;
        }
    return false;
}

enum oriel_status oriel_notify_wait_any(struct oriel_window *window, int n, const int numbers[],
                                        int *index)
{
    struct oriel_notifications *own = window->notifications;
    struct oriel_event *any = &own->area->any;
    struct oriel_watched watched = {.window = window, .win_rank = -1};
    const struct oriel_watch watch = {oriel_liveness_any, &watched, ORIEL_WAITING_NOTIFICATION};
    enum oriel_status status = ORIEL_OK;
    if (take_any(own, n, numbers, index))
        return ORIEL_OK;
    for (int i = 0; i < n; i++)
        atomic_fetch_add_explicit(&own->area->counters[numbers[i]].sleepers, 1,
                                  memory_order_seq_cst); /* A1 */
    for (;;) {
        oriel_delay();
        const uint32_t seen = oriel_load_acquire(&any->value); /* A2 */
        oriel_delay();
        if (status != ORIEL_OK || take_any(own, n, numbers, index))
            break;
        status =
            oriel_internode_wait(window, &any->value, &any->sleepers, seen + 1, &watch); /* A4 */
    }
    for (int i = 0; i < n; i++)
        atomic_fetch_sub_explicit(&own->area->counters[numbers[i]].sleepers, 1,
                                  memory_order_seq_cst);
    return status;
}
