/* What src/check/tsan reports of the order of threads to thread_order.c, in the calling thread and
 * at any time. Order goes by objects: a mutex, an atomic word, a parallel region, each named by a
 * number, such as its address. Inside MPI calls these functions do nothing. */
#ifndef ORIEL_CHECK_ORDER_THREAD_HOOKS_H
#define ORIEL_CHECK_ORDER_THREAD_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct oriel_thread_hooks {
    /* before a release: what the thread has done is ordered before what a taker will do */
    void (*give)(uint64_t object);
    void (*take)(uint64_t object); /* after the acquire */
    /* for a load that follows: takes before the next access or release */
    void (*take_soon)(uint64_t object);
    /* like give, for the object that a new thread takes when it begins; false: inside an MPI call,
     * whose thread is not the program's */
    bool (*fork)(uint64_t object);
    void (*begin)(uint64_t object); /* 0: the thread that started the process */
    /* The thread goes on as a new one that has taken the object, since another could as well
     * execute what follows. Stores what it was. False: no room, and nothing changed. */
    bool (*branch)(uint64_t object, void **before);
    /* gives, and is again what it was before the branch */
    void (*rejoin)(uint64_t object, void *before);
    void (*end)(uint64_t object); /* gives; the thread makes no further calls */
};

#endif
