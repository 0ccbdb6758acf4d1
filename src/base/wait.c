/* How a process waits for a word in shared memory: it spins, yields, then sleeps in a futex. The
 * yield matters if there are more ranks than cores. The futex matters if the wait is long or yields
 * do not help. Neither costs anything if the word already has the wanted value. */
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

/* A wait checks the word CHECKS times before it pauses or reads the clock. Then it spins, then
 * yields for a millisecond with occasional calls of the host. Then it sleeps a millisecond at a
 * time, because the host's work does not wake it.
 *
 * A yield counts as having let other threads run if it takes at least LONG_YIELD_NS and several
 * times as long as a system call that does not reschedule. Where system calls are slow, as under
 * tracers and in sandboxes, so are yields without effect. A yield that let others run means that
 * the awaited thread may need this processor, and spinning is useless. The waits of this thread
 * then stop spinning until a few yields in a row have returned at once.
 *
 * A yield only yields within the process's scheduler group. MPICH's launcher starts each rank in
 * its own session, and Linux makes each session a group (sched_autogroup_enabled). A yield then
 * returns at once while the group has run less than others, for up to milliseconds, although the
 * awaited thread is queued. Such yields look like yields without effect. Occasional longer yields
 * reveal them: while those keep occurring, the processor is in demand and waits do not spin.
 * While it is in demand, USELESS_YIELDS yields in a row without a long one count as useless; where
 * yields help, a wait has a few dozen in a row at most. A wait for an event then sleeps, which
 * yields to all groups. The next waits sleep at once: 1 of them, then 2, 4, up to NAPS. After
 * those, a wait yields again, but only USELESS_YIELDS_AGAIN useless yields, about the time of a
 * wake-up, make it sleep. A wait that succeeds sooner ends this. The host gets its turn after each
 * sleep, so no less often than where yields help. */
enum {
    CHECKS = 100,
    YIELD_NS = 1000000,
    SLEEP_NS = ORIEL_SLEEP_NS,
    WATCH_NS = 100000000,
    MISSES_PER_YIELD = 64,
    YIELDS_PER_PROGRESS = 32
};
enum {
    PAUSED_CHECKS = 16,
    LONG_YIELD_NS = 1000,
    LONG_YIELD_CALLS = 3,
    YIELDS_UNTIL_SPIN = 4,
    CALLS_TRIED = 8
};
enum {
    CONTENDED = 4,
    CONTENTION_MAX = 16,
    USELESS_YIELDS = 100,
    USELESS_YIELDS_AGAIN = 30,
    NAPS = 256
};

/* number of yields that must return at once before waits spin again */
static _Thread_local int yields_until_spin;
/* grows with each yield that lets others run, shrinks with each wait that has none */
static _Thread_local int contention;
static _Thread_local int naps;         /* number of next waits that sleep without yielding */
static _Thread_local int naps_initial; /* initial value of naps when it was last set */
/* limit of useless yields in a row */
static _Thread_local unsigned useless_yields_max = USELESS_YIELDS;
/* threshold of a long yield in this process; 0 if not measured yet */
static _Atomic uint64_t long_yield_ns;

static _Atomic(void (*)(void)) progress_hook;
_Thread_local bool oriel_wait_is_internal;
_Thread_local bool oriel_wait_is_polling;

void oriel_wait_set_progress(void (*progress)(void))
{
    atomic_store_explicit(&progress_hook, progress, memory_order_release);
}

void oriel_wait_progress(void)
{
    void (*progress)(void) = atomic_load_explicit(&progress_hook, memory_order_acquire);
    if (progress != NULL && !oriel_wait_is_internal)
        progress();
}

static _Atomic(bool (*)(bool begins)) server_hook;

void oriel_wait_set_server(bool (*serve)(bool begins))
{
    atomic_store_explicit(&server_hook, serve, memory_order_release);
}

static inline bool requests_serve(bool begins)
{
    bool (*serve)(bool) = atomic_load_explicit(&server_hook, memory_order_acquire);
    return oriel_unlikely(serve != NULL) && !oriel_wait_is_internal && serve(begins);
}

static _Atomic(const struct oriel_wait_observer *) wait_observer;

void oriel_wait_set_observer(const struct oriel_wait_observer *observer)
{
    atomic_store_explicit(&wait_observer, observer, memory_order_release);
}

static _Atomic(const struct oriel_wait_publisher *) publisher;

void oriel_wait_set_publisher(const struct oriel_wait_publisher *wanted)
{
    atomic_store_explicit(&publisher, wanted, memory_order_release);
}

void oriel_wait_publish(const struct oriel_watch *watch, uint64_t since_ns, bool *is_published)
{
    const struct oriel_wait_publisher *current_publisher =
        atomic_load_explicit(&publisher, memory_order_acquire);
    if (current_publisher != NULL && watch != NULL && watch->what != ORIEL_WAITING_NOTHING &&
        !oriel_wait_is_internal)
        *is_published = current_publisher->lasts(watch, since_ns, *is_published);
}

void oriel_wait_unpublish(bool is_published)
{
    if (is_published)
        atomic_load_explicit(&publisher, memory_order_acquire)->over();
}

static uint64_t ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t oriel_now_ns(void)
{
    return ns_of(CLOCK_MONOTONIC);
}

void oriel_wake_sleepers(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void oriel_sleep_begin(struct oriel_sleep *sleep, const struct oriel_watch *watch)
{
    const uint64_t now_ns = oriel_now_ns();
    *sleep = (struct oriel_sleep){.watch = watch, .since_ns = now_ns, .asked_ns = now_ns};
}

enum oriel_status oriel_sleep_step(struct oriel_sleep *sleep)
{
    const struct oriel_watch *watch = sleep->watch;
    (void)requests_serve(false);
    oriel_wait_progress();
    uint64_t now_ns = oriel_now_ns();
    bool asks = now_ns - sleep->asked_ns >= WATCH_NS;
    if (asks || (!sleep->is_published && now_ns - sleep->since_ns >= SLEEP_NS))
        oriel_wait_publish(watch, sleep->since_ns, &sleep->is_published);
    if (watch == NULL || !asks)
        return ORIEL_OK;
    enum oriel_status status = watch->check(watch->context);
    sleep->asked_ns = oriel_now_ns();
    return status;
}

void oriel_sleep_end(const struct oriel_sleep *sleep)
{
    oriel_wait_unpublish(sleep->is_published);
}

static enum oriel_status wait_sleeping(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                       enum oriel_wait_for condition, uint32_t wanted,
                                       const struct oriel_watch *watch)
{
    static const struct timespec limit = {.tv_nsec = SLEEP_NS};
    enum oriel_status status = ORIEL_OK;
    struct oriel_sleep sleep;
    oriel_sleep_begin(&sleep, watch);
    atomic_fetch_add_explicit(sleepers, 1, memory_order_seq_cst); /* S1 */
    while (status == ORIEL_OK) {
        oriel_delay();
        uint32_t value = oriel_load_acquire(word);
        if (oriel_wait_reached(value, condition, wanted))
            break;
        syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0); /* S2 */
        status = oriel_sleep_step(&sleep);
    }
    /* the word may have changed during the check: it is no error that a peer finalises normally */
    if (status != ORIEL_OK && oriel_wait_reached(oriel_load_acquire(word), condition, wanted))
        status = ORIEL_OK;
    atomic_fetch_sub_explicit(sleepers, 1, memory_order_seq_cst);
    oriel_sleep_end(&sleep);
    return status;
}

bool oriel_polling_missed(struct oriel_polling *polling)
{
    oriel_wait_progress();
    if (++polling->misses % MISSES_PER_YIELD == 0)
        sched_yield();
    const uint64_t now_ns = ns_of(CLOCK_MONOTONIC_COARSE);
    if (polling->asked_ns == 0)
        polling->asked_ns = now_ns;
    if (now_ns - polling->asked_ns < WATCH_NS)
        return false;
    polling->asked_ns = now_ns;
    return true;
}

/* What a wait waits for. */
struct awaited {
    const _Atomic uint32_t *word; /* NULL: a condition of the caller's */
    enum oriel_wait_for condition;
    uint32_t wanted;
    bool (*holds)(const void *context);
    const void *context;
};

static inline __attribute__((always_inline)) bool awaited_holds(const struct awaited *awaited)
{
    return awaited->word != NULL ? oriel_wait_reached(oriel_load_acquire(awaited->word),
                                                      awaited->condition, awaited->wanted)
                                 : awaited->holds(awaited->context);
}

/* Checks several times: back to back, or with a pause before each check, which leaves the cache
 * line to its writer. Sets *served if the process served a request in a pause. */
static inline bool awaited_check(const struct awaited *awaited, int times, bool pauses,
                                 bool *served)
{
    for (int i = 0; i < times; i++) {
        if (pauses) {
            oriel_cpu_relax();
            *served |= requests_serve(false);
        }
        if (awaited_holds(awaited))
            return true;
    }
    return false;
}

/* Measured at the first yield, as the minimum over several calls, because single calls may be
 * interrupted. */
static uint64_t long_yield_measure(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < CALLS_TRIED; i++) {
        uint64_t begin_ns = oriel_now_ns();
        (void)getppid();
        uint64_t took_ns = oriel_now_ns() - begin_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    uint64_t found_ns =
        LONG_YIELD_CALLS * least_ns > LONG_YIELD_NS ? LONG_YIELD_CALLS * least_ns : LONG_YIELD_NS;
    atomic_store_explicit(&long_yield_ns, found_ns, memory_order_relaxed);
    return found_ns;
}

/* Returns true if other threads ran; *back_ns is the time of return. */
static bool processor_yield(uint64_t *back_ns)
{
    uint64_t long_ns = atomic_load_explicit(&long_yield_ns, memory_order_relaxed);
    if (oriel_unlikely(long_ns == 0))
        long_ns = long_yield_measure();
    uint64_t begin_ns = oriel_now_ns();
    sched_yield();
    *back_ns = oriel_now_ns();
    if (*back_ns - begin_ns < long_ns) {
        yields_until_spin -= yields_until_spin > 0;
        return false;
    }
    yields_until_spin = YIELDS_UNTIL_SPIN;
    contention += contention < CONTENTION_MAX;
    return true;
}

static inline bool processor_is_contended(enum oriel_wait_for condition)
{
    return condition == ORIEL_WAIT_SIGNALLED && contention >= CONTENDED;
}

static inline bool yields_are_useless(enum oriel_wait_for condition, unsigned useless_yields)
{
    return processor_is_contended(condition) && useless_yields >= useless_yields_max;
}

bool oriel_wait_may_spin(void)
{
    return yields_until_spin == 0 && contention < CONTENDED;
}

static void naps_plan(bool yields_helped)
{
    naps_initial = yields_helped         ? 0
                   : naps_initial == 0   ? 1
                   : naps_initial < NAPS ? 2 * naps_initial
                                         : NAPS;
    naps = naps_initial;
    useless_yields_max = yields_helped ? USELESS_YIELDS : USELESS_YIELDS_AGAIN;
}

/* Spins and yields. Returns true if the condition held before it is time to sleep. */
static bool wait_spinning(const struct awaited *awaited)
{
    const enum oriel_wait_for condition = awaited->condition;
    uint64_t begin_ns = oriel_now_ns();
    uint64_t now_ns = begin_ns;
    uint64_t spin_ns = (uint64_t)oriel_options()->spin_ns;
    unsigned yields = 0, useless_yields = 0;
    bool is_reached = false, has_yielded = false, served = false;
    while (!is_reached && now_ns - begin_ns < spin_ns + YIELD_NS &&
           !yields_are_useless(condition, useless_yields)) {
        bool skips_spinning = yields_until_spin > 0 || processor_is_contended(condition);
        if (!skips_spinning && now_ns - begin_ns < spin_ns) {
            now_ns = oriel_now_ns();
        } else {
            if (++yields % YIELDS_PER_PROGRESS == 0)
                oriel_wait_progress();
            served |= requests_serve(false);
            useless_yields = processor_yield(&now_ns) ? 0 : useless_yields + 1;
            has_yielded |= useless_yields == 0;
        }
        is_reached = awaited_check(awaited, skips_spinning ? CHECKS : PAUSED_CHECKS,
                                   !skips_spinning, &served);
        begin_ns = served ? now_ns : begin_ns;
        served = false;
    }
    if (is_reached ? condition == ORIEL_WAIT_SIGNALLED
                   : yields_are_useless(condition, useless_yields))
        naps_plan(is_reached);
    if (!has_yielded)
        contention = is_reached ? contention / 2 : contention - (contention > 0);
    return is_reached;
}

uint64_t oriel_wait_time_begin(const struct oriel_watch *watch)
{
    const struct oriel_wait_observer *observer =
        atomic_load_explicit(&wait_observer, memory_order_acquire);
    if (oriel_likely(observer == NULL))
        return 0;
    observer->begin(watch);
    return oriel_now_ns();
}

void oriel_wait_time_end(const struct oriel_watch *watch, uint64_t begin_ns)
{
    const struct oriel_wait_observer *observer =
        atomic_load_explicit(&wait_observer, memory_order_acquire);
    if (begin_ns != 0 && observer != NULL)
        observer->end(watch, oriel_now_ns() - begin_ns);
}

/* All that precedes sleeping. */
static bool wait_awake(const struct awaited *awaited)
{
    bool served = requests_serve(true);
    if (awaited_check(awaited, CHECKS, false, &served))
        return true;
    if (naps == 0 || awaited->condition != ORIEL_WAIT_SIGNALLED)
        return wait_spinning(awaited);
    naps--;
    return false;
}

bool oriel_wait_spinning(bool (*holds)(const void *context), const void *context)
{
    return wait_awake(
        &(struct awaited){.condition = ORIEL_WAIT_SIGNALLED, .holds = holds, .context = context});
}

static enum oriel_status wait_long(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                   enum oriel_wait_for condition, uint32_t wanted,
                                   const struct oriel_watch *watch)
{
    return wait_awake(&(struct awaited){.word = word, .condition = condition, .wanted = wanted})
               ? ORIEL_OK
               : wait_sleeping(word, sleepers, condition, wanted, watch);
}

enum oriel_status oriel_wait_slow(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                  enum oriel_wait_for condition, uint32_t wanted,
                                  const struct oriel_watch *watch)
{
    uint64_t begin_ns = oriel_wait_time_begin(watch);
    enum oriel_status status = wait_long(word, sleepers, condition, wanted, watch);
    if (oriel_unlikely(begin_ns != 0))
        oriel_wait_time_end(watch, begin_ns);
    return status;
}
