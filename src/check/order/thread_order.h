/* The order of this process's threads, where the program is compiled with -fsanitize=thread on all
 * ranks: src/check/tsan then sees what its threads do to order each other. Each thread has a slot:
 * a row and a number of its own in all clocks (clock.h). Threads without a slot share the first
 * one: those that the program did not create, and those for which there is no room.
 *
 * A thread gives its clock to an object (thread_hooks.h) before it releases what others may wait
 * for, and takes the object's clock after it has acquired. An object may stand for several: then
 * more order is assumed, and a conflict may be missed. */
#ifndef ORIEL_CHECK_ORDER_THREAD_ORDER_H
#define ORIEL_CHECK_ORDER_THREAD_ORDER_H

#include "check/common/clock.h"
#include "check/order/thread_hooks.h"

extern const struct oriel_thread_hooks oriel_thread_hooks __attribute__((visibility("hidden")));

/* Before oriel_order_start: from now on each thread has its own order. */
void oriel_threads_track(void);

static inline bool oriel_threads_are_tracked(void)
{
    return __builtin_expect(oriel_clock_shift != 0, 0);
}

/* After oriel_order_start, by the thread that has the first slot. */
void oriel_threads_start(void);
void oriel_threads_stop(void);

/* Gives this thread a slot if it is the program's and has none yet. */
void oriel_threads_enter_slowly(void);
static inline void oriel_threads_enter(void)
{
    if (oriel_threads_are_tracked())
        oriel_threads_enter_slowly();
}

/* The number of this thread's slot, below ORIEL_CLOCK_THREADS. */
unsigned oriel_threads_slot(void);

#endif
