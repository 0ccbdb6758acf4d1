/* A program's thread that waits, in the host or for another node, serves incoming messages
 * meanwhile, so no other thread must be woken for them.
 *
 * If such a helper serves, or has served since the last check, the agent's thread steps aside. It
 * sleeps HELPED_NS at a time, so it notices a helper that is delayed. It sleeps at a gate: a
 * descriptor that forwards the worker's events only while it is open. Waits are short and frequent.
 * A thread that is woken at the end of each would take the processor from the rank that continues.
 * So a helper closes the gate, and opens it at the end, which wakes no thread if no message has
 * arrived.
 * A0: closes the gate
 * A1: is_aside = true (seq_cst)
 * A2: opens the gate if no thread is helping (seq_cst); sleeps at it
 * B1: is_helping = true
 * B2: closes the gate if the agent's thread is aside
 * H1: is_helping = false (seq_cst)
 * H2: opens the gate if the agent's thread is aside (seq_cst)
 *
 * One thread helps at a time, and B2 and H2 are in its order. When no thread helps and the agent's
 * thread sleeps aside, the gate is open. Its last close was either a B2, whose own H2 opens it
 * unless that H2 does not see A1, or A0. In the remaining cases H2 of the last helper has seen A1
 * and opens the gate, or it preceded A1 in the single order of these operations. Then H1 also
 * preceded A1, and A2 sees that no thread helps. The thread that opens the gate arms the worker
 * first: earlier messages are found there and served, or the agent's thread is woken for them. A
 * gate that is open while a thread helps costs a useless wake, nothing else, so B1 and B2 need no
 * order. A helper leaves follow-up work to the agent's thread and wakes it (H2). */
#include "transport/ucx/internal.h"

#include "base/delay.h"

#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { HELPED_NS = 4000000, TURNS_HELPED = 4 };

static _Atomic bool is_helping;
static _Atomic bool is_aside;
/* number of helper turns that handled something, and of starts of serving helpers */
static _Atomic uint64_t helped;

/* --- the gate --- */

bool oriel_net_gate_create(void)
{
    struct epoll_event nothing = {.events = 0};
    oriel_net.gate_fd = epoll_create1(EPOLL_CLOEXEC);
    if (oriel_net.gate_fd < 0)
        return false;
    if (epoll_ctl(oriel_net.gate_fd, EPOLL_CTL_ADD, oriel_net.agent.fd, &nothing) == 0)
        return true;
    close(oriel_net.gate_fd);
    return false;
}

static bool gate_set(uint32_t events)
{
    struct epoll_event event = {.events = events};
    return epoll_ctl(oriel_net.gate_fd, EPOLL_CTL_MOD, oriel_net.agent.fd, &event) == 0;
}

/* False if an event is already there, or there is no memory. */
static bool gate_open(void)
{
    return oriel_net_arm_agent() && gate_set(EPOLLIN);
}

/* --- the helper --- */

static _Thread_local bool may_help;
static _Thread_local bool has_helped; /* since it started: there may be more to do than before */

void oriel_net_help_begin(enum oriel_net_helper helper)
{
    if (oriel_net_in_agent)
        return;
    may_help = oriel_net_is_started() && !oriel_net.service.has_threads;
    has_helped = false;
    if (!may_help || helper == ORIEL_NET_ASKS)
        return;
    if (helper == ORIEL_NET_SERVES)
        atomic_fetch_add_explicit(&helped, 1, memory_order_relaxed);
    atomic_store_explicit(&is_helping, true, memory_order_relaxed); /* B1 */
    oriel_delay();
    if (atomic_load_explicit(&is_aside, memory_order_relaxed))
        (void)gate_set(0); /* B2 */
}

/* The program's thread acts as the agent's during this call: waits for its answers count as those
 * of other processes. */
static bool helper_turn(void)
{
    bool served, was_internal = oriel_wait_is_internal;
    oriel_net_in_agent = true;
    oriel_wait_is_internal = true;
    bool any = oriel_net_serve_turn(&served);
    if (any) {
        atomic_fetch_add_explicit(&helped, 1, memory_order_relaxed);
        has_helped = true;
    }
    oriel_wait_is_internal = was_internal;
    oriel_net_in_agent = false;
    return any;
}

/* Serves messages that have arrived meanwhile, but only a limited number. */
static bool gate_open_after_turns(void)
{
    bool is_open = gate_open();
    for (unsigned i = 0; !is_open && i < TURNS_HELPED; i++) {
        (void)helper_turn();
        is_open = gate_open();
    }
    return is_open;
}

void oriel_net_help_end(void)
{
    if (oriel_net_in_agent || !may_help)
        return;
    may_help = false;
    atomic_store_explicit(&is_helping, false, memory_order_seq_cst); /* H1 */
    oriel_delay();
    if ((atomic_load_explicit(&is_aside, memory_order_seq_cst) && !gate_open_after_turns()) ||
        (has_helped && (atomic_load_explicit(&oriel_net.looks, memory_order_relaxed) ||
                        atomic_load_explicit(&oriel_net.is_minded, memory_order_relaxed))))
        oriel_net_wake_agent(); /* H2 */
}

void oriel_net_help(void)
{
    /* additional turns, per thread, because the next message often follows soon */
    static _Thread_local unsigned more;
    if (!may_help)
        return;
    may_help = false; /* no recursion from here */
    for (unsigned i = 0; i <= more; i++)
        more = helper_turn() ? TURNS_HELPED : more;
    more -= more > 0;
    may_help = true;
}

/* --- the agent's thread --- */

bool oriel_net_is_helped(uint64_t *seen)
{
    uint64_t before = *seen;
    *seen = atomic_load_explicit(&helped, memory_order_relaxed);
    return *seen != before;
}

void oriel_net_drain_wakes(void)
{
    uint64_t count;
    if (read(oriel_net.wake_fd, &count, sizeof count) < 0)
        return; /* the descriptor now belongs to the program */
}

static bool must_not_sleep(void)
{
    return !atomic_load_explicit(&is_helping, memory_order_seq_cst) &&
           (atomic_load_explicit(&oriel_net.looks, memory_order_relaxed) || !gate_open());
}

void oriel_net_step_aside(void)
{
    struct pollfd woken[] = {{.fd = oriel_net.wake_fd, .events = POLLIN},
                             {.fd = oriel_net.gate_fd, .events = POLLIN}};
    struct timespec limit = {.tv_nsec = HELPED_NS};
    oriel_delay();
    (void)gate_set(0);                                            /* A0 */
    atomic_store_explicit(&is_aside, true, memory_order_seq_cst); /* A1 */
    oriel_delay();
    if (!must_not_sleep() && ppoll(woken, 2, &limit, NULL) > 0 && woken[0].revents != 0) /* A2 */
        oriel_net_drain_wakes();
    atomic_store_explicit(&is_aside, false, memory_order_relaxed);
}
