/* Spin, yield, futex: how a process waits for a word in shared memory.  The yield matters as soon as there are more
 * ranks than cores, the futex when the wait is long; neither costs anything when the word is already there.  Any layer
 * may call. */
#include "base/wait.h"

#include "base/delay.h"
#include "base/options.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A wait looks EAGER times before it pauses or asks for the time, then spins, yields for a millisecond, calling the host now and
 * then, and then sleeps a millisecond at a time, since nobody wakes it for what the host must do. */
enum { EAGER = 100, YIELD_NS = 1000000, SLEEP_NS = 1000000, WATCH_NS = 100000000, YIELDS_PER_PROGRESS = 32 };

static _Atomic(void (*)(void)) progress_hook;

void oriel_wait_set_progress(void (*progress)(void))
{
    atomic_store_explicit(&progress_hook, progress, memory_order_release);
}

void oriel_wait_progress(void)
{
    void (*progress)(void) = atomic_load_explicit(&progress_hook, memory_order_acquire);
    if (progress != NULL)
        progress();
}

uint64_t oriel_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void oriel_wake_sleepers(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static enum oriel_status wait_asleep(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, enum oriel_wait_for what,
                                     uint32_t wanted, const struct oriel_watch *watch)
{
    static const struct timespec limit = {.tv_nsec = SLEEP_NS};
    enum oriel_status status = ORIEL_OK;
    uint64_t asked_ns = oriel_now_ns();
    atomic_fetch_add_explicit(sleepers, 1, memory_order_seq_cst); /* S1 */
    for (;;) {
        oriel_delay();
        uint32_t value = oriel_load_acquire(word);
        if (oriel_wait_reached(value, what, wanted))
            break;
        syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0); /* S2 */
        oriel_wait_progress();
        if (watch == NULL || oriel_now_ns() - asked_ns < WATCH_NS)
            continue;
        status = watch->check(watch->context);
        if (status != ORIEL_OK) {
            /* the word may have come while the watch looked: a peer that ended in good order raises no alarm */
            if (oriel_wait_reached(oriel_load_acquire(word), what, wanted))
                status = ORIEL_OK;
            break;
        }
        asked_ns = oriel_now_ns();
    }
    atomic_fetch_sub_explicit(sleepers, 1, memory_order_seq_cst);
    return status;
}

enum oriel_status oriel_wait_slow(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, enum oriel_wait_for what,
                                  uint32_t wanted, const struct oriel_watch *watch)
{
    for (int i = 0; i < EAGER; i++)
        if (oriel_wait_reached(oriel_load_acquire(word), what, wanted))
            return ORIEL_OK;
    uint64_t begin_ns = oriel_now_ns();
    uint64_t spin_ns = (uint64_t)oriel_options()->spin_ns;
    unsigned yields = 0;
    for (;;) {
        for (int i = 0; i < 16; i++) {
            oriel_cpu_relax();
            if (oriel_wait_reached(oriel_load_acquire(word), what, wanted))
                return ORIEL_OK;
        }
        uint64_t waited_ns = oriel_now_ns() - begin_ns;
        if (waited_ns < spin_ns)
            continue;
        if (waited_ns >= spin_ns + YIELD_NS)
            break;
        if (++yields % YIELDS_PER_PROGRESS == 0)
            oriel_wait_progress();
        sched_yield();
    }
    return wait_asleep(word, sleepers, what, wanted, watch);
}
