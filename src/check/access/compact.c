/* Compacts long histories. Records that every rank knows to be complete are removed. If too many
 * are left, neighbours are merged, and conflicts may be missed. A history is compacted again when
 * its records have doubled. Under the history's lock; the argument is in history.c. */
#include "check/access/insert.h"
#include "check/order/order.h"
#include "check/report/finding.h"

#include <stdlib.h>

/* more records than this: neighbours with different completions are merged (history.c, 2) */
enum { MERGE_RECORDS_LEAST = 1 << 14 };

static bool is_known_to_all(const struct oriel_record *record, void *floor)
{
    const oriel_tick *ticks = floor;
    return !oriel_access_pending(&record->access) &&
           record->access.complete <=
               ticks[oriel_clock_index(record->access.origin, record->access.complete)];
}

/* No second completion is smaller than what all know. */
static void close_known(struct oriel_history *history, void *floor)
{
    for (size_t i = 0; i < ORIEL_LANES; i++) {
        oriel_record_number next;
        for (oriel_record_number number = history->lanes[i].pending; number != 0; number = next) {
            struct oriel_record *record = oriel_record_at(&history->records, number);
            next = record->next;
            if (!is_known_to_all(record, floor))
                continue;
            oriel_history_unchain(history, number);
            record->access.group = 0;
        }
    }
}

static bool is_of_one_thread(oriel_tick a, oriel_tick b)
{
    return oriel_clock_index(0, a) == oriel_clock_index(0, b);
}

/* Merges neighbours that differ only in their completion (history.c, 2). */
static void merge_neighbours(struct oriel_records *records)
{
    struct oriel_record_hits hits;
    struct oriel_access_extent after;
    oriel_record_number last = 0;
    bool merged = false;
    do {
        oriel_records_find(records, INT64_MIN, INT64_MAX, last == 0 ? NULL : &after, last, &hits);
        for (size_t i = 0; i < hits.count; i++) {
            struct oriel_record *record = oriel_record_at(records, hits.numbers[i]);
            struct oriel_record *before = last != 0 ? oriel_record_at(records, last) : NULL;
            struct oriel_access_extent all;
            if (before != NULL && !oriel_access_is_open(&before->access) &&
                !oriel_access_is_open(&record->access) &&
                oriel_access_alike(&before->access, &record->access) &&
                is_of_one_thread(before->access.complete, record->access.complete) &&
                oriel_byte_runs_join(&before->runs, &record->runs, &all) &&
                all.offset == before->runs.offset) {
                if (record->access.complete < before->access.complete)
                    before->access.complete = record->access.complete;
                oriel_record_change(records, last, &all);
                oriel_record_remove(records, hits.numbers[i]); /* S6 */
                oriel_record_drop(records, hits.numbers[i]);
                merged = true;
            } else {
                last = hits.numbers[i];
                after = record->runs;
            }
        }
    } while (hits.count == ORIEL_RECORD_HITS);
    if (merged)
        oriel_finding_count("long histories merged: conflicts may be missed");
}

void oriel_history_shorten(struct oriel_history *history)
{
    oriel_tick *floor = calloc((size_t)oriel_order_width(), sizeof *floor);
    if (floor != NULL) {
        oriel_order_floor(floor);
        close_known(history, floor);
        oriel_records_sweep(&history->records, is_known_to_all, floor); /* history.c, 4 */
        free(floor);
    }
    if (history->records.live > MERGE_RECORDS_LEAST)
        merge_neighbours(&history->records);
    uint32_t twice = 2 * history->records.live;
    history->sweep_at = twice > ORIEL_HISTORY_SWEEP_FIRST ? twice : ORIEL_HISTORY_SWEEP_FIRST;
}
