/* Shared by the parts of the HTML page. html.c reads the events of a run once and passes each to
 * the sums (html_sums.c), the call sites (html_sites.c), the pairs of ranks (html_pairs.c) and the
 * timeline (html_time.c). Each
 * part bounds its memory and produces JSON.
 *
 * Up to ORIEL_HTML_ROWS ranks of MPI_COMM_WORLD have a row each; more ranks share rows. The windows
 * with the most time in calls are shown separately, all others as one. */
#ifndef ORIEL_CLI_REPORT_HTML_PARTS_H
#define ORIEL_CLI_REPORT_HTML_PARTS_H

#include "cli/report/trace_merge.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ORIEL_HTML_ROWS = 256,
    ORIEL_HTML_WINDOWS = 32,   /* and one for the other windows */
    ORIEL_HTML_SITES = 2000,   /* rows of call sites; and those of the others */
    ORIEL_HTML_PAIRS = 150000, /* cells of all heat maps */
    ORIEL_HTML_BINS = 4096,    /* of the timeline, at most */
    ORIEL_HTML_CELLS = 160000, /* non-empty bins of all rows and windows */
    ORIEL_HTML_EVENTS = 30000, /* the longest events, with their times */
    ORIEL_HTML_EPOCHS = 15000,
    ORIEL_HTML_MARKS = 5000, /* the longest regions; and pauses */
};

struct oriel_html_sums;
struct oriel_html_sites;
struct oriel_html_pairs;
struct oriel_html_time;
struct oriel_html_marks;

struct oriel_html_run {
    const struct oriel_traces *traces;
    uint32_t ranks; /* of MPI_COMM_WORLD */
    uint32_t ranks_per_row, rows;
    uint32_t windows; /* number of windows on the page */
    /* From page window to trace window; UINT32_MAX for the combined window of all others. */
    uint32_t *window;
    uint32_t *place; /* from trace window to page window */
    struct oriel_html_sums *sums;
    struct oriel_html_sites *sites;
    struct oriel_html_pairs *pairs;
    struct oriel_html_time *time;
    struct oriel_html_marks *marks;
};

/* An event with a known kind and all indices in bounds. */
struct oriel_html_event {
    uint64_t begin_ns, duration_ns, waiting_ns, bytes;
    uint64_t time_ns; /* that it stands for */
    uint32_t window;  /* page window */
    uint32_t place;   /* of its call site, in the run; 0: unknown */
    uint32_t weight;  /* number of operations that it stands for */
    int32_t rank;     /* All ranks here are of MPI_COMM_WORLD; -1: none or unknown. */
    int32_t target, cause_rank;
    int operation, call; /* one of the two; the other is -1 */
    uint8_t kind;        /* the same as enum oriel_trace_kind */
    uint8_t path, cause;
};

/* Returns the sum of waiting times, and the cause with the largest share. */
uint64_t oriel_html_waiting(const uint64_t by_cause[ORIEL_COUNTED_CAUSES], unsigned *cause);

struct oriel_html_sums *oriel_html_sums_new(uint32_t windows);
void oriel_html_sums_add(struct oriel_html_sums *sums, const struct oriel_html_event *event);
void oriel_html_sums_json(const struct oriel_html_sums *sums, uint32_t window, json_t *out);
void oriel_html_sums_free(struct oriel_html_sums *sums);

struct oriel_html_sites *oriel_html_sites_new(const struct oriel_html_run *run);
void oriel_html_sites_add(struct oriel_html_sites *sites, const struct oriel_html_event *event);
/* After the last event: selects the rows and places of the page. */
void oriel_html_sites_fit(struct oriel_html_sites *sites);
/* The page's place of a place of the run; 0: one of the others. */
uint32_t oriel_html_sites_place(const struct oriel_html_sites *sites, uint32_t place);
/* "places" of the page, and "sites" of each window. */
json_t *oriel_html_places_json(const struct oriel_html_sites *sites);
void oriel_html_sites_json(const struct oriel_html_sites *sites, uint32_t window, json_t *out);
void oriel_html_sites_free(struct oriel_html_sites *sites);

struct oriel_html_pairs *oriel_html_pairs_new(const struct oriel_html_run *run);
void oriel_html_pairs_add(struct oriel_html_pairs *pairs, const struct oriel_html_event *event);
/* Returns the number of ranks per cell, which pairs_json then uses for all windows. */
uint32_t oriel_html_pairs_fit(struct oriel_html_pairs *pairs);
void oriel_html_pairs_json(const struct oriel_html_pairs *pairs, uint32_t window, json_t *out);
void oriel_html_pairs_free(struct oriel_html_pairs *pairs);

/* Reads the regions and pauses of the run. */
struct oriel_html_marks *oriel_html_marks_new(const struct oriel_traces *traces);
/* Whether a pause of the rank began since the last call, before this time. Ranks and times are in
 * ascending order. */
bool oriel_html_marks_pause_passed(struct oriel_html_marks *marks, int32_t rank, uint64_t at_ns);
/* "region_names", "regions" and "pauses" of the page. */
void oriel_html_marks_json(struct oriel_html_marks *marks, const struct oriel_html_sites *sites,
                           json_t *out);
void oriel_html_marks_free(struct oriel_html_marks *marks);

struct oriel_html_time *oriel_html_time_new(const struct oriel_html_run *run);
void oriel_html_time_add(struct oriel_html_time *time, const struct oriel_html_event *event);
/* Called after the last event of a rank: ends its open epochs. */
void oriel_html_time_rank_end(struct oriel_html_time *time, int32_t rank);
/* "timeline", "events" and "epochs" of the page, and "bins" of each window. */
void oriel_html_time_json(struct oriel_html_time *time, json_t *out);
void oriel_html_time_window_json(const struct oriel_html_time *time, uint32_t window, json_t *out);
void oriel_html_time_free(struct oriel_html_time *time);

#endif
