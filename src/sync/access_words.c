/* Access words are made when they are first needed.  They are published in the control before the window has them, so before
 * any of them is set (L1 in lock.c): who sees none of a process knows what it would see in words that say NONE throughout.
 * lock.c and pscw.c call.
 *
 * Threads that lock for the first time at once: the mutex lets one make the words.  Who still reads the words of the group finds
 * ABSENT, with which no step begins (L1 expects NONE), comes here and finds the words made.  A thread that has set a word has
 * it from the window's words, and later loads of that pointer give no older one. */
#include "sync/access_words.h"

#include "base/delay.h"
#include "memory/file.h"

#include <pthread.h>

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static enum oriel_status make(struct oriel_window *window)
{
    uint64_t offset;
    if (oriel_window_access(window) != window->group->absent)
        return ORIEL_OK;
    if (oriel_file_alloc((uint64_t)window->n, 2 * ORIEL_CACHE_LINE, &offset) != ORIEL_OK)
        return ORIEL_E_NO_MEM; /* the host cannot take over a window that exists */
    atomic_store_explicit(&window->control->access_offset, offset, memory_order_release);
    oriel_delay();
    atomic_store_explicit(&window->access, (_Atomic uint8_t *)(oriel_file_base() + offset),
                          memory_order_release);
    return ORIEL_OK;
}

enum oriel_status oriel_access_make(struct oriel_window *window)
{
    pthread_mutex_lock(&making);
    enum oriel_status status = make(window);
    pthread_mutex_unlock(&making);
    return status;
}

void oriel_access_close(struct oriel_window *window)
{
    uint64_t offset = atomic_load_explicit(&window->control->access_offset, memory_order_relaxed);
    if (offset != 0)
        oriel_file_free(offset);
}
