/* Order by notified access. For each counter and origin there is a number of notifications given,
 * and the clocks of the last ones, in SLOTS entries that are used in turn.
 *
 * G1: the origin completes its earlier accesses at the target in the history, and adds the new one
 * G2: it adds its clock to the entry of its next notification
 * G3: it counts the notification, and passes the call on; a call that fails is not counted
 * T1: after a call that has taken notifications, the target adds their number to `taken`
 * T2: for each origin it takes the clocks of the notifications that may be among those taken
 * T3: it completes their accesses in its own history
 *
 * A notified put or accumulate has a group of its own in the history, which T3 completes, and a
 * flush of its origin. T3 does it with the origin's number as the target knows it: who comes after
 * the target's call knows that number as well. The flush does it with the origin's number then: who
 * comes after the flush knows that. The history keeps the smaller number. So an access that comes
 * after the operation by a message alone is a conflict, also if the flush is over by then: only T3
 * makes the number smaller. Accesses before it, gets, and all where the order of threads is tracked
 * are complete for the whole job from G1 on: with them that mistake is missed.
 *
 * Which ones were taken, the counter does not show. Notifications of one origin arrive in order: of
 * t notifications that were taken, at most the first t of each origin can be some. T2 takes these,
 * as far as they are given. So what was taken is always ordered: G3 precedes the arrival. If the
 * target has then taken as many clocks as notifications, these are the ones, and counting begins
 * anew from there. Otherwise clocks of notifications that no call has taken yet may be among them:
 * a conflict may be missed, and no false one is reported. The same holds for an origin that is a
 * whole turn of the entries ahead, and for threads: those of an origin notify in any order, so all
 * that is given is taken.
 *
 * An origin whose notifications may be dropped gives each clock to all entries, so that the target
 * has it with any of them. Fewer clocks than notifications, or a lost clock, mean that some are
 * unknown: the target then takes everything that the members have done.
 *
 * A process that notifies through a window opened from a memory handle is none of the origins: its
 * operations are complete for the whole job from G1 on, and it gives no clock. A target that has
 * made handles takes, besides T2, everything that any rank has done. */
#include "check/window/notified.h"

#include "check/order/rank_clocks.h"
#include "check/order/thread_order.h"
#include "check/remote/history_proxy.h"
#include "check/window/operation.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 16 };

/* Of this process as origin, for one target: notifications given, by number. Those up to done were
 * flushed. */
struct given {
    uint32_t count, done;
};

struct sent {
    struct given *given;
    uint32_t count;
    bool doubtful; /* some of its notifications may not arrive */
};

/* Of one of this process's counters, for one origin. */
struct arrived {
    uint32_t seen; /* of its notifications, the clocks of this many were taken */
    uint32_t base; /* the same when counting began */
};

struct counter {
    uint64_t taken, base;
    struct arrived origins[];
};

struct oriel_notified {
    uint32_t count;
    struct counter **counters;
    struct sent targets[];
};

uint32_t oriel_notified_counters(MPI_Info info)
{
    char text[MPI_MAX_INFO_VAL + 1] = "";
    int flag = 0;
    if (info == MPI_INFO_NULL || !info ||
        oriel_host()->Info_get(info, "oriel_notifications", MPI_MAX_INFO_VAL, text, &flag) !=
            MPI_SUCCESS ||
        !flag)
        return 0;
    const unsigned long counters = strtoul(text, NULL, 10);
    return counters <= UINT16_MAX + 1 ? (uint32_t)counters : 0;
}

/* --- keys --- */

static struct oriel_key notified_key(const struct oriel_checked *window, enum oriel_order_kind kind,
                                     int32_t origin, int32_t target, uint64_t last)
{
    const uint64_t home = oriel_order_home((int)window->members[target].world_rank);
    return (struct oriel_key){.words = {kind | home, window->id,
                                        (uint64_t)(uint32_t)origin << 32 | (uint32_t)target, last}};
}

static struct oriel_key clock_key(const struct oriel_checked *window, int32_t origin,
                                  int32_t target, uint32_t number, uint32_t turn)
{
    return notified_key(window, ORIEL_ORDER_NOTIFICATION, origin, target,
                        (uint64_t)number << 32 | turn % SLOTS);
}

/* Other counts of windows have 0 in the last word. */
static struct oriel_key count_key(const struct oriel_checked *window, int32_t origin,
                                  int32_t target, uint32_t number)
{
    return notified_key(window, ORIEL_ORDER_COUNT, origin, target, (uint64_t)number + 1);
}

/* --- this process's own counts, under the window's lock --- */

static struct oriel_notified *notified_of(struct oriel_checked *window)
{
    const size_t n = (size_t)(unsigned)window->n;
    if (window->notified == NULL)
        window->notified = calloc(1, sizeof *window->notified + n * sizeof(struct sent));
    return window->notified;
}

/* NULL: no memory. */
static struct given *sent_find(struct oriel_checked *window, int32_t target, uint32_t number)
{
    struct oriel_notified *own = notified_of(window);
    if (own == NULL)
        return NULL;
    struct sent *sent = &own->targets[target];
    if (number >= sent->count) {
        struct given *more = realloc(sent->given, (number + 1) * sizeof *more);
        if (more == NULL)
            return NULL;
        memset(more + sent->count, 0, (number + 1 - sent->count) * sizeof *more);
        sent->given = more;
        sent->count = number + 1;
    }
    return &sent->given[number];
}

/* NULL: no memory. */
static struct counter *counter_find(struct oriel_checked *window, uint32_t number)
{
    struct oriel_notified *own = notified_of(window);
    if (own == NULL)
        return NULL;
    if (number >= own->count) {
        struct counter **more = realloc(own->counters, (number + 1) * sizeof *more);
        if (more == NULL)
            return NULL;
        memset(more + own->count, 0, (number + 1 - own->count) * sizeof *more);
        own->counters = more;
        own->count = number + 1;
    }
    if (own->counters[number] == NULL)
        own->counters[number] = calloc(1, sizeof(struct counter) +
                                              (size_t)(unsigned)window->n * sizeof(struct arrived));
    return own->counters[number];
}

/* --- giving --- */

static bool has_counter(const struct oriel_checked *window, int32_t target, int number)
{
    return window->ordered && (uint32_t)number < window->members[target].notifications;
}

/* Other groups have smaller numbers. */
static uint64_t group_of(int32_t world_rank, uint32_t number, uint32_t turn)
{
    enum { TURN_BITS = 24, NUMBER_BITS = 17 };
    return ORIEL_ACCESS_GROUP | ORIEL_ACCESS_GROUP_TWICE |
           (uint64_t)(uint32_t)world_rank << (TURN_BITS + NUMBER_BITS) |
           (uint64_t)number << TURN_BITS | (turn & ((UINT32_C(1) << TURN_BITS) - 1));
}

uint64_t oriel_notified_group(const struct oriel_operation *operation)
{
    struct oriel_checked *window = operation->window;
    const int32_t target = operation->target_rank;
    const uint32_t number = (uint32_t)operation->number;
    uint64_t group = 0;
    if (operation->kind == ORIEL_ACCESS_GET || oriel_threads_are_tracked() ||
        window->opened.owner_id != 0 || !has_counter(window, target, operation->number))
        return 0;
    oriel_window_enter(window);
    const struct given *given = sent_find(window, target, number);
    if (given != NULL && !window->notified->targets[target].doubtful)
        group = group_of(oriel_order_rank(), number, given->count);
    oriel_window_leave(window);
    return group;
}

void oriel_notified_complete(struct oriel_checked *window, int32_t target)
{
    const oriel_shm_offset history = oriel_window_history(window, target);
    oriel_window_enter(window);
    struct sent *sent = &window->notified->targets[target];
    for (uint32_t number = 0; number < sent->count && history != 0; number++)
        for (struct given *given = &sent->given[number]; given->done < given->count; given->done++)
            oriel_part_complete_one(history, group_of(oriel_order_rank(), number, given->done),
                                    oriel_order_now());
    oriel_window_leave(window);
}

/* G2 and G3. */
static void clock_give(const struct oriel_checked *window, int32_t target, uint32_t number,
                       struct given *given, bool doubtful)
{
    const struct oriel_key count = count_key(window, window->rank, target, number);
    for (uint32_t turn = 0; turn < (doubtful ? SLOTS : 1); turn++) {
        const struct oriel_key clock =
            clock_key(window, window->rank, target, number, given->count + turn);
        oriel_order_give(&clock, 0);
    }
    oriel_order_count(&count, 1);
    given->count++;
}

/* On another node Oriel notices an unknown number after the call, and drops the notifications of
 * this process that come after it. */
static void notification_give(struct oriel_checked *window, int32_t target, int number)
{
    if (!window->ordered)
        return;
    const bool is_known = has_counter(window, target, number);
    oriel_window_enter(window);
    struct given *given = sent_find(window, target, is_known ? (uint32_t)number : 0);
    if (given != NULL && is_known)
        clock_give(window, target, (uint32_t)number, given,
                   window->notified->targets[target].doubtful);
    else if (given != NULL)
        window->notified->targets[target].doubtful = true;
    oriel_window_leave(window);
}

static void notification_take_back(struct oriel_checked *window, int32_t target, int number)
{
    if (!has_counter(window, target, number))
        return;
    const struct oriel_key count = count_key(window, window->rank, target, (uint32_t)number);
    oriel_window_enter(window);
    struct given *given = sent_find(window, target, (uint32_t)number);
    if (given != NULL && given->count > 0) {
        oriel_order_count(&count, UINT32_MAX); /* one less */
        given->count--;
        oriel_part_complete_one(oriel_window_history(window, target),
                                group_of(oriel_order_rank(), (uint32_t)number, given->count),
                                oriel_order_now());
    }
    oriel_window_leave(window);
}

static bool gives_order(const struct oriel_operation *operation)
{
    return operation->notifies && operation->window != NULL && operation->allowed &&
           operation->window->opened.owner_id == 0;
}

void oriel_notified_give(const struct oriel_operation *operation)
{
    if (gives_order(operation))
        notification_give(operation->window, operation->target_rank, operation->number);
}

void oriel_notified_ended(const struct oriel_operation *operation, int code)
{
    if (code != MPI_SUCCESS && gives_order(operation))
        notification_take_back(operation->window, operation->target_rank, operation->number);
}

/* --- taking --- */

/* T3. With the origin's number as this process knows it now. */
static void accesses_complete(const struct oriel_checked *window, int32_t origin, uint32_t number,
                              uint32_t from, uint32_t upto)
{
    const oriel_shm_offset history = oriel_window_history(window, window->rank);
    const int32_t world_rank = (int32_t)window->members[origin].world_rank;
    for (; from < upto && history != 0; from++)
        oriel_part_complete_one(history, group_of(world_rank, number, from),
                                oriel_order_known(world_rank));
}

static void world_take(void)
{
    for (int i = 0; i < oriel_shm_world_size(); i++)
        oriel_order_take_rank(i);
}

static void all_members_take(const struct oriel_checked *window, uint32_t number, uint64_t taken)
{
    for (int32_t i = 0; i < window->n; i++) {
        if (i != window->rank)
            oriel_order_take_rank((int)window->members[i].world_rank);
        accesses_complete(window, i, number, 0, (uint32_t)taken);
    }
}

/* Takes the clocks of the origin's notifications up to that number. The last one that was seen may
 * have been taken back, and given again. Where the order of threads is tracked, another thread may
 * have taken clocks that this thread needs. */
static void clocks_take(const struct oriel_checked *window, int32_t origin, uint32_t number,
                        struct arrived *arrived, uint32_t upto)
{
    const uint32_t first = upto > SLOTS ? upto - SLOTS : 0;
    uint32_t turn = arrived->seen > 0 ? arrived->seen - 1 : 0;
    if (oriel_threads_are_tracked() || turn < first)
        turn = first;
    for (; turn < upto; turn++) {
        const struct oriel_key clock = clock_key(window, origin, window->rank, number, turn);
        oriel_order_take(&clock);
    }
    accesses_complete(window, origin, number, arrived->seen > 0 ? arrived->seen - 1 : 0, upto);
    if (arrived->seen < upto)
        arrived->seen = upto;
}

/* T2. Returns whether all are known. */
static bool counter_take(const struct oriel_checked *window, struct counter *counter,
                         uint32_t number)
{
    uint64_t seen = 0;
    for (int32_t i = 0; i < window->n; i++) {
        struct arrived *arrived = &counter->origins[i];
        const struct oriel_key count = count_key(window, i, window->rank, number);
        const uint64_t most = arrived->base + (counter->taken - counter->base);
        uint32_t upto = oriel_order_count(&count, 0);
        if (!window->threaded && upto > most)
            upto = (uint32_t)most;
        clocks_take(window, i, number, arrived, upto);
        seen += arrived->seen;
    }
    if (seen == counter->taken) {
        counter->base = counter->taken;
        for (int32_t i = 0; i < window->n; i++)
            counter->origins[i].base = counter->origins[i].seen;
    }
    return seen >= counter->taken;
}

void oriel_notified_take(struct oriel_checked *window, int number, uint64_t count)
{
    if (!window->ordered)
        return;
    oriel_window_enter(window);
    struct counter *counter = counter_find(window, (uint32_t)number);
    bool known = false;
    uint64_t taken = count;
    if (counter != NULL) {
        counter->taken += count; /* T1 */
        known = counter_take(window, counter, (uint32_t)number) && !oriel_given_was_lost();
        taken = counter->taken;
    }
    oriel_window_leave(window);
    if (window->lends)
        world_take();
    if (!known && !(window->lends && counter != NULL && !oriel_given_was_lost()))
        all_members_take(window, (uint32_t)number, taken);
}

/* --- the end --- */

static void clocks_forget(const struct oriel_checked *window, int32_t origin, int32_t target,
                          uint32_t number)
{
    const struct oriel_key count = count_key(window, origin, target, number);
    oriel_order_forget(&count);
    for (uint32_t turn = 0; turn < SLOTS; turn++) {
        const struct oriel_key clock = clock_key(window, origin, target, number, turn);
        oriel_order_forget(&clock);
    }
}

/* An origin forgets what it has given; the target also counts that it has asked for. */
void oriel_notified_close(struct oriel_checked *window)
{
    struct oriel_notified *own = window->notified;
    if (own == NULL)
        return;
    for (int32_t i = 0; i < window->n; i++) {
        for (uint32_t number = 0; number < own->targets[i].count; number++)
            if (own->targets[i].given[number].count > 0)
                clocks_forget(window, window->rank, i, number);
        free(own->targets[i].given);
    }
    for (uint32_t number = 0; number < own->count; number++) {
        for (int32_t i = 0; i < window->n && own->counters[number] != NULL; i++)
            clocks_forget(window, i, window->rank, number);
        free(own->counters[number]);
    }
    free(own->counters);
    free(own);
    window->notified = NULL;
}
