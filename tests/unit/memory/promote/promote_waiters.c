/* Threads wait in the kernel at process-shared objects in memory that is promoted and demoted:
 * wakes reach them, and a wait with a limit is not shortened. */
#include "promote_common.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

enum { PATIENCE_S = 20, ROUNDS = 40 };

struct shared { /* in the memory that moves */
    sem_t turn;
    sem_t answer;
    _Atomic uint32_t word;
};

struct waiter {
    struct shared *shared;
    bool has_limit;
    atomic_int tid;
    atomic_int failures;
    pthread_t thread;
};

static struct timespec limit_of(int seconds)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += seconds;
    return limit;
}

static void *wait_and_answer(void *context)
{
    struct waiter *waiter = context;
    atomic_store(&waiter->tid, (int)syscall(SYS_gettid));
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec limit = limit_of(PATIENCE_S);
        int got = waiter->has_limit ? sem_timedwait(&waiter->shared->turn, &limit)
                                    : sem_wait(&waiter->shared->turn);
        if (got != 0)
            atomic_fetch_add(&waiter->failures, 1);
        sem_post(&waiter->shared->answer);
    }
    return NULL;
}

/* Waits until the thread sleeps in a system call of this number. */
static void await_call(const struct waiter *waiter, long number)
{
    char path[64];
    char text[64] = "";
    for (int tries = 0; tries < 5000 && strtol(text, NULL, 10) != number; tries++) {
        usleep(200);
        snprintf(path, sizeof path, "/proc/self/task/%d/syscall", atomic_load(&waiter->tid));
        FILE *file = fopen(path, "r");
        if (file == NULL || fgets(text, sizeof text, file) == NULL)
            text[0] = '\0';
        if (file != NULL)
            fclose(file);
    }
    assert_int_equal(strtol(text, NULL, 10), number);
}

static void waits_try(void **state, bool has_limit)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_private(4 * PAGE);
    struct waiter waiter = {.shared = (struct shared *)(memory + PAGE), .has_limit = has_limit};
    assert_int_equal(sem_init(&waiter.shared->turn, 1, 0), 0);
    assert_int_equal(sem_init(&waiter.shared->answer, 1, 0), 0);
    assert_int_equal(pthread_create(&waiter.thread, NULL, wait_and_answer, &waiter), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct oriel_promoted promoted;
        struct timespec limit = limit_of(PATIENCE_S);
        await_call(&waiter, SYS_futex);
        promote(memory, 4 * PAGE, how, &promoted);
        if (round % 2 != 0)
            oriel_promote_release(&promoted);
        sem_post(&waiter.shared->turn);
        while (sem_timedwait(&waiter.shared->answer, &limit) != 0)
            if (errno != EINTR)
                fail_msg("round %d: %s", round, strerror(errno));
        /* It waits again while the memory is shared, and pages move in the other direction. */
        if (round + 1 < ROUNDS)
            await_call(&waiter, SYS_futex);
        oriel_promote_release(&promoted);
    }
    pthread_join(waiter.thread, NULL);
    assert_int_equal(atomic_load(&waiter.failures), 0);
    munmap(memory, 4 * PAGE);
}

static void waiters_at_process_shared_semaphores_are_woken(void **state)
{
    waits_try(state, false);
}

static void waits_with_a_limit_are_not_cut_short(void **state)
{
    waits_try(state, true);
}

#ifdef SYS_futex_waitv

/* One of several words. */
static void *wait_at_many(void *context)
{
    struct waiter *waiter = context;
    uint32_t still = 0;
    struct futex_waitv words[2] = {
        {.uaddr = (uintptr_t)&still, .flags = FUTEX_32},
        {.uaddr = (uintptr_t)&waiter->shared->word, .flags = FUTEX_32},
    };
    atomic_store(&waiter->tid, (int)syscall(SYS_gettid));
    while (atomic_load(&waiter->shared->word) == 0) {
        struct timespec limit;
        clock_gettime(CLOCK_MONOTONIC, &limit);
        limit.tv_sec += PATIENCE_S;
        if (syscall(SYS_futex_waitv, words, 2, 0, &limit, CLOCK_MONOTONIC) < 0 && errno != EAGAIN &&
            errno != EINTR) {
            atomic_fetch_add(&waiter->failures, 1);
            break;
        }
    }
    return NULL;
}

static void waiters_at_several_words_are_woken(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(2 * PAGE);
    struct waiter waiter = {.shared = (struct shared *)memory};
    if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 && errno == ENOSYS)
        skip();
    assert_int_equal(pthread_create(&waiter.thread, NULL, wait_at_many, &waiter), 0);
    await_call(&waiter, SYS_futex_waitv);
    promote(memory, 2 * PAGE, how, &promoted);
    await_call(&waiter, SYS_futex_waitv);
    atomic_store(&waiter.shared->word, 1);
    syscall(SYS_futex, &waiter.shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(atomic_load(&waiter.failures), 0);
    oriel_promote_release(&promoted);
    munmap(memory, 2 * PAGE);
}

#endif

/* Promotion does not wait for a thread that cannot be stopped; that thread may lose its wake. */
static void *wait_deaf(void *context)
{
    struct waiter *waiter = context;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    atomic_store(&waiter->tid, (int)syscall(SYS_gettid));
    while (sem_trywait(&waiter->shared->turn) != 0)
        syscall(SYS_futex, &waiter->shared->word, FUTEX_WAIT, 0, &(struct timespec){.tv_sec = 1},
                NULL, 0);
    return NULL;
}

static void a_waiter_that_blocks_all_signals_delays_nothing(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_private(2 * PAGE);
    struct waiter waiter = {.shared = (struct shared *)memory};
    if (how->method == ORIEL_BARRIER_STOP_THREADS)
        skip(); /* refused then */
    assert_int_equal(sem_init(&waiter.shared->turn, 1, 0), 0);
    assert_int_equal(pthread_create(&waiter.thread, NULL, wait_deaf, &waiter), 0);
    await_call(&waiter, SYS_futex);
    for (int round = 0; round < 20; round++) {
        struct oriel_promoted promoted;
        promote(memory, 2 * PAGE, how, &promoted);
        oriel_promote_release(&promoted);
    }
    sem_post(&waiter.shared->turn);
    pthread_join(waiter.thread, NULL);
    munmap(memory, 2 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(waiters_at_process_shared_semaphores_are_woken),
        BY_BOTH(waits_with_a_limit_are_not_cut_short),
#ifdef SYS_futex_waitv
        BY_BOTH(waiters_at_several_words_are_woken),
#endif
        BY_BOTH(a_waiter_that_blocks_all_signals_delays_nothing),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
