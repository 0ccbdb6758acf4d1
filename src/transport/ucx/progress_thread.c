/* The agent's thread of the net: when it is awake, and the order of its work. It executes the turns
 * of the agent's worker, one thread at a time (serving). It sleeps without a limit if there is
 * nothing to do.
 *
 * The origin's worker (N3). A program's thread that leaves unsent messages sets is_minded and wakes
 * this thread, which continues until all are sent. While the program's threads execute turns
 * themselves, this thread only checks occasionally, because two threads that poll one worker cost
 * more than one.
 *
 * Awake or asleep. After a message the thread stays awake for the next one, for AWAKE_NS, and
 * yields meanwhile. But if a rank computes on the same processor, that rank then runs for 0.1 ms
 * or more, regardless of messages, whereas a sleeping thread is woken at once. So in that case the
 * thread sleeps as soon as it has nothing to do, and tests occasionally whether it is alone. While
 * a program's thread serves, this thread steps aside (waiter_progress.c). */
#include "transport/ucx/internal.h"

#include "base/schedule.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

_Thread_local bool oriel_net_in_agent;

enum {
    AWAKE_NS = 30000,
    SEND_CHECK_NS = 300000,
    ARMED_NS = 1000000,
    NAP_NS = 100000,
    ENDING_NS = 1000000000
};
enum { LOOK_LEAST_NS = 50000, LOOK_MOST_NS = 1000000, LOOK_SHARE = 32 };
enum { SPIN_NS = 20000, USELESS_MAX = 4, LONG_YIELD_NS = 40000, SLEEPS_UNTIL_PROBE = 64 };

struct thread_state {
    bool any;    /* something was done: there may be more soon */
    bool served; /* a message was served */
    bool is_spinning;
    bool has_unsent;  /* the origin's worker has something to send */
    bool is_armed;    /* its descriptor signals when it can */
    bool has_sent;    /* something was sent there */
    bool was_ready;   /* the last wake was by a descriptor, and nothing was done since */
    uint64_t turns;   /* the program's turns at the last check */
    uint64_t busy_ns; /* time of the last work */
    /* number of sleeps until the next test whether other threads want the processor */
    unsigned sleeps_until_probe;
    unsigned useless_spins; /* number of consecutive spins in which nothing arrived */
    unsigned sleeps;        /* since then */
    unsigned useless_wakes; /* number of consecutive sleeps at which was_ready was true */
    uint64_t helped;        /* last value of oriel_net_is_helped */
};

/* locked before any other mutex of the net */
static pthread_mutex_t serving = PTHREAD_MUTEX_INITIALIZER;
/* time of the last message served before the looks; protected by serving */
static _Atomic uint64_t looks_since_ns;

static bool has_ready_messages(void)
{
    return oriel_net.ready != NULL;
}

static bool ready_messages_serve(void)
{
    struct oriel_net_message *ready = oriel_net.ready;
    if (ready == NULL)
        return false;
    oriel_net.ready = NULL;
    oriel_net.ready_end = &oriel_net.ready;
    for (struct oriel_net_message *held = ready; held != NULL; held = held->next)
        oriel_net_serve_one(held);
    pthread_mutex_lock(&oriel_net.agent.mutex);
    while (ready != NULL) {
        struct oriel_net_message *held = ready;
        ready = held->next;
        oriel_net_free_message(held);
    }
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    return true;
}

struct oriel_remote_writers_slot *oriel_net_guard(void)
{
    return oriel_net_in_agent && oriel_net.writers != NULL
               ? oriel_remote_writers_enter(oriel_net.writers)
               : NULL;
}

void oriel_net_unguard(struct oriel_remote_writers_slot *slot)
{
    if (slot != NULL)
        oriel_remote_writers_leave(slot);
}

/* N3, with the origin's mutex held, which it releases. */
static void origin_send_more(struct thread_state *state)
{
    if (state->turns == oriel_net.turns) {
        state->has_sent = oriel_net_turn(&oriel_net.origin);
        if (oriel_net.any_broken)
            oriel_net_lose_broken_peers();
        if (atomic_load_explicit(&oriel_net.origin.pending, memory_order_relaxed) != 0)
            state->is_armed = oriel_net_arm(&oriel_net.origin);
    }
    state->turns = oriel_net.turns;
    if (atomic_load_explicit(&oriel_net.origin.pending, memory_order_relaxed) == 0) {
        atomic_store_explicit(&oriel_net.is_minded, false, memory_order_relaxed);
        state->has_unsent = false;
    }
    pthread_mutex_unlock(&oriel_net.origin.mutex);
}

static void origin_send_outstanding(struct thread_state *state)
{
    state->is_armed = false;
    state->has_sent = false;
    state->has_unsent = atomic_load_explicit(&oriel_net.is_minded, memory_order_relaxed);
    if (!state->has_unsent)
        return;
    struct oriel_remote_writers_slot *slot = oriel_net_guard();
    if (pthread_mutex_trylock(&oriel_net.origin.mutex) == 0)
        origin_send_more(state);
    oriel_net_unguard(slot);
}

static bool serve_one_turn(bool *served)
{
    oriel_net_lose_senders();
    pthread_mutex_lock(&oriel_net.agent.mutex);
    bool any = oriel_net_turn_until(&oriel_net.agent, has_ready_messages);
    bool is_broken = oriel_net.any_sender_broken;
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    *served = ready_messages_serve();
    if (is_broken)
        oriel_net_lose_broken_senders();
    if (*served || oriel_net.looks)
        oriel_net.looks = oriel_net.service.look != NULL && oriel_net.service.look();
    if (*served && oriel_net.looks)
        atomic_store_explicit(&looks_since_ns, oriel_now_ns(), memory_order_relaxed);
    oriel_net_send_answers();
    return any || *served;
}

bool oriel_net_serve_turn(bool *served)
{
    *served = false;
    if (pthread_mutex_trylock(&serving) != 0)
        return false;
    bool any = serve_one_turn(served);
    pthread_mutex_unlock(&serving);
    return any;
}

/* The poll after the arming may make messages ready, which only the serving thread may handle. */
bool oriel_net_arm_agent(void)
{
    if (pthread_mutex_trylock(&serving) != 0)
        return false;
    pthread_mutex_lock(&oriel_net.agent.mutex);
    bool is_armed = oriel_net_arm(&oriel_net.agent) && !has_ready_messages();
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    pthread_mutex_unlock(&serving);
    return is_armed;
}

/* --- the agent's thread --- */

/* Time until the next look: after a long wait the interval grows, so this processor is not
 * constantly taken from the awaited process. */
static long look_interval_ns(void)
{
    uint64_t share_ns =
        (oriel_now_ns() - atomic_load_explicit(&looks_since_ns, memory_order_relaxed)) / LOOK_SHARE;
    return share_ns < LOOK_LEAST_NS  ? LOOK_LEAST_NS
           : share_ns > LOOK_MOST_NS ? LOOK_MOST_NS
                                     : (long)share_ns;
}

/* If descriptors repeatedly wake the thread without work, it naps instead: see origin_sleep in
 * reply_wait.c. */
static void progress_thread_sleep(struct thread_state *state)
{
    bool is_useless = state->was_ready && ++state->useless_wakes >= USELESS_MAX;
    state->was_ready = false;
    if (is_useless) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        return;
    }
    if (!oriel_net_arm_agent())
        return;
    struct pollfd ready[] = {{.fd = oriel_net.agent.fd, .events = POLLIN},
                             {.fd = oriel_net.wake_fd, .events = POLLIN},
                             {.fd = state->is_armed ? oriel_net.origin.fd : -1, .events = POLLIN}};
    bool must_look = atomic_load_explicit(&oriel_net.looks, memory_order_relaxed);
    struct timespec limit = {.tv_nsec = must_look         ? look_interval_ns()
                                        : state->is_armed ? ARMED_NS
                                                          : SEND_CHECK_NS};
    (void)ppoll(ready, 3, must_look || state->has_unsent ? &limit : NULL, NULL);
    state->was_ready = ready[0].revents != 0 || ready[2].revents != 0;
    if (ready[1].revents != 0)
        oriel_net_drain_wakes();
}

/* Returns true if the thread polls again at once. It spins for as long as a sleep and a wake take:
 * often the next message arrives meanwhile, such as after the lock of an origin that puts and
 * unlocks. If that fails several times in a row, as next to an origin that needs this processor, it
 * is tried only occasionally. */
static bool keeps_spinning(struct thread_state *state, uint64_t now_ns)
{
    if (state->any) {
        if (state->is_spinning && state->served)
            state->useless_spins = 0;
        state->is_spinning = state->useless_spins < USELESS_MAX;
    } else if (state->is_spinning && now_ns - state->busy_ns >= SPIN_NS) {
        state->is_spinning = false;
        state->useless_spins++;
    }
    return state->is_spinning;
}

/* Between two turns. */
static void progress_thread_rest(struct thread_state *state)
{
    uint64_t now_ns = oriel_now_ns();
    if (state->any || state->has_sent) {
        state->was_ready = false;
        state->useless_wakes = 0;
    }
    if (state->any)
        state->busy_ns = now_ns;
    if (!state->any && !state->has_unsent && oriel_net_is_helped(&state->helped)) {
        oriel_net_step_aside();
        return;
    }
    if (keeps_spinning(state, now_ns))
        return;
    if (state->sleeps_until_probe == 0 && now_ns - state->busy_ns < AWAKE_NS) {
        sched_yield();
        if (oriel_now_ns() - now_ns >= LONG_YIELD_NS)
            state->sleeps_until_probe = SLEEPS_UNTIL_PROBE;
        return;
    }
    if (state->sleeps_until_probe > 0)
        state->sleeps_until_probe--;
    if (state->useless_spins == USELESS_MAX && ++state->sleeps % SLEEPS_UNTIL_PROBE == 0)
        state->useless_spins--;
    progress_thread_sleep(state);
}

/* Sends the remaining messages when the net stops. */
static void send_remaining(void)
{
    uint64_t begin_ns = oriel_now_ns();
    while (atomic_load_explicit(&oriel_net.agent.pending, memory_order_relaxed) != 0 &&
           oriel_now_ns() - begin_ns < ENDING_NS) {
        bool served;
        (void)oriel_net_serve_turn(&served);
        sched_yield();
    }
}

void *oriel_net_serve(void *unused)
{
    struct thread_state state = {.sleeps_until_probe = SLEEPS_UNTIL_PROBE};
    (void)oriel_net_is_helped(&state.helped);
    (void)unused;
    oriel_net_in_agent = true;
    oriel_wait_is_internal = true;
    oriel_remote_writers_add_helper(gettid());
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    oriel_schedule_short_slices();
    oriel_schedule_all_processors();
    while (!atomic_load_explicit(&oriel_net.is_ending, memory_order_acquire)) {
        state.any = oriel_net_serve_turn(&state.served);
        origin_send_outstanding(&state);
        progress_thread_rest(&state);
    }
    send_remaining();
    oriel_remote_writers_remove_helper(gettid());
    return NULL;
}
