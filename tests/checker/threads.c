/* Threads of one rank: what one does to memory while an operation of another needs it, or may still
 * be under way. Twins order their threads, each in another way. Compiled with -fsanitize=thread;
 * the program starts MPI with MPI_THREAD_MULTIPLE. */
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <threads.h>
#include <time.h>

const bool offenders_have_threads = true;

/* --- what the two threads do --- */

volatile int *pair_memory;
MPI_Win pair_win;

void pair_open(void)
{
    int found;
    int *memory;
    pair_win = ints_window(4);
    MPI_Win_get_attr(pair_win, MPI_WIN_BASE, &memory, &found);
    pair_memory = memory;
}

void pair_close(void)
{
    MPI_Win_free(&pair_win);
}

/* --- pthreads and C11 --- */

static const struct order *order;
static bool is_right;
int released;

static void *load_afterwards(void *unused)
{
    (void)unused;
    if (is_right)
        order->acquire();
    pair_load();
    return NULL;
}

void pair_run(const struct order *how, bool right)
{
    pthread_t thread;
    order = how;
    is_right = right;
    released = 0;
    pair_open();
    if (rank == 0) {
        pthread_create(&thread, NULL, load_afterwards, NULL);
        pair_get();
        if (right)
            how->release();
        pthread_join(thread, NULL);
    }
    pair_close();
}

#define PAIR(name, release_, acquire_)                                                             \
    CASE(L1, name, 2)                                                                              \
    {                                                                                              \
        static const struct order how = {release_, acquire_};                                      \
        pair_run(&how, right);                                                                     \
    }

static struct timespec soon(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += 60;
    return now;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void mutex_release(void)
{
    pthread_mutex_lock(&mutex);
    released = 1;
    pthread_mutex_unlock(&mutex);
}

static void mutex_acquire(void){
    POLL(pthread_mutex_lock(&mutex),
         pthread_mutex_unlock(&mutex))} PAIR(load_without_the_mutex, mutex_release, mutex_acquire)

    static void mutex_try(void){POLL(pthread_mutex_trylock(&mutex),
                                     pthread_mutex_unlock(&mutex))} PAIR(load_without_a_tried_mutex,
                                                                         mutex_release, mutex_try)

        static void mutex_timed(void)
{
    struct timespec until = soon();
    POLL(pthread_mutex_timedlock(&mutex, &until), pthread_mutex_unlock(&mutex))
}
PAIR(load_without_a_timed_mutex, mutex_release, mutex_timed)

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void rwlock_release(void)
{
    pthread_rwlock_wrlock(&rwlock);
    released = 1;
    pthread_rwlock_unlock(&rwlock);
}

static void rwlock_acquire(void){
    POLL(pthread_rwlock_rdlock(&rwlock),
         pthread_rwlock_unlock(&rwlock))} PAIR(load_without_the_read_lock, rwlock_release,
                                               rwlock_acquire)

    static void rwlock_try(void){
        POLL(pthread_rwlock_trywrlock(&rwlock),
             pthread_rwlock_unlock(&rwlock))} PAIR(load_without_the_write_lock, rwlock_release,
                                                   rwlock_try)

        static pthread_spinlock_t spin;

__attribute__((constructor)) static void spin_open(void)
{
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
}

static void spin_release(void)
{
    pthread_spin_lock(&spin);
    released = 1;
    pthread_spin_unlock(&spin);
}

static void spin_acquire(void){
    POLL(pthread_spin_lock(&spin), pthread_spin_unlock(&spin))} PAIR(load_without_the_spin_lock,
                                                                     spin_release, spin_acquire)

    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void condition_release(void)
{
    mutex_release();
    pthread_cond_broadcast(&condition);
}

static void condition_acquire(void)
{
    pthread_mutex_lock(&mutex);
    while (!released)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}
PAIR(load_before_the_condition, condition_release, condition_acquire)

static void condition_timed(void)
{
    struct timespec until = soon();
    pthread_mutex_lock(&mutex);
    while (!released)
        pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}
PAIR(load_before_a_timed_condition, condition_release, condition_timed)

static pthread_barrier_t barrier;

__attribute__((constructor)) static void barrier_open(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
}

static void barrier_meet(void)
{
    pthread_barrier_wait(&barrier);
}
PAIR(load_before_the_barrier, barrier_meet, barrier_meet)

static sem_t semaphore;

static void semaphore_release(void)
{
    sem_post(&semaphore);
}

static void semaphore_acquire(void)
{
    sem_wait(&semaphore);
}
PAIR(load_before_the_semaphore, semaphore_release, semaphore_acquire)

static _Atomic int flag;

static void flag_release(void)
{
    atomic_store_explicit(&flag, 1, memory_order_release);
}

static void flag_acquire(void)
{
    while (atomic_load_explicit(&flag, memory_order_acquire) == 0)
        sched_yield();
    atomic_store(&flag, 0);
}
PAIR(load_before_the_flag, flag_release, flag_acquire)

static void flag_add(void)
{
    atomic_fetch_add(&flag, 1);
}

static void flag_exchange(void)
{
    int expected = 1;
    while (!atomic_compare_exchange_strong(&flag, &expected, 0)) {
        expected = 1;
        sched_yield();
    }
}
PAIR(load_before_the_exchange, flag_add, flag_exchange)

/* A fence makes a relaxed flag one that orders. */
static void fence_release(void)
{
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
}

static void fence_acquire(void)
{
    while (atomic_load_explicit(&flag, memory_order_relaxed) == 0)
        sched_yield();
    atomic_thread_fence(memory_order_acquire);
    atomic_store(&flag, 0);
}
PAIR(load_before_the_fence, fence_release, fence_acquire)

static void *get_in_thread(void *unused)
{
    (void)unused;
    pair_get();
    return NULL;
}

CASE(L1, load_before_the_join, 2)
{
    pthread_t thread;
    pair_open();
    if (rank == 0) {
        pthread_create(&thread, NULL, get_in_thread, NULL);
        if (right)
            pthread_join(thread, NULL);
        pair_load();
        if (!right)
            pthread_join(thread, NULL);
    }
    pair_close();
}

static void *load_in_thread(void *unused)
{
    (void)unused;
    pair_load();
    return NULL;
}

CASE(L1, load_by_a_thread_that_was_created_early, 2)
{
    pthread_t thread;
    pair_open();
    if (rank == 0) {
        if (right)
            pair_get();
        pthread_create(&thread, NULL, load_in_thread, NULL);
        if (!right)
            pair_get();
        pthread_join(thread, NULL);
    }
    pair_close();
}

static mtx_t mutex_c11;
static cnd_t condition_c11;

static int load_afterwards_c11(void *right)
{
    if (*(const bool *)right) {
        mtx_lock(&mutex_c11);
        while (!released)
            cnd_wait(&condition_c11, &mutex_c11);
        mtx_unlock(&mutex_c11);
    }
    pair_load();
    return 0;
}

CASE(L1, load_without_the_mutex_of_c11, 2)
{
    thrd_t thread;
    released = 0;
    mtx_init(&mutex_c11, mtx_plain);
    cnd_init(&condition_c11);
    pair_open();
    if (rank == 0) {
        thrd_create(&thread, load_afterwards_c11, &right);
        pair_get();
        mtx_lock(&mutex_c11);
        released = 1;
        mtx_unlock(&mutex_c11);
        cnd_signal(&condition_c11);
        thrd_join(thread, NULL);
    }
    pair_close();
    cnd_destroy(&condition_c11);
    mtx_destroy(&mutex_c11);
}

/* --- order from another rank reaches one thread only --- */

static void *load_after_the_notice(void *unused);

CASE(L1, load_while_another_thread_awaits_the_notice, 2)
{
    pthread_t thread;
    released = 0;
    is_right = right;
    pair_open();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, pair_win);
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, pair_win); /* FINDS L1 here */
        MPI_Win_unlock(1, pair_win);
        notify(1);
    }
    if (rank == 1) {
        pthread_create(&thread, NULL, load_after_the_notice, NULL);
        await_notice(0);
        mutex_release();
        pthread_join(thread, NULL);
    }
    pair_close();
}

static void *load_after_the_notice(void *unused)
{
    (void)unused;
    if (is_right)
        mutex_acquire();
    (void)pair_memory[2]; /* FINDS L1 here */
    return NULL;
}

static void *notify_afterwards(void *unused);

CASE(L1, notice_by_a_thread_that_did_not_put, 2)
{
    pthread_t thread;
    released = 0;
    is_right = right;
    pair_open();
    if (rank == 0) {
        pthread_create(&thread, NULL, notify_afterwards, NULL);
        delay();
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, pair_win);
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, pair_win); /* FINDS L1 here */
        MPI_Win_unlock(1, pair_win);
        mutex_release();
        pthread_join(thread, NULL);
    }
    if (rank == 1) {
        await_notice(0);
        (void)pair_memory[2]; /* FINDS L1 here */
    }
    pair_close();
}

static void *notify_afterwards(void *unused)
{
    (void)unused;
    if (is_right)
        mutex_acquire();
    delay();
    notify(1);
    return NULL;
}

/* --- operations of two threads --- */

enum { ROUNDS = 50 };

static void *put_and_flush(void *other);

CASE(C1, puts_of_two_threads_to_one_place, 2)
{
    pthread_t threads[3];
    is_right = right;
    pair_open();
    MPI_Win_lock_all(0, pair_win);
    for (int i = 0; i < 3 && rank == 0; i++) /* the third has another place */
        pthread_create(&threads[i], NULL, put_and_flush, i == 2 ? &rank : NULL);
    for (int i = 0; i < 3 && rank == 0; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(pair_win);
    pair_close();
}

/* Threads complete each other's operations. */
static void *put_and_flush(void *other)
{
    int value = 1;
    MPI_Aint at = other == NULL ? 2 : 3;
    for (int i = 0; i < ROUNDS; i++) {
        if (is_right && other == NULL)
            pthread_mutex_lock(&mutex);
        MPI_Put(&value, 1, MPI_INT, 1, at, 1, MPI_INT, pair_win); /* FINDS C1 here */
        MPI_Win_flush(1, pair_win);
        if (is_right && other == NULL)
            pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

/* More threads than have an order of their own, one after the other and at once. They complete each
 * other's operations, and each accesses its own memory after its own flush. */
static void *work_at_own_place(void *place)
{
    int value = 1, at = *(int *)place;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Get((int *)&pair_memory[at], 1, MPI_INT, 1, at, 1, MPI_INT, pair_win);
        MPI_Win_flush(1, pair_win);
        pair_memory[at]++;
    }
    MPI_Put(&value, 1, MPI_INT, 1, at, 1, MPI_INT, pair_win);
    MPI_Win_flush(1, pair_win);
    return NULL;
}

enum { MANY = 40 };

CASE(L1, load_while_many_threads_put, 2)
{
    pthread_t threads[MANY];
    int places[MANY], found, *memory;
    pair_win = ints_window(MANY);
    MPI_Win_get_attr(pair_win, MPI_WIN_BASE, &memory, &found);
    pair_memory = memory;
    MPI_Win_lock_all(0, pair_win);
    for (int i = 0; i < MANY && rank == 0; i++) {
        places[i] = i;
        pthread_create(&threads[i], NULL, work_at_own_place, &places[i]);
        if (i < MANY / 2)
            pthread_join(threads[i], NULL);
    }
    for (int i = MANY / 2; i < MANY && rank == 0; i++)
        pthread_join(threads[i], NULL);
    if (rank == 0 && right)
        notify(1);
    if (rank == 0 && !right) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, pair_win); /* FINDS L1 here */
        MPI_Win_flush(1, pair_win);
    }
    if (rank == 1 && right)
        await_notice(0);
    if (rank == 1)
        (void)pair_memory[0]; /* FINDS L1 here */
    MPI_Win_unlock_all(pair_win);
    pair_close();
}
