/* This process's clock and what others gave it.  The clock lies in the board, where all may read it; only this process takes
 * into it, under the lock below; its own number is raised by itself when it gives, and by others when they take all that it has
 * done.
 *
 * Numbers, argued once.  An access is complete with the number n that its process has then.  Whoever takes a clock with n or more
 * for that process must have been given it after the completion:
 *   O1  give: the clock is copied with the own number as it is, n or more for all that is complete; then the number is raised, so
 *       that what completes later has a larger one than what was given.
 *   O2  take_rank: the taker raises the other's number and takes the one before.  What the other completes afterwards reads a
 *       larger number (one word, atomic), so that it is not among what was taken.
 *   O3  moments: a moment's clock has the number that the process has, or it is made anew, so that a process never seems to know
 *       less of itself than it has completed.
 * The floor: clocks only grow, and the least of all is known to everyone.  A process that has stopped accesses nothing more, and
 * is left out. */
#include "check/order.h"

#include "base/atomic.h"
#include "base/log.h"
#include "check/finding.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ABSENT, RUNNING, STOPPED };

/* A process's clock.  known: written by the process under its lock; its own number by atomic additions of anyone. */
struct row {
    _Atomic uint32_t state;
    uint32_t unused[15];
    _Atomic oriel_tick known[];
};

/* Under ORIEL_ORDER_CLOCKS. */
struct clocks {
    _Atomic uint32_t doubtful;
    _Atomic uint32_t lost; /* something that was given found no room: who finds nothing under a key takes all that there is */
    _Atomic oriel_place rows[]; /* of the ranks of this machine; 0: of another, or not started yet */
};

/* Under a key that was given. */
struct given {
    uint32_t takers; /* 0: stays */
    uint32_t taken;
    oriel_tick clock[];
};

struct moment {
    _Atomic uint64_t references;
    uint64_t unused;
    oriel_tick clock[];
};

static struct {
    pthread_mutex_t mutex; /* of the row's growth and the cached moment */
    int rank, width;
    struct row *row; /* NULL: not started */
    struct clocks *clocks;
    oriel_place moment; /* has a reference; 0 when the clock has changed since */
} own = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = -1};

static size_t given_bytes(void)
{
    return sizeof(struct given) + (size_t)own.width * sizeof(oriel_tick);
}

static size_t moment_bytes(void)
{
    return sizeof(struct moment) + (size_t)own.width * sizeof(oriel_tick);
}

static size_t row_bytes(void)
{
    return sizeof(struct row) + (size_t)own.width * sizeof(oriel_tick);
}

static bool is_started(void)
{
    return own.row != NULL && oriel_board_is_open();
}

static oriel_tick read_tick(const _Atomic oriel_tick *tick)
{
    return atomic_load_explicit(tick, memory_order_relaxed);
}

/* --- start and stop --- */

enum oriel_status oriel_order_start(int world_rank, int world_size)
{
    struct oriel_key key = {{ORIEL_ORDER_CLOCKS, 0, 0, 0}};
    own.rank = world_rank;
    own.width = world_size;
    own.moment = 0;
    own.clocks = oriel_board_at(oriel_board_find(&key, sizeof *own.clocks + (size_t)world_size * sizeof(oriel_place), NULL));
    oriel_place place = oriel_board_allocate(row_bytes());
    if (own.clocks == NULL || place == 0)
        return oriel_fail(ORIEL_E_NO_MEM, "no room for the clock of rank %d in the checker's memory", world_rank);
    own.row = oriel_board_at(place);
    atomic_store(&own.row->known[world_rank], 1);
    atomic_store(&own.row->state, RUNNING);
    atomic_store_explicit(&own.clocks->rows[world_rank], place, memory_order_release);
    return ORIEL_OK;
}

static void drop_moment(void)
{
    oriel_order_moment_release(own.moment);
    own.moment = 0;
}

void oriel_order_stop(void)
{
    pthread_mutex_lock(&own.mutex);
    if (is_started()) {
        drop_moment();
        atomic_store_explicit(&own.row->state, STOPPED, memory_order_release);
    }
    own.row = NULL;
    pthread_mutex_unlock(&own.mutex);
}

int oriel_order_rank(void)
{
    return own.rank;
}

static struct row *row_of(int world_rank)
{
    return world_rank < 0 || world_rank >= own.width
               ? NULL
               : oriel_board_at(atomic_load_explicit(&own.clocks->rows[world_rank], memory_order_acquire));
}

bool oriel_order_is_here(int world_rank)
{
    return is_started() && row_of(world_rank) != NULL;
}

/* --- giving and taking; the own mutex is held --- */

/* O1 */
static void raise_own(void)
{
    atomic_fetch_add_explicit(&own.row->known[own.rank], 1, memory_order_relaxed);
    drop_moment();
}

static void copy_own(oriel_tick *out)
{
    for (int i = 0; i < own.width; i++)
        out[i] = read_tick(&own.row->known[i]);
}

static void learn(int rank, oriel_tick tick)
{
    if (rank == own.rank || tick <= read_tick(&own.row->known[rank]))
        return;
    atomic_store_explicit(&own.row->known[rank], tick, memory_order_relaxed);
    drop_moment();
}

static bool join_given(void *at, bool made, void *closure)
{
    struct given *given = at;
    if (made)
        given->takers = *(const uint32_t *)closure;
    for (int i = 0; i < own.width; i++) {
        oriel_tick tick = read_tick(&own.row->known[i]);
        if (tick > given->clock[i])
            given->clock[i] = tick;
    }
    return true;
}

static void give(const struct oriel_key *key, int takers, size_t len_bytes)
{
    uint32_t expected = (uint32_t)takers;
    pthread_mutex_lock(&own.mutex);
    if (is_started()) {
        if (!oriel_board_work(key, len_bytes, join_given, &expected) && len_bytes > 0)
            atomic_store(&own.clocks->lost, 1);
        raise_own();
    }
    pthread_mutex_unlock(&own.mutex);
}

void oriel_order_give(const struct oriel_key *key, int takers)
{
    give(key, takers, given_bytes());
}

void oriel_order_give_more(const struct oriel_key *key)
{
    give(key, 0, 0);
}

enum { TAKES = 1, COUNTS = 2 };

struct taking {
    uint32_t takers;
    unsigned how;
    bool made; /* nobody had given */
};

static bool take_given(void *at, bool made, void *closure)
{
    struct taking *taking = closure;
    struct given *given = at;
    taking->made = made;
    if (made)
        given->takers = taking->takers;
    for (int i = 0; (taking->how & TAKES) && i < own.width; i++)
        learn(i, given->clock[i]);
    if (taking->how & COUNTS)
        given->taken++;
    return given->takers == 0 || given->taken < given->takers;
}

/* O2 */
static void take_row(struct row *row, int rank)
{
    if (rank == own.rank)
        return;
    learn(rank, atomic_fetch_add_explicit(&row->known[rank], 1, memory_order_acq_rel));
    for (int i = 0; i < own.width; i++)
        if (i != rank)
            learn(i, read_tick(&row->known[i]));
}

static void take_all(void)
{
    for (int rank = 0; rank < own.width; rank++) {
        struct row *row = row_of(rank);
        if (row != NULL)
            take_row(row, rank);
    }
}

static bool take(const struct oriel_key *key, int takers, unsigned how)
{
    struct taking taking = {.takers = (uint32_t)takers, .how = how};
    bool found = false;
    pthread_mutex_lock(&own.mutex);
    if (is_started()) {
        found = oriel_board_work(key, takers > 0 ? given_bytes() : 0, take_given, &taking);
        if ((how & TAKES) && (!found || taking.made) && oriel_unlikely(atomic_load(&own.clocks->lost) != 0))
            take_all();
    }
    pthread_mutex_unlock(&own.mutex);
    return found;
}

bool oriel_order_take(const struct oriel_key *key)
{
    return take(key, 0, TAKES | COUNTS);
}

bool oriel_order_look(const struct oriel_key *key)
{
    return take(key, 0, TAKES);
}

void oriel_order_end(const struct oriel_key *key, int takers, bool takes)
{
    take(key, takers, takes ? TAKES | COUNTS : COUNTS);
}

void oriel_order_forget(const struct oriel_key *key)
{
    oriel_board_drop(key);
}

/* --- more than was given --- */

bool oriel_order_take_rank(int world_rank)
{
    pthread_mutex_lock(&own.mutex);
    struct row *row = is_started() ? row_of(world_rank) : NULL;
    if (row != NULL)
        take_row(row, world_rank);
    pthread_mutex_unlock(&own.mutex);
    return row != NULL;
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
    if (is_started())
        atomic_store(&own.clocks->doubtful, 1);
}

bool oriel_order_is_doubtful(void)
{
    return is_started() && atomic_load_explicit(&own.clocks->doubtful, memory_order_relaxed) != 0;
}

/* --- moments --- */

/* O3 */
static bool moment_is_current(void)
{
    const struct moment *moment = oriel_board_at(own.moment);
    return moment != NULL && moment->clock[own.rank] == read_tick(&own.row->known[own.rank]);
}

static void make_moment(void)
{
    drop_moment();
    own.moment = oriel_board_allocate(moment_bytes());
    struct moment *moment = oriel_board_at(own.moment);
    if (moment == NULL)
        return;
    atomic_store_explicit(&moment->references, 1, memory_order_relaxed);
    copy_own(moment->clock);
}

oriel_place oriel_order_moment(void)
{
    oriel_place place = 0;
    pthread_mutex_lock(&own.mutex);
    if (is_started()) {
        if (!moment_is_current())
            make_moment();
        place = own.moment;
        if (place != 0)
            atomic_fetch_add_explicit(&((struct moment *)oriel_board_at(place))->references, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&own.mutex);
    return place;
}

void oriel_order_moment_release(oriel_place place)
{
    struct moment *moment = oriel_board_at(place);
    if (moment != NULL && atomic_fetch_sub_explicit(&moment->references, 1, memory_order_acq_rel) == 1)
        oriel_board_free(place, moment_bytes());
}

const oriel_tick *oriel_order_moment_clock(oriel_place place)
{
    const struct moment *moment = oriel_board_at(place);
    return moment == NULL ? NULL : moment->clock;
}

oriel_tick oriel_order_now(void)
{
    return own.row == NULL ? ORIEL_TICK_PENDING : read_tick(&own.row->known[own.rank]);
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
    for (int rank = 0; is_started() && rank < own.width; rank++) {
        struct row *row = row_of(rank);
        if (row == NULL || atomic_load_explicit(&row->state, memory_order_acquire) != RUNNING)
            continue;
        for (int i = 0; i < own.width; i++) {
            oriel_tick tick = read_tick(&row->known[i]);
            out[i] = !any || tick < out[i] ? tick : out[i];
        }
        any = true;
    }
    if (!any)
        memset(out, 0, (size_t)own.width * sizeof *out);
}
