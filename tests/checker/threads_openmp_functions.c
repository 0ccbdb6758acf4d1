/* The functions of libgomp that order threads, one after the other: a twin runs both steps once for
 * each, and must have no finding in any of them. Some are called by programs of other compilers or
 * in Fortran. */
#include "threads.h"

#include <omp.h>

/* The two steps by the two threads of a team. wait(): returns once the other thread has called
 * pass(). */
static void steps_run(bool right, void (*pass)(void), void (*wait)(void))
{
    pair_open();
    if (rank == 0) {
#pragma omp parallel num_threads(2)
        {
            if (omp_get_thread_num() == 0) {
                pair_get();
                pass();
            } else {
                if (right)
                    wait();
                pair_load();
            }
        }
    }
    pair_close();
}

/* --- locks, also by the names of Fortran, where a nestable lock is a pointer --- */

void omp_set_lock_(omp_lock_t *lock);
int omp_test_lock_(omp_lock_t *lock);
void omp_unset_lock_(omp_lock_t *lock);
void omp_init_nest_lock_(void **lock);
void omp_destroy_nest_lock_(void **lock);
void omp_set_nest_lock_(void **lock);
int omp_test_nest_lock_(void **lock);
void omp_unset_nest_lock_(void **lock);

static int step;
static omp_lock_t lock;
static omp_nest_lock_t nest;
static void *nest_fortran;

#define PASS(name, lock, unlock)                                                                   \
    static void name(void)                                                                         \
    {                                                                                              \
        lock;                                                                                      \
        step = 1;                                                                                  \
        unlock;                                                                                    \
    }
#define AWAIT(name, lock, unlock)                                                                  \
    static void name(void)                                                                         \
    {                                                                                              \
        for (int done = 0; !done; sched_yield()) {                                                 \
            lock;                                                                                  \
            done = step;                                                                           \
            unlock;                                                                                \
        }                                                                                          \
    }
#define TRIED(lock)                                                                                \
    do                                                                                             \
        sched_yield();                                                                             \
    while (!(lock))

PASS(lock_pass, omp_set_lock(&lock), omp_unset_lock(&lock))
AWAIT(lock_try, TRIED(omp_test_lock(&lock)), omp_unset_lock(&lock))
PASS(fortran_pass, omp_set_lock_(&lock), omp_unset_lock_(&lock))
AWAIT(fortran_try, TRIED(omp_test_lock_(&lock)), omp_unset_lock_(&lock))
AWAIT(fortran_set, omp_set_lock_(&lock), omp_unset_lock_(&lock))
PASS(nest_pass, omp_set_nest_lock(&nest), omp_unset_nest_lock(&nest))
AWAIT(nest_set, omp_set_nest_lock(&nest), omp_unset_nest_lock(&nest))
AWAIT(nest_try, TRIED(omp_test_nest_lock(&nest)), omp_unset_nest_lock(&nest))
PASS(nest_fortran_pass, omp_set_nest_lock_(&nest_fortran), omp_unset_nest_lock_(&nest_fortran))
AWAIT(nest_fortran_set, omp_set_nest_lock_(&nest_fortran), omp_unset_nest_lock_(&nest_fortran))
AWAIT(nest_fortran_try, TRIED(omp_test_nest_lock_(&nest_fortran)),
      omp_unset_nest_lock_(&nest_fortran))

CASE(L1, omp_load_without_locks_of_all_kinds, 2)
{
    static const struct {
        void (*pass)(void);
        void (*wait)(void);
    } ways[] = {{lock_pass, lock_try},
                {fortran_pass, fortran_set},
                {fortran_pass, fortran_try},
                {nest_pass, nest_set},
                {nest_pass, nest_try},
                {nest_fortran_pass, nest_fortran_set},
                {nest_fortran_pass, nest_fortran_try}};
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    omp_init_nest_lock_(&nest_fortran);
    for (size_t i = 0; i < (right ? sizeof ways / sizeof ways[0] : 1); i++) {
        step = 0;
        steps_run(right, ways[i].pass, ways[i].wait);
    }
    omp_destroy_nest_lock_(&nest_fortran);
    omp_destroy_nest_lock(&nest);
    omp_destroy_lock(&lock);
}

/* An atomic update of an object of more bytes than processors update. */
static long double large;

static void large_pass(void)
{
#pragma omp atomic
    large += 1;
}

static void large_await(void)
{
    for (long double read = 0; read == 0;) {
#pragma omp atomic read
        read = large;
    }
}

CASE(L1, omp_load_before_the_large_flag, 2)
{
    large = 0;
    steps_run(right, large_pass, large_await);
}

/* --- regions that a loop is the whole of --- */

void GOMP_parallel_loop_static(void (*run)(void *data), void *data, unsigned threads, long start,
                               long end, long step, long chunk, unsigned flags);
bool GOMP_loop_static_next(long *start, long *end);
void GOMP_loop_end_nowait(void);

static void load_in_static_loop(void *unused)
{
    long start, end;
    (void)unused;
    while (GOMP_loop_static_next(&start, &end))
        pair_load();
    GOMP_loop_end_nowait();
}

/* Each begins after what was before it, and ends before what follows. */
CASE(L1, omp_get_beside_combined_loops, 2)
{
    pair_open();
    if (rank == 0 && right) {
        pair_get();
#pragma omp parallel for schedule(monotonic : dynamic) num_threads(2)
        for (int i = 0; i < 4; i++)
            pair_load();
        pair_get();
#pragma omp parallel for schedule(nonmonotonic : dynamic) num_threads(2)
        for (int i = 0; i < 4; i++)
            pair_load();
        pair_get();
#pragma omp parallel for schedule(monotonic : guided) num_threads(2)
        for (int i = 0; i < 4; i++)
            pair_load();
        pair_get();
#pragma omp parallel for schedule(nonmonotonic : guided) num_threads(2)
        for (int i = 0; i < 4; i++)
            pair_load();
        pair_get();
#pragma omp parallel for schedule(runtime) num_threads(2)
        for (int i = 0; i < 4; i++)
            pair_load();
        pair_get();
#pragma omp parallel for schedule(monotonic : runtime) num_threads(2)
        for (int i = 0; i < 4; i++)
            pair_load();
        pair_get();
#pragma omp parallel for schedule(nonmonotonic : runtime) num_threads(2)
        for (int i = 0; i < 4; i++)
            pair_load();
        pair_get();
        GOMP_parallel_loop_static(load_in_static_loop, NULL, 2, 0, 4, 1, 1, 0);
        pair_get();
    }
    if (rank == 0 && !right) {
#pragma omp parallel for schedule(static, 1) num_threads(2)
        for (int i = 0; i < 2; i++) {
            if (i == 0)
                pair_get();
            else
                pair_load();
        }
    }
    pair_close();
}

/* --- barriers at the end of constructs, also of those that can be cancelled --- */

static void get_by(int thread)
{
    if (omp_get_thread_num() == thread)
        pair_get();
}

static void load_by(int thread)
{
    if (omp_get_thread_num() == thread)
        pair_load();
}

CASE(L1, omp_load_before_the_end_of_constructs, 2)
{
    volatile int never = 0;
    pair_open();
    if (rank == 0) {
#pragma omp parallel num_threads(2)
        {
            get_by(0);
            if (right) {
#pragma omp for schedule(dynamic)
                for (int i = 0; i < 4; i++)
                    delay();
            }
            load_by(1);
        }
#pragma omp parallel num_threads(2) if (right)
        {
            get_by(0);
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 4; i++) {
                delay();
#pragma omp cancel for if (never)
            }
            load_by(1);
#pragma omp barrier
            get_by(0);
#pragma omp sections
            {
#pragma omp section
                {
                    delay();
#pragma omp cancel sections if (never)
                }
#pragma omp section
                delay();
            }
            load_by(1);
#pragma omp cancel parallel if (never)
        }
    }
    pair_close();
}

/* --- iterations that wait for earlier ones --- */

CASE(L1, omp_load_in_an_iteration_that_does_not_wait, 2)
{
    const long last = 2;
    /* From 0, gcc 12 would wait for iteration -1. */
    const unsigned long long first_unsigned = 4, last_unsigned = 6;
    pair_open();
    if (rank == 0 && right) {
#pragma omp parallel for ordered(1) schedule(static, 1) num_threads(2)
        for (long i = 0; i < last; i++) {
#pragma omp ordered depend(sink : i - 1)
            if (i == 0)
                pair_get();
            else
                pair_load();
#pragma omp ordered depend(source)
        }
#pragma omp parallel for ordered(1) schedule(static, 1) num_threads(2)
        for (unsigned long long i = first_unsigned; i < last_unsigned; i++) {
#pragma omp ordered depend(sink : i - 1)
            if (i == first_unsigned)
                pair_get();
            else
                pair_load();
#pragma omp ordered depend(source)
        }
    }
    if (rank == 0 && !right) {
#pragma omp parallel for schedule(static, 1) num_threads(2)
        for (long i = 0; i < last; i++) {
            if (i == 0)
                pair_get();
            else
                pair_load();
        }
    }
    pair_close();
}

/* --- tasks --- */

static void load_after_the_dependence(void)
{
    int data = 0;
    (void)data; /* only its address counts */
#pragma omp task depend(out : data)
    pair_get();
#pragma omp taskwait depend(in : data)
    pair_load();
}

/* A task ends when its event is fulfilled, by another task. */
static void load_after_the_event(void)
{
    omp_event_handle_t event;
#pragma omp task detach(event)
    delay();
#pragma omp task firstprivate(event)
    {
        pair_get();
        omp_fulfill_event(event);
    }
#pragma omp taskwait
    pair_load();
}

static void load_after_the_loop(void)
{
    const unsigned long long last = 2;
#pragma omp taskloop grainsize(1)
    for (unsigned long long i = 0; i < last; i++)
        if (i == 1)
            pair_get();
    pair_load();
}

/* Also adds up what the tasks find, which libgomp does at the end of the region. */
static int load_after_tasks_that_reduce(void)
{
    int sum = 0;
#pragma omp parallel num_threads(2) reduction(task, + : sum)
    {
#pragma omp single
#pragma omp task in_reduction(+ : sum)
        {
            pair_get();
            sum += 5;
        }
    }
    pair_load();
    return sum;
}

CASE(L1, omp_load_beside_tasks_of_all_kinds, 2)
{
    static void (*const ways[])(void) = {load_after_the_dependence, load_after_the_event,
                                         load_after_the_loop};
    pair_open();
    for (size_t i = 0; rank == 0 && right && i < sizeof ways / sizeof ways[0]; i++) {
#pragma omp parallel num_threads(2)
        {
#pragma omp single
            ways[i]();
        }
    }
    if (rank == 0 && right && load_after_tasks_that_reduce() != 5)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0 && !right) {
#pragma omp parallel num_threads(2)
        {
#pragma omp single nowait
#pragma omp task
            pair_get();
            pair_load();
        }
    }
    pair_close();
}
