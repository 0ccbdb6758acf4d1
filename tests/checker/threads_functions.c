/* The functions of pthreads and C11 that order threads, one after the other: a twin runs both steps
 * once for each, and must have no finding in any of them. */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <threads.h>
#include <time.h>

#define ORDER_IN_TURN(name, ...)                                                                   \
    CASE(L1, name, 2)                                                                              \
    {                                                                                              \
        static const struct order ways[] = {__VA_ARGS__};                                          \
        for (size_t i = 0; i < (right ? sizeof ways / sizeof ways[0] : 1); i++)                    \
            pair_run(&ways[i], right);                                                             \
    }

static struct timespec *in_time(clockid_t clock)
{
    static _Thread_local struct timespec until;
    clock_gettime(clock, &until);
    until.tv_sec += 60;
    return &until;
}

/* --- locks --- */

#define ACQUIRE(name, lock, unlock)                                                                \
    static void name(void)                                                                         \
    {                                                                                              \
        POLL(lock, unlock)                                                                         \
    }
#define RELEASE(name, lock, unlock)                                                                \
    static void name(void)                                                                         \
    {                                                                                              \
        lock;                                                                                      \
        released = 1;                                                                              \
        unlock;                                                                                    \
    }

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
RELEASE(mutex_give, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
ACQUIRE(mutex_clock, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, in_time(CLOCK_MONOTONIC)),
        pthread_mutex_unlock(&mutex))

static pthread_spinlock_t spin;
RELEASE(spin_give, pthread_spin_lock(&spin), pthread_spin_unlock(&spin))
ACQUIRE(spin_try, pthread_spin_trylock(&spin), pthread_spin_unlock(&spin))

static mtx_t mutex_c11;
RELEASE(c11_give, mtx_lock(&mutex_c11), mtx_unlock(&mutex_c11))
ACQUIRE(c11_try, mtx_trylock(&mutex_c11), mtx_unlock(&mutex_c11))
ACQUIRE(c11_timed, mtx_timedlock(&mutex_c11, in_time(CLOCK_REALTIME)), mtx_unlock(&mutex_c11))

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
RELEASE(rwlock_give, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
ACQUIRE(read_try, pthread_rwlock_tryrdlock(&rwlock), pthread_rwlock_unlock(&rwlock))
ACQUIRE(read_timed, pthread_rwlock_timedrdlock(&rwlock, in_time(CLOCK_REALTIME)),
        pthread_rwlock_unlock(&rwlock))
ACQUIRE(read_clock, pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, in_time(CLOCK_MONOTONIC)),
        pthread_rwlock_unlock(&rwlock))
ACQUIRE(write_timed, pthread_rwlock_timedwrlock(&rwlock, in_time(CLOCK_REALTIME)),
        pthread_rwlock_unlock(&rwlock))
ACQUIRE(write_clock, pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, in_time(CLOCK_MONOTONIC)),
        pthread_rwlock_unlock(&rwlock))

/* A writer that holds more locks than the checker lists; the last orders. */
enum { LOCKS = 20 };
static pthread_rwlock_t many[LOCKS];

static void many_give(void)
{
    for (int i = 0; i < LOCKS; i++)
        pthread_rwlock_wrlock(&many[i]);
    released = 1;
    for (int i = LOCKS; i-- > 0;)
        pthread_rwlock_unlock(&many[i]);
}
ACQUIRE(many_acquire, pthread_rwlock_rdlock(&many[LOCKS - 1]),
        pthread_rwlock_unlock(&many[LOCKS - 1]))

static sem_t semaphore;

static void semaphore_give(void)
{
    sem_post(&semaphore);
}

static void semaphore_try(void)
{
    while (sem_trywait(&semaphore) != 0)
        sched_yield();
}

static void semaphore_timed(void)
{
    sem_timedwait(&semaphore, in_time(CLOCK_REALTIME));
}

static void semaphore_clock(void)
{
    sem_clockwait(&semaphore, CLOCK_MONOTONIC, in_time(CLOCK_MONOTONIC));
}

/* --- conditions --- */

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void condition_give(void)
{
    mutex_give();
    pthread_cond_signal(&condition);
}

static void condition_clock(void)
{
    pthread_mutex_lock(&mutex);
    while (!released)
        pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, in_time(CLOCK_MONOTONIC));
    pthread_mutex_unlock(&mutex);
}

static cnd_t condition_c11;

static void condition_c11_give(void)
{
    c11_give();
    cnd_broadcast(&condition_c11);
}

static void condition_c11_wait(void)
{
    mtx_lock(&mutex_c11);
    while (!released)
        cnd_wait(&condition_c11, &mutex_c11);
    mtx_unlock(&mutex_c11);
}

static void condition_c11_timed(void)
{
    mtx_lock(&mutex_c11);
    while (!released)
        cnd_timedwait(&condition_c11, &mutex_c11, in_time(CLOCK_REALTIME));
    mtx_unlock(&mutex_c11);
}

__attribute__((constructor)) static void locks_open(void)
{
    for (int i = 0; i < LOCKS; i++)
        pthread_rwlock_init(&many[i], NULL);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&semaphore, 0, 0);
    mtx_init(&mutex_c11, mtx_timed);
    cnd_init(&condition_c11);
}

ORDER_IN_TURN(load_without_locks_of_all_kinds, {mutex_give, mutex_clock}, {spin_give, spin_try},
              {c11_give, c11_try}, {c11_give, c11_timed}, {rwlock_give, read_try},
              {rwlock_give, read_timed}, {rwlock_give, read_clock}, {rwlock_give, write_timed},
              {rwlock_give, write_clock}, {many_give, many_acquire},
              {semaphore_give, semaphore_try}, {semaphore_give, semaphore_timed},
              {semaphore_give, semaphore_clock}, {condition_give, condition_clock},
              {condition_c11_give, condition_c11_wait}, {condition_c11_give, condition_c11_timed})

/* --- volatile objects: clang announces them on request, by functions of its own runtime --- */

void __tsan_volatile_read4(void *at) __attribute__((weak));
void __tsan_volatile_write4(void *at) __attribute__((weak));

static volatile int flag;

__attribute__((no_sanitize("thread"))) static void volatile_flag_give(void)
{
    __tsan_volatile_write4((void *)&flag);
    flag = 1;
}

__attribute__((no_sanitize("thread"))) static void volatile_flag_acquire(void)
{
    for (int read = 0; read == 0; read = flag)
        __tsan_volatile_read4((void *)&flag);
    flag = 0;
}

ORDER_IN_TURN(load_before_the_volatile_flag, {volatile_flag_give, volatile_flag_acquire})

/* --- what is done once --- */

static _Atomic int begun; /* relaxed: does not order */

static void get_once(void)
{
    atomic_store_explicit(&begun, 1, memory_order_relaxed);
    pair_get();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag once_c11 = ONCE_FLAG_INIT;

static void once_call(void)
{
    pthread_once(&once, get_once);
}

static void once_call_c11(void)
{
    call_once(&once_c11, get_once);
}

static void guard_call(void)
{
    static_object_make(get_once);
}

static void (*call)(void);

static void *load_after_the_call(void *right)
{
    while (atomic_load_explicit(&begun, memory_order_relaxed) == 0)
        sched_yield();
    if (*(const bool *)right)
        call();
    pair_load();
    return NULL;
}

CASE(L1, load_before_it_is_done_once, 2)
{
    static void (*const calls[])(void) = {once_call, once_call_c11, guard_call};
    for (size_t i = 0; i < (right ? sizeof calls / sizeof calls[0] : 1); i++) {
        pthread_t thread;
        call = calls[i];
        atomic_store_explicit(&begun, 0, memory_order_relaxed);
        pair_open();
        if (rank == 0) {
            pthread_create(&thread, NULL, load_after_the_call, &right);
            call();
            pthread_join(thread, NULL);
        }
        pair_close();
    }
}

/* --- the end of a thread --- */

static void *get_in_thread(void *unused)
{
    pair_get();
    return unused;
}

static int get_in_thread_c11(void *unused)
{
    get_in_thread(unused);
    return 0;
}

static void thread_create(pthread_t *thread)
{
    pthread_create(thread, NULL, get_in_thread, NULL);
}

static void thread_create_c11(pthread_t *thread)
{
    thrd_create(thread, get_in_thread_c11, NULL);
}

static void join(pthread_t thread)
{
    pthread_join(thread, NULL);
}

static void join_try(pthread_t thread)
{
    while (pthread_tryjoin_np(thread, NULL) != 0)
        sched_yield();
}

static void join_timed(pthread_t thread)
{
    pthread_timedjoin_np(thread, NULL, in_time(CLOCK_REALTIME));
}

static void join_clock(pthread_t thread)
{
    pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, in_time(CLOCK_MONOTONIC));
}

static void join_c11(pthread_t thread)
{
    thrd_join(thread, NULL);
}

/* Threads that cannot be created do no harm. */
static void create_in_vain(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 47);
    if (pthread_create(&thread, &attributes, get_in_thread, NULL) == 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    pthread_attr_destroy(&attributes);
}

CASE(L1, load_before_joins_of_all_kinds, 2)
{
    static const struct {
        void (*create)(pthread_t *thread);
        void (*join)(pthread_t thread);
    } ways[] = {{thread_create, join_try},
                {thread_create, join_timed},
                {thread_create, join_clock},
                {thread_create_c11, join_c11}};
    for (size_t i = 0; i < (right ? sizeof ways / sizeof ways[0] : 1); i++) {
        pthread_t thread;
        pair_open();
        if (rank == 0) {
            create_in_vain();
            ways[i].create(&thread);
            if (right)
                ways[i].join(thread);
            pair_load();
            if (!right)
                join(thread);
        }
        pair_close();
    }
}
