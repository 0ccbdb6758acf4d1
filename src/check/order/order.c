/* This process's clock and what others gave it.  The clock lies in the board, where all may read it; only this process takes
 * into it, under the lock below; its own number is raised when it gives, and when others have taken all that it has done.
 *
 * Numbers, argued once.  An access is complete with the number n that its process has then.  Whoever takes a clock with n or more
 * for that process must have been given it after the completion:
 *   O1  give: the clock is copied with the own number as it is, n or more for all that is complete; then the number is raised, so
 *       that what completes later has a larger one than what was given.
 *   O2  take_rank: the taker counts in the other's row that a larger number is asked for, and takes the one that there is.  The
 *       other looks at that count before it reads its own number, and raises it where the count has changed: so what it completes
 *       once it could know of the taking has a larger number than what was taken.  What it had completed before that, the taker
 *       finds with the number that it had, or a larger one.
 *   O3  moments: a moment's clock has the number that the process has, or it is made anew, so that a process never seems to know
 *       less of itself than it has completed.
 * The floor: clocks only grow, and the least of all is known to everyone.  A process that has stopped accesses nothing more, and
 * is left out.
 * Other machines: a key has a home, the machine on whose board it stands, and what is given to it or taken from it there is so
 * before the call here returns.  So it makes no difference for O1 to O3 where a key, or a rank's row, lies (remote.h). */
#include "check/order/order.h"

#include "base/log.h"
#include "check/order/clock_snapshots.h"
#include "check/order/own_clock.h"
#include "check/report/finding.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex; /* of the row's growth, the kept moment and the scratch */
    int rank, width;
    oriel_tick *scratch;               /* a clock on its way */
    const struct oriel_order_far *far; /* NULL: no other machine is reached */
} own = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = -1};

struct oriel_order_own oriel_order_own;

static bool is_started(void)
{
    return oriel_order_own.row != NULL && oriel_shm_is_open();
}

/* --- start and stop --- */

enum oriel_status oriel_order_start(int world_rank, int world_size)
{
    own.rank = world_rank;
    own.width = world_size;
    own.far = NULL;
    oriel_moments_start(world_size);
    atomic_store(&oriel_order_own.asked, 0);
    own.scratch = calloc((size_t)world_size, sizeof *own.scratch);
    oriel_order_own.row =
        own.scratch != NULL && oriel_ranks_open() ? oriel_ranks_add(world_rank) : NULL;
    if (oriel_order_own.row != NULL) {
        oriel_order_own.number = &oriel_order_own.row->known[world_rank];
        return ORIEL_OK;
    }
    free(own.scratch);
    own.scratch = NULL;
    return oriel_fail(ORIEL_E_NO_MEM, "no room for the clock of rank %d in the checker's memory",
                      world_rank);
}

void oriel_order_span(const struct oriel_order_far *far)
{
    own.far = far;
}

void oriel_order_stop(void)
{
    pthread_mutex_lock(&own.mutex);
    if (is_started()) {
        oriel_moments_drop();
        atomic_store_explicit(&oriel_order_own.row->state, ORIEL_RANK_STOPPED,
                              memory_order_release);
    }
    oriel_order_own.row = NULL;
    own.far = NULL;
    free(own.scratch);
    own.scratch = NULL;
    pthread_mutex_unlock(&own.mutex);
}

int oriel_order_rank(void)
{
    return own.rank;
}

bool oriel_order_is_here(int world_rank)
{
    return is_started() && oriel_rank_at(world_rank) != NULL;
}

bool oriel_order_reaches(int world_rank)
{
    return oriel_order_is_here(world_rank) ||
           (is_started() && own.far != NULL && world_rank >= 0 && world_rank < own.width);
}

uint64_t oriel_order_home(int world_rank)
{
    return own.far == NULL ? 0 : own.far->home(world_rank);
}

static bool is_elsewhere(const struct oriel_key *key)
{
    return key->words[0] >> ORIEL_ORDER_HOME_SHIFT != 0;
}

/* --- giving and taking; the own mutex is held --- */

/* Where only one thread calls here, it needs no lock. */
static inline bool several_threads(void)
{
    return oriel_unlikely(oriel_check_several || oriel_check_watches);
}

static inline void raise_number(void)
{
    if (several_threads())
        atomic_fetch_add_explicit(oriel_order_own.number, 1, memory_order_relaxed);
    else
        oriel_order_own_raise();
}

/* O1 */
static void raise_own(void)
{
    raise_number();
    oriel_moments_drop();
}

void oriel_order_raise_as_asked(void)
{
    uint64_t asked = atomic_load_explicit(&oriel_order_own.row->asked, memory_order_acquire);
    raise_number();
    atomic_store_explicit(&oriel_order_own.asked, asked, memory_order_release);
}

static void copy_own(oriel_tick *out)
{
    for (int i = 0; i < own.width; i++)
        out[i] = oriel_rank_tick(oriel_order_own.row, i);
}

static oriel_tick *empty_scratch(void)
{
    return memset(own.scratch, 0, (size_t)own.width * sizeof *own.scratch);
}

static void learn(const oriel_tick *ticks)
{
    bool news = false;
    for (int i = 0; i < own.width; i++)
        if (i != own.rank && ticks[i] > oriel_rank_tick(oriel_order_own.row, i)) {
            atomic_store_explicit(&oriel_order_own.row->known[i], ticks[i], memory_order_relaxed);
            news = true;
        }
    if (!news)
        return;
    atomic_fetch_add_explicit(&oriel_order_own.news, 1, memory_order_relaxed);
    oriel_moments_drop();
}

static void give(const struct oriel_key *key, int takers, bool more)
{
    pthread_mutex_lock(&own.mutex);
    if (is_started()) {
        copy_own(own.scratch);
        if (oriel_unlikely(is_elsewhere(key)))
            own.far->give(key, (uint32_t)takers, more, own.scratch);
        else
            oriel_given_join(key, (uint32_t)takers, more, own.scratch);
        raise_own();
    }
    pthread_mutex_unlock(&own.mutex);
}

void oriel_order_give(const struct oriel_key *key, int takers)
{
    give(key, takers, false);
}

void oriel_order_give_more(const struct oriel_key *key)
{
    give(key, 0, true);
}

static void take_all(void)
{
    oriel_tick *ticks = empty_scratch();
    oriel_ranks_take_all(own.rank, ticks);
    if (own.far != NULL)
        own.far->take_all(ticks);
    learn(ticks);
}

static bool take(const struct oriel_key *key, int takers, unsigned how)
{
    bool found = false;
    bool made = false;
    bool lost = false;
    pthread_mutex_lock(&own.mutex);
    if (is_started()) {
        oriel_tick *ticks = empty_scratch();
        if (oriel_unlikely(is_elsewhere(key))) {
            found = own.far->take(key, (uint32_t)takers, how, ticks, &made, &lost);
        } else {
            found = oriel_given_take(key, (uint32_t)takers, how, ticks, &made);
            lost = oriel_given_was_lost();
        }
        if (found && (how & ORIEL_GIVEN_TAKES))
            learn(ticks);
        if ((how & ORIEL_GIVEN_TAKES) && (!found || made) && oriel_unlikely(lost))
            take_all();
    }
    pthread_mutex_unlock(&own.mutex);
    return found;
}

bool oriel_order_take(const struct oriel_key *key)
{
    return take(key, 0, ORIEL_GIVEN_TAKES | ORIEL_GIVEN_COUNTS);
}

bool oriel_order_look(const struct oriel_key *key)
{
    return take(key, 0, ORIEL_GIVEN_TAKES);
}

void oriel_order_end(const struct oriel_key *key, int takers, bool takes)
{
    take(key, takers, takes ? ORIEL_GIVEN_TAKES | ORIEL_GIVEN_COUNTS : ORIEL_GIVEN_COUNTS);
}

void oriel_order_forget(const struct oriel_key *key)
{
    if (is_elsewhere(key))
        own.far->forget(key);
    else
        oriel_shm_drop(key);
}

uint32_t oriel_order_count(const struct oriel_key *key, uint32_t more)
{
    return is_elsewhere(key) ? own.far->count(key, more) : oriel_given_count(key, more);
}

/* --- more than was given --- */

bool oriel_order_take_rank(int world_rank)
{
    bool taken = false;
    pthread_mutex_lock(&own.mutex);
    if (is_started() && world_rank != own.rank) {
        oriel_tick *ticks = empty_scratch();
        taken = oriel_rank_take(world_rank, ticks) ||
                (own.far != NULL && own.far->take_rank(world_rank, ticks));
        learn(ticks);
    }
    pthread_mutex_unlock(&own.mutex);
    return taken || (world_rank == own.rank && is_started());
}

void oriel_order_unknown_begin(const char *call)
{
    char text[96];
    pthread_mutex_lock(&own.mutex);
    bool works = is_started();
    if (works)
        raise_own();
    pthread_mutex_unlock(&own.mutex);
    if (works && call != NULL) {
        snprintf(text, sizeof text, "calls not modelled: %s", call);
        oriel_finding_count(text);
    }
}

void oriel_order_unknown_end(void)
{
    pthread_mutex_lock(&own.mutex);
    if (is_started())
        take_all();
    pthread_mutex_unlock(&own.mutex);
}

void oriel_order_doubt(void)
{
    if (!is_started() || oriel_given_is_doubtful())
        return;
    oriel_given_doubt();
    oriel_finding_count(
        "messages that cannot be told apart: from then on each orders all that its sender did");
    if (own.far != NULL)
        own.far->doubt(false);
}

/* The rank accesses nothing more that is recorded, so it no longer holds back the floor. */
void oriel_order_leave(void)
{
    pthread_mutex_lock(&own.mutex);
    bool works = is_started();
    if (works) {
        oriel_given_leave();
        atomic_store_explicit(&oriel_order_own.row->state, ORIEL_RANK_STOPPED,
                              memory_order_release);
    }
    pthread_mutex_unlock(&own.mutex);
    if (works && own.far != NULL)
        own.far->doubt(true);
}

bool oriel_order_is_doubtful(void)
{
    return is_started() && oriel_given_is_doubtful();
}

/* --- clocks that others keep --- */

/* O1.  The moment is found to be of before by its number (O3). */
void oriel_order_raise(void)
{
    raise_number();
}

void oriel_order_learn(const oriel_tick *clock)
{
    bool threads = several_threads();
    if (threads)
        pthread_mutex_lock(&own.mutex);
    if (is_started())
        learn(clock);
    if (threads)
        pthread_mutex_unlock(&own.mutex);
}

uint64_t oriel_order_news(void)
{
    return atomic_load_explicit(&oriel_order_own.news, memory_order_relaxed);
}

/* --- moments --- */

oriel_shm_offset oriel_order_moment(void)
{
    oriel_shm_offset place = 0;
    pthread_mutex_lock(&own.mutex);
    if (is_started()) {
        oriel_order_heed();
        place = oriel_moment_of_row(oriel_order_own.row, own.rank); /* O3 */
    }
    pthread_mutex_unlock(&own.mutex);
    return place;
}

const oriel_tick *oriel_order_moment_clock(oriel_shm_offset place)
{
    if (place == ORIEL_MOMENT_NOW)
        return oriel_order_own.row == NULL ? NULL : (const oriel_tick *)oriel_order_own.row->known;
    return oriel_moment_clock(place);
}

oriel_tick oriel_order_now(void)
{
    if (oriel_unlikely(oriel_order_own.row == NULL))
        return ORIEL_TICK_PENDING;
    return oriel_order_own_now();
}

void oriel_order_clock(oriel_tick *out)
{
    pthread_mutex_lock(&own.mutex);
    if (is_started())
        copy_own(out);
    pthread_mutex_unlock(&own.mutex);
}

void oriel_order_floor(oriel_tick *out)
{
    bool any = false;
    const struct oriel_order_far *far = own.far;
    if (is_started())
        oriel_ranks_floor(out, &any);
    if (any && far != NULL)
        far->floor(out);
    if (!any)
        memset(out, 0, (size_t)own.width * sizeof *out);
}
