/* Order between the threads of a process: one that takes an object knows what its giver had done,
 * in this process and elsewhere, and no other thread knows it. */
#include "check/order/thread_order.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include "check/common/reentrancy.h"
#include "check/order/order.h"
#include "check/order/own_clock.h"
#include "check_team.h"
#include "check/report/finding.h"

#define MIB (UINT64_C(1) << 20)

void oriel_finding_count(const char *what)
{
    (void)what;
}

/* What the thread does at its next delay. */
static _Thread_local void (*at_delay)(void);

/* Some delays let another thread come in between. */
void oriel_delay(void);
void oriel_delay(void)
{
    static _Atomic uint32_t count;
    void (*run)(void) = at_delay;
    at_delay = NULL;
    if (run != NULL)
        run();
    else if (atomic_fetch_add(&count, 1) % 2 == 0)
        sched_yield();
}

enum { WORLD = 2, OBJECT = 7, FORK_OBJECT = 100, END_OBJECT = 200 };

static const struct oriel_thread_hooks *const hooks = &oriel_thread_hooks;

static void begin_rank(int rank)
{
    oriel_threads_track();
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_threads_start();
    oriel_check_running = true;
    team_barrier();
}

static void end_rank(void)
{
    team_barrier();
    oriel_threads_stop();
    oriel_order_stop();
}

/* Whether the calling thread knows an access of this process that was completed with the number. */
static bool knows(oriel_tick tick)
{
    return oriel_rank_tick(oriel_order_mine()->row, oriel_clock_index(oriel_order_rank(), tick)) >=
           tick;
}

struct thread {
    pthread_t id;
    uint64_t number;
    void (*run)(void);
};

static void *thread_run(void *argument)
{
    struct thread *thread = argument;
    hooks->begin(FORK_OBJECT + thread->number);
    thread->run();
    hooks->end(END_OBJECT + thread->number);
    return NULL;
}

static void thread_create(struct thread *thread, uint64_t number, void (*run)(void))
{
    *thread = (struct thread){.number = number, .run = run};
    EXPECT(hooks->fork(FORK_OBJECT + number));
    EXPECT(pthread_create(&thread->id, NULL, thread_run, thread) == 0);
}

static void thread_join(struct thread *thread)
{
    EXPECT(pthread_join(thread->id, NULL) == 0);
    hooks->take(END_OBJECT + thread->number);
}

static _Atomic oriel_tick before, after;
static _Atomic int step;

static void step_await(int number)
{
    while (atomic_load(&step) < number)
        sched_yield();
}

/* --- objects --- */

static void give_in_thread(void)
{
    size_t allocated_bytes = mallinfo2().uordblks;
    EXPECT(knows(atomic_load(&before))); /* by its creation */
    oriel_tick own = oriel_order_now();
    hooks->give(OBJECT);
    EXPECT(mallinfo2().uordblks == allocated_bytes); /* malloc itself may give and take */
    atomic_store(&after, oriel_order_now());
    atomic_store(&before, own);
    atomic_store(&step, 1);
    step_await(2);
}

static void give_and_take(int rank)
{
    struct thread thread;
    begin_rank(rank);
    atomic_store(&before, oriel_order_now());
    thread_create(&thread, 1, give_in_thread);
    step_await(1);
    EXPECT(!knows(atomic_load(&before)));
    hooks->take(OBJECT);
    EXPECT(knows(atomic_load(&before)));
    EXPECT(!knows(atomic_load(&after)));
    atomic_store(&step, 2);
    thread_join(&thread);
    EXPECT(knows(atomic_load(&after)));
    end_rank();
}

static void a_taker_knows_what_the_giver_had_done(void **state)
{
    (void)state;
    team_run(WORLD, 64 * MIB, 0, give_and_take);
}

/* --- order from other ranks --- */

static struct oriel_key message = {{ORIEL_ORDER_MESSAGE, 1, 0, 0}};

static void receive(void)
{
    EXPECT(oriel_order_take(&message));
    atomic_store(&step, 1);
    step_await(2);
}

static bool knows_first_rank(void)
{
    oriel_tick clock[TEAM_MOST << ORIEL_CLOCK_THREADS_SHIFT];
    oriel_order_clock(clock);
    return clock[oriel_clock_index(0, 0)] >= atomic_load(&team->words[0]);
}

static void one_thread_receives(int rank)
{
    struct thread thread;
    begin_rank(rank);
    if (rank == 0) {
        atomic_store(&team->words[0], oriel_order_now());
        oriel_order_give(&message, 1);
        team_step(1);
    } else {
        team_await(1);
        thread_create(&thread, 1, receive);
        step_await(1);
        EXPECT(!knows_first_rank());
        atomic_store(&step, 2);
        thread_join(&thread);
        EXPECT(knows_first_rank());
    }
    end_rank();
}

static void order_from_a_rank_reaches_the_receiving_thread(void **state)
{
    (void)state;
    team_run(WORLD, 64 * MIB, 0, one_thread_receives);
}

/* --- slots --- */

static _Atomic int slots_of_many;
static _Atomic int arrived;

static void wait_for_all(void)
{
    if (oriel_threads_slot() != 0)
        atomic_fetch_add(&slots_of_many, 1);
    atomic_fetch_add(&arrived, 1);
    step_await(1);
}

static void no_op(void)
{
    EXPECT(oriel_threads_slot() != 0);
}

enum { MANY = 20 };

/* Slots of joined threads are used again; without a free one the first is shared. */
static void many_threads(int rank)
{
    struct thread threads[MANY];
    begin_rank(rank);
    for (uint64_t i = 0; i < 3 * ORIEL_CLOCK_THREADS; i++) {
        thread_create(&threads[0], i, no_op);
        thread_join(&threads[0]);
    }
    for (uint64_t i = 0; i < MANY; i++)
        thread_create(&threads[i], 1000 + i, wait_for_all);
    while (atomic_load(&arrived) < MANY)
        sched_yield();
    EXPECT(atomic_load(&slots_of_many) == ORIEL_CLOCK_THREADS - 1);
    atomic_store(&step, 1);
    for (int i = 0; i < MANY; i++)
        thread_join(&threads[i]);
    end_rank();
}

static void slots_are_used_again_and_shared(void **state)
{
    (void)state;
    team_run(WORLD, 64 * MIB, 0, many_threads);
}

/* Inside an MPI call, locks order nothing. */
static void inside_a_call(int rank)
{
    begin_rank(rank);
    oriel_tick now = oriel_order_now();
    oriel_check_where.in.depth = 1;
    EXPECT(!hooks->fork(FORK_OBJECT));
    hooks->give(OBJECT);
    EXPECT(oriel_order_now() == now);
    oriel_check_where.in.depth = 0;
    end_rank();
}

static void calls_of_the_host_order_nothing(void **state)
{
    (void)state;
    team_run(WORLD, 64 * MIB, 0, inside_a_call);
}

/* --- signal handlers --- */

enum { HANDLERS_OBJECT = 8, OTHERS_OBJECT = 9, SIGNALS = 1000, PAUSE_US = 20 };

static pthread_t interrupted;
static _Atomic oriel_tick told, learnt, told_by_other;
static _Atomic int handled;

static void give_and_take_in_handler(int signal)
{
    (void)signal;
    oriel_tick own = oriel_order_now();
    hooks->give(HANDLERS_OBJECT);
    atomic_store(&told, own);
    oriel_tick other = atomic_load(&told_by_other);
    hooks->take(OTHERS_OBJECT);
    atomic_store(&learnt, other);
    atomic_fetch_add(&handled, 1);
}

static void interrupt_the_first_thread(void)
{
    while (atomic_load(&step) == 0) {
        oriel_tick own = oriel_order_now();
        hooks->give(OTHERS_OBJECT);
        atomic_store(&told_by_other, own);
        EXPECT(pthread_kill(interrupted, SIGUSR1) == 0);
        oriel_tick other = atomic_load(&told);
        hooks->take(HANDLERS_OBJECT);
        EXPECT(knows(other));
        usleep(PAUSE_US);
    }
}

/* Every step of the order that a wrapper of the first thread may make. */
static void interrupted_steps(int rank)
{
    const struct sigaction action = {.sa_handler = give_and_take_in_handler,
                                     .sa_flags = SA_RESTART};
    const struct oriel_key key = {{ORIEL_ORDER_LOCK, (uint64_t)rank, 0, 0}};
    struct thread thread;
    begin_rank(rank);
    interrupted = pthread_self();
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    thread_create(&thread, 1, interrupt_the_first_thread);
    while (atomic_load(&handled) < SIGNALS) {
        oriel_tick other = atomic_load(&learnt);
        oriel_shm_offset place = oriel_order_snapshot();
        EXPECT(oriel_order_snapshot_clock(place)[oriel_clock_index(rank, other)] >= other);
        oriel_order_snapshot_release(place);
        hooks->give(HANDLERS_OBJECT);
        oriel_order_give(&key, 0);
        oriel_order_take_threads(UINT32_C(2));
        EXPECT(oriel_order_take(&key));
        EXPECT(knows(atomic_load(&learnt)));
    }
    atomic_store(&step, 1);
    thread_join(&thread);
    end_rank();
}

static void handlers_order_threads_wherever_they_interrupt(void **state)
{
    (void)state;
    team_run(1, 64 * MIB, 0, interrupted_steps);
}

/* The other thread takes what a handler has given, and gives, each time that it is asked. */
static _Atomic int asked, answered;

static void answer(void)
{
    for (int i = 1; atomic_load(&step) == 0; i++) {
        while (atomic_load(&asked) < i && atomic_load(&step) == 0)
            sched_yield();
        oriel_tick handlers = atomic_load(&told);
        hooks->take(HANDLERS_OBJECT);
        EXPECT(knows(handlers));
        oriel_tick own = oriel_order_now();
        hooks->give(OTHERS_OBJECT);
        atomic_store(&told_by_other, own);
        atomic_store(&answered, i);
    }
}

static void ask(void)
{
    int number = atomic_fetch_add(&asked, 1) + 1;
    while (atomic_load(&answered) < number)
        sched_yield();
}

static void handle_twice(void)
{
    for (int i = 0; i < 2; i++) {
        ask();
        give_and_take_in_handler(SIGUSR1);
    }
}

static void between_two_steps(int rank)
{
    struct thread thread;
    begin_rank(rank);
    thread_create(&thread, 1, answer);

    at_delay = handle_twice;
    hooks->give(HANDLERS_OBJECT);
    EXPECT(at_delay == NULL);
    ask();

    at_delay = handle_twice;
    oriel_order_take_threads(UINT32_C(2));
    EXPECT(at_delay == NULL);
    EXPECT(knows(atomic_load(&learnt)));

    oriel_order_snapshot_release(oriel_order_snapshot());
    ask();
    hooks->take(OTHERS_OBJECT);
    oriel_tick other = atomic_load(&told_by_other);
    oriel_shm_offset place = oriel_order_snapshot();
    EXPECT(oriel_order_snapshot_clock(place)[oriel_clock_index(rank, other)] >= other);
    oriel_order_snapshot_release(place);

    atomic_store(&step, 1);
    thread_join(&thread);
    end_rank();
}

static void handlers_come_between_two_steps(void **state)
{
    (void)state;
    team_run(1, 64 * MIB, 0, between_two_steps);
}

static void *give_under_a_lock(void *unused)
{
    (void)unused;
    hooks->begin(0); /* it began before the checker, and has no slot yet */
    oriel_shm_lock_begin();
    hooks->give(OBJECT);
    oriel_shm_lock_end();
    EXPECT(oriel_threads_slot() == 0);
    hooks->give(OBJECT);
    EXPECT(oriel_threads_slot() != 0);
    hooks->end(END_OBJECT);
    return NULL;
}

static void a_thread_without_slot(int rank)
{
    pthread_t thread;
    begin_rank(rank);
    hooks->fork(FORK_OBJECT);
    EXPECT(pthread_create(&thread, NULL, give_under_a_lock, NULL) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    end_rank();
}

static void handlers_open_no_slot_under_a_lock(void **state)
{
    (void)state;
    team_run(1, 64 * MIB, 0, a_thread_without_slot);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_taker_knows_what_the_giver_had_done),
        cmocka_unit_test(order_from_a_rank_reaches_the_receiving_thread),
        cmocka_unit_test(slots_are_used_again_and_shared),
        cmocka_unit_test(calls_of_the_host_order_nothing),
        cmocka_unit_test(handlers_order_threads_wherever_they_interrupt),
        cmocka_unit_test(handlers_come_between_two_steps),
        cmocka_unit_test(handlers_open_no_slot_under_a_lock),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
