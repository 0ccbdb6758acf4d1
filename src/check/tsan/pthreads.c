/* The functions by which threads order each other: those of pthreads, of C11's threads, and C++'s
 * guards of static objects. A function that releases first gives to its object; one that acquires
 * takes from it afterwards. All pass on to libc, whose own calls among them do not come here. Any
 * code may use them, from the process's first instruction on. */
#include "check/tsan/thread_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#define GIVE(kind, at) oriel_tsan_give(ORIEL_TSAN_##kind, ORIEL_TSAN_AT(at), ORIEL_TSAN_CALLER)
#define TAKE(kind, at) oriel_tsan_take(ORIEL_TSAN_##kind, ORIEL_TSAN_AT(at), ORIEL_TSAN_CALLER)

void *oriel_tsan_next(_Atomic(void *) *next, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort(); /* no library of the process has the function that is called */
    atomic_store_explicit(next, found, memory_order_release);
    return found;
}

/* --- threads --- */

struct start {
    void *(*run)(void *);
    thrd_start_t run_c11;
    void *argument;
    uint64_t object;
};

static pthread_key_t end_key;

static void thread_ended(void *unused)
{
    (void)unused;
    if (oriel_tsan_hooks() == NULL)
        return;
    oriel_tsan_hooks()->end(oriel_tsan_object(ORIEL_TSAN_ENDED, (uint64_t)pthread_self()));
}

__attribute__((constructor)) static void first_thread_begin(void)
{
    pthread_key_create(&end_key, thread_ended);
    if (oriel_tsan_hooks() != NULL)
        oriel_tsan_hooks()->begin(0);
}

/* Threads of the MPI's own are not the program's. */
static bool is_of_mpi(const void *function)
{
    static const char *const beginnings[] = {"libmpi",   "libopen-", "libpmix",  "libprrte",
                                             "libucp",   "libucs",   "libuct",   "libucm",
                                             "libevent", "libhwloc", "libfabric"};
    Dl_info info;
    if (dladdr(function, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash != NULL ? slash + 1 : info.dli_fname;
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* NULL: the thread is not reported. */
static struct start *start_make(const void *function, void *argument, const void *caller)
{
    static _Atomic uint64_t numbers;
    const struct oriel_thread_hooks *hooks = oriel_tsan_hooks();
    if (hooks == NULL || oriel_tsan_is_oriel(caller) || is_of_mpi(function))
        return NULL;
    struct start *start = malloc(sizeof *start);
    if (start == NULL)
        return NULL;
    *start = (struct start){
        .argument = argument,
        .object = oriel_tsan_object(ORIEL_TSAN_THREAD, atomic_fetch_add(&numbers, 1)),
    };
    bool ours = hooks->fork(start->object);
    if (ours)
        return start;
    free(start);
    return NULL;
}

static struct start start_begin(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    pthread_setspecific(end_key, &end_key);
    oriel_tsan_hooks()->begin(start.object);
    return start;
}

static void *thread_run(void *argument)
{
    struct start start = start_begin(argument);
    return start.run(start.argument);
}

static int thread_run_c11(void *argument)
{
    struct start start = start_begin(argument);
    return start.run_c11(start.argument);
}

ORIEL_TSAN_ENTRY int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                    void *(*run)(void *), void *argument)
{
    struct start *start = start_make((void *)(uintptr_t)run, argument, ORIEL_TSAN_CALLER);
    if (start == NULL)
        return ORIEL_TSAN_NEXT(pthread_create)(thread, attributes, run, argument);
    start->run = run;
    int code = ORIEL_TSAN_NEXT(pthread_create)(thread, attributes, thread_run, start);
    if (code != 0)
        free(start);
    return code;
}

ORIEL_TSAN_ENTRY int thrd_create(thrd_t *thread, thrd_start_t run, void *argument)
{
    struct start *start = start_make((void *)(uintptr_t)run, argument, ORIEL_TSAN_CALLER);
    if (start == NULL)
        return ORIEL_TSAN_NEXT(thrd_create)(thread, run, argument);
    start->run_c11 = run;
    int code = ORIEL_TSAN_NEXT(thrd_create)(thread, thread_run_c11, start);
    if (code != thrd_success)
        free(start);
    return code;
}

/* A function that takes from the object if it returns a code with which it has acquired. */
#define ACQUIRE_IF(acquired, kind, at, name, parameters, arguments)                                \
    ORIEL_TSAN_ENTRY int name parameters                                                           \
    {                                                                                              \
        int code = ORIEL_TSAN_NEXT(name) arguments;                                                \
        if (acquired)                                                                              \
            TAKE(kind, at);                                                                        \
        return code;                                                                               \
    }

#define JOIN(name, parameters, arguments)                                                          \
    ACQUIRE_IF(code == 0, ENDED, thread, name, parameters, arguments)
JOIN(pthread_join, (pthread_t thread, void **value), (thread, value))
JOIN(pthread_tryjoin_np, (pthread_t thread, void **value), (thread, value))
JOIN(pthread_timedjoin_np, (pthread_t thread, void **value, const struct timespec *until),
     (thread, value, until))
JOIN(pthread_clockjoin_np,
     (pthread_t thread, void **value, clockid_t clock, const struct timespec *until),
     (thread, value, clock, until))
JOIN(thrd_join, (thrd_t thread, int *value), (thread, value))

/* --- locks --- */

/* A function that takes the lock when it returns 0, and one that gives it. */
#define ACQUIRE(name, parameters, arguments)                                                       \
    ACQUIRE_IF(code == 0, ADDRESS, at, name, parameters, arguments)
#define RELEASE(name, type)                                                                        \
    ORIEL_TSAN_ENTRY int name(type *at)                                                            \
    {                                                                                              \
        GIVE(ADDRESS, at);                                                                         \
        return ORIEL_TSAN_NEXT(name)(at);                                                          \
    }

/* A robust mutex whose owner has died is acquired, too. */
#define ACQUIRE_MUTEX(name, parameters, arguments)                                                 \
    ACQUIRE_IF(code == 0 || code == EOWNERDEAD, ADDRESS, at, name, parameters, arguments)
ACQUIRE_MUTEX(pthread_mutex_lock, (pthread_mutex_t * at), (at))
ACQUIRE_MUTEX(pthread_mutex_trylock, (pthread_mutex_t * at), (at))
ACQUIRE_MUTEX(pthread_mutex_timedlock, (pthread_mutex_t * at, const struct timespec *until),
              (at, until))
ACQUIRE_MUTEX(pthread_mutex_clocklock,
              (pthread_mutex_t * at, clockid_t clock, const struct timespec *until),
              (at, clock, until))
RELEASE(pthread_mutex_unlock, pthread_mutex_t)
ACQUIRE(pthread_spin_lock, (pthread_spinlock_t * at), (at))
ACQUIRE(pthread_spin_trylock, (pthread_spinlock_t * at), (at))
RELEASE(pthread_spin_unlock, pthread_spinlock_t)
ACQUIRE(mtx_lock, (mtx_t * at), (at))
ACQUIRE(mtx_trylock, (mtx_t * at), (at))
ACQUIRE(mtx_timedlock, (mtx_t * at, const struct timespec *until), (at, until))
RELEASE(mtx_unlock, mtx_t)
ACQUIRE(sem_wait, (sem_t * at), (at))
ACQUIRE(sem_trywait, (sem_t * at), (at))
ACQUIRE(sem_timedwait, (sem_t * at, const struct timespec *until), (at, until))
ACQUIRE(sem_clockwait, (sem_t * at, clockid_t clock, const struct timespec *until),
        (at, clock, until))
RELEASE(sem_post, sem_t)

/* Readers are not ordered among themselves. The write locks that this thread holds show of which
 * kind an unlock is; one that does not fit in the list is released for writers and readers. */
enum { WRITE_LOCKS = 16 };
static _Thread_local struct {
    unsigned count;
    bool overflowed;
    const pthread_rwlock_t *list[WRITE_LOCKS];
} writes;

static void write_lock_insert(const pthread_rwlock_t *at)
{
    if (writes.count < WRITE_LOCKS)
        writes.list[writes.count++] = at;
    else
        writes.overflowed = true;
}

static bool write_lock_remove(const pthread_rwlock_t *at)
{
    for (unsigned i = writes.count; i-- > 0;)
        if (writes.list[i] == at) {
            writes.list[i] = writes.list[--writes.count];
            return true;
        }
    return writes.overflowed;
}

#define ACQUIRE_RW(name, writer, parameters, arguments)                                            \
    ORIEL_TSAN_ENTRY int name parameters                                                           \
    {                                                                                              \
        int code = ORIEL_TSAN_NEXT(name) arguments;                                                \
        if (code != 0)                                                                             \
            return code;                                                                           \
        TAKE(ADDRESS, at);                                                                         \
        if (writer) {                                                                              \
            TAKE(READERS, at);                                                                     \
            write_lock_insert(at);                                                                 \
        }                                                                                          \
        return code;                                                                               \
    }
ACQUIRE_RW(pthread_rwlock_rdlock, false, (pthread_rwlock_t * at), (at))
ACQUIRE_RW(pthread_rwlock_tryrdlock, false, (pthread_rwlock_t * at), (at))
ACQUIRE_RW(pthread_rwlock_timedrdlock, false, (pthread_rwlock_t * at, const struct timespec *until),
           (at, until))
ACQUIRE_RW(pthread_rwlock_clockrdlock, false,
           (pthread_rwlock_t * at, clockid_t clock, const struct timespec *until),
           (at, clock, until))
ACQUIRE_RW(pthread_rwlock_wrlock, true, (pthread_rwlock_t * at), (at))
ACQUIRE_RW(pthread_rwlock_trywrlock, true, (pthread_rwlock_t * at), (at))
ACQUIRE_RW(pthread_rwlock_timedwrlock, true, (pthread_rwlock_t * at, const struct timespec *until),
           (at, until))
ACQUIRE_RW(pthread_rwlock_clockwrlock, true,
           (pthread_rwlock_t * at, clockid_t clock, const struct timespec *until),
           (at, clock, until))

ORIEL_TSAN_ENTRY int pthread_rwlock_unlock(pthread_rwlock_t *at)
{
    GIVE(READERS, at);
    if (write_lock_remove(at))
        GIVE(ADDRESS, at);
    return ORIEL_TSAN_NEXT(pthread_rwlock_unlock)(at);
}

/* --- conditions and barriers --- */

/* The mutex is released and acquired inside. A wait that ends by its time has acquired it, too. */
#define WAIT(name, parameters, arguments)                                                          \
    ORIEL_TSAN_ENTRY int name parameters                                                           \
    {                                                                                              \
        GIVE(ADDRESS, mutex);                                                                      \
        int code = ORIEL_TSAN_NEXT(name) arguments;                                                \
        TAKE(ADDRESS, mutex);                                                                      \
        TAKE(ADDRESS, at);                                                                         \
        return code;                                                                               \
    }
WAIT(pthread_cond_wait, (pthread_cond_t * at, pthread_mutex_t *mutex), (at, mutex))
WAIT(pthread_cond_timedwait,
     (pthread_cond_t * at, pthread_mutex_t *mutex, const struct timespec *until),
     (at, mutex, until))
WAIT(pthread_cond_clockwait,
     (pthread_cond_t * at, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
     (at, mutex, clock, until))
WAIT(cnd_wait, (cnd_t * at, mtx_t *mutex), (at, mutex))
WAIT(cnd_timedwait, (cnd_t * at, mtx_t *mutex, const struct timespec *until), (at, mutex, until))
RELEASE(pthread_cond_signal, pthread_cond_t)
RELEASE(pthread_cond_broadcast, pthread_cond_t)
RELEASE(cnd_signal, cnd_t)
RELEASE(cnd_broadcast, cnd_t)

ORIEL_TSAN_ENTRY int pthread_barrier_wait(pthread_barrier_t *at)
{
    GIVE(ADDRESS, at);
    int code = ORIEL_TSAN_NEXT(pthread_barrier_wait)(at);
    TAKE(ADDRESS, at);
    return code;
}

/* --- what is done once --- */

/* The function that this thread has last asked to call once. */
static _Thread_local struct {
    void (*run)(void);
    const void *at;
} once;

static void once_run(void)
{
    const void *at = once.at;
    once.run();
    oriel_tsan_give(ORIEL_TSAN_ONCE, ORIEL_TSAN_AT(at), NULL);
}

ORIEL_TSAN_ENTRY int pthread_once(pthread_once_t *at, void (*run)(void))
{
    once.run = run;
    once.at = at;
    int code = ORIEL_TSAN_NEXT(pthread_once)(at, once_run);
    TAKE(ONCE, at);
    return code;
}

ORIEL_TSAN_ENTRY void call_once(once_flag *at, void (*run)(void))
{
    once.run = run;
    once.at = at;
    ORIEL_TSAN_NEXT(call_once)(at, once_run);
    TAKE(ONCE, at);
}

/* Of libstdc++ and libc++abi, where the program has one of them. The program itself loads the guard
 * atomically first. */
ORIEL_TSAN_ENTRY int __cxa_guard_acquire(uint64_t *at);
ORIEL_TSAN_ENTRY int __cxa_guard_acquire(uint64_t *at)
{
    int code = ORIEL_TSAN_NEXT(__cxa_guard_acquire)(at);
    TAKE(ADDRESS, at);
    return code;
}

ORIEL_TSAN_ENTRY void __cxa_guard_release(uint64_t *at);
ORIEL_TSAN_ENTRY void __cxa_guard_release(uint64_t *at)
{
    GIVE(ADDRESS, at);
    ORIEL_TSAN_NEXT(__cxa_guard_release)(at);
}
