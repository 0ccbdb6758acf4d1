/* A handler that repeatedly interrupts calls (no SA_RESTART), as profilers and user-level thread
 * schedulers do. A call that restarts its time limit after each signal would never end. But the
 * signals end, so the call continues, and many_signals_end detects that. For unit and protocol
 * tests. */
#ifndef ORIEL_TESTS_UNIT_MANY_SIGNALS_H
#define ORIEL_TESTS_UNIT_MANY_SIGNALS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static timer_t many_signals_timer;
static _Atomic unsigned many_signals_left;

static inline void many_signals_set(long every_us)
{
    const struct timespec every = {.tv_sec = every_us / 1000000,
                                   .tv_nsec = every_us % 1000000 * 1000};
    const struct itimerspec wanted = {.it_interval = every, .it_value = every};
    timer_settime(many_signals_timer, 0, &wanted, NULL);
}

static inline void many_signals_handle(int signal)
{
    (void)signal;
    if (atomic_load(&many_signals_left) > 0 && atomic_fetch_sub(&many_signals_left, 1) == 1)
        many_signals_set(0);
}

/* Sends signals to this process's initial thread, at most `most` of them. */
static inline void many_signals_begin(long every_us, unsigned most)
{
    const struct sigaction action = {.sa_handler = many_signals_handle};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    atomic_store(&many_signals_left, most);
    sigaction(SIGUSR2, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &many_signals_timer);
    many_signals_set(every_us);
}

/* Whether signals were left. */
static inline bool many_signals_end(void)
{
    timer_delete(many_signals_timer);
    return atomic_load(&many_signals_left) > 0;
}

#endif
