/* This process's own clock, inline for the paths of single operations. O1 and O2 are in order.c.
 * Where the order of threads is tracked, each thread has a clock of its own (thread_order.h).
 * Functions that use oriel_order_own itself are for jobs without. */
#ifndef ORIEL_CHECK_ORDER_OWN_CLOCK_H
#define ORIEL_CHECK_ORDER_OWN_CLOCK_H

#include "base/atomic.h"
#include "base/delay.h"
#include "check/common/reentrancy.h"
#include "check/order/rank_clocks.h"

extern struct oriel_order_own {
    struct oriel_rank *row;     /* NULL: not started */
    _Atomic oriel_tick *number; /* the own number in the row */
    _Atomic uint64_t news;      /* how often a clock was merged with effect */
    _Atomic uint64_t asked; /* value of the row's request counter at the last raise for a request */
    int index;              /* of the own number in clocks */
} oriel_order_own __attribute__((visibility("hidden")));

/* The clock of this thread; NULL: oriel_order_own. Only where the order of threads is tracked. */
extern _Thread_local struct oriel_order_own *oriel_order_thread
    __attribute__((visibility("hidden")));

/* Opens a row with the first number of the thread in that slot. False: no room. */
bool oriel_order_own_open(struct oriel_order_own *mine, int world_rank, unsigned slot);

static inline struct oriel_order_own *oriel_order_mine(void)
{
    if (oriel_likely(oriel_clock_shift == 0) || oriel_order_thread == NULL)
        return &oriel_order_own;
    return oriel_order_thread;
}

/* Raises the own number because others have requested a larger one. */
void oriel_order_raise_as_asked(struct oriel_order_own *own);

static inline bool oriel_order_is_not_asked(const struct oriel_order_own *own)
{
    uint64_t asked = atomic_load_explicit(&own->row->asked, memory_order_acquire);
    return oriel_likely(asked == atomic_load_explicit(&own->asked, memory_order_acquire));
}

static inline bool oriel_order_has_no_request(void)
{
    return oriel_order_is_not_asked(&oriel_order_own);
}

/* O2. Each of several threads raises it before it proceeds. */
static inline void oriel_order_raise_if_requested(struct oriel_order_own *own)
{
    if (!oriel_order_is_not_asked(own))
        oriel_order_raise_as_asked(own);
}

static inline oriel_tick oriel_order_own_number(void)
{
    return atomic_load_explicit(oriel_order_own.number, memory_order_relaxed);
}

/* oriel_order_now, once started. */
static inline oriel_tick oriel_order_own_now(void)
{
    oriel_order_raise_if_requested(&oriel_order_own);
    return oriel_order_own_number();
}

/* oriel_order_raise where no other thread raises. */
static inline void oriel_order_own_raise(void)
{
    oriel_tick before = oriel_order_own_number();
    oriel_delay();
    atomic_store_explicit(oriel_order_own.number, before + 1, memory_order_relaxed);
}

#endif
