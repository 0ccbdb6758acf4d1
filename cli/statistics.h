/* The statistics of a job: the records of its ranks added up, window by window.  statistics.c adds, statistics_text.c and
 * statistics_json.c write.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_STATISTICS_H
#define ORIEL_CLI_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "observe/stats/merged_records.h"

enum { ORIEL_PAIRS_TOLD = 5 };

struct oriel_sum {
    uint64_t count;
    uint64_t bytes;
};

struct oriel_time_sum {
    uint64_t count, time_ns, waiting_ns, waited, longest_ns;
    int32_t longest_rank; /* of MPI_COMM_WORLD */
};

struct oriel_pair {
    int32_t origin, target; /* of MPI_COMM_WORLD; -1: not in it */
    uint64_t operations, bytes;
};

/* What a rank told of its own memory of the window. */
struct oriel_member_told {
    int32_t world_rank;
    bool has_told;
    uint8_t path;
    uint64_t size_bytes;
    const char *reason;                       /* of the record; "" */
    uint64_t caused_ns[ORIEL_COUNTED_CAUSES]; /* that others waited for it */
};

struct oriel_window_sum {
    uint64_t id;
    const char *name, *site; /* of a record; "" */
    uint32_t flavour;
    bool freed;
    uint64_t shared_by;                /* so many windows, if there were too many for one each */
    int32_t n, told;                   /* ranks, and those that gave figures */
    struct oriel_member_told *members; /* n, by rank of the window */
    struct oriel_sum operations[ORIEL_COUNTED_OPERATIONS];
    struct oriel_sum paths[ORIEL_COUNTED_PATHS];
    struct oriel_time_sum calls[ORIEL_COUNTED_CALLS];
    uint64_t causes_ns[ORIEL_COUNTED_CAUSES];
    struct oriel_sum *row; /* n: from the rank whose part is being added, to each */
    struct oriel_pair
        pairs[ORIEL_PAIRS_TOLD]; /* the busiest first; operations is 0 behind the last */
};

enum oriel_has_told { ORIEL_TOLD_NOTHING, ORIEL_TOLD_EARLY, ORIEL_TOLD_ALL };

struct oriel_job_sum {
    const struct oriel_statistics_head *head;
    uint8_t *has_told; /* head->ranks: enum oriel_has_told */
    struct oriel_window_sum *windows;
    size_t windows_count;
    void *places; /* a tree, by which statistics.c finds them */
};

/* From a request to the helper, which must outlive it; false when it is damaged. */
bool oriel_statistics_add(const void *request, size_t len_bytes, struct oriel_job_sum *out);
void oriel_statistics_free(struct oriel_job_sum *job);

/* Serves the request: writes the JSON that it wants, and returns what is to be printed, to be freed. */
char *oriel_statistics_write(const void *request, size_t len_bytes);

void oriel_statistics_print(const struct oriel_job_sum *job, FILE *out);

/* "" or why it could not be written, to be freed. */
char *oriel_statistics_dump(const struct oriel_job_sum *job, const char *path);

#endif
