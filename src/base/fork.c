/* Registers fork handlers under one mutex, which no handler locks. If two threads register the same
 * set at once, it is registered only once. */
#include "base/fork.h"

#include <pthread.h>

static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

enum oriel_status oriel_fork_register(_Atomic bool *watches, void (*before)(void),
                                      void (*in_parent)(void), void (*in_child)(void))
{
    if (atomic_load_explicit(watches, memory_order_acquire))
        return ORIEL_OK;
    pthread_mutex_lock(&registering);
    if (!atomic_load_explicit(watches, memory_order_relaxed) &&
        pthread_atfork(before, in_parent, in_child) == 0)
        atomic_store_explicit(watches, true, memory_order_release);
    pthread_mutex_unlock(&registering);
    return atomic_load_explicit(watches, memory_order_acquire)
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_NO_MEM, "no memory for a fork handler");
}
