/* Access words are created when they are first needed. They are published in the control block
 * before the window uses them, so before any of them is set (L1 in lock.c). A rank that finds no
 * words of a process treats them as NONE throughout.
 *
 * Several threads may lock for the first time at once; the mutex lets one create the words. A
 * thread that still reads the group's words finds ABSENT, with which no step begins (L1 expects
 * NONE). It enters oriel_access_words_create and finds the words created. A thread that has set a
 * word loaded the pointer to the window's words, and later loads of that pointer return no older
 * one. */
#include "sync/access_words.h"

#include "base/delay.h"
#include "memory/file.h"

#include <pthread.h>

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static enum oriel_status access_words_create(struct oriel_window *window)
{
    uint64_t offset;
    if (oriel_window_access(window) != window->group->absent)
        return ORIEL_OK;
    if (oriel_file_alloc((uint64_t)window->n, 2 * ORIEL_CACHE_LINE, &offset) != ORIEL_OK)
        return ORIEL_E_NO_MEM; /* not ORIEL_E_OTHER: the host cannot take over an existing window */
    atomic_store_explicit(&window->control->access_offset, offset, memory_order_release);
    oriel_delay();
    atomic_store_explicit(&window->access, (_Atomic uint8_t *)(oriel_file_base() + offset),
                          memory_order_release);
    return ORIEL_OK;
}

enum oriel_status oriel_access_words_create(struct oriel_window *window)
{
    pthread_mutex_lock(&making);
    enum oriel_status status = access_words_create(window);
    pthread_mutex_unlock(&making);
    return status;
}

void oriel_access_words_close(struct oriel_window *window)
{
    uint64_t offset = atomic_load_explicit(&window->control->access_offset, memory_order_relaxed);
    if (offset != 0)
        oriel_file_free(offset);
}
