/* Threads wait while memory is promoted: for each other, by objects in that memory; for time and
 * descriptors; or with every signal blocked, so no signal can stop them. Each wait ends, and the
 * window works in any case. A plain MPI program with threads, run by the test rows. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PATIENCE_S = 10, WAITERS = 3 };

static atomic_bool stop;

struct waits {
    pthread_mutex_t mutex; /* in pages of the window, like all members */
    pthread_cond_t changed;
    sem_t turn, answer;
    int64_t sent, received, unexpected;
    bool process_shared; /* the semaphores */
};

static struct timespec limit_of(int seconds)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += seconds;
    return limit;
}

static void *sleep_and_poll(void *context)
{
    struct waits *waits = context;
    while (!atomic_load(&stop)) {
        struct timespec pause = {0, 500000};
        if (nanosleep(&pause, NULL) != 0 && errno != EINTR)
            waits->unexpected++;
        if (poll(NULL, 0, 1) != 0 && errno != EINTR)
            waits->unexpected++;
    }
    return NULL;
}

static void *receive(void *context)
{
    struct waits *waits = context;
    pthread_mutex_lock(&waits->mutex);
    while (!atomic_load(&stop)) {
        while (waits->received == waits->sent && !atomic_load(&stop))
            pthread_cond_wait(&waits->changed, &waits->mutex);
        waits->received = waits->sent;
        pthread_cond_broadcast(&waits->changed);
    }
    pthread_mutex_unlock(&waits->mutex);
    return NULL;
}

static void *answer(void *context)
{
    struct waits *waits = context;
    for (;;) {
        while (sem_wait(&waits->turn) != 0)
            waits->unexpected += errno != EINTR;
        if (atomic_load(&stop))
            return NULL;
        sem_post(&waits->answer);
    }
}

static bool send_and_await_answer(struct waits *waits)
{
    struct timespec limit = limit_of(PATIENCE_S);
    bool received = true;
    pthread_mutex_lock(&waits->mutex);
    waits->sent++;
    pthread_cond_broadcast(&waits->changed);
    while (waits->received != waits->sent && received)
        received = pthread_cond_timedwait(&waits->changed, &waits->mutex, &limit) == 0;
    pthread_mutex_unlock(&waits->mutex);
    return CHECK(received, "a thread that waits at a condition was not woken");
}

/* All threads wait while a window is made and freed. Each is woken during that time or after it,
 * and must wake. */
static bool turn_of_waits(struct waits *waits, char *area, int turn)
{
    struct timespec limit = limit_of(PATIENCE_S);
    MPI_Win win = window_over(area + 16, 2 * PAGE);
    bool received = waits->process_shared || send_and_await_answer(waits);
    if (turn % 2 == 0)
        MPI_Win_free(&win);
    sem_post(&waits->turn);
    if (turn % 2 != 0)
        MPI_Win_free(&win);
    while (sem_timedwait(&waits->answer, &limit) != 0) {
        if (errno == ETIMEDOUT)
            return CHECK(false, "a thread that waits at a semaphore was not woken");
        waits->unexpected += errno != EINTR;
    }
    return received;
}

static void ignore_signal(int number)
{
    (void)number;
}

/* Wakes threads that missed their call, so a failure does not block the later cases. */
static void waiters_stop(struct waits *waits, pthread_t *threads)
{
    struct sigaction action = {.sa_handler = ignore_signal, .sa_flags = SA_RESTART}, before;
    sigaction(SIGUSR2, &action, &before);
    atomic_store(&stop, true);
    for (int i = 0; i < WAITERS && harness_failed(); i++)
        pthread_kill(threads[i], SIGUSR2);
    pthread_mutex_lock(&waits->mutex);
    pthread_cond_broadcast(&waits->changed);
    pthread_mutex_unlock(&waits->mutex);
    sem_post(&waits->turn);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    sigaction(SIGUSR2, &before, NULL);
}

static void waits_init(struct waits *waits, bool process_shared)
{
    waits->process_shared = process_shared;
    pthread_mutex_init(&waits->mutex, NULL);
    pthread_cond_init(&waits->changed, NULL);
    sem_init(&waits->turn, process_shared, 0);
    sem_init(&waits->answer, process_shared, 0);
}

static void waits_try(bool process_shared)
{
    void *(*const bodies[WAITERS])(void *) = {sleep_and_poll, receive, answer};
    pthread_t threads[WAITERS];
    char *area = pages_map(3 * PAGE);
    struct waits *waits = (struct waits *)(area + PAGE - 64);
    waits_init(waits, process_shared);
    atomic_store(&stop, false);
    for (int i = 0; i < WAITERS; i++)
        pthread_create(&threads[i], NULL, bodies[i], waits);
    for (int turn = 0, all_continue = 1; turn < scaled_rounds(300) && all_continue; turn++) {
        int goes_on = turn_of_waits(waits, area, turn);
        MPI_Allreduce(&goes_on, &all_continue, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    waiters_stop(waits, threads);
    CHECK_EQUAL(waits->unexpected, 0);
    munmap(area, 3 * PAGE);
}

static void threads_that_wait_are_woken(enum window_kind kind)
{
    (void)kind;
    waits_try(false);
}

/* Once the page is shared, the kernel identifies such waiters by the page, not by the address. */
static void threads_that_wait_at_process_shared_semaphores_are_woken(enum window_kind kind)
{
    (void)kind;
    waits_try(true);
}

/* --- a thread that no signal can stop --- */

struct deaf {
    pthread_t thread;
    pthread_barrier_t ready;
    _Atomic int64_t *word;
    int64_t written;
};

static void *block_all_signals(void *context)
{
    struct deaf *deaf = context;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_barrier_wait(&deaf->ready);
    while (!atomic_load(&stop)) {
        atomic_fetch_add(deaf->word, 1);
        deaf->written++;
        sleep_us(100);
    }
    return NULL;
}

static void deaf_start(struct deaf *deaf, void *word)
{
    *deaf = (struct deaf){.word = word};
    atomic_store(&stop, false);
    pthread_barrier_init(&deaf->ready, NULL, 2);
    pthread_create(&deaf->thread, NULL, block_all_signals, deaf);
    pthread_barrier_wait(&deaf->ready);
}

static void deaf_stop(struct deaf *deaf)
{
    atomic_store(&stop, true);
    pthread_join(deaf->thread, NULL);
    pthread_barrier_destroy(&deaf->ready);
    CHECK_EQUAL(atomic_load(deaf->word), deaf->written);
}

static void a_thread_that_blocks_all_signals_leads_to_copies(enum window_kind kind)
{
    struct deaf deaf;
    (void)kind;
    char *area = pages_map(8 * PAGE);
    deaf_start(&deaf, area + 7 * PAGE);
    for (int turn = 0; turn < 4; turn++) {
        MPI_Win win = window_over(area, 6 * PAGE + turn);
        if (promotion_here() == PROMOTION_INWARD)
            check_copied(win, "blocks the signals that could stop it");
        else
            check_promoted(win, area, 6 * PAGE + (size_t)turn);
        window_exercise(win, area, 6 * PAGE + (size_t)turn);
        MPI_Win_free(&win);
    }
    deaf_stop(&deaf);
    MPI_Win win = window_over(area, 8 * PAGE);
    check_promoted(win, area, 8 * PAGE);
    window_exercise(win, area, 8 * PAGE);
    MPI_Win_free(&win);
    munmap(area, 8 * PAGE);
}

static bool is_private(char *area, size_t len_bytes)
{
    memset(area, 1, len_bytes);
    CHECK(madvise(area, len_bytes, MADV_DONTNEED) == 0, "madvise");
    for (size_t i = 0; i < len_bytes; i++)
        if (area[i] != 0)
            return false;
    return true;
}

/* Pages that could not be restored are restored with the next window that is promoted there: the
 * first one, unless promotion has cost too much of the time so far. */
static void check_is_private_again(char *area, size_t window_bytes, size_t len_bytes)
{
    int all_private = 0, turns = promotes_always() ? 1 : 500;
    for (int turn = 0; turn < turns && !all_private; turn++) {
        sleep_us(turn * 100);
        MPI_Win win = window_over(area + 50, window_bytes);
        check_promoted(win, area + 50, window_bytes);
        window_exercise(win, area + 50, window_bytes);
        MPI_Win_free(&win);
        int here = is_private(area, len_bytes);
        MPI_Allreduce(&here, &all_private, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    CHECK(all_private, "pages stay shared after %d windows", turns);
}

/* The pages may then stay shared: they keep their contents, and the next windows over them work. */
static void a_window_is_freed_though_a_thread_blocks_all_signals(enum window_kind kind)
{
    enum { LEN_BYTES = 6 * PAGE };
    struct deaf deaf;
    char kept[LEN_BYTES];
    (void)kind;
    char *area = pages_map(8 * PAGE);
    MPI_Win win = window_over(area + 50, LEN_BYTES);
    check_promoted(win, area + 50, LEN_BYTES);
    window_exercise(win, area + 50, LEN_BYTES);
    deaf_start(&deaf, area + 7 * PAGE);
    memcpy(kept, area + 50, LEN_BYTES);
    CHECK_OK(MPI_Win_free(&win));
    CHECK(memcmp(kept, area + 50, LEN_BYTES) == 0, "MPI_Win_free changes the contents");
    win = window_over(area, LEN_BYTES);
    window_exercise(win, area, LEN_BYTES);
    MPI_Win_free(&win);
    deaf_stop(&deaf);
    check_is_private_again(area, LEN_BYTES, 8 * PAGE);
    munmap(area, 8 * PAGE);
}

static const struct test_case cases[] = {
    CASE(threads_that_wait_are_woken, KIND_ANY, 2),
    CASE(a_thread_that_blocks_all_signals_leads_to_copies, KIND_ANY, 2),
    CASE(a_window_is_freed_though_a_thread_blocks_all_signals, KIND_ANY, 2),
    CASE(threads_that_wait_at_process_shared_semaphores_are_woken, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
