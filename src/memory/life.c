/* Locks the life word's mutex in the thread that starts Oriel. */
#include "memory/life.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(ORIEL_LIFE_SLEEPS == FUTEX_WAITERS && ORIEL_LIFE_DIED == FUTEX_OWNER_DIED,
               "as the kernel has them");

static pthread_key_t key;

/* The thread returns, and its process may live on. Fails without effect in a forked child. */
static void thread_ends(void *life)
{
    (void)pthread_mutex_unlock(&((struct oriel_life *)life)->mutex);
}

/* trylock, for programs with a thread sanitiser: this lock waits for none, so it must not be in the
 * order of locks. */
static bool mutex_lock_for_life(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) != 0)
        return false;
    bool is_locked = pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED) == 0 &&
                     pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) == 0 &&
                     pthread_mutex_init(mutex, &kind) == 0 && pthread_mutex_trylock(mutex) == 0;
    pthread_mutexattr_destroy(&kind);
    return is_locked;
}

void oriel_life_start(struct oriel_life *life)
{
    const bool is_locked = mutex_lock_for_life(&life->mutex);
    if (is_locked &&
        (oriel_load_relaxed(&life->word) & FUTEX_TID_MASK) == (uint32_t)syscall(SYS_gettid)) {
        if (pthread_key_create(&key, thread_ends) == 0)
            (void)pthread_setspecific(key, life);
        return;
    }
    if (is_locked) /* a C library with another layout */
        (void)pthread_mutex_unlock(&life->mutex);
    memset(life, 0, sizeof *life);
}
