/* Order between the threads of a process: one that takes an object knows what its giver had done,
 * in this process and elsewhere, and no other thread knows it. */
#include "check/order/thread_order.h"

#include <malloc.h>
#include <pthread.h>

#include "check/common/reentrancy.h"
#include "check/order/order.h"
#include "check_team.h"
#include "check/report/finding.h"

#define MIB (UINT64_C(1) << 20)

void oriel_finding_count(const char *what)
{
    (void)what;
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
    oriel_tick clock[TEAM_MOST << ORIEL_CLOCK_THREADS_SHIFT];
    oriel_order_clock(clock);
    return clock[oriel_clock_index(oriel_order_rank(), tick)] >= tick;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_taker_knows_what_the_giver_had_done),
        cmocka_unit_test(order_from_a_rank_reaches_the_receiving_thread),
        cmocka_unit_test(slots_are_used_again_and_shared),
        cmocka_unit_test(calls_of_the_host_order_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
