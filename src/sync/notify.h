/* Counters of notifications: how origins tell a target that their operations have taken effect. A
 * window has them if its info key oriel_notifications asks for some (notify.c has the argument). */
#ifndef ORIEL_SYNC_NOTIFY_H
#define ORIEL_SYNC_NOTIFY_H

#include "base/delay.h"
#include "window/window.h"

/* The calling process's own side. */
struct oriel_notifications {
    uint32_t count;
    bool has_threads;               /* that may be in MPI calls at one time */
    struct oriel_notify_area *area; /* in its memory file */
    /* by number: notifications that calls have taken so far, without those that this process sent
     * itself */
    _Atomic uint64_t taken[];
};

/* At creation, with the window's control words: count counters of this rank, none for 0. */
enum oriel_status oriel_notifications_make(struct oriel_window *window, uint32_t count,
                                           bool has_threads);
void oriel_notifications_close(struct oriel_window *window);

/* ORIEL_E_ARG unless a target on this node has a counter of that number. */
enum oriel_status oriel_notify_check(const struct oriel_window *window, int32_t target, int number);

/* The counters of a target on this node that has some. */
static inline struct oriel_notify_area *oriel_notify_area(const struct oriel_window *window,
                                                          int32_t target)
{
    return (struct oriel_notify_area *)(window->control_bases[target] +
                                        oriel_window_control(window, target)->notify_offset);
}

void oriel_notify_wake(struct oriel_notify_area *area, struct oriel_notify_counter *counter);

/* N2, and the load of N3: whether there are sleepers. The caller's operations have taken effect. */
static inline bool oriel_notify_raise(struct oriel_notify_counter *counter)
{
    oriel_delay();
    atomic_fetch_add_explicit(&counter->arrived, 1, memory_order_seq_cst); /* N2 */
    oriel_delay();
    return oriel_unlikely(atomic_load_explicit(&counter->sleepers, memory_order_seq_cst) != 0);
}

/* N2 and N3. */
static inline void oriel_notify_signal(struct oriel_notify_area *area, uint32_t number)
{
    struct oriel_notify_counter *counter = &area->counters[number];
    if (oriel_notify_raise(counter))
        oriel_notify_wake(area, counter); /* N3 */
}

/* Whether a notification of the calling process is for itself, and no other thread waits for it. */
static inline bool oriel_notify_is_own(const struct oriel_window *window, int32_t target)
{
    return target == window->rank && !window->notifications->has_threads;
}

/* Then it is one less that was taken (P5). */
static inline void oriel_notify_own(struct oriel_notifications *own, uint32_t number)
{
    const uint64_t before = atomic_load_explicit(&own->taken[number], memory_order_relaxed);
    atomic_store_explicit(&own->taken[number], before - 1, memory_order_relaxed);
}

/* Takes count notifications of the calling rank's counter if that many are there, and returns
 * whether. number is valid. */
static inline bool oriel_notify_take(struct oriel_notifications *own, uint32_t number,
                                     uint32_t count)
{
    _Atomic uint64_t *taken = &own->taken[number];
    uint64_t before = atomic_load_explicit(taken, memory_order_acquire); /* modulo 2^64, P5 */
    do {
        if (atomic_load_explicit(&own->area->counters[number].arrived, memory_order_acquire) -
                before <
            count) /* T1 */
            return false;
        oriel_delay();
    } while (!atomic_compare_exchange_weak_explicit(
        taken, &before, before + count, memory_order_acq_rel, memory_order_acquire)); /* T2 */
    return true;
}

/* For a program that polls, after it has found none: yields to other ranks, and checks every 100 ms
 * whether all ranks of the window live. */
enum oriel_status oriel_notify_missed(struct oriel_window *window);

/* Waits for count notifications, and takes them. ORIEL_E_PEER if a rank of the window has died. */
enum oriel_status oriel_notify_wait(struct oriel_window *window, uint32_t number, uint32_t count);

/* Waits for one of any of n > 0 counters, and takes it; *index is its place in numbers. */
enum oriel_status oriel_notify_wait_any(struct oriel_window *window, int n, const int numbers[],
                                        int *index);

#endif
