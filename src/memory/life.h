/* The life word of a process, in the first page of its memory file, where other processes of the
 * node read it with one load.
 *
 *      31       30      29..0
 *   +--------+------+---------+
 *   | SLEEPS | DIED | thread  |
 *   +--------+------+---------+
 *
 * It is the word of a robust mutex, which the thread that starts Oriel locks and never unlocks. At
 * that thread's death the kernel clears thread and sets DIED; that is the format of
 * set_robust_list(2). If the thread returns before its process ends, it unlocks the mutex: the word
 * becomes 0, and from then on nothing shows there. DIED alone proves nothing: its reader checks
 * whether the process lives. SLEEPS is set by threads of the process that sleep until the memory of
 * a window changes, and cleared by the process that wakes them (sync/memory_wait.c). Kernel and C
 * library know it as the bit of a mutex with waiters. */
#ifndef ORIEL_MEMORY_LIFE_H
#define ORIEL_MEMORY_LIFE_H

#include "base/atomic.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>

#define ORIEL_LIFE_SLEEPS UINT32_C(0x80000000)
#define ORIEL_LIFE_DIED   UINT32_C(0x40000000)

struct oriel_life {
    alignas(ORIEL_CACHE_LINE) union {
        pthread_mutex_t mutex;
        _Atomic uint32_t word;
    };
    _Atomic uint32_t wakes; /* so far; wraps. Threads sleep at it (sync/memory_wait.c, M5) */
};
_Static_assert(sizeof(struct oriel_life) == ORIEL_CACHE_LINE, "alone on its cache line");

/* Locks the mutex of this process's life word, in zeroed memory. Where the kernel or the C library
 * cannot, the word never shows a death. */
void oriel_life_start(struct oriel_life *life);

#endif
