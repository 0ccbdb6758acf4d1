/* Stops all other threads in a signal handler. Each thread to be stopped has a slot. Its word
 * combines a phase with the number of the stop, which is never 0 and not reused for a long time:
 *
 *     FREE --Q2--> SENT --T1--> PARKED --Q5--> RELEASED --T3--> FREE      SENT --Q5--> FREE
 *                                  ^-----Q1--------'
 *
 * The caller:
 *   Q1 parks again the threads that have not yet left the handler
 *   Q2 sends the signal (number, slot) to each other thread
 *   Q3 sees PARKED in all slots, and lists the threads again until none is new
 *   Q4 copies and remaps
 *   Q5 releases, wakes
 *
 * A thread:
 *   T1 changes SENT to PARKED; if that fails, the stop is over and it continues
 *   T2 waits until RELEASED
 *   T3 exits the handler, unless Q1 came first
 *
 * P1: T1 release -> Q3 acquire: the thread's earlier stores are copied; after a Q1 it has made no
 *     others.
 *
 * P2: Q5 release -> T2 acquire: the thread continues in the new mapping.
 *
 * A thread that exists at Q4 is parked or has exited. Only running threads create threads, and
 * after a scan that found no new thread none was running. A scan sees all threads that existed at
 * one point in time (thread_list.c). A stop ends within a bounded time, or does not begin.
 *
 * From Q1 on, this code acquires no lock. The kernel (SA_RESTART) or syscall_restart.c restarts
 * interrupted system calls of the stopped threads. */
#include "memory/promote/write_barrier.h"

#include "base/atomic.h"
#include "base/wait.h"
#include "memory/promote/stop_signal.h"
#include "memory/promote/syscall_restart.h"
#include "memory/promote/thread_list.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 2048, TRIES = 4, LOOK_NS = 500000, PAUSE_NS = 2000000 };
/* Waiting limits by thread. DEAF_NS: blocks the signal and sleeps. LIMIT_NS: any other thread.
 * CROWDED_NS: would stop if it got a processor, which may take half a second. MOMENT_NS: a thread
 * that has had a processor for this long and still blocks the signal is not starting, ending, or
 * leaving the handler. */
enum { DEAF_NS = 10000000, LIMIT_NS = 100000000, CROWDED_NS = 1000000000, MOMENT_NS = 1000000 };

enum phase { FREE, SENT, PARKED, RELEASED };

struct slot {
    _Atomic uint32_t word; /* number * 4 + phase; 0 when free */
    int32_t tid;           /* used only by the caller */
    /* processor time when the thread was first seen to block the signal; 0 before; used only by
     * the caller */
    uint64_t cpu_ns;
    /* an address on the stack where the thread stopped; written before T1 */
    _Atomic uintptr_t stack;
    /* the call that blocked the thread before the signal; written before SENT, read after T1 */
    struct oriel_syscall call;
};

static struct {
    uint32_t number; /* of the current stop, or the last one */
    int32_t absent;  /* thread that did not stop in time */
    /* thread that stopped in no try: while it blocks signals, it is not waited for again */
    int32_t stubborn;
    int signal; /* signal that stopped all threads last time; 0 when one must be chosen */
    int used;   /* slots from here on were never used */
    _Atomic uint32_t arrivals; /* changes with every arrival: the caller sleeps on it */
    struct slot slots[THREADS_MAX];
} parking;

/* Selects threads by the call in which they are blocked. */
struct choice {
    bool (*is_chosen)(const struct oriel_syscall *call, const void *context);
    const void *context;
};

static uint32_t phase_of(uint32_t word)
{
    return word % 4;
}

static bool slot_change(struct slot *slot, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(&slot->word, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static void futex_sleep(_Atomic uint32_t *word, uint32_t value, const struct timespec *limit)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, limit, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void slot_wait_released(struct slot *slot)
{
    for (;;) {
        uint32_t word = oriel_load_acquire(&slot->word);
        if (phase_of(word) == PARKED) /* T2 */
            futex_sleep(&slot->word, word, NULL);
        else if (slot_change(slot, word, FREE)) /* T3 */
            return;
    }
}

/* The signal handler, for threads that stop and threads that come too late; async-signal-safe. */
static void park_handler(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    int saved_errno = errno;
    uint64_t message = oriel_stop_signal_read(info);
    uint32_t number = (uint32_t)(message >> 32);
    uint32_t index = (uint32_t)message;
    if (number != 0 && index < THREADS_MAX) {
        struct slot *slot = &parking.slots[index];
        if (oriel_load_acquire(&slot->word) == number * 4 + SENT)
            atomic_store_explicit(&slot->stack, (uintptr_t)&saved_errno, memory_order_relaxed);
        if (slot_change(slot, number * 4 + SENT, number * 4 + PARKED)) { /* T1 */
            atomic_fetch_add_explicit(&parking.arrivals, 1, memory_order_seq_cst);
            futex_wake(&parking.arrivals, 1);
            oriel_syscall_restart_resume(&slot->call, context);
            slot_wait_released(slot);
        } else {
            oriel_syscall_restart_resume(&(struct oriel_syscall){.number = -1}, context);
        }
    }
    errno = saved_errno;
}

static bool thread_refuse(struct oriel_write_barrier *barrier, int32_t tid, const char *what)
{
    char name[32] = "";
    (void)oriel_thread_list_read(tid, "comm", name, sizeof name);
    name[strcspn(name, "\n")] = '\0';
    snprintf(barrier->reason, sizeof barrier->reason, "thread %d (%s) %s", (int)tid, name, what);
    return false;
}

/* One scan of all other threads. */
struct scan {
    struct oriel_write_barrier *barrier;
    const struct choice *choice; /* threads to stop; NULL: all */
    uint64_t signals;            /* signals that no thread blocks */
    int news;                    /* number of threads that were sent the signal */
};

static bool visit_threads(struct scan *scan, bool (*visit)(int32_t tid, void *scan))
{
    int error;
    bool all = oriel_thread_list_visit(visit, scan, &error);
    if (error != 0)
        snprintf(scan->barrier->reason, sizeof scan->barrier->reason, "cannot list the threads: %s",
                 strerror(error));
    return all;
}

/* Whether a thread belongs to the current stop. */
static bool has_slot(int32_t tid)
{
    for (int i = 0; i < parking.used; i++)
        if (parking.slots[i].tid == tid &&
            oriel_load_relaxed(&parking.slots[i].word) / 4 == parking.number)
            return true;
    return false;
}

/* Removes the signals that a thread blocks, unless none would remain. Threads briefly block all
 * signals when they start and end, and receive ours afterwards. */
static bool subtract_blocked(int32_t tid, void *context)
{
    struct scan *scan = context;
    uint64_t blocked;
    if (!has_slot(tid) && oriel_thread_list_read_blocked(tid, &blocked) &&
        (scan->signals & ~blocked) != 0)
        scan->signals &= ~blocked;
    return true;
}

/* Chooses a real-time signal that the program does not use. The previous signal is preferred,
 * because reading each thread's blocked signals costs more than all the rest. */
static bool choose_signal(struct oriel_write_barrier *barrier)
{
    barrier->signal = parking.signal;
    if (oriel_stop_signal_is_free(parking.signal, park_handler))
        return true;
    parking.signal = 0;
    struct scan scan = {.barrier = barrier, .signals = oriel_stop_signal_free_set(park_handler)};
    if (scan.signals == 0) {
        snprintf(barrier->reason, sizeof barrier->reason, "the program uses all real-time signals");
        return false;
    }
    barrier->signal = 64 - __builtin_clzll(scan.signals);
    if (!visit_threads(&scan, subtract_blocked))
        return false;
    barrier->signal = 64 - __builtin_clzll(scan.signals);
    return true;
}

static bool is_blocking(const struct oriel_write_barrier *barrier, int32_t tid)
{
    uint64_t blocked;
    return oriel_thread_list_read_blocked(tid, &blocked) &&
           (blocked >> (barrier->signal - 1) & 1) != 0;
}

/* A slot that no thread will touch any more; NULL when all are in use. */
static struct slot *free_slot(void)
{
    for (int i = 0; i < parking.used; i++)
        if (oriel_load_acquire(&parking.slots[i].word) == FREE)
            return &parking.slots[i];
    return parking.used < THREADS_MAX ? &parking.slots[parking.used++] : NULL;
}

/* A thread that blocks the signal is skipped. */
static bool is_chosen(const struct scan *scan, int32_t tid, const struct oriel_syscall *call)
{
    return scan->choice->is_chosen(call, scan->choice->context) && !is_blocking(scan->barrier, tid);
}

/* A thread that waits for the program's signals would mistake ours for one of them: in sigwait, or
 * where it blocks ours, in a read or poll of a signalfd. */
static bool waits_for_signals(const struct oriel_write_barrier *barrier, int32_t tid,
                              const struct oriel_syscall *call)
{
    return call->number == SYS_rt_sigtimedwait ||
           (oriel_syscall_restart_waits_for_input(call) && is_blocking(barrier, tid));
}

/* Whether the thread sleeps in the same call as before. */
static bool sleeps_on(const struct slot *slot)
{
    struct oriel_syscall now;
    oriel_syscall_restart_read_call(slot->tid, &now);
    return (now.number == SYS_futex || now.number == SYS_nanosleep ||
            now.number == SYS_clock_nanosleep) &&
           memcmp(&now, &slot->call, sizeof now) == 0;
}

/* Q2, for threads that have no slot yet. Only the initial thread may have ended and still be
 * listed. */
static bool stop_thread(int32_t tid, void *context)
{
    struct scan *scan = context;
    struct oriel_write_barrier *barrier = scan->barrier;
    if (has_slot(tid) || (tid == getpid() && oriel_thread_list_has_ended(tid)))
        return true;
    struct oriel_syscall call;
    oriel_syscall_restart_read_call(tid, &call);
    if (scan->choice != NULL && !is_chosen(scan, tid, &call))
        return true;
    if (tid == parking.stubborn && is_blocking(barrier, tid))
        return thread_refuse(barrier, tid, "blocks the signals that could stop it");
    if (waits_for_signals(barrier, tid, &call)) {
        parking.absent = tid != parking.stubborn ? tid : 0;
        parking.signal = 0; /* the next try reads the blocked signals */
        return thread_refuse(barrier, tid, "waits for signals");
    }
    struct slot *slot = free_slot();
    if (slot == NULL)
        return thread_refuse(barrier, tid, "exceeds the number of threads that can be stopped");
    slot->tid = tid;
    slot->cpu_ns = 0;
    slot->call = call;
    atomic_store_explicit(&slot->stack, 0, memory_order_relaxed);
    oriel_store_release(&slot->word, parking.number * 4 + SENT);
    uint64_t message = (uint64_t)parking.number << 32 | (uint64_t)(slot - parking.slots);
    int error = oriel_stop_signal_send(barrier->signal, tid, message);
    if (error != 0) {
        oriel_store_release(&slot->word, FREE);
        return error == ESRCH || thread_refuse(barrier, tid, "cannot be sent a signal");
    }
    scan->news++;
    return true;
}

/* Index of the first slot, from an index on, whose thread has not stopped yet. */
static int first_absent(int from)
{
    while (from < parking.used &&
           oriel_load_acquire(&parking.slots[from].word) != parking.number * 4 + SENT) /* Q3 */
        from++;
    return from;
}

/* Whether a thread may block the signal only because it lacks a processor. A new thread has had
 * none at all. */
static bool lacks_processor(struct slot *slot)
{
    uint64_t cpu_ns = oriel_thread_list_cpu_ns(slot->tid);
    if (cpu_ns == 0 && oriel_thread_list_cpu_ns((int32_t)syscall(SYS_gettid)) == 0)
        return false; /* this kernel does not count */
    if (slot->cpu_ns == 0)
        slot->cpu_ns = cpu_ns;
    return cpu_ns - slot->cpu_ns < MOMENT_NS && oriel_thread_list_is_running(slot->tid);
}

/* How long a try waits in total for a thread that has not stopped. */
static uint64_t wait_limit_ns(const struct oriel_write_barrier *barrier, struct slot *slot)
{
    if (!is_blocking(barrier, slot->tid))
        return oriel_thread_list_is_running(slot->tid) ? CROWDED_NS : LIMIT_NS;
    if (parking.signal != 0)
        return 0;
    return lacks_processor(slot) ? CROWDED_NS : sleeps_on(slot) ? DEAF_NS : LIMIT_NS;
}

/* Q3. A thread that has exited meanwhile is not waited for. */
static bool await_arrivals(struct oriel_write_barrier *barrier, uint64_t since_ns)
{
    static const struct timespec look = {.tv_nsec = LOOK_NS};
    for (int absent = 0;;) {
        uint32_t arrivals = oriel_load_acquire(&parking.arrivals);
        absent = first_absent(absent);
        if (absent == parking.used)
            return true;
        struct slot *slot = &parking.slots[absent];
        futex_sleep(&parking.arrivals, arrivals, &look);
        bool is_absent = absent == first_absent(absent);
        if (is_absent && oriel_thread_list_has_ended(slot->tid))
            slot_change(slot, parking.number * 4 + SENT, FREE);
        else if (is_absent && oriel_now_ns() - since_ns > wait_limit_ns(barrier, slot)) {
            parking.absent = slot->tid;
            parking.signal = 0; /* the next try reads the blocked signals */
            return thread_refuse(barrier, slot->tid,
                                 is_blocking(barrier, slot->tid)
                                     ? "blocks the signals that could stop it"
                                     : "did not stop in time");
        }
    }
}

static bool stacks_are_elsewhere(struct oriel_write_barrier *barrier, uintptr_t start,
                                 uint64_t len_bytes)
{
    for (int i = 0; i < parking.used; i++) {
        struct slot *slot = &parking.slots[i];
        uintptr_t stack = atomic_load_explicit(&slot->stack, memory_order_relaxed);
        if (phase_of(oriel_load_relaxed(&slot->word)) == PARKED && stack >= start &&
            stack - start < len_bytes)
            return thread_refuse(barrier, slot->tid, "has its stack in the range");
    }
    return true;
}

/* Q1: the chunks of a long range follow each other faster than threads get a processor. */
static void park_anew(void)
{
    parking.number = parking.number == UINT32_MAX / 4 ? 1 : parking.number + 1;
    for (int i = 0; i < parking.used; i++) {
        struct slot *slot = &parking.slots[i];
        uint32_t word = oriel_load_acquire(&slot->word);
        if (phase_of(word) == RELEASED)
            slot_change(slot, word, parking.number * 4 + PARKED);
    }
}

/* Threads that were sent the signal and have not stopped. */
struct late {
    bool some;
    bool blocking; /* one of them blocks it */
};

/* Q5, in any state of the stop. */
static struct late release_all(const struct oriel_write_barrier *barrier)
{
    struct late late = {false, false};
    for (int i = 0; i < parking.used; i++) {
        struct slot *slot = &parking.slots[i];
        if (slot_change(slot, parking.number * 4 + SENT, FREE)) {
            late.some = true;
            late.blocking |= is_blocking(barrier, slot->tid);
        } else if (slot_change(slot, parking.number * 4 + PARKED, parking.number * 4 + RELEASED)) {
            futex_wake(&slot->word, 1);
        }
    }
    return late;
}

static bool try_begin(struct oriel_write_barrier *barrier, uintptr_t start, uint64_t len_bytes,
                      const struct choice *choice)
{
    park_anew();
    if (!choose_signal(barrier)) {
        release_all(barrier);
        return false;
    }
    oriel_stop_signal_install(barrier->signal, park_handler);
    uint64_t since_ns = oriel_now_ns();
    struct scan scan = {.barrier = barrier, .choice = choice};
    bool stopped = false;
    do {
        scan.news = 0;
        stopped = visit_threads(&scan, stop_thread) && await_arrivals(barrier, since_ns);
    } while (stopped && scan.news > 0);
    if (stopped && stacks_are_elsewhere(barrier, start, len_bytes))
        return true;
    oriel_stop_threads_end(barrier);
    return false;
}

/* A thread that starts or ends with all signals blocked may need a lock of a stopped thread. All
 * threads therefore run briefly between tries. */
bool oriel_stop_threads_begin(struct oriel_write_barrier *barrier, uintptr_t start,
                              uint64_t len_bytes)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int tries = 0; tries < TRIES; tries++) {
        parking.absent = 0;
        if (try_begin(barrier, start, len_bytes, NULL)) {
            parking.stubborn = 0;
            parking.signal = barrier->signal;
            return true;
        }
        if (parking.absent == 0)
            return false;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    parking.stubborn = parking.absent;
    return false;
}

void oriel_stop_threads_end(struct oriel_write_barrier *barrier)
{
    struct late late = release_all(barrier);
    oriel_stop_signal_return(barrier->signal, park_handler, late.some, late.blocking);
}

void oriel_stop_threads_interrupt(struct oriel_write_barrier *barrier,
                                  bool (*is_wanted)(const struct oriel_syscall *call,
                                                    const void *context),
                                  const void *context)
{
    const struct choice choice = {is_wanted, context};
    if (!try_begin(barrier, 0, 0, &choice))
        return;
    parking.signal = barrier->signal;
    oriel_stop_threads_end(barrier);
}

bool oriel_stop_threads_owns(uintptr_t start, uintptr_t end)
{
    return start < (uintptr_t)(&parking + 1) && end > (uintptr_t)&parking;
}
