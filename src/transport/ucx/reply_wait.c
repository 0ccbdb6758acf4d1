/* Waiting for answers, and detection of dead peers. The waiting thread executes the origin's turns
 * itself: it spins, yields, then sleeps on UCX's descriptor. It sleeps a millisecond at a time,
 * because the host's work does not wake it. A thread that waits for an event instead serves other
 * processes until it sleeps (waiter_progress.c). */
#include "transport/ucx/internal.h"

#include "base/options.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum {
    YIELD_NS = 1000000,
    SLEEP_MS = 1,
    NAP_NS = 100000,
    WATCH_NS = 100000000,
    PING_LEAST_NS = 100000000,
    YIELD_LEAST = 4, /* number of turns between two yields */
    YIELD_MOST = 32,
    LONG_YIELD_NS = 2000, /* a longer yield let another thread run */
    PROGRESS_NS = 50000,
    HELP_NS = 200000, /* for a wait for an event: several round trips */
    /* a longer interval between two checks does not count as silence: no thread waited */
    GAP_NS = 200000000,
};

void oriel_net_leave(void)
{
    bool must_wake = false;
    if (atomic_load_explicit(&oriel_net.origin.pending, memory_order_relaxed) != 0)
        must_wake = !atomic_exchange_explicit(&oriel_net.is_minded, true, memory_order_relaxed) &&
                    !oriel_net_in_agent; /* N3 */
    if (must_wake)
        oriel_net_wake_agent();
    pthread_mutex_unlock(&oriel_net.origin.mutex); /* the last access: the net may stop now */
}

static uint64_t answered_before; /* oriel_net.answered before this turn */

static bool has_answer(void)
{
    return oriel_net.answered != answered_before;
}

/* A turn of a program's thread. Returns true if there was any work. */
static bool origin_turn(void)
{
    oriel_net.turns++;
    oriel_net_send_coalesced();
    answered_before = oriel_net.answered;
    bool any = oriel_net_turn_until(&oriel_net.origin, has_answer);
    if (oriel_net.any_broken)
        oriel_net_lose_broken_peers();
    return any;
}

static bool origin_progress(void)
{
    if (!oriel_net_enter(&oriel_net.origin))
        return false;
    bool any = origin_turn();
    oriel_net_leave();
    return any;
}

void oriel_net_progress(void)
{
    (void)origin_progress();
}

/* Measures a peer's silence while a thread waits for it, after a turn has received all messages.
 * Pings it regularly, and finally loses it (N4). */
static void peer_check_silence(struct oriel_net_peer *peer, uint64_t now_ns)
{
    uint64_t every_ns =
        oriel_net.timeout_ns / 8 > PING_LEAST_NS ? oriel_net.timeout_ns / 8 : PING_LEAST_NS;
    uint64_t gap_ns = now_ns - peer->judged_ns;
    peer->judged_ns = now_ns;
    if (peer->is_lost)
        return;
    peer->silence_ns += gap_ns < GAP_NS ? gap_ns : GAP_NS;
    if (peer->silence_ns >= oriel_net.timeout_ns) {
        char why[sizeof peer->why];
        snprintf(why, sizeof why,
                 "process %d on another node has not answered for %d s (ORIEL_TIMEOUT)",
                 (int)peer->identity.pid, (int)(oriel_net.timeout_ns / 1000000000));
        oriel_net_lose_peer(peer, why);
    } else if (now_ns - peer->pinged_ns >= every_ns && oriel_net_connect_peer(peer)) {
        peer->pinged_ns = now_ns;
        oriel_net_send_to(peer, ORIEL_WIRE_PING, 0, &(struct oriel_net_bytes){.pieces = 0});
    }
}

enum oriel_status oriel_net_check(struct oriel_net_peer *peer)
{
    struct oriel_remote_writers_slot *slot = oriel_net_guard();
    pthread_mutex_lock(&oriel_net.origin.mutex);
    (void)origin_turn();
    peer_check_silence(peer, oriel_now_ns());
    bool is_lost = peer->is_lost;
    oriel_net_leave();
    oriel_net_unguard(slot);
    return is_lost ? oriel_fail(ORIEL_E_PEER, "%s", peer->why) : ORIEL_OK;
}

/* Returns true if UCX reports work. While a connection is being established it always does, because
 * the socket is writable. There is no work until the other side has run, possibly on this
 * processor. So after a useless wake the thread naps. */
static bool origin_sleep(bool is_useless)
{
    if (is_useless) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        return false;
    }
    pthread_mutex_lock(&oriel_net.origin.mutex);
    bool is_armed = oriel_net_arm(&oriel_net.origin);
    oriel_net_leave();
    if (!is_armed)
        return true;
    struct pollfd ready = {.fd = oriel_net.origin.fd, .events = POLLIN};
    return poll(&ready, 1, SLEEP_MS) > 0;
}

/* The same as oriel_net_check for the peer of a request that is not done. */
static void request_check_peer(struct oriel_net_request *request)
{
    pthread_mutex_lock(&oriel_net.origin.mutex);
    if (!atomic_load_explicit(&request->done, memory_order_acquire))
        peer_check_silence(request->peer, oriel_now_ns());
    oriel_net_leave();
}

static bool request_is_done(struct oriel_net_request *request)
{
    return atomic_load_explicit(&request->done, memory_order_acquire);
}

static enum oriel_status request_status(const struct oriel_net_request *request)
{
    if (request->status == ORIEL_OK)
        return ORIEL_OK;
    return oriel_fail(request->status, "%s",
                      request->status == ORIEL_E_PEER ? request->peer->why
                                                      : "no memory for a message to another node");
}

static enum oriel_status await_sleeping(struct oriel_net_request *request,
                                        const struct oriel_watch *watch, uint64_t since_ns)
{
    uint64_t watched_ns = oriel_now_ns();
    for (bool is_published = false, is_ready = false;;) {
        is_ready = !origin_progress() && is_ready;
        if (!request_is_done(request))
            request_check_peer(request);
        enum oriel_status status = ORIEL_OK;
        if (!is_published)
            oriel_wait_publish(watch, since_ns, &is_published);
        if (watch != NULL && !request_is_done(request) && oriel_now_ns() - watched_ns >= WATCH_NS) {
            status = watch->check(watch->context);
            watched_ns = oriel_now_ns();
        }
        if (request_is_done(request) || status != ORIEL_OK) {
            oriel_wait_unpublish(is_published);
            return request_is_done(request) ? request_status(request) : status;
        }
        oriel_wait_progress();
        is_ready = origin_sleep(is_ready);
    }
}

/* A yield without effect takes about as long as a turn, and delays an answer. So yields become rare
 * while no other thread wants the processor. Counts the waiting thread's turns. */
static void yield_sometimes(unsigned *turns)
{
    static _Thread_local unsigned every = YIELD_LEAST;
    if (++*turns % every != 0)
        return;
    uint64_t before_ns = oriel_now_ns();
    sched_yield();
    if (oriel_now_ns() - before_ns >= LONG_YIELD_NS)
        every = YIELD_LEAST;
    else if (every < YIELD_MOST)
        every *= 2;
}

static enum oriel_status await_spinning(struct oriel_net_request *request,
                                        const struct oriel_watch *watch)
{
    uint64_t begin_ns = oriel_now_ns();
    uint64_t spin_ns = (uint64_t)oriel_options()->spin_ns;
    uint64_t progress_ns = spin_ns + PROGRESS_NS;
    for (unsigned turns = 0;;) {
        oriel_net_progress();
        if (request_is_done(request))
            return request_status(request);
        uint64_t waited_ns = oriel_now_ns() - begin_ns;
        if (waited_ns >= spin_ns + YIELD_NS)
            return await_sleeping(request, watch, begin_ns);
        if (waited_ns < spin_ns)
            continue;
        if (waited_ns >= progress_ns) {
            oriel_wait_progress();
            progress_ns = waited_ns + PROGRESS_NS;
        }
        yield_sometimes(&turns);
    }
}

enum oriel_status oriel_net_await(struct oriel_net_request *request,
                                  const struct oriel_watch *watch)
{
    if (request_is_done(request))
        return request_status(request);
    uint64_t begin_ns = oriel_wait_time_begin(watch);
    enum oriel_status status = await_spinning(request, watch);
    oriel_wait_time_end(watch, begin_ns);
    return status;
}

void oriel_net_serve_until(bool (*holds)(const void *context), const void *context)
{
    oriel_net_progress(); /* what others may await of this process leaves before it waits */
    oriel_net_help_begin(ORIEL_NET_SERVES);
    uint64_t begin_ns = oriel_now_ns();
    uint64_t spin_ns = (uint64_t)oriel_options()->spin_ns;
    for (unsigned turns = 0;;) {
        oriel_net_help();
        uint64_t waited_ns = oriel_now_ns() - begin_ns;
        if (holds(context) || waited_ns >= HELP_NS)
            break;
        if (waited_ns >= spin_ns)
            yield_sometimes(&turns);
    }
    oriel_net_help_end();
}

struct awaited_word {
    const _Atomic uint32_t *word;
    uint32_t at_least;
};

static bool word_has_reached(const void *context)
{
    const struct awaited_word *awaited = context;
    return oriel_wait_reached(oriel_load_acquire(awaited->word), ORIEL_WAIT_SIGNALLED,
                              awaited->at_least);
}

enum oriel_status oriel_net_await_word(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                       uint32_t at_least, const struct oriel_watch *watch)
{
    const struct awaited_word awaited = {word, at_least};
    if (!word_has_reached(&awaited)) {
        uint64_t begin_ns = oriel_wait_time_begin(watch);
        oriel_net_serve_until(word_has_reached, &awaited);
        oriel_wait_time_end(watch, begin_ns);
    }
    return oriel_wait(word, sleepers, ORIEL_WAIT_SIGNALLED, at_least, watch);
}
