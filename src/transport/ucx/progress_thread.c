/* The agent's thread of the net: when it is awake, and in which order it does what.  It takes the turns of the agent's worker,
 * one thread at a time (serving); it sleeps without a limit where nothing is to be done.  workers.c starts and ends it.
 *
 * The origin's worker (N3).  A program's thread that leaves something unsent says so (is_minded) and wakes this one, which
 * goes on with it until all is sent.  While the program's threads take turns by themselves this one only looks now and then,
 * since two that poll one worker cost more than one.
 *
 * Awake or asleep.  After a message the thread stays awake for the next one, AWAKE_NS long, and lets others run meanwhile.
 * But where a rank computes on the same processor, it is that rank which runs then, for 0.1 ms and more, whatever comes: who
 * sleeps is woken at once.  So the thread sleeps as soon as it has nothing to do, and tries now and then whether it is alone.
 * Where a program's thread serves meanwhile, this one steps aside (caller_progress.c). */
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
    MIND_NS = 300000,
    ARMED_NS = 1000000,
    NAP_NS = 100000,
    ENDING_NS = 1000000000
};
enum { LOOK_LEAST_NS = 50000, LOOK_MOST_NS = 1000000, LOOK_SHARE = 32 };
enum { SPIN_NS = 20000, VAIN_MOST = 4, CROWD_NS = 40000, CROWD_LASTS = 64 };

struct turn {
    bool any;    /* something was done: there may be more soon */
    bool served; /* a message, namely */
    bool is_spinning;
    bool is_minding;     /* the origin's worker has something to send */
    bool is_armed;       /* and its descriptor tells when it can */
    bool has_minded;     /* something was sent there */
    bool was_ready;      /* a descriptor woke this thread last, and nothing was done since */
    uint64_t turns;      /* the program's, when this thread looked last */
    uint64_t busy_ns;    /* when something was done last */
    unsigned crowded;    /* so many sleeps until it is tried whether others want the processor */
    unsigned vain;       /* so often in a row nothing came while it spun */
    unsigned sleeps;     /* since then */
    unsigned vain_wakes; /* so often in a row was_ready was true at the next sleep */
    uint64_t helped;     /* as oriel_net_is_helped has left it */
};

static pthread_mutex_t serving = PTHREAD_MUTEX_INITIALIZER; /* before any other of the net's */
static _Atomic uint64_t looks_since_ns; /* what was served last before; likewise */

static bool has_ready(void)
{
    return oriel_net.ready != NULL;
}

static bool serve_ready(void)
{
    struct oriel_net_held *ready = oriel_net.ready;
    if (ready == NULL)
        return false;
    oriel_net.ready = NULL;
    oriel_net.ready_end = &oriel_net.ready;
    for (struct oriel_net_held *held = ready; held != NULL; held = held->next)
        oriel_net_serve_one(held);
    pthread_mutex_lock(&oriel_net.agent.mutex);
    while (ready != NULL) {
        struct oriel_net_held *held = ready;
        ready = held->next;
        oriel_net_release(held);
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

/* N3, with the origin's mutex held, which it gives back. */
static void go_on_sending(struct turn *turn)
{
    if (turn->turns == oriel_net.turns) {
        turn->has_minded = oriel_net_turn(&oriel_net.origin);
        if (oriel_net.any_broken)
            oriel_net_bury_peers();
        if (atomic_load_explicit(&oriel_net.origin.pending, memory_order_relaxed) != 0)
            turn->is_armed = oriel_net_arm(&oriel_net.origin);
    }
    turn->turns = oriel_net.turns;
    if (atomic_load_explicit(&oriel_net.origin.pending, memory_order_relaxed) == 0) {
        atomic_store_explicit(&oriel_net.is_minded, false, memory_order_relaxed);
        turn->is_minding = false;
    }
    pthread_mutex_unlock(&oriel_net.origin.mutex);
}

static void mind_origin(struct turn *turn)
{
    turn->is_armed = false;
    turn->has_minded = false;
    turn->is_minding = atomic_load_explicit(&oriel_net.is_minded, memory_order_relaxed);
    if (!turn->is_minding)
        return;
    struct oriel_remote_writers_slot *slot = oriel_net_guard();
    if (pthread_mutex_trylock(&oriel_net.origin.mutex) == 0)
        go_on_sending(turn);
    oriel_net_unguard(slot);
}

static bool serve_turn(bool *served)
{
    oriel_net_shun_lost();
    pthread_mutex_lock(&oriel_net.agent.mutex);
    bool any = oriel_net_turn_until(&oriel_net.agent, has_ready);
    bool is_broken = oriel_net.any_caller_broken;
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    *served = serve_ready();
    if (is_broken)
        oriel_net_bury_callers();
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
    bool any = serve_turn(served);
    pthread_mutex_unlock(&serving);
    return any;
}

/* What the look behind the arming brings is ready, which belongs to who serves. */
bool oriel_net_arm_agent(void)
{
    if (pthread_mutex_trylock(&serving) != 0)
        return false;
    pthread_mutex_lock(&oriel_net.agent.mutex);
    bool is_armed = oriel_net_arm(&oriel_net.agent) && !has_ready();
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    pthread_mutex_unlock(&serving);
    return is_armed;
}

/* --- the agent's thread --- */

/* Until the next look: who has waited for long may wait a little longer, so that this processor is not taken all the time from
 * whoever is waited for. */
static long look_ns(void)
{
    uint64_t share_ns =
        (oriel_now_ns() - atomic_load_explicit(&looks_since_ns, memory_order_relaxed)) / LOOK_SHARE;
    return share_ns < LOOK_LEAST_NS  ? LOOK_LEAST_NS
           : share_ns > LOOK_MOST_NS ? LOOK_MOST_NS
                                     : (long)share_ns;
}

/* Whoever is woken by a descriptor and finds nothing to do, again and again, naps: see sleep_a_little in reply_wait.c. */
static void sleep_until_asked(struct turn *turn)
{
    bool is_vain = turn->was_ready && ++turn->vain_wakes >= VAIN_MOST;
    turn->was_ready = false;
    if (is_vain) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        return;
    }
    if (!oriel_net_arm_agent())
        return;
    struct pollfd ready[] = {{.fd = oriel_net.agent.fd, .events = POLLIN},
                             {.fd = oriel_net.wake_fd, .events = POLLIN},
                             {.fd = turn->is_armed ? oriel_net.origin.fd : -1, .events = POLLIN}};
    bool must_look = atomic_load_explicit(&oriel_net.looks, memory_order_relaxed);
    struct timespec limit = {.tv_nsec = must_look        ? look_ns()
                                        : turn->is_armed ? ARMED_NS
                                                         : MIND_NS};
    (void)ppoll(ready, 3, must_look || turn->is_minding ? &limit : NULL, NULL);
    turn->was_ready = ready[0].revents != 0 || ready[2].revents != 0;
    if (ready[1].revents != 0)
        oriel_net_drain_wakes();
}

/* Whether it looks again at once.  As long as a sleep and its end take, it spins as well: what comes next is often there by
 * then, as after the lock of an origin that puts and unlocks.  Where it was not, some times in a row, as beside an origin that
 * needs this processor, it is tried now and then. */
static bool spins(struct turn *turn, uint64_t now_ns)
{
    if (turn->any) {
        if (turn->is_spinning && turn->served)
            turn->vain = 0;
        turn->is_spinning = turn->vain < VAIN_MOST;
    } else if (turn->is_spinning && now_ns - turn->busy_ns >= SPIN_NS) {
        turn->is_spinning = false;
        turn->vain++;
    }
    return turn->is_spinning;
}

/* Between two turns. */
static void rest(struct turn *turn)
{
    uint64_t now_ns = oriel_now_ns();
    if (turn->any || turn->has_minded) {
        turn->was_ready = false;
        turn->vain_wakes = 0;
    }
    if (turn->any)
        turn->busy_ns = now_ns;
    if (!turn->any && !turn->is_minding && oriel_net_is_helped(&turn->helped)) {
        oriel_net_step_aside();
        return;
    }
    if (spins(turn, now_ns))
        return;
    if (turn->crowded == 0 && now_ns - turn->busy_ns < AWAKE_NS) {
        sched_yield();
        if (oriel_now_ns() - now_ns >= CROWD_NS)
            turn->crowded = CROWD_LASTS;
        return;
    }
    if (turn->crowded > 0)
        turn->crowded--;
    if (turn->vain == VAIN_MOST && ++turn->sleeps % CROWD_LASTS == 0)
        turn->vain--;
    sleep_until_asked(turn);
}

/* What is still to be sent when the net stops. */
static void send_rest(void)
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
    struct turn turn = {.crowded = CROWD_LASTS};
    (void)oriel_net_is_helped(&turn.helped);
    (void)unused;
    oriel_net_in_agent = true;
    oriel_wait_untold = true;
    oriel_remote_writers_add_helper(gettid());
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    oriel_schedule_soon();
    oriel_schedule_anywhere();
    while (!atomic_load_explicit(&oriel_net.is_ending, memory_order_acquire)) {
        turn.any = oriel_net_serve_turn(&turn.served);
        mind_origin(&turn);
        rest(&turn);
    }
    send_rest();
    oriel_remote_writers_remove_helper(gettid());
    return NULL;
}
