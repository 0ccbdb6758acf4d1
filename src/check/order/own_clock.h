/* This process's own clock, inline for the paths of single operations. O1 and O2 are in order.c. */
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
} oriel_order_own __attribute__((visibility("hidden")));

/* Raises the own number because others have requested a larger one. */
void oriel_order_raise_as_asked(void);

static inline bool oriel_order_has_no_request(void)
{
    uint64_t asked = atomic_load_explicit(&oriel_order_own.row->asked, memory_order_acquire);
    return oriel_likely(asked ==
                        atomic_load_explicit(&oriel_order_own.asked, memory_order_acquire));
}

/* O2. Each of several threads raises it before it proceeds. */
static inline void oriel_order_raise_if_requested(void)
{
    if (!oriel_order_has_no_request())
        oriel_order_raise_as_asked();
}

static inline oriel_tick oriel_order_own_number(void)
{
    return atomic_load_explicit(oriel_order_own.number, memory_order_relaxed);
}

/* oriel_order_now, once started. */
static inline oriel_tick oriel_order_own_now(void)
{
    oriel_order_raise_if_requested();
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
