/* What changed between two runs, or the same tables of one run.
 *
 * Windows of a run with the same name, function and call site are one entry: a program may create
 * one in a loop. Entries of two runs are matched by these, then by weaker keys, in the order of
 * creation (compare.c). Call sites and regions are matched, too (compare_sites.c). Runs of
 * different numbers of ranks are compared by means over the ranks. */
#ifndef ORIEL_CLI_REPORT_COMPARE_H
#define ORIEL_CLI_REPORT_COMPARE_H

#include "cli/report/reported_run.h"

#include <jansson.h>

enum oriel_compared_table {
    ORIEL_COMPARED_OPERATIONS,
    ORIEL_COMPARED_PATHS,
    ORIEL_COMPARED_CALLS,
    ORIEL_COMPARED_CAUSES,
    ORIEL_COMPARED_RANKS, /* the ranks that others waited for; none if is_per_rank */
    ORIEL_COMPARED_TABLES
};

/* Only regions have the last two: their time in window calls, and the number of operations. */
enum oriel_quantity {
    ORIEL_COUNT,
    ORIEL_BYTES,
    ORIEL_TIME_NS,
    ORIEL_WAITING_NS,
    ORIEL_CALLS_NS,
    ORIEL_OPERATIONS,
    ORIEL_QUANTITIES
};

/* Of the first run and of the second. */
struct oriel_amounts {
    double of[ORIEL_QUANTITIES][2];
};

struct oriel_compared_row {
    enum oriel_compared_table table;
    int32_t row; /* of the table of counters, or a rank in MPI_COMM_WORLD */
    struct oriel_amounts amounts;
};

struct oriel_compared_window {
    const struct oriel_window_sum *first[2]; /* of the entry; NULL in a run without it */
    uint64_t windows[2];
    struct oriel_amounts total;      /* of its operations and calls */
    struct oriel_compared_row *rows; /* by table, the largest change first */
    size_t rows_count;
};

struct oriel_compared_site {
    const struct oriel_site_sum *first[2]; /* NULL in a run without it */
    struct oriel_amounts amounts;
};

struct oriel_compared_region {
    const char *name; /* "": regions for whose names there was no room */
    struct oriel_amounts amounts;
};

struct oriel_comparison {
    const struct oriel_reported_run *runs[2]; /* the second is NULL for one run */
    bool is_per_rank;
    bool has_operation_times; /* in all runs: only traces have them */
    bool has_same_times;      /* the runs measured the time of operations alike */
    struct oriel_amounts total;
    struct oriel_compared_window *windows; /* the largest change first */
    size_t windows_count;
    struct oriel_compared_site *sites; /* the largest change first */
    size_t sites_count;
    struct oriel_compared_region *regions; /* the largest change first */
    size_t regions_count;
    char **notes; /* what the reader must know before the figures */
    size_t notes_count;
};

/* Two times that differ by less are the same: runs of one program differ as much. */
#define ORIEL_SAME_TIME 0.05

/* second is NULL for the table of one run. */
void oriel_comparison_make(const struct oriel_reported_run *first,
                           const struct oriel_reported_run *second, struct oriel_comparison *out);
void oriel_comparison_free(struct oriel_comparison *comparison);

/* Part of oriel_comparison_make: fills in sites and regions. */
void oriel_comparison_add_places(struct oriel_comparison *comparison);

/* Negative if one changed more than other. By time first: counts matter for what they cost. */
int oriel_amounts_order(const struct oriel_amounts *one, const struct oriel_amounts *other);

bool oriel_quantity_is_time(enum oriel_quantity quantity);

/* Whether the amounts differ by more than noise. Counts and bytes have none, unless they are means
 * over different numbers of ranks. */
bool oriel_amount_changed(const struct oriel_comparison *comparison,
                          const struct oriel_amounts *amounts, enum oriel_quantity quantity);

/* "operations", and "put" or "3" in out. */
const char *oriel_compared_table_name(enum oriel_compared_table table);
const char *oriel_compared_row_name(const struct oriel_compared_row *row, char out[32]);

/* "main at halo.c:42" of the run, which must have it. */
void oriel_compared_site_text(const struct oriel_comparison *comparison,
                              const struct oriel_compared_site *site, int side,
                              char out[ORIEL_CODE_ADDRESS_TEXT]);

extern const char *const oriel_quantity_names[ORIEL_QUANTITIES];

void oriel_comparison_print(const struct oriel_comparison *comparison, FILE *out);

/* The object of docs/reference/file-formats.md; for a page with at most windows_most windows, call
 * sites and regions, and ranks_most ranks of each window, and how many are left out. */
json_t *oriel_comparison_json(const struct oriel_comparison *comparison, size_t windows_most,
                              size_t ranks_most);

/* One line for each amount; one run has a column "value", two have "before" and "after". */
void oriel_comparison_csv(const struct oriel_comparison *comparison, FILE *out);

#endif
