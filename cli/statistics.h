/* The statistics of a job: the sum of its ranks' records, for each window.  statistics.c sums the
 * records; statistics_text.c and statistics_json.c write the result. `oriel report` also makes them
 * of traces and of files. */
#ifndef ORIEL_CLI_STATISTICS_H
#define ORIEL_CLI_STATISTICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/region_sums.h"
#include "cli/site_sums.h"
#include "observe/stats/merged_records.h"

/* WINDOWS: in texts, which then name the number of the others. */
enum { ORIEL_PAIRS_SHOWN = 5, ORIEL_WINDOWS_SHOWN = 50 };

struct oriel_sum {
    uint64_t count;
    uint64_t bytes;
    uint64_t time_ns; /* of operations; by path only if they were traced */
    uint64_t waited;  /* the number of operations that waited */
};

struct oriel_time_sum {
    uint64_t count, time_ns, waiting_ns, waited, longest_ns;
    int32_t longest_rank; /* rank in MPI_COMM_WORLD */
};

struct oriel_pair {
    int32_t origin, target; /* ranks in MPI_COMM_WORLD; -1 for a rank that is not in it */
    uint64_t operations, bytes;
};

/* A rank's report of its own memory in the window. */
struct oriel_member_sum {
    int32_t world_rank;
    bool has_reported;
    uint8_t path;
    uint64_t size_bytes;
    const char *reason;                       /* points into the record; may be "" */
    uint64_t caused_ns[ORIEL_COUNTED_CAUSES]; /* the time that others waited for it */
};

struct oriel_window_sum {
    uint64_t id;
    const char *name;                   /* points into a record; may be "" */
    uint32_t place;                     /* of its creating call, in the job's sites; 0: unknown */
    char site[ORIEL_CODE_ADDRESS_TEXT]; /* the same as a text; "" */
    uint32_t flavour;
    bool freed;
    /* number of windows in this sum, when there were too many to count each one */
    uint64_t shared_by;
    int32_t n, reported;              /* n ranks; the number of ranks that reported */
    struct oriel_member_sum *members; /* n, by rank in the window */
    struct oriel_sum operations[ORIEL_COUNTED_OPERATIONS];
    struct oriel_sum paths[ORIEL_COUNTED_PATHS];
    struct oriel_time_sum calls[ORIEL_COUNTED_CALLS];
    uint64_t causes_ns[ORIEL_COUNTED_CAUSES];
    struct oriel_sum *row; /* n: from the rank whose part is being added to each rank */
    /* The busiest first; operations is 0 after the last one. */
    struct oriel_pair pairs[ORIEL_PAIRS_SHOWN];
};

enum oriel_reported_state { ORIEL_REPORTED_NOTHING, ORIEL_REPORTED_EARLY, ORIEL_REPORTED_ALL };

struct oriel_job_sum {
    const struct oriel_statistics_head *head;
    bool is_traced;
    uint64_t events;    /* of a traced run: that were read */
    uint64_t dropped;   /* events of a traced run that are missing in the sums */
    const char *filter; /* of a traced run: the only calls in the sums; NULL or "": all */
    /* of a traced run: each traced operation stands for this number of operations */
    uint32_t sample;
    uint64_t paused_ns;    /* of all ranks together: not observed, by MPI_Pcontrol */
    int32_t paused_ranks;  /* that paused */
    uint8_t *has_reported; /* head->ranks values of enum oriel_reported_state */
    struct oriel_window_sum *windows;
    size_t windows_count;
    struct oriel_site_sums sites;
    struct oriel_region_sums regions;
    void *window_tree; /* a tree for statistics.c, from window to index */
};

/* Reads a request to the helper, which must outlive the result. Returns false when it is
 * damaged. */
bool oriel_statistics_add(const void *request, size_t len_bytes, struct oriel_job_sum *out);
void oriel_statistics_free(struct oriel_job_sum *job);

/* Appends a window of n ranks that nothing is known about; later calls may move it. */
struct oriel_window_sum *oriel_statistics_window_append(struct oriel_job_sum *job, int32_t n);

/* Adds the row of one rank, which is complete, to the busiest pairs. */
void oriel_statistics_row_finish(struct oriel_window_sum *window, int32_t world_rank);

/* Serves a request: writes the requested JSON file, and returns the text to print, to be freed. */
char *oriel_statistics_write(const void *request, size_t len_bytes);

void oriel_statistics_print(const struct oriel_job_sum *job, int width, FILE *out);

/* The object of docs/reference/file-formats.md. */
json_t *oriel_statistics_json(const struct oriel_job_sum *job);

/* Returns "" or the reason for failure, to be freed. */
char *oriel_statistics_dump(const struct oriel_job_sum *job, const char *path);

#endif
