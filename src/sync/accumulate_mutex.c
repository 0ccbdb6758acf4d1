/* A futex lock that records its holder.
 *
 *      31        30..0
 *     +--------+----------------+   free: 0   M1: 0 -> rank + 1           (acquire)
 *     | asleep | win_rank + 1   |             M2: word -> word | asleep   before sleeping
 *     +--------+----------------+             M3: word -> 0 (release); wakes one if asleep was set
 *
 * A process that has opened a memory handle of the target has a name in the place of win_rank + 1
 * (window/holders.h).
 *
 * A waiter that wakes acquires the lock with asleep set, since others may still sleep: at worst one
 * needless wake follows.
 * P1: M3 release -> M1 acquire. Death: the word names the holder permanently; every waiter checks
 *     whether it lives. */
#include "sync/accumulate_mutex.h"

#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "sync/holder_epochs.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ASLEEP UINT32_C(0x80000000)

enum { SPINS = 100, YIELDS = 50 };

static bool try_lock(struct oriel_accumulate_mutex *mutex, uint32_t as)
{
    uint32_t free_word = 0;
    return atomic_compare_exchange_strong_explicit(
        &mutex->word, &free_word, as, memory_order_acquire, memory_order_relaxed); /* M1 */
}

static bool holder_lives(struct oriel_window *window, int32_t target, uint32_t word,
                         enum oriel_status *status)
{
    uint32_t name = word & ~ASLEEP;
    *status = name == 0 ? ORIEL_OK : oriel_holder_check_update(window, target, name);
    return *status == ORIEL_OK;
}

/* A thread that found a holder dead checks it first the next time. The agent, which works for
 * others, must not sleep before each of the many updates that they may have sent. */
static _Thread_local const struct oriel_accumulate_mutex *suspect;

static enum oriel_status lock_sleeping(struct oriel_window *window,
                                       struct oriel_accumulate_mutex *mutex, int32_t target,
                                       uint32_t as)
{
    static const struct timespec limit = {.tv_nsec = 100000000};
    enum oriel_status status = ORIEL_OK;
    const uint64_t since_ns = oriel_now_ns();
    uint64_t asked_ns = since_ns;
    struct oriel_watched watched = {.window = window, .win_rank = target};
    const struct oriel_watch watch = {oriel_liveness_none, &watched, ORIEL_WAITING_UPDATE};
    bool reported = false;
    if (suspect == mutex &&
        !holder_lives(window, target, oriel_load_relaxed(&mutex->word), &status))
        return status;
    suspect = NULL;
    while (!try_lock(mutex, as | ASLEEP)) {
        uint32_t word = oriel_load_relaxed(&mutex->word);
        if (word == 0)
            continue;
        if (!(word & ASLEEP) &&
            !atomic_compare_exchange_strong_explicit(&mutex->word, &word, word | ASLEEP,
                                                     memory_order_relaxed, memory_order_relaxed))
            continue; /* M2 lost the race against M3 */
        oriel_delay();
        syscall(SYS_futex, &mutex->word, FUTEX_WAIT, word | ASLEEP, &limit, NULL, 0);
        if (oriel_now_ns() - asked_ns >= (uint64_t)limit.tv_nsec) {
            oriel_wait_publish(&watch, since_ns, &reported);
            if (!holder_lives(window, target, oriel_load_relaxed(&mutex->word), &status)) {
                suspect = mutex;
                break;
            }
            asked_ns = oriel_now_ns();
        }
    }
    oriel_wait_unpublish(reported);
    return status;
}

static enum oriel_status lock_contended(struct oriel_window *window,
                                        struct oriel_accumulate_mutex *mutex, int32_t target,
                                        uint32_t as)
{
    for (int i = 0; i < SPINS + YIELDS; i++) {
        if (oriel_load_relaxed(&mutex->word) == 0 && try_lock(mutex, as))
            return ORIEL_OK;
        if (i < SPINS)
            oriel_cpu_relax();
        else
            sched_yield();
    }
    return lock_sleeping(window, mutex, target, as);
}

/* The holder's rank in the window; -1 if it has none. */
static int32_t holder_rank(const struct oriel_window *window, uint32_t word)
{
    uint32_t name = word & ~ASLEEP;
    return name > (uint32_t)window->n || oriel_window_is_opened(window) ? -1 : (int32_t)name - 1;
}

enum oriel_status oriel_accumulate_mutex_lock(struct oriel_window *window, int32_t target)
{
    struct oriel_accumulate_mutex *mutex = &oriel_window_control(window, target)->accumulate;
    const uint32_t as = oriel_unlikely(oriel_window_is_opened(window)) ? window->holding->name
                                                                       : (uint32_t)window->rank + 1;
    uint32_t word = oriel_load_relaxed(&mutex->word);
    if (oriel_likely(word == 0) && oriel_likely(try_lock(mutex, as)))
        return ORIEL_OK;
    struct oriel_watched watched = {.window = window, .win_rank = holder_rank(window, word)};
    struct oriel_watch holder = {oriel_liveness_rank, &watched, ORIEL_WAITING_UPDATE};
    uint64_t begin_ns = oriel_wait_time_begin(&holder);
    enum oriel_status status = lock_contended(window, mutex, target, as);
    oriel_wait_time_end(&holder, begin_ns);
    return status;
}

void oriel_accumulate_mutex_unlock(struct oriel_window *window, int32_t target)
{
    struct oriel_accumulate_mutex *mutex = &oriel_window_control(window, target)->accumulate;
    oriel_delay();
    if (atomic_exchange_explicit(&mutex->word, 0, memory_order_release) & ASLEEP) /* M3 */
        syscall(SYS_futex, &mutex->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
