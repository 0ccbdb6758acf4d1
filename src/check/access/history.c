/* Histories: how accesses are added, and when they are complete. The argument of comparing,
 * merging, replacing and removing accesses:
 *
 * 1. A stored access is compared by its completion alone. A new access is ordered after it if it
 *    was issued with a clock that contains this completion. It is also ordered if both are of one
 *    process and the earlier one is complete. The clock with which the earlier one was issued is
 *    no longer needed.
 * 2. Accesses of one origin are merged if they are alike in kind and site, and have the same
 *    completion, or are pending and will be completed together. No answer changes. With another
 *    completion they stay apart: a process that acquired a clock between the two knows the one and
 *    not the other. (In a very long history neighbours are merged nevertheless, with the earlier
 *    completion. A conflict may then be missed, and no false one is reported. The summary counts
 *    it.)
 * 3. An ordered later access replaces an earlier one, byte by byte, if it conflicts with everything
 *    that the earlier one conflicts with. A process that does not know the earlier one does not
 *    know the later one either: the later one's clock contains the earlier one's completion, and a
 *    process that acquires the one acquires the other.
 *    An access with ORIEL_ACCESS_GROUP_TWICE gets a smaller completion later, if its target has
 *    learnt of it by another way than its origin's completion. Until then it is not merged.
 * 4. An access that every rank knows to be complete is ordered before every new one
 *    (oriel_order_floor), and is removed.
 * 5. A process that dies inside leaves busy set. The next process finds it and starts with an empty
 *    history: conflicts may be missed. */
#include "check/access/history.h"

#include "base/atomic.h"
#include "base/delay.h"
#include "check/access/aliased_windows.h"
#include "check/access/cell_store.h"
#include "check/access/insert.h"
#include "check/order/order.h"

#include <string.h>

enum {
    NO_ORIGIN = -1,   /* no origin */
    SMALL_TICKET = 1, /* not a record's: those have serials above it */
};

struct oriel_history *oriel_history_enter(oriel_shm_offset place)
{
    struct oriel_history *history = oriel_shm_at(place);
    oriel_shm_lock(&history->lock);
    if (oriel_unlikely(history->busy != 0)) { /* 5 */
        memset(history->lanes, 0, sizeof history->lanes);
        oriel_records_empty(&history->records);
    }
    history->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    return history;
}

void oriel_history_exit(struct oriel_history *history)
{
    atomic_signal_fence(memory_order_seq_cst);
    history->busy = 0;
    oriel_shm_unlock(&history->lock);
}

oriel_shm_offset oriel_history_make(uint64_t size_bytes)
{
    oriel_shm_offset place = oriel_shm_allocate(sizeof(struct oriel_history));
    if (place == 0)
        return 0;
    struct oriel_history *history = oriel_shm_at(place);
    oriel_shm_lock_init(&history->lock);
    oriel_shm_lock_init(&history->alias_lock);
    history->sweep_at = ORIEL_HISTORY_SWEEP_FIRST;
    if (oriel_records_init(&history->records, size_bytes))
        return place;
    oriel_shm_free(place, sizeof *history);
    return 0;
}

void oriel_history_free(oriel_shm_offset place)
{
    if (place == 0)
        return;
    struct oriel_history *history = oriel_shm_at(place);
    oriel_alias_end(place);
    oriel_records_free(&history->records);
    oriel_shm_free(place, sizeof(struct oriel_history));
}

void oriel_history_leave(oriel_shm_offset place)
{
    oriel_pending_list_leave(place);
}

/* --- the interface --- */

static uint8_t extents_phase(const struct oriel_access *access,
                             const struct oriel_access_extent *extents, size_t count)
{
    uint64_t last = oriel_element_last_byte(access);
    uint64_t phase = count == 0 ? 0 : (uint64_t)extents[0].offset & last;
    for (size_t i = 0; i < count; i++)
        if (((uint64_t)extents[i].offset & last) != phase ||
            (extents[i].count > 1 && ((uint64_t)extents[i].stride_bytes & last) != 0))
            return ORIEL_PHASE_MIXED;
    return (uint8_t)phase;
}

/* Returns the access with the phase of the extents: itself if that is 0, else the copy. */
static const struct oriel_access *access_in_phase(const struct oriel_access *access,
                                                  const struct oriel_access_extent *extents,
                                                  size_t count, struct oriel_access *copy)
{
    uint8_t phase = access->kind == ORIEL_ACCESS_ACCUMULATE ? extents_phase(access, extents, count)
                                                            : access->phase;
    if (oriel_likely(phase == access->phase))
        return access;
    *copy = *access;
    copy->phase = phase;
    return copy;
}

/* Compares the access with the records of the tree and the entries of cells. */
static void compare_extents(struct oriel_insertion *arrival,
                            const struct oriel_access_extent *extents, size_t count)
{
    struct oriel_access_extent runs;
    for (size_t i = 0; i < count; i++) {
        if (!oriel_byte_runs_tidy(&extents[i], &runs))
            continue;
        oriel_insertion_meet(arrival, &runs, false);
        oriel_small_compare(arrival, &runs);
    }
}

/* Marks the bytes before the access is stored (cell_store.c, S2). The record that it becomes keeps
 * the marks. */
static void mark_extents(struct oriel_history *history, const struct oriel_access_extent *extents,
                         size_t count)
{
    struct oriel_access_extent runs;
    for (size_t i = 0; i < count; i++)
        if (oriel_byte_runs_tidy(&extents[i], &runs))
            oriel_pages_mark(&history->records.pages, runs.offset, oriel_byte_runs_end(&runs), 1);
    oriel_delay();
    oriel_fence_full();
}

/* Stores the access. Returns the number of its first record; 0: the shared memory is full, or there
 * are no bytes. */
static oriel_record_number store_extents(struct oriel_insertion *arrival,
                                         const struct oriel_access_extent *extents, size_t count)
{
    struct oriel_history *history = arrival->history;
    struct oriel_access_extent runs;
    oriel_record_number first = 0;
    oriel_record_number last = 0;
    for (size_t i = 0; i < count; i++) {
        if (!oriel_byte_runs_tidy(&extents[i], &runs))
            continue;
        if (count > 1) /* the parts are not compared with each other, but may be merged */
            oriel_insertion_meet(arrival, &runs, true);
        oriel_record_number number = oriel_insertion_keep(arrival, &runs);
        if (first == 0)
            first = number;
        else if (last != 0 && number != 0 && (arrival->access->flags & ORIEL_ACCESS_ALONE) != 0)
            oriel_record_at(&history->records, last)->access.snapshot =
                oriel_history_ticket(history, number);
        last = number;
    }
    return first;
}

static uint64_t add_to_tree(struct oriel_insertion *arrival, oriel_shm_offset place,
                            const struct oriel_access_extent *extents, size_t count)
{
    struct oriel_history *history = oriel_history_enter(place);
    const struct oriel_access *access = arrival->access;
    mark_extents(history, extents, count);
    oriel_delay();
    compare_extents(arrival, extents, count);
    oriel_delay();
    oriel_record_number first = store_extents(arrival, extents, count);
    uint64_t ticket = 0;
    if (oriel_access_pending(access) && first != 0)
        ticket = access->group != 0 ? access->group : oriel_history_ticket(history, first);
    if (oriel_unlikely(history->records.live > history->sweep_at))
        oriel_history_shorten(history);
    oriel_history_exit(history);
    oriel_alias_compare(arrival, extents, count);
    return ticket;
}

void oriel_history_widen(oriel_shm_offset place, int64_t low, int64_t high)
{
    struct oriel_history *history = oriel_history_enter(place);
    oriel_pages_mark(&history->records.pages, low, high, 1);
    oriel_history_exit(history);
    oriel_fence_full();
}

void oriel_insertion_meet_tree(struct oriel_insertion *arrival, oriel_shm_offset place,
                               const struct oriel_access_extent *runs)
{
    struct oriel_history *history = oriel_history_enter(place);
    oriel_insertion_meet(arrival, runs, false);
    oriel_history_exit(history);
    oriel_alias_compare(arrival, runs, 1);
}

/* Whether the access is in cells and does not belong in the tree. */
static bool is_in_cells(enum oriel_small small, struct oriel_insertion *arrival,
                        oriel_shm_offset place, const struct oriel_access_extent *runs)
{
    if (oriel_unlikely(small == ORIEL_SMALL_AND_WIDE))
        oriel_insertion_meet_tree(arrival, place, runs);
    return small != ORIEL_SMALL_NOT;
}

uint64_t oriel_history_add(oriel_shm_offset place, const struct oriel_access *access,
                           const struct oriel_access_extent *extents, size_t count,
                           oriel_conflict_fn *tell, void *closure)
{
    struct oriel_insertion arrival;
    struct oriel_access_extent runs;
    struct oriel_access copy;
    oriel_shm_offset trait = 0;
    access = access_in_phase(access, extents, count, &copy);
    oriel_insertion_begin(&arrival, place, access, tell, closure, true);
    bool in_cells =
        count == 1 && oriel_byte_runs_tidy(extents, &runs) &&
        is_in_cells(oriel_small_add(&arrival, place, &trait, &runs), &arrival, place, &runs);
    uint64_t ticket = in_cells ? 0 : add_to_tree(&arrival, place, extents, count);
    oriel_insertion_end(&arrival);
    if (!in_cells)
        return ticket;
    return !oriel_access_pending(access) ? 0 : access->group != 0 ? access->group : SMALL_TICKET;
}

bool oriel_history_add_again(oriel_shm_offset place, struct oriel_history_spot spot,
                             const struct oriel_access *access, oriel_shm_offset *trait,
                             const struct oriel_access_extent *run, oriel_conflict_fn *tell,
                             void *closure)
{
    struct oriel_insertion arrival;
    struct oriel_access copy;
    oriel_shm_offset own_trait = 0;
    const struct oriel_access *in_phase = access_in_phase(access, run, 1, &copy);
    oriel_insertion_begin(&arrival, place, in_phase, tell, closure, true);
    trait = oriel_likely(in_phase == access) ? trait : &own_trait;
    bool in_cells =
        is_in_cells(oriel_small_add_at(&arrival, place, spot, trait, run), &arrival, place, run);
    if (oriel_unlikely(!in_cells))
        add_to_tree(&arrival, place, run, 1);
    oriel_insertion_end(&arrival);
    return in_cells;
}

void oriel_history_look(oriel_shm_offset place, const struct oriel_access *access,
                        const struct oriel_access_extent *extents, size_t count,
                        oriel_conflict_fn *tell, void *closure)
{
    struct oriel_insertion arrival;
    struct oriel_access copy;
    oriel_insertion_begin(&arrival, place, access_in_phase(access, extents, count, &copy), tell,
                          closure, false);
    struct oriel_history *history = oriel_history_enter(place);
    compare_extents(&arrival, extents, count);
    oriel_history_exit(history);
    oriel_insertion_end(&arrival);
}

/* Merges a record into another that it has become like. Returns the number of that one, or the
 * record's own if there is none. hint: the first candidate, a loop's last record. *grown: the other
 * record has more bytes than before. */
static oriel_record_number merge_record_once(struct oriel_history *history,
                                             oriel_record_number number,
                                             struct oriel_history_hint hint, bool *grown)
{
    struct oriel_records *records = &history->records;
    struct oriel_record *record = oriel_record_at(records, number);
    struct oriel_access_extent all;
    struct oriel_record_hits hits;
    struct oriel_record *other = oriel_history_follow(history, hint);
    oriel_record_number into = hint.number;
    size_t next = 0;
    if (other == NULL)
        other = record;
    while (other == record || !oriel_access_may_be_one(&other->access, &record->access) ||
           !oriel_byte_runs_join(&other->runs, &record->runs, &all)) {
        if (next == 0)
            oriel_records_find(records, record->runs.offset - 1,
                               oriel_byte_runs_end(&record->runs) + 1, NULL, 0, &hits);
        *grown = false;
        if (next == hits.count)
            return number;
        into = hits.numbers[next++];
        other = oriel_record_at(records, into);
    }
    *grown = !oriel_byte_runs_contain(&other->runs, &record->runs);
    if (*grown)
        oriel_record_change(records, into, &all);
    oriel_delay();
    oriel_history_discard(history, number); /* S6 */
    return into;
}

/* A record that has grown may touch others that are like it. */
static oriel_record_number merge_record(struct oriel_history *history, oriel_record_number number,
                                        struct oriel_history_hint hint)
{
    bool grown;
    do {
        number = merge_record_once(history, number, hint, &grown);
        hint = (struct oriel_history_hint){0, 0};
    } while (grown);
    return number;
}

/* An access with ORIEL_ACCESS_GROUP_TWICE stays in its lane after its first completion. */
static void complete_record(struct oriel_history *history, oriel_record_number number,
                            oriel_tick now)
{
    struct oriel_record *record = oriel_record_at(&history->records, number);
    struct oriel_history_lane *lane = oriel_history_lane_of_access(history, &record->access);
    const bool is_first = oriel_access_pending(&record->access);
    if (is_first || now < record->access.complete)
        record->access.complete = now;
    if (is_first && (record->access.group & ORIEL_ACCESS_GROUP_TWICE) != 0)
        return;
    oriel_history_unchain(history, number);
    record->access.group = 0;
    lane->done = oriel_history_hint_at(history, merge_record(history, number, lane->done));
}

/* This process's pending records stay in their lane until this process completes them. So an empty
 * lane has none of them. */
static bool lane_is_empty(const struct oriel_history_lane *lane)
{
    return atomic_load_explicit((const _Atomic oriel_record_number *)&lane->pending,
                                memory_order_relaxed) == 0;
}

static void complete_lane(oriel_shm_offset place, struct oriel_history_lane *lane, int32_t origin,
                          uint64_t group, oriel_tick now)
{
    if (lane_is_empty(lane))
        return;
    struct oriel_history *history = oriel_history_enter(place);
    oriel_record_number next;
    for (oriel_record_number number = lane->pending; number != 0; number = next) {
        const struct oriel_record *record = oriel_record_at(&history->records, number);
        next = record->next;
        if (record->access.group != group || (group == 0 && record->access.origin != origin))
            continue;
        complete_record(history, number, now);
    }
    oriel_history_exit(history);
}

void oriel_history_complete(oriel_shm_offset place, int32_t origin, uint64_t group, oriel_tick now)
{
    struct oriel_history *history = oriel_shm_at(place);
    oriel_pending_list_complete(place, origin, group, now);
    complete_lane(place, oriel_history_lane_of(history, origin, 0), origin, 0, now);
    if (group != 0)
        complete_lane(place, oriel_history_lane_of(history, origin, group), origin, group, now);
}

void oriel_history_complete_cells(oriel_shm_offset place, int32_t origin, uint64_t group,
                                  oriel_tick now)
{
    oriel_pending_list_complete(place, origin, group, now);
}

typedef void ticket_fn(struct oriel_history *history, oriel_record_number number,
                       uint64_t argument);

/* Calls act for each pending record that has the ticket. */
static void for_each_record_of_ticket(oriel_shm_offset place, uint64_t ticket, ticket_fn *act,
                                      uint64_t argument)
{
    if (ticket == 0 || (ticket >= ORIEL_ACCESS_GROUP &&
                        lane_is_empty(oriel_history_lane_of(oriel_shm_at(place), 0, ticket))))
        return;
    struct oriel_history *history = oriel_history_enter(place);
    if (ticket < ORIEL_ACCESS_GROUP) {
        while (ticket != 0) {
            struct oriel_history_hint hint = {(oriel_record_number)ticket,
                                              (uint32_t)(ticket >> 32)};
            const struct oriel_record *record = oriel_history_follow(history, hint);
            if (record == NULL || !oriel_access_pending(&record->access))
                break;
            ticket = record->access.snapshot;
            act(history, hint.number, argument);
        }
    } else {
        oriel_record_number next;
        for (oriel_record_number number = oriel_history_lane_of(history, 0, ticket)->pending;
             number != 0; number = next) {
            const struct oriel_record *record = oriel_record_at(&history->records, number);
            next = record->next;
            if (record->access.group == ticket)
                act(history, number, argument);
        }
    }
    oriel_history_exit(history);
}

void oriel_history_complete_one(oriel_shm_offset place, uint64_t ticket, oriel_tick now)
{
    if (ticket >= ORIEL_ACCESS_GROUP)
        oriel_pending_list_complete(place, NO_ORIGIN, ticket, now);
    for_each_record_of_ticket(place, ticket, complete_record, now);
}

static void discard_record(struct oriel_history *history, oriel_record_number number,
                           uint64_t argument)
{
    (void)argument;
    oriel_history_discard(history, number);
}

void oriel_history_end_one(oriel_shm_offset place, uint64_t ticket)
{
    oriel_pending_list_end(place, ticket);
    for_each_record_of_ticket(place, ticket, discard_record, 0);
}

/* No ticket of the record is in use once its request is done. From then on it is merged like other
 * pending records. */
static void end_record_request(struct oriel_history *history, oriel_record_number number,
                               uint64_t argument)
{
    struct oriel_access *access = &oriel_record_at(&history->records, number)->access;
    (void)argument;
    access->flags |= ORIEL_ACCESS_REQUEST_DONE;
    access->flags &= (uint8_t)~ORIEL_ACCESS_ALONE;
    access->snapshot = 0;
    merge_record(history, number, (struct oriel_history_hint){0, 0});
}

void oriel_history_request_done(oriel_shm_offset place, uint64_t ticket)
{
    for_each_record_of_ticket(place, ticket, end_record_request, 0);
}

void oriel_history_flag(oriel_shm_offset place, int32_t origin, uint8_t flags)
{
    oriel_pending_list_flag(place, origin, flags);
    if (lane_is_empty(oriel_history_lane_of(oriel_shm_at(place), origin, 0)))
        return;
    struct oriel_history *history = oriel_history_enter(place);
    oriel_record_number next;
    for (oriel_record_number number = oriel_history_lane_of(history, origin, 0)->pending;
         number != 0; number = next) {
        struct oriel_record *record = oriel_record_at(&history->records, number);
        next = record->next;
        if (record->access.origin != origin || record->access.group != 0)
            continue;
        /* older records got the flags before this one */
        if ((record->access.flags & flags) == flags)
            break;
        record->access.flags |= flags;
        /* otherwise a loop of such pairs would accumulate records */
        if ((record->access.flags & ORIEL_ACCESS_ALONE) == 0)
            merge_record(history, number, (struct oriel_history_hint){0, 0});
    }
    oriel_history_exit(history);
}

/* A record whose bytes are all in the hole may become another part of its access. */
static void forget_in_record(struct oriel_history *history, struct oriel_history_hint hint,
                             const struct oriel_access_extent *hole)
{
    int64_t offset;
    uint64_t len_bytes;
    const struct oriel_record *record;
    while ((record = oriel_history_follow(history, hint)) != NULL &&
           oriel_byte_runs_meet(&record->runs, hole, &offset, &len_bytes) &&
           oriel_history_take_bytes(history, hint.number, hole))
        continue;
}

void oriel_history_forget(oriel_shm_offset place, int64_t offset, uint64_t len_bytes)
{
    if (len_bytes == 0)
        return;
    struct oriel_history *history = oriel_history_enter(place);
    struct oriel_access_extent hole = {.offset = offset, .len_bytes = len_bytes, .count = 1};
    struct oriel_record_hits hits;
    struct oriel_access_extent after;
    oriel_record_number last = 0;
    do {
        oriel_records_find(&history->records, offset, offset + (int64_t)len_bytes,
                           last == 0 ? NULL : &after, last, &hits);
        if (hits.count == 0)
            break;
        last = hits.numbers[hits.count - 1];
        after = oriel_record_at(&history->records, last)->runs;
        struct oriel_history_hint hints[ORIEL_RECORD_HITS];
        for (size_t i = 0; i < hits.count; i++)
            hints[i] = oriel_history_hint_at(history, hits.numbers[i]);
        for (size_t i = 0; i < hits.count; i++)
            forget_in_record(history, hints[i], &hole);
    } while (hits.count == ORIEL_RECORD_HITS);
    oriel_small_forget(history, offset, offset + (int64_t)len_bytes);
    oriel_history_exit(history);
}

void oriel_history_size(oriel_shm_offset place, uint64_t *accesses, uint64_t *bytes)
{
    struct oriel_history *history = oriel_history_enter(place);
    oriel_pages_size(&history->records.pages, accesses, bytes);
    *accesses += history->records.live;
    *bytes += sizeof *history + oriel_records_bytes(&history->records);
    oriel_history_exit(history);
}
