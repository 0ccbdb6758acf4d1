/* Histories that have grown: what every rank knows to be complete goes, and where that is not enough, neighbours become one at
 * the price of a conflict that may be missed.  A history is looked at again when its records have doubled.  history.c calls,
 * under the history's lock, and has the argument. */
#include "check/access/insert.h"
#include "check/order/order.h"
#include "check/report/finding.h"

#include <stdlib.h>

enum { LONG = 1 << 14 }; /* records from which on neighbours are merged by 2's second half */

static bool known_to_all(const struct oriel_record *record, void *floor)
{
    const oriel_tick *ticks = floor;
    return !oriel_access_pending(&record->access) &&
           record->access.complete <= ticks[record->access.origin];
}

/* Neighbours that differ in nothing but when they were complete become one (history.c, 2). */
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
            if (before != NULL && !oriel_access_pending(&before->access) &&
                !oriel_access_pending(&record->access) &&
                oriel_access_alike(&before->access, &record->access) &&
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
        oriel_finding_count("long histories shortened");
}

void oriel_history_shorten(struct oriel_history *history)
{
    oriel_tick *floor = calloc((size_t)oriel_shm_world_size(), sizeof *floor);
    if (floor != NULL) {
        oriel_order_floor(floor);
        oriel_records_sweep(&history->records, known_to_all, floor); /* history.c, 4 */
        free(floor);
    }
    if (history->records.live > LONG)
        merge_neighbours(&history->records);
    uint32_t twice = 2 * history->records.live;
    history->sweep_at = twice > ORIEL_HISTORY_SWEEP_FIRST ? twice : ORIEL_HISTORY_SWEEP_FIRST;
}
