/* Insertion of an access into a history. The access is compared with the records at its bytes,
 * replaces some of them, and is merged with those that it continues. The numbers are those of
 * history.c's argument. Under the history's lock. */
#include "check/access/insert.h"

#include "base/atomic.h"
#include "base/delay.h"

enum {
    /* records around an access from which on loops with holes are not merged: each slows all later
     * accesses */
    LOOP_CROWD = 12,
    /* bytes of a run in a loop; longer runs are few, and later ones may fill the holes */
    LOOP_RUN_MOST = 4096,
    /* run lengths from one run of a loop to the next; larger distances are chance */
    LOOP_SPARSEST = 4096,
};

/* --- pending records --- */

struct oriel_history_lane *oriel_history_lane_of(struct oriel_history *history, int32_t origin,
                                                 uint64_t group)
{
    uint64_t which = group != 0 ? (group * UINT64_C(0x9e3779b97f4a7c15)) >> 32 : (uint32_t)origin;
    return &history->lanes[which % ORIEL_LANES];
}

struct oriel_history_lane *oriel_history_lane_of_access(struct oriel_history *history,
                                                        const struct oriel_access *access)
{
    return oriel_history_lane_of(history, access->origin, access->group);
}

void oriel_history_chain(struct oriel_history *history, oriel_record_number number)
{
    struct oriel_record *record = oriel_record_at(&history->records, number);
    struct oriel_history_lane *lane = oriel_history_lane_of_access(history, &record->access);
    record->previous = 0;
    record->next = lane->pending;
    if (lane->pending != 0)
        oriel_record_at(&history->records, lane->pending)->previous = number;
    lane->pending = number;
}

void oriel_history_unchain(struct oriel_history *history, oriel_record_number number)
{
    struct oriel_record *record = oriel_record_at(&history->records, number);
    if (record->previous != 0)
        oriel_record_at(&history->records, record->previous)->next = record->next;
    else
        oriel_history_lane_of_access(history, &record->access)->pending = record->next;
    if (record->next != 0)
        oriel_record_at(&history->records, record->next)->previous = record->previous;
}

void oriel_history_discard(struct oriel_history *history, oriel_record_number number)
{
    if (oriel_access_is_open(&oriel_record_at(&history->records, number)->access))
        oriel_history_unchain(history, number);
    oriel_record_remove(&history->records, number);
    oriel_record_drop(&history->records, number);
}

struct oriel_history_hint oriel_history_hint_at(struct oriel_history *history,
                                                oriel_record_number number)
{
    return (struct oriel_history_hint){number, oriel_record_at(&history->records, number)->serial};
}

struct oriel_record *oriel_history_follow(struct oriel_history *history,
                                          struct oriel_history_hint hint)
{
    if (hint.number == 0 || hint.number > history->records.made)
        return NULL;
    struct oriel_record *record = oriel_record_at(&history->records, hint.number);
    return record->serial == hint.serial ? record : NULL;
}

uint64_t oriel_history_ticket(struct oriel_history *history, oriel_record_number number)
{
    return (uint64_t)oriel_record_at(&history->records, number)->serial << 32 | number;
}

/* --- merging --- */

bool oriel_access_alike(const struct oriel_access *a, const struct oriel_access *b)
{
    return a->kind == b->kind && a->op == b->op && a->element == b->element &&
           a->phase == b->phase && a->flags == b->flags && a->origin == b->origin &&
           a->site.address == b->site.address && a->site.call == b->site.call &&
           a->site.epoch == b->site.epoch && a->group == b->group;
}

/* 2 */
bool oriel_access_may_be_one(const struct oriel_access *a, const struct oriel_access *b)
{
    return oriel_access_alike(a, b) && a->complete == b->complete &&
           (!oriel_access_pending(a) || (a->flags & ORIEL_ACCESS_ALONE) == 0);
}

static bool same_runs(const struct oriel_access_extent *a, const struct oriel_access_extent *b)
{
    return a->offset == b->offset && a->len_bytes == b->len_bytes && a->count == b->count &&
           (a->count == 1 || a->stride_bytes == b->stride_bytes);
}

static oriel_record_number merge_into_neighbours(struct oriel_insertion *arrival,
                                                 const struct oriel_access_extent *runs)
{
    struct oriel_records *records = &arrival->history->records;
    struct oriel_access_extent all = *runs;
    oriel_record_number into = 0;
    oriel_record_number gone[ORIEL_INSERTION_JOINS];
    size_t gone_count = 0;
    for (size_t i = 0; i < arrival->joins; i++) {
        oriel_record_number number = arrival->join[i];
        struct oriel_access_extent sum;
        if (!oriel_byte_runs_join(&all, &oriel_record_at(records, number)->runs, &sum))
            continue;
        all = sum;
        if (into == 0)
            into = number;
        else
            gone[gone_count++] = number;
    }
    if (into != 0 && !same_runs(&all, &oriel_record_at(records, into)->runs))
        oriel_record_change(records, into, &all);
    oriel_delay();
    while (gone_count > 0)
        oriel_history_discard(arrival->history, gone[--gone_count]); /* S6 */
    return into;
}

/* Merges a run into a loop with holes: it continues the last record, or is the third at one
 * distance. (Two runs are no loop: any two are at some distance.) */
static oriel_record_number merge_into_loop(struct oriel_insertion *arrival,
                                           struct oriel_history_lane *lane,
                                           const struct oriel_access_extent *runs)
{
    struct oriel_history *history = arrival->history;
    struct oriel_record *last = oriel_history_follow(history, lane->last);
    if (last == NULL || !oriel_access_may_be_one(&last->access, arrival->access))
        return 0;
    struct oriel_access_extent all;
    if (oriel_byte_runs_join(&last->runs, runs, &all)) {
        oriel_record_change(&history->records, lane->last.number, &all);
        return lane->last.number;
    }
    struct oriel_record *first = oriel_history_follow(history, lane->previous);
    int64_t distance = runs->offset - last->runs.offset;
    if (first == NULL || first == last ||
        !oriel_access_may_be_one(&first->access, arrival->access) || runs->count != 1 ||
        last->runs.count != 1 || first->runs.count != 1 || runs->len_bytes >= LOOP_RUN_MOST ||
        last->runs.len_bytes != runs->len_bytes || first->runs.len_bytes != runs->len_bytes ||
        distance != last->runs.offset - first->runs.offset ||
        (uint64_t)(distance < 0 ? -distance : distance) > LOOP_SPARSEST * runs->len_bytes)
        return 0;
    struct oriel_access_extent loop = {first->runs.offset, runs->len_bytes, 3, distance};
    oriel_byte_runs_tidy(&loop, &all);
    oriel_record_change(&history->records, lane->previous.number, &all);
    oriel_delay();
    oriel_history_discard(history, lane->last.number); /* S6 */
    lane->last = lane->previous;
    lane->previous = (struct oriel_history_hint){0, 0};
    return lane->last.number;
}

oriel_record_number oriel_insertion_keep(struct oriel_insertion *arrival,
                                         const struct oriel_access_extent *runs)
{
    struct oriel_history *history = arrival->history;
    struct oriel_history_lane *lane = oriel_history_lane_of_access(history, arrival->access);
    oriel_record_number number = merge_into_neighbours(arrival, runs);
    if (number == 0 && arrival->near < LOOP_CROWD)
        number = merge_into_loop(arrival, lane, runs);
    bool joined = number != 0;
    if (!joined)
        number = oriel_record_make(&history->records);
    if (joined || number == 0) {
        oriel_pages_mark(&history->records.pages, runs->offset, oriel_byte_runs_end(runs), -1);
        return number;
    }
    struct oriel_record *record = oriel_record_at(&history->records, number);
    record->runs = *runs;
    record->access = *arrival->access;
    record->access.snapshot = 0;
    oriel_record_insert(&history->records, number, true);
    if (oriel_access_pending(&record->access))
        oriel_history_chain(history, number);
    lane->previous = lane->last;
    lane->last = oriel_history_hint_at(history, number);
    return number;
}

/* --- comparing --- */

static bool is_ordered_after(const struct oriel_insertion *arrival,
                             const struct oriel_access *earlier)
{
    return !oriel_access_pending(earlier) &&
           oriel_insertion_knows(arrival, earlier->origin, earlier->complete);
}

static bool same_site(const struct oriel_site *a, const struct oriel_site *b)
{
    return a->address == b->address && a->call == b->call && a->world_rank == b->world_rank;
}

void oriel_insertion_report(struct oriel_insertion *arrival, const struct oriel_access *earlier,
                            int64_t offset, uint64_t len_bytes)
{
    for (int i = 0; i < arrival->reported; i++) {
        struct oriel_insertion_conflict *noted = &arrival->conflicts[i];
        if (!same_site(&noted->earlier.site, &earlier->site))
            continue;
        if (offset == noted->offset + (int64_t)noted->len_bytes)
            noted->len_bytes += len_bytes;
        return;
    }
    if (arrival->reported < ORIEL_INSERTION_REPORTED)
        arrival->conflicts[arrival->reported++] =
            (struct oriel_insertion_conflict){*earlier, offset, len_bytes};
}

void oriel_insertion_tell(const struct oriel_insertion *arrival)
{
    for (int i = 0; i < arrival->reported && arrival->tell != NULL; i++) {
        const struct oriel_insertion_conflict *noted = &arrival->conflicts[i];
        struct oriel_conflict conflict = {.earlier = noted->earlier,
                                          .later = *arrival->access,
                                          .offset = noted->offset,
                                          .len_bytes = noted->len_bytes};
        conflict.earlier.snapshot = 0;
        arrival->tell(&conflict, arrival->closure);
    }
}

static struct oriel_record *next_part(struct oriel_history *history, struct oriel_record *record,
                                      oriel_record_number *number)
{
    const uint64_t ticket = record->access.snapshot;
    *number = (oriel_record_number)ticket;
    return oriel_access_pending(&record->access)
               ? oriel_history_follow(history, (struct oriel_history_hint){*number, ticket >> 32})
               : NULL;
}

/* Removes a record without bytes. If its access has a later part, the record becomes that part: the
 * ticket still leads there. */
static void remove_part(struct oriel_history *history, oriel_record_number number)
{
    oriel_record_number next;
    struct oriel_record *record = oriel_record_at(&history->records, number);
    struct oriel_record *part = next_part(history, record, &next);
    if (part == NULL) {
        oriel_history_discard(history, number);
        return;
    }
    const struct oriel_access_extent runs = part->runs;
    record->access.snapshot = part->access.snapshot;
    oriel_history_discard(history, next);
    oriel_record_change(&history->records, number, &runs);
}

bool oriel_history_take_bytes(struct oriel_history *history, oriel_record_number number,
                              const struct oriel_access_extent *runs)
{
    struct oriel_records *records = &history->records;
    struct oriel_record *record = oriel_record_at(records, number);
    if (oriel_byte_runs_contain(runs, &record->runs)) {
        remove_part(history, number);
        return true;
    }
    if (runs->count != 1)
        return false;
    struct oriel_access_extent pieces[ORIEL_RUNS_PIECES];
    oriel_record_number more[ORIEL_RUNS_PIECES] = {0};
    size_t count = oriel_byte_runs_subtract(&record->runs, runs, pieces);
    for (size_t i = 1; i < count; i++) {
        more[i] = oriel_record_make(records);
        if (more[i] == 0) {
            while (--i > 0)
                oriel_record_drop(records, more[i]);
            return false;
        }
    }
    if (count == 0) {
        remove_part(history, number);
        return true;
    }
    for (size_t i = 1; i < count; i++) {
        struct oriel_record *piece = oriel_record_at(records, more[i]);
        piece->runs = pieces[i];
        piece->access = record->access;
        if (record->access.snapshot != 0 || (record->access.flags & ORIEL_ACCESS_ALONE) != 0)
            record->access.snapshot = oriel_history_ticket(history, more[i]);
        oriel_record_insert(records, more[i], false);
        if (oriel_access_is_open(&piece->access))
            oriel_history_chain(history, more[i]);
    }
    oriel_delay();
    oriel_record_change(records, number, &pieces[0]); /* S6 */
    return true;
}

static bool may_merge(const struct oriel_insertion *arrival, const struct oriel_record *record,
                      const struct oriel_access_extent *runs)
{
    struct oriel_access_extent sum;
    return arrival->joins < ORIEL_INSERTION_JOINS &&
           oriel_access_may_be_one(&record->access, arrival->access) &&
           oriel_byte_runs_join(&record->runs, runs, &sum);
}

/* Whether the earlier access is complete with the number that this access will have, if it is
 * completed before anything else happens. The two are then merged, and nothing is removed now. */
static bool merges_when_complete(const struct oriel_insertion *arrival,
                                 const struct oriel_access *earlier)
{
    struct oriel_access access = *arrival->access;
    access.group = 0; /* as of those that are completed once */
    return oriel_access_pending(&access) && arrival->clock != NULL &&
           earlier->complete == arrival->clock[oriel_clock_index(access.origin, access.issued)] &&
           oriel_access_alike(&access, earlier);
}

static void compare_record(struct oriel_insertion *arrival, oriel_record_number number,
                           const struct oriel_access_extent *runs)
{
    struct oriel_record *record = oriel_record_at(&arrival->history->records, number);
    int64_t offset;
    uint64_t len_bytes;
    bool both = oriel_byte_runs_meet(&record->runs, runs, &offset, &len_bytes);
    bool known = both && is_ordered_after(arrival, &record->access);
    if (both && !known && oriel_access_conflicts(&record->access, arrival->access))
        oriel_insertion_report(arrival, &record->access, offset, len_bytes);
    if (!arrival->stays)
        return;
    if (may_merge(arrival, record, runs))
        arrival->join[arrival->joins++] = number;
    else if (known && !merges_when_complete(arrival, &record->access) &&
             oriel_access_supersedes(arrival->access, &record->access))
        oriel_history_take_bytes(arrival->history, number, runs); /* 3 */
}

void oriel_insertion_meet(struct oriel_insertion *arrival, const struct oriel_access_extent *runs,
                          bool again)
{
    struct oriel_records *records = &arrival->history->records;
    int64_t low = runs->offset - 1;
    int64_t high = oriel_byte_runs_end(runs) + 1;
    struct oriel_record_hits hits;
    struct oriel_access_extent after;
    oriel_record_number after_number = 0;
    arrival->joins = arrival->near = 0;
    do {
        oriel_records_find(records, low, high, after_number == 0 ? NULL : &after, after_number,
                           &hits);
        if (hits.count == 0)
            return;
        arrival->near += hits.count;
        after_number = hits.numbers[hits.count - 1];
        after = oriel_record_at(records, after_number)->runs;
        for (size_t i = 0; i < hits.count; i++) {
            if (!again)
                compare_record(arrival, hits.numbers[i], runs);
            else if (may_merge(arrival, oriel_record_at(records, hits.numbers[i]), runs))
                arrival->join[arrival->joins++] = hits.numbers[i];
        }
    } while (hits.count == ORIEL_RECORD_HITS);
}
