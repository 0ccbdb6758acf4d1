/* This process's clock and the clocks that others give it. The clock is in the checker's shared
 * memory, where every process of the node may read it. Only this process merges clocks into it,
 * under the mutex below. Its own number is raised when it gives its clock, and after another
 * process has taken its whole row. Where the order of threads is tracked, all this holds for each
 * thread as for a process: it has a row, a number, and a place in every clock.
 *
 * Argument for the numbers. A process completes an access with its current number n. A process that
 * takes a clock with n or more for that process must have been given this clock after the
 * completion:
 * O1: give: the clock is copied with the own number as it is, which is n or more for every complete
 *     access. Then the number is raised, so a later completion has a larger number than the copy.
 * O2: take_rank: the taker counts up the request counter in the other process's row, and takes the
 *     number that is there. The other process looks at the counter before it reads its own number,
 *     and raises the number if the counter has changed. So an access that it completes once it
 *     could know of the taking has a larger number than the taken one. An access that it completed
 *     before has at most the taken number.
 * O3: snapshots: a clock snapshot has the process's current number and its count of merges, or a
 *     new one is made. A merge raises the count after the numbers. So a process never seems to know
 *     less than it does, of itself or of others.
 * O4: clocks of objects: a signal handler may give or take one while its thread is anywhere in the
 *     checker, with any lock. So these two steps use no lock, and no data but numbers that they
 *     raise, each by one atomic operation, in the object's clock and in the own row. A handler that
 *     comes between two such operations, another thread, or the thread that has the mutex, only
 *     raises numbers too. What a giver knew is in the object's clock when its step ends, hence
 *     before its release. A taker that sees half of another step knows more than it must: order is
 *     added, none is lost. A row stays mapped after oriel_order_stop.
 *
 * The floor: clocks only grow, so every process knows the minimum of all clocks. A process that has
 * stopped makes no more accesses and is left out.
 *
 * Other nodes: a key has a home, the node in whose shared memory its entry is. A give to it or a
 * take from it has happened there before the call here returns. So O1 to O3 hold wherever a key or
 * a rank's row is (remote.h). */
#include "check/order/order.h"

#include "base/delay.h"
#include "base/log.h"
#include "check/order/clock_snapshots.h"
#include "check/order/own_clock.h"
#include "check/order/thread_order.h"
#include "check/report/finding.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex; /* of the cached snapshot and scratch */
    int rank, width;
    oriel_tick *scratch;                     /* buffer for a clock in transfer */
    const struct oriel_order_remote *remote; /* NULL: no other node is reached */
} own = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = -1};

struct oriel_order_own oriel_order_own;
_Thread_local struct oriel_order_own *oriel_order_thread;

static bool is_started(void)
{
    return oriel_order_mine()->row != NULL && oriel_shm_is_open();
}

/* --- start and stop --- */

bool oriel_order_own_open(struct oriel_order_own *mine, int world_rank, unsigned slot)
{
    mine->index = oriel_clock_index(world_rank, slot);
    atomic_store(&mine->asked, 0);
    mine->row = oriel_ranks_add(mine->index);
    if (mine->row != NULL)
        mine->number = &mine->row->known[mine->index];
    return mine->row != NULL;
}

enum oriel_status oriel_order_start(int world_rank, int world_size)
{
    own.rank = world_rank;
    own.width = world_size << oriel_clock_shift;
    own.remote = NULL;
    oriel_clock_snapshots_start(own.width);
    own.scratch = calloc((size_t)own.width, sizeof *own.scratch);
    if (own.scratch != NULL && oriel_ranks_open() &&
        oriel_order_own_open(&oriel_order_own, world_rank, 0))
        return ORIEL_OK;
    free(own.scratch);
    own.scratch = NULL;
    return oriel_fail(ORIEL_E_NO_MEM, "no room for the clock of rank %d in the checker's memory",
                      world_rank);
}

void oriel_order_remote_set(const struct oriel_order_remote *remote)
{
    own.remote = remote;
}

void oriel_order_stop(void)
{
    oriel_order_thread = NULL;
    oriel_shm_mutex_lock(&own.mutex);
    if (is_started()) {
        oriel_clock_snapshots_drop();
        atomic_store_explicit(&oriel_order_own.row->state, ORIEL_RANK_STOPPED,
                              memory_order_release);
    }
    oriel_order_own.row = NULL;
    own.remote = NULL;
    free(own.scratch);
    own.scratch = NULL;
    oriel_shm_mutex_unlock(&own.mutex);
}

int oriel_order_rank(void)
{
    return own.rank;
}

uint32_t oriel_order_index(void)
{
    return (uint32_t)oriel_order_mine()->index;
}

bool oriel_order_is_here(int world_rank)
{
    return is_started() && oriel_rank_at(world_rank) != NULL;
}

bool oriel_order_reaches(int world_rank)
{
    return oriel_order_is_here(world_rank) ||
           (is_started() && own.remote != NULL && world_rank >= 0 &&
            world_rank < oriel_shm_world_size());
}

uint64_t oriel_order_home(int world_rank)
{
    return own.remote == NULL ? 0 : own.remote->home(world_rank);
}

static bool key_is_remote(const struct oriel_key *key)
{
    return key->words[0] >> ORIEL_ORDER_HOME_SHIFT != 0;
}

/* --- give and take; the own mutex is held --- */

/* A single thread needs no lock here. */
static inline bool several_threads(void)
{
    return oriel_unlikely(oriel_check_many_threads || oriel_check_watches ||
                          oriel_threads_are_tracked());
}

static inline void own_number_raise(void)
{
    if (several_threads())
        atomic_fetch_add_explicit(oriel_order_mine()->number, oriel_clock_step(),
                                  memory_order_relaxed);
    else
        oriel_order_own_raise();
}

void oriel_order_raise_as_asked(struct oriel_order_own *mine)
{
    uint64_t asked = atomic_load_explicit(&mine->row->asked, memory_order_acquire);
    own_number_raise();
    atomic_store_explicit(&mine->asked, asked, memory_order_release);
}

static void own_clock_copy(oriel_tick *out)
{
    for (int i = 0; i < own.width; i++)
        out[i] = oriel_rank_tick(oriel_order_mine()->row, i);
}

static oriel_tick *scratch_clear(void)
{
    return memset(own.scratch, 0, (size_t)own.width * sizeof *own.scratch);
}

/* O4. Returns whether the number was smaller. */
static bool number_raise_to(_Atomic oriel_tick *number, oriel_tick tick)
{
    oriel_tick found = atomic_load_explicit(number, memory_order_relaxed);
    while (found < tick) {
        oriel_delay();
        if (atomic_compare_exchange_weak_explicit(number, &found, tick, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

/* The own row has learnt. */
static void own_news_count(struct oriel_order_own *mine)
{
    atomic_fetch_add_explicit(&mine->news, 1, memory_order_release);
}

/* Elsewhere only the owner of the mutex writes the row. */
static bool own_learn(struct oriel_rank *row, int index, oriel_tick tick)
{
    if (oriel_unlikely(oriel_threads_are_tracked()))
        return number_raise_to(&row->known[index], tick);
    if (tick <= oriel_rank_tick(row, index))
        return false;
    atomic_store_explicit(&row->known[index], tick, memory_order_relaxed);
    return true;
}

static void own_clock_merge(const oriel_tick *ticks)
{
    bool news = false;
    struct oriel_order_own *mine = oriel_order_mine();
    for (int i = 0; i < own.width; i++)
        if (i != mine->index && own_learn(mine->row, i, ticks[i]))
            news = true;
    if (news)
        own_news_count(mine);
}

static void clock_give(const struct oriel_key *key, int takers, bool more)
{
    oriel_threads_enter();
    oriel_shm_mutex_lock(&own.mutex);
    if (is_started()) {
        own_clock_copy(own.scratch);
        if (oriel_unlikely(key_is_remote(key)))
            own.remote->give(key, (uint32_t)takers, more, own.scratch);
        else
            oriel_given_join(key, (uint32_t)takers, more, own.scratch);
        own_number_raise(); /* O1 */
    }
    oriel_shm_mutex_unlock(&own.mutex);
}

void oriel_order_give_to(_Atomic oriel_tick *clock)
{
    const struct oriel_rank *row = oriel_order_mine()->row;
    if (row == NULL || !oriel_shm_is_open())
        return;
    for (int i = 0; i < own.width; i++)
        number_raise_to(&clock[i], oriel_rank_tick(row, i));
    own_number_raise(); /* O1 */
}

void oriel_order_merge_from(const _Atomic oriel_tick *clock)
{
    bool news = false;
    struct oriel_order_own *mine = oriel_order_mine();
    struct oriel_rank *row = mine->row;
    if (row == NULL || !oriel_shm_is_open())
        return;
    for (int i = 0; i < own.width; i++)
        if (i != mine->index &&
            number_raise_to(&row->known[i], atomic_load_explicit(&clock[i], memory_order_relaxed)))
            news = true;
    if (news)
        own_news_count(mine);
}

void oriel_order_give(const struct oriel_key *key, int takers)
{
    clock_give(key, takers, false);
}

void oriel_order_give_again(const struct oriel_key *key)
{
    clock_give(key, 0, true);
}

static void all_clocks_take(void)
{
    oriel_tick *ticks = scratch_clear();
    oriel_ranks_take_all(oriel_order_mine()->index, ticks);
    if (own.remote != NULL)
        own.remote->take_all(ticks);
    own_clock_merge(ticks);
}

static bool clock_take(const struct oriel_key *key, int takers, unsigned how)
{
    bool found = false;
    bool made = false;
    bool lost = false;
    oriel_shm_mutex_lock(&own.mutex);
    if (is_started()) {
        oriel_tick *ticks = scratch_clear();
        if (oriel_unlikely(key_is_remote(key))) {
            found = own.remote->take(key, (uint32_t)takers, how, ticks, &made, &lost);
        } else {
            found = oriel_given_take(key, (uint32_t)takers, how, ticks, &made);
            lost = oriel_given_was_lost();
        }
        if (found && (how & ORIEL_GIVEN_TAKES))
            own_clock_merge(ticks);
        if ((how & ORIEL_GIVEN_TAKES) && (!found || made) && oriel_unlikely(lost))
            all_clocks_take();
    }
    oriel_shm_mutex_unlock(&own.mutex);
    return found;
}

bool oriel_order_take(const struct oriel_key *key)
{
    return clock_take(key, 0, ORIEL_GIVEN_TAKES | ORIEL_GIVEN_COUNTS);
}

bool oriel_order_peek(const struct oriel_key *key)
{
    return clock_take(key, 0, ORIEL_GIVEN_TAKES);
}

void oriel_order_end(const struct oriel_key *key, int takers, bool takes)
{
    clock_take(key, takers, takes ? ORIEL_GIVEN_TAKES | ORIEL_GIVEN_COUNTS : ORIEL_GIVEN_COUNTS);
}

void oriel_order_forget(const struct oriel_key *key)
{
    if (key_is_remote(key))
        own.remote->forget(key);
    else
        oriel_shm_drop(key);
}

uint32_t oriel_order_count(const struct oriel_key *key, uint32_t more)
{
    return key_is_remote(key) ? own.remote->count(key, more) : oriel_given_count(key, more);
}

/* --- more than was given --- */

bool oriel_order_take_rank(int world_rank)
{
    bool taken = false;
    oriel_shm_mutex_lock(&own.mutex);
    if (is_started() && world_rank != own.rank) {
        oriel_tick *ticks = scratch_clear();
        taken = oriel_rank_take(world_rank, ticks) ||
                (own.remote != NULL && own.remote->take_rank(world_rank, ticks));
        own_clock_merge(ticks);
    }
    oriel_shm_mutex_unlock(&own.mutex);
    return taken || (world_rank == own.rank && is_started());
}

void oriel_order_take_threads(uint32_t slots)
{
    if (slots == 0)
        return;
    oriel_shm_mutex_lock(&own.mutex);
    if (is_started()) {
        oriel_tick *ticks = scratch_clear();
        for (uint32_t left = slots; left != 0; left &= left - 1)
            oriel_row_take(oriel_clock_index(own.rank, (oriel_tick)__builtin_ctz(left)), ticks);
        own_clock_merge(ticks);
    }
    oriel_shm_mutex_unlock(&own.mutex);
}

void oriel_order_unknown_begin(const char *call)
{
    char text[96];
    oriel_shm_mutex_lock(&own.mutex);
    bool works = is_started();
    if (works)
        own_number_raise(); /* O1 */
    oriel_shm_mutex_unlock(&own.mutex);
    if (works && call != NULL) {
        snprintf(text, sizeof text, "calls not modelled: %s", call);
        oriel_finding_count(text);
    }
}

void oriel_order_unknown_end(void)
{
    oriel_shm_mutex_lock(&own.mutex);
    if (is_started())
        all_clocks_take();
    oriel_shm_mutex_unlock(&own.mutex);
}

void oriel_order_set_doubtful(void)
{
    if (!is_started() || oriel_given_is_doubtful())
        return;
    oriel_given_set_doubtful();
    oriel_finding_count(
        "messages with an unknown order: a receive is ordered after all that its sender did");
    if (own.remote != NULL)
        own.remote->doubt(false);
}

/* The rank records no more accesses, so it no longer holds back the floor. */
void oriel_order_leave(void)
{
    oriel_shm_mutex_lock(&own.mutex);
    bool works = is_started();
    if (works) {
        oriel_given_leave();
        atomic_store_explicit(&oriel_order_own.row->state, ORIEL_RANK_STOPPED,
                              memory_order_release); /* threads' rows: conflicts are off */
    }
    oriel_shm_mutex_unlock(&own.mutex);
    if (works && own.remote != NULL)
        own.remote->doubt(true);
}

bool oriel_order_is_doubtful(void)
{
    return is_started() && oriel_given_is_doubtful();
}

/* --- clocks of word_clocks.c --- */

/* O1 */
void oriel_order_raise(void)
{
    own_number_raise();
}

void oriel_order_merge(const oriel_tick *clock)
{
    bool threads = several_threads();
    if (threads)
        oriel_shm_mutex_lock(&own.mutex);
    if (is_started())
        own_clock_merge(clock);
    if (threads)
        oriel_shm_mutex_unlock(&own.mutex);
}

uint64_t oriel_order_merge_count(void)
{
    return atomic_load_explicit(&oriel_order_mine()->news, memory_order_relaxed);
}

/* --- snapshots --- */

oriel_shm_offset oriel_order_snapshot(void)
{
    oriel_shm_offset place = 0;
    oriel_shm_mutex_lock(&own.mutex);
    if (is_started()) {
        struct oriel_order_own *mine = oriel_order_mine();
        oriel_order_raise_if_requested(mine);
        place = oriel_clock_snapshot_of(mine); /* O3 */
    }
    oriel_shm_mutex_unlock(&own.mutex);
    return place;
}

const oriel_tick *oriel_order_snapshot_clock(oriel_shm_offset place)
{
    if (place == ORIEL_SNAPSHOT_LIVE) {
        const struct oriel_order_own *mine = oriel_order_mine();
        return mine->row == NULL ? NULL : (const oriel_tick *)mine->row->known;
    }
    return oriel_clock_snapshot_clock(place);
}

oriel_tick oriel_order_now(void)
{
    struct oriel_order_own *mine = oriel_order_mine();
    if (oriel_unlikely(mine->row == NULL))
        return ORIEL_TICK_PENDING;
    oriel_order_raise_if_requested(mine);
    return atomic_load_explicit(mine->number, memory_order_relaxed);
}

oriel_tick oriel_order_known(int world_rank)
{
    const struct oriel_order_own *mine = oriel_order_mine();
    return mine->row == NULL ? ORIEL_TICK_PENDING : oriel_rank_tick(mine->row, world_rank);
}

void oriel_order_clock(oriel_tick *out)
{
    oriel_shm_mutex_lock(&own.mutex);
    if (is_started())
        own_clock_copy(out);
    oriel_shm_mutex_unlock(&own.mutex);
}

void oriel_order_floor(oriel_tick *out)
{
    bool any = false;
    const struct oriel_order_remote *remote = own.remote;
    if (is_started())
        oriel_ranks_floor(out, &any);
    if (any && remote != NULL)
        remote->floor(out);
    if (!any)
        memset(out, 0, (size_t)own.width * sizeof *out);
}
