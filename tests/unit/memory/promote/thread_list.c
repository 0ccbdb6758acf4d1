/* src/memory/promote/thread_list.c: while threads end, the list of the others stays complete. */
#include "memory/promote/thread_list.h"

#include "transport/remote_writers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"

enum { CROWD = 40, SECONDS = 4, LOOKS_LEAST = 1000 };

static atomic_bool stop;
static atomic_bool may_end;
static _Atomic int32_t
    witness; /* a thread that is listed after those that end; 0 if there is none */

bool oriel_remote_writers_is_helper(int32_t tid)
{
    (void)tid;
    return false;
}

static void *end_with_the_others(void *unused)
{
    while (!atomic_load(&may_end))
        sched_yield();
    return unused;
}

static void *live_on(void *unused)
{
    atomic_store(&witness, (int32_t)syscall(SYS_gettid));
    atomic_store(&may_end, true);
    usleep(1000);
    atomic_store(&witness, 0);
    return unused;
}

static void *make_and_free(void *unused)
{
    while (!atomic_load(&stop)) {
        pthread_t crowd[CROWD], last;
        for (int i = 0; i < CROWD; i++)
            assert_int_equal(pthread_create(&crowd[i], NULL, end_with_the_others, NULL), 0);
        assert_int_equal(pthread_create(&last, NULL, live_on, NULL), 0);
        for (int i = 0; i < CROWD; i++)
            pthread_join(crowd[i], NULL);
        pthread_join(last, NULL);
        atomic_store(&may_end, false);
    }
    return unused;
}

struct search {
    int32_t tid;
    int found;
};

static bool compare(int32_t tid, void *context)
{
    struct search *search = context;
    search->found += tid == search->tid;
    return true;
}

static void a_thread_is_listed_though_others_end(void **state)
{
    (void)state;
    int looks = 0, missed = 0, twice = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, make_and_free, NULL), 0);
    for (time_t end = time(NULL) + SECONDS; time(NULL) < end || looks < LOOKS_LEAST;) {
        struct search search = {.tid = atomic_load(&witness)};
        int error;
        if (search.tid == 0 || !oriel_thread_list_visit(compare, &search, &error) ||
            atomic_load(&witness) != search.tid)
            continue;
        looks++;
        missed += search.found == 0;
        twice += search.found > 1;
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    print_message("%d looks, %d missed the thread\n", looks, missed);
    assert_int_equal(missed, 0);
    assert_int_equal(twice, 0);
}

static void *end_at_once(void *tid)
{
    *(int32_t *)tid = (int32_t)syscall(SYS_gettid);
    return NULL;
}

static void a_thread_has_ended_when_it_is_no_more(void **state)
{
    (void)state;
    pthread_t thread;
    int32_t tid = 0;
    assert_int_equal(pthread_create(&thread, NULL, end_at_once, &tid), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < 1000 && !oriel_thread_list_has_ended(tid); i++)
        /* joined means that the stack is released; the kernel needs a little longer */
        usleep(1000);
    assert_true(oriel_thread_list_has_ended(tid));
    assert_false(oriel_thread_list_has_ended((int32_t)syscall(SYS_gettid)));
}

/* Nothing can be read about a thread then, which does not mean that it has ended. */
static void a_thread_has_not_ended_because_descriptors_are_used_up(void **state)
{
    (void)state;
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool has_ended = oriel_thread_list_has_ended((int32_t)syscall(SYS_gettid));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_false(has_ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_is_listed_though_others_end),
        cmocka_unit_test(a_thread_has_ended_when_it_is_no_more),
        cmocka_unit_test(a_thread_has_not_ended_because_descriptors_are_used_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
