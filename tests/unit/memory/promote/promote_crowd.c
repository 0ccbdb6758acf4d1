/* Promotion while threads start and end: the kernel's thread list may break off at a thread that
 * ends, and the threads after it still lose no write. Pages stay copied but not yet moved for
 * longer than usual, so such writes hit that interval. Promotion also waits for threads that get no
 * processor for long. */
#include "promote_common.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { CROWD = 3, ADDS = 3000, SECONDS = 8, LONGER_US = 200 };

static atomic_bool stop;

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_mremap)
        usleep(LONGER_US);
    return __real_syscall(number, a, b, c, d, e, f);
}

static void *add_and_end(void *word)
{
    for (int i = 0; i < ADDS; i++)
        atomic_fetch_add((_Atomic uint64_t *)word, 1);
    return NULL;
}

static void *make_and_free(void *word)
{
    uint64_t turns = 0;
    for (; !atomic_load(&stop); turns++) {
        pthread_t crowd[CROWD];
        for (int i = 0; i < CROWD; i++)
            assert_int_equal(pthread_create(&crowd[i], NULL, add_and_end, word), 0);
        for (int i = 0; i < CROWD; i++)
            pthread_join(crowd[i], NULL);
        sched_yield();
    }
    return (void *)(uintptr_t)turns;
}

static void a_thread_loses_no_write_though_others_end(void **state)
{
    char *memory = map_private(PAGE);
    pthread_t thread;
    void *turns;
    int moved = 0;
    (void)state;
    skip_where_nothing_moves();
    assert_int_equal(pthread_create(&thread, NULL, make_and_free, memory), 0);
    for (time_t end = time(NULL) + SECONDS; time(NULL) < end;) {
        struct oriel_promoted promoted;
        if (oriel_promote((uintptr_t)memory, PAGE, &quiesce, &promoted) == ORIEL_OK) {
            moved++;
            oriel_promote_release(&promoted);
        }
    }
    atomic_store(&stop, true);
    pthread_join(thread, &turns);
    print_message("%d promotions\n", moved);
    assert_true(moved > 100);
    assert_int_equal(atomic_load((_Atomic uint64_t *)memory),
                     CROWD * ADDS * (uint64_t)(uintptr_t)turns);
    munmap(memory, PAGE);
}

enum { CROWDERS = 8, CROWDED_MS = 700 };

static void move_to_first_processor(int policy)
{
    cpu_set_t first;
    CPU_ZERO(&first);
    sched_getaffinity(0, sizeof first, &first);
    for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &first) && found++ > 0)
            CPU_CLR(i, &first);
    assert_int_equal(sched_setaffinity(0, sizeof first, &first), 0);
    assert_int_equal(sched_setscheduler(0, policy, &(struct sched_param){0}), 0);
}

static void *count_idly(void *count)
{
    move_to_first_processor(SCHED_IDLE);
    while (!atomic_load(&stop))
        atomic_fetch_add((_Atomic uint64_t *)count, 1);
    return NULL;
}

/* As in a thread that starts and ends threads continuously, which the C library does with all
 * signals blocked. */
static void *count_deafly(void *count)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    move_to_first_processor(SCHED_IDLE);
    while (!atomic_load(&stop)) {
        pthread_sigmask(SIG_SETMASK, &all, NULL);
        for (int i = 0; i < 1000; i++)
            atomic_fetch_add((_Atomic uint64_t *)count, 1);
        pthread_sigmask(SIG_SETMASK, &none, NULL);
    }
    return NULL;
}

static pid_t crowders[CROWDERS];
static int gate[2]; /* a pipe, closed to start the load threads */

/* Eight threads that compute on the first processor once the gate is open. */
static void make_crowders(void)
{
    char byte;
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < CROWDERS; i++) {
        crowders[i] = fork();
        assert_true(crowders[i] >= 0);
        if (crowders[i] > 0)
            continue;
        close(gate[1]);
        move_to_first_processor(SCHED_OTHER);
        while (read(gate[0], &byte, 1) != 0)
            continue;
        ualarm(CROWDED_MS * 1000, 0);
        for (;;)
            atomic_signal_fence(memory_order_seq_cst);
    }
    close(gate[0]);
}

static void await_crowders(void)
{
    for (int i = 0; i < CROWDERS; i++) {
        int status;
        assert_int_equal(waitpid(crowders[i], &status, 0), crowders[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    }
}

static void promote_a_page(void)
{
    char *memory = map_private(PAGE);
    struct oriel_promoted promoted;
    promote(memory, PAGE, &quiesce, &promoted);
    oriel_promote_release(&promoted);
    munmap(memory, PAGE);
}

/* Next to eight computing threads, an idle-priority thread gets some milliseconds in ten
 * seconds. */
static void is_waited_for(void *(*counts)(void *))
{
    static _Atomic uint64_t count;
    pthread_t thread;
    skip_where_nothing_moves();
    make_crowders();
    atomic_store(&count, 0);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, counts, &count), 0);
    while (atomic_load(&count) == 0)
        usleep(1000);
    close(gate[1]);
    usleep(50000);
    uint64_t before = atomic_load(&count);
    promote_a_page();
    print_message("%llu rounds meanwhile\n", (unsigned long long)(atomic_load(&count) - before));
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    await_crowders();
}

static void a_thread_that_gets_no_processor_is_waited_for(void **state)
{
    (void)state;
    is_waited_for(count_idly);
}

static void also_while_it_blocks_all_signals(void **state)
{
    (void)state;
    is_waited_for(count_deafly);
}

enum { NEW = 32 };

static void *count_one(void *count)
{
    atomic_fetch_add((_Atomic int *)count, 1);
    return NULL;
}

/* Creates threads where the load is, and continues on another processor. */
static void *make_threads(void *count)
{
    pthread_t threads[NEW];
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    move_to_first_processor(SCHED_IDLE);
    for (int i = 0; i < NEW; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_one, count), 0);
    sched_setaffinity(0, sizeof all, &all);
    close(gate[1]);
    for (int i = 0; i < NEW; i++)
        pthread_join(threads[i], NULL);
    return NULL;
}

/* The C library starts threads with all signals blocked, and the kernel has counted no processor
 * time for them then. */
static void also_before_it_ran_for_the_first_time(void **state)
{
    enum { TRIES = 10 };
    int ran = NEW;
    (void)state;
    skip_where_nothing_moves();
    for (int tries = 0; ran == NEW && tries < TRIES; tries++) {
        _Atomic int count = 0;
        pthread_t thread;
        make_crowders();
        assert_int_equal(pthread_create(&thread, NULL, make_threads, (void *)&count), 0);
        usleep(100000);
        ran = atomic_load(&count);
        promote_a_page();
        pthread_join(thread, NULL);
        await_crowders();
        print_message("%d of %d had run before\n", ran, NEW);
    }
    assert_true(ran < NEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_loses_no_write_though_others_end),
        cmocka_unit_test(a_thread_that_gets_no_processor_is_waited_for),
        cmocka_unit_test(also_while_it_blocks_all_signals),
        cmocka_unit_test(also_before_it_ran_for_the_first_time),
    };
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* threads of a failed case would continue in the next */
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
