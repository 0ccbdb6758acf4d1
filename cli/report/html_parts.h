/* What the parts of a page share while it is made: page.c goes over the events of a run once and gives each to the
 * sums (page_sums.c), the pairs of ranks (page_pairs.c) and the timeline (page_time.c), which bound what they keep and make JSON
 * of it.
 *
 * Ranks of MPI_COMM_WORLD are shown one by one up to ORIEL_PAGE_ROWS; more are taken together, so many to a row.
 * The windows that most is to be told of are shown one by one, the others as one.
 * Only page*.c include this. */
#ifndef ORIEL_CLI_REPORT_HTML_PARTS_H
#define ORIEL_CLI_REPORT_HTML_PARTS_H

#include "cli/report/trace_merge.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ORIEL_PAGE_ROWS = 256,
    ORIEL_PAGE_WINDOWS = 32,   /* and one for the others */
    ORIEL_PAGE_PAIRS = 150000, /* cells of all heat maps */
    ORIEL_PAGE_BINS = 4096,    /* of the timeline, at the most */
    ORIEL_PAGE_CELLS = 160000, /* bins of all rows and windows in which something was done */
    ORIEL_PAGE_EVENTS = 30000, /* the longest, with their times */
    ORIEL_PAGE_EPOCHS = 15000,
};

struct oriel_page_sums;
struct oriel_page_pairs;
struct oriel_page_time;

struct oriel_page_run {
    const struct oriel_traces *traces;
    uint32_t ranks; /* of MPI_COMM_WORLD */
    uint32_t ranks_per_row, rows;
    uint32_t windows; /* of the page */
    uint32_t *
        window; /* of the traces, for each of the page; UINT32_MAX: all that have none of their own */
    uint32_t *place; /* of the page, for each of the traces */
    struct oriel_page_sums *sums;
    struct oriel_page_pairs *pairs;
    struct oriel_page_time *time;
};

/* An event as the parts want it: of a kind that is known, within bounds. */
struct oriel_page_event {
    uint64_t begin_ns, duration_ns, waiting_ns, bytes;
    uint32_t window; /* of the page */
    int32_t rank;    /* all ranks here are of MPI_COMM_WORLD; -1: none, or not known */
    int32_t target, cause_rank;
    int operation, call; /* one of them; the other is -1 */
    uint8_t path, cause;
};

/* The sum of times by cause, and which cause has most of it. */
uint64_t oriel_page_waiting(const uint64_t by_cause[ORIEL_COUNTED_CAUSES], unsigned *cause);

struct oriel_page_sums *oriel_page_sums_new(uint32_t windows);
void oriel_page_sums_add(struct oriel_page_sums *sums, const struct oriel_page_event *event);
void oriel_page_sums_json(const struct oriel_page_sums *sums, uint32_t window, json_t *out);
void oriel_page_sums_free(struct oriel_page_sums *sums);

struct oriel_page_pairs *oriel_page_pairs_new(const struct oriel_page_run *run);
void oriel_page_pairs_add(struct oriel_page_pairs *pairs, const struct oriel_page_event *event);
/* How many ranks a cell is for in the end, which pairs_json of all windows then uses. */
uint32_t oriel_page_pairs_fit(struct oriel_page_pairs *pairs);
void oriel_page_pairs_json(const struct oriel_page_pairs *pairs, uint32_t window, json_t *out);
void oriel_page_pairs_free(struct oriel_page_pairs *pairs);

struct oriel_page_time *oriel_page_time_new(const struct oriel_page_run *run);
void oriel_page_time_add(struct oriel_page_time *time, const struct oriel_page_event *event);
/* The events of a rank are all there: its epochs that are still open end. */
void oriel_page_time_rank_end(struct oriel_page_time *time, int32_t rank);
/* "timeline", "events" and "epochs" of the page, and then "bins" of each window. */
void oriel_page_time_json(struct oriel_page_time *time, json_t *out);
void oriel_page_time_window_json(const struct oriel_page_time *time, uint32_t window, json_t *out);
void oriel_page_time_free(struct oriel_page_time *time);

#endif
