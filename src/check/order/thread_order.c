/* Slots of threads, and clocks of objects.
 *
 * Argument. A thread is to the threads of its process what a process is to others, so O1 to O3 of
 * order.c hold for it. What is new is which events order threads, and what one thread does for
 * another:
 *
 * T1: A giver merges its clock into the object's before it releases, and a taker merges the
 *     object's clock into its own after it has acquired (src/check/tsan). So whatever the taker may
 *     rely on is in its clock. A release is not seen in code that is not instrumented and uses no
 *     function that src/check/tsan replaces. Then order is missing, and a false finding is
 *     possible. So the order of threads is tracked in instrumented programs only.
 * T2: Objects share OBJECTS clocks. A clock that was given for another object, or for an earlier
 *     object at the same address, adds order and removes none.
 * T3: A slot whose thread has ended is used again by a thread whose creator knows that end: it has
 *     joined the thread. So whatever the old thread did is ordered before the new one.
 *     A thread that branches (thread_hooks.h) leaves its slot for another, which ends likewise.
 * T4: A thread that has no slot uses the first one, with its clock. Everything that any of them has
 *     taken or done counts as ordered before all that any of them does later.
 *     So does a signal handler that interrupts its thread before that has its slot.
 * T5: A call that completes operations completes those of all threads (MPI-4.1, 13.5.4), with the
 *     number of its own thread. The thread that issued one of them, and completes it again, then
 *     takes the clock of the thread that was first (thread_debts.h).
 * T6: Plain loads and stores of two threads of one process are not compared (conflict_table.c):
 *     ThreadSanitizer does that. So each finding has a call of MPI.
 * T7: A signal handler orders threads as its thread does, with its slot and clock, wherever it has
 *     interrupted it: giving and taking needs no lock (order.c, O4). What the interrupted call is
 *     about to complete may count as done before the handler gave. A handler that interrupts a
 *     step under a lock of the checker opens no slot (T4), since that needs locks. Its loads and
 *     stores are not checked there (local_accesses.h).
 *     Inside the host's functions a handler orders nothing (thread_hooks.h): a false finding is
 *     possible. */
#include "check/order/thread_order.h"

#include "check/common/reentrancy.h"
#include "check/order/order.h"
#include "check/order/own_clock.h"

#include <pthread.h>
#include <sys/mman.h>

enum { OBJECTS_SHIFT = 14, OBJECTS = 1 << OBJECTS_SHIFT };

static struct {
    pthread_mutex_t mutex; /* of everything but the clocks' contents */
    bool running;
    _Atomic bool forked;     /* other threads were created, or found */
    _Atomic unsigned opened; /* slots that have had a thread; the first has the starting thread */
    uint32_t ended;          /* slots whose thread has ended, a bit for each */
    struct oriel_order_own slots[ORIEL_CLOCK_THREADS]; /* [0] is oriel_order_own instead */
    /* OBJECTS clocks; mapped, since objects are also given and taken inside malloc, by libraries
     * that replace sbrk */
    _Atomic oriel_tick *memory;
    _Atomic(_Atomic oriel_tick *) clocks[OBJECTS]; /* of objects, there; NULL: nothing given */
} threads = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* What this thread is to the order of threads. */
static _Thread_local enum { NOT_OURS, PROGRAMS, HAS_SLOT } this_thread;
/* The object that the thread takes before its next access or release; 0: none. */
static _Thread_local uint64_t loaded;

void oriel_threads_track(void)
{
    oriel_clock_shift = ORIEL_CLOCK_THREADS_SHIFT;
}

static size_t clock_at(size_t object)
{
    return object * (size_t)oriel_order_width();
}

void oriel_threads_start(void)
{
    oriel_shm_mutex_lock(&threads.mutex);
    threads.running = oriel_clock_shift != 0;
    if (threads.running && threads.memory == NULL) {
        void *memory =
            mmap(NULL, clock_at(OBJECTS) * sizeof *threads.memory, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory != MAP_FAILED)
            threads.memory = memory;
    }
    atomic_store(&threads.opened, 1);
    this_thread = HAS_SLOT;
    oriel_shm_mutex_unlock(&threads.mutex);
}

/* Rows stay: other processes may still read them. Clocks of objects stay for threads that give
 * meanwhile. */
void oriel_threads_stop(void)
{
    oriel_shm_mutex_lock(&threads.mutex);
    threads.running = false;
    for (unsigned i = 1; i < ORIEL_CLOCK_THREADS; i++) {
        struct oriel_rank *row = threads.slots[i].row;
        threads.slots[i].row = NULL;
        if (row != NULL)
            atomic_store_explicit(&row->state, ORIEL_RANK_STOPPED, memory_order_release);
    }
    oriel_shm_mutex_unlock(&threads.mutex);
}

static bool is_active(void)
{
    return oriel_clock_shift != 0 && oriel_check_running && oriel_check_where.in.depth == 0 &&
           this_thread != NOT_OURS;
}

/* --- objects --- */

static _Atomic(_Atomic oriel_tick *) *clock_of(uint64_t object)
{
    return &threads.clocks[object * UINT64_C(0x9e3779b97f4a7c15) >> (64 - OBJECTS_SHIFT)]; /* T2 */
}

static void object_take(uint64_t object)
{
    const _Atomic oriel_tick *clock = atomic_load_explicit(clock_of(object), memory_order_acquire);
    if (clock != NULL)
        oriel_order_merge_from(clock);
}

/* --- slots --- */

/* Whether all that the slot's last thread did is ordered before what has this clock. */
static bool slot_is_known(const struct oriel_order_own *slot, const _Atomic oriel_tick *clock)
{
    return clock != NULL && clock[slot->index] + oriel_clock_step() >=
                                atomic_load_explicit(slot->number, memory_order_relaxed);
}

/* The next slot that never had a thread, else one whose thread has ended (T3). NULL: there is none.
 * Under the mutex. clock: what the new thread knows. */
static struct oriel_order_own *slot_find(const _Atomic oriel_tick *clock)
{
    unsigned opened = atomic_load(&threads.opened);
    if (opened < ORIEL_CLOCK_THREADS) {
        struct oriel_order_own *slot = &threads.slots[opened];
        if (!oriel_order_own_open(slot, oriel_order_rank(), opened))
            return NULL;
        atomic_store(&threads.opened, opened + 1);
        return slot;
    }
    for (uint32_t left = threads.ended; left != 0; left &= left - 1) {
        struct oriel_order_own *slot = &threads.slots[__builtin_ctz(left)];
        if (!slot_is_known(slot, clock))
            continue;
        threads.ended &= ~(left & -left);
        atomic_store_explicit(&slot->row->state, ORIEL_RANK_RUNNING, memory_order_release);
        return slot;
    }
    return NULL;
}

/* From now on there is order of threads. Without memory for it, no conflict may be reported. */
static void threads_fork(void)
{
    atomic_store_explicit(&threads.forked, true, memory_order_release);
    if (threads.memory == NULL)
        oriel_order_leave();
}

/* Returns false if the thread uses the first slot (T4). */
static bool slot_open(const _Atomic oriel_tick *clock)
{
    this_thread = HAS_SLOT;
    threads_fork();
    oriel_shm_mutex_lock(&threads.mutex);
    struct oriel_order_own *slot = threads.running ? slot_find(clock) : NULL;
    oriel_shm_mutex_unlock(&threads.mutex);
    oriel_order_thread = slot;
    return slot != NULL;
}

unsigned oriel_threads_slot(void)
{
    return oriel_order_index() & (ORIEL_CLOCK_THREADS - 1);
}

/* A thread that began before the checker did is ordered after all that was done until now. */
void oriel_threads_enter_slowly(void)
{
    if (this_thread == PROGRAMS && oriel_check_running && oriel_shm_locks == 0 && slot_open(NULL))
        oriel_order_take_threads((UINT32_C(1) << atomic_load(&threads.opened)) - 1);
    uint64_t object = loaded;
    if (object == 0)
        return;
    object_take(object);
    if (loaded == object) /* else a signal handler has announced another */
        loaded = 0;
}

/* --- hooks --- */

/* T2. NULL: no memory (threads_fork). */
static _Atomic oriel_tick *clock_make(_Atomic(_Atomic oriel_tick *) *place)
{
    _Atomic oriel_tick *clock = atomic_load_explicit(place, memory_order_acquire);
    if (clock != NULL)
        return clock;
    if (threads.memory == NULL)
        return NULL;
    clock = threads.memory + clock_at((size_t)(place - threads.clocks));
    atomic_store_explicit(place, clock, memory_order_release); /* of two givers: the same */
    return clock;
}

/* There is nothing to order yet. */
static bool is_alone(void)
{
    return !atomic_load_explicit(&threads.forked, memory_order_acquire);
}

static void give(uint64_t object)
{
    if (!is_active())
        return;
    oriel_threads_enter();
    _Atomic oriel_tick *clock = clock_make(clock_of(object));
    if (clock != NULL)
        oriel_order_give_to(clock);
}

static bool thread_fork(uint64_t object)
{
    threads_fork();
    give(object);
    return oriel_check_where.in.depth == 0;
}

static void thread_give(uint64_t object)
{
    if (!is_alone())
        give(object);
}

static void thread_take(uint64_t object)
{
    if (is_alone() || !is_active())
        return;
    oriel_threads_enter();
    object_take(object);
}

static void thread_take_soon(uint64_t object)
{
    thread_take(object);
    loaded = is_alone() ? 0 : object;
}

static void thread_begin(uint64_t object)
{
    loaded = object; /* for a signal handler that comes before the slot is open (T4) */
    this_thread = HAS_SLOT;
    if (object == 0 || !is_active()) {
        this_thread = PROGRAMS;
        return;
    }
    slot_open(atomic_load_explicit(clock_of(object), memory_order_acquire));
    thread_take(object);
}

static void thread_rejoin(uint64_t object, void *before)
{
    thread_give(object);
    struct oriel_order_own *slot = oriel_order_thread;
    if (slot == NULL)
        return;
    oriel_order_thread = before;
    oriel_shm_mutex_lock(&threads.mutex);
    if (threads.running) {
        atomic_store_explicit(&slot->row->state, ORIEL_RANK_STOPPED, memory_order_release);
        threads.ended |= UINT32_C(1) << (slot - threads.slots);
    }
    oriel_shm_mutex_unlock(&threads.mutex);
}

static bool thread_branch(uint64_t object, void **before)
{
    if (!is_active())
        return false;
    oriel_threads_enter();
    *before = oriel_order_thread;
    if (!slot_open(atomic_load_explicit(clock_of(object), memory_order_acquire))) {
        oriel_order_thread = *before;
        return false;
    }
    object_take(object);
    return true;
}

static void thread_end(uint64_t object)
{
    thread_rejoin(object, NULL);
    this_thread = NOT_OURS;
}

const struct oriel_thread_hooks oriel_thread_hooks = {.give = thread_give,
                                                      .take = thread_take,
                                                      .take_soon = thread_take_soon,
                                                      .fork = thread_fork,
                                                      .begin = thread_begin,
                                                      .branch = thread_branch,
                                                      .rejoin = thread_rejoin,
                                                      .end = thread_end};
