/* Threads of OpenMP. */
#include "threads.h"

#include <omp.h>

#define OPENMP(name)                                                                               \
    static void name##_region(bool right);                                                         \
    CASE(L1, name, 2)                                                                              \
    {                                                                                              \
        pair_open();                                                                               \
        if (rank == 0)                                                                             \
            name##_region(right);                                                                  \
        pair_close();                                                                              \
    }                                                                                              \
    static void name##_region(bool right)

OPENMP(omp_load_without_the_barrier)
{
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            pair_get();
        if (right) {
#pragma omp barrier
        }
        if (omp_get_thread_num() == 1)
            pair_load();
    }
}

OPENMP(omp_load_beside_the_master)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        pair_get();
        if (!right)
            pair_load();
    }
    pair_load();
}

OPENMP(omp_load_beside_a_single)
{
    if (right) {
#pragma omp parallel num_threads(2)
        {
#pragma omp single
            pair_get();
            pair_load();
        }
    } else {
#pragma omp parallel num_threads(2)
        {
#pragma omp single nowait
            pair_get();
            pair_load();
        }
    }
}

/* Returns when both threads have called it. */
static void enter_both(int *entered)
{
#pragma omp atomic
    ++*entered;
    for (int both = 0; both < 2;) {
#pragma omp atomic read
        both = *entered;
    }
}

OPENMP(omp_load_in_another_section)
{
    if (right) {
#pragma omp parallel num_threads(2)
        {
#pragma omp sections
            {
#pragma omp section
                pair_get();
            }
#pragma omp sections
            {
#pragma omp section
                pair_load();
            }
        }
    } else {
        int entered = 0;
#pragma omp parallel sections num_threads(2)
        {
#pragma omp section
            {
                enter_both(&entered);
                pair_get();
            }
#pragma omp section
            {
                enter_both(&entered);
                pair_load();
            }
        }
    }
}

/* The thread of number 0 executes both sections. */
OPENMP(omp_load_in_a_further_section)
{
    omp_lock_t lock;
    int has_ended = 0;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
        for (int ended = omp_get_thread_num() == 0; !ended;) {
#pragma omp atomic read
            ended = has_ended;
        }
#pragma omp sections nowait
        {
#pragma omp section
            {
                if (right)
                    omp_set_lock(&lock);
                pair_load();
                if (right)
                    omp_unset_lock(&lock);
            }
#pragma omp section
            {
                if (right)
                    omp_set_lock(&lock);
                pair_get();
                if (right)
                    omp_unset_lock(&lock);
            }
        }
        if (omp_get_thread_num() == 0) {
            pair_load();
#pragma omp atomic write
            has_ended = 1;
        }
    }
    omp_destroy_lock(&lock);
}

OPENMP(omp_load_in_another_iteration)
{
    if (right) {
#pragma omp parallel for ordered schedule(static, 1) num_threads(2)
        for (int i = 0; i < 2; i++) {
#pragma omp ordered
            {
                if (i == 0)
                    pair_get();
                else
                    pair_load();
            }
        }
    } else {
#pragma omp parallel for schedule(static, 1) num_threads(2)
        for (int i = 0; i < 2; i++) {
            if (i == 0)
                pair_get();
            else
                pair_load();
        }
    }
}

static int step;

OPENMP(omp_load_without_the_critical_section)
{
    step = 0;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            pair_get();
#pragma omp critical
            step = 1;
        } else {
            for (int done = !right; !done;) {
#pragma omp critical
                done = step;
            }
            pair_load();
        }
    }
}

OPENMP(omp_load_without_the_named_section)
{
    step = 0;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            pair_get();
#pragma omp critical(named)
            step = 1;
        } else {
            for (int done = !right; !done;) {
#pragma omp critical(named)
                done = step;
            }
            pair_load();
        }
    }
}

OPENMP(omp_load_without_the_lock)
{
    omp_lock_t lock;
    step = 0;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            pair_get();
            omp_set_lock(&lock);
            step = 1;
            omp_unset_lock(&lock);
        } else {
            for (int done = !right; !done;) {
                omp_set_lock(&lock);
                done = step;
                omp_unset_lock(&lock);
            }
            pair_load();
        }
    }
    omp_destroy_lock(&lock);
}

/* A task that gets once it has begun, and the thread that polls until then. */
static void step_and_get(void)
{
#pragma omp atomic write
    step = 1;
    pair_get();
}

static void step_await(void)
{
    for (int begun = 0; !begun;) {
#pragma omp atomic read
        begun = step;
    }
}

/* The other thread executes the task while this one polls. */
OPENMP(omp_load_before_the_end_of_the_task)
{
    step = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        {
#pragma omp task
            step_and_get();
            step_await();
            if (right) {
#pragma omp taskwait
            }
            pair_load();
        }
    }
}

OPENMP(omp_load_before_the_end_of_the_group)
{
    step = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        {
#pragma omp taskgroup
            {
#pragma omp task
                step_and_get();
                step_await();
                if (!right)
                    pair_load();
            }
            pair_load();
        }
    }
}

OPENMP(omp_load_in_a_task_that_does_not_depend)
{
    int data[40] = {0};
    step = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        {
#pragma omp task depend(out : data[0]) firstprivate(data)
            {
                step_and_get();
                step = 1 + data[1];
            }
            if (!right)
                step_await();
            if (right) {
#pragma omp task depend(in : data[0]) firstprivate(data)
                pair_load();
            } else {
                pair_load();
            }
        }
    }
}

OPENMP(omp_load_in_a_nested_region)
{
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            pair_get();
        if (right) {
#pragma omp barrier
        }
#pragma omp parallel num_threads(2)
        pair_load();
    }
    omp_set_max_active_levels(1);
}

/* Each kind of region and loop begins after what was before it, and ends before what follows. */
OPENMP(omp_load_beside_regions_of_all_kinds)
{
    int sum = 0;
    pair_get();
#pragma omp parallel for schedule(dynamic) reduction(+ : sum) num_threads(2)
    for (int i = 0; i < 8; i++)
        sum += pair_memory[0];
#pragma omp parallel for schedule(guided) reduction(+ : sum) num_threads(2)
    for (int i = 0; i < 8; i++)
        sum += pair_memory[0];
#pragma omp parallel for schedule(runtime) reduction(+ : sum) num_threads(2)
    for (int i = 0; i < 8; i++)
        sum += pair_memory[0];
#pragma omp parallel num_threads(2)
    {
#pragma omp single
#pragma omp taskloop reduction(+ : sum)
        for (int i = 0; i < 8; i++)
            sum += pair_memory[0];
        int copied = 0;
#pragma omp single copyprivate(copied)
        copied = pair_memory[0];
#pragma omp atomic
        sum += copied;
    }
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1 || right) {
#pragma omp critical
        pair_get();
    } else {
        pair_load();
    }
}
