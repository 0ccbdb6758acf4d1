/* Shared by the parts of `oriel report`: sums of a run's traces, and the output formats. */
#ifndef ORIEL_CLI_REPORT_REPORT_H
#define ORIEL_CLI_REPORT_REPORT_H

#include "cli/report/reported_run.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct oriel_report_sum {
    /* longest_ns: the longest waiting time of one call */
    uint64_t count, bytes, time_ns, waiting_ns, longest_ns;
};

/* Between two win_ranks of a window: operations, or waits. */
struct oriel_report_pair {
    int32_t from, to;
    uint8_t cause; /* of a wait */
    struct oriel_report_sum sum;
};

struct oriel_pairs {
    struct oriel_report_pair *pairs;
    size_t count, room;
    uint32_t *slots; /* Slots of a hash table: index in pairs, plus 1. */
    size_t slots_count;
};

struct oriel_window_sums {
    struct oriel_report_sum operations[ORIEL_COUNTED_OPERATIONS];
    struct oriel_report_sum paths[ORIEL_COUNTED_PATHS];
    struct oriel_report_sum calls[ORIEL_COUNTED_CALLS];
    struct oriel_report_sum causes[ORIEL_COUNTED_CAUSES];
    struct oriel_pairs busy, waits;
};

/* One for each window of the traces, with pairs sorted in descending order. */
struct oriel_window_sums *oriel_sums_compute(const struct oriel_traces *traces);
void oriel_sums_free(struct oriel_window_sums *sums, const struct oriel_traces *traces);

/* The rank in MPI_COMM_WORLD of a win_rank; -1 when no file contains it. */
int32_t oriel_world_rank(const struct oriel_traces *traces, uint32_t window, int32_t win_rank);

/* The win_rank of a traced rank; -1 when unknown. */
int32_t oriel_win_rank(const struct oriel_traces *traces, uint32_t window, uint32_t rank);

/* Prints the summary of traces that have been summed. */
void oriel_report_print(const struct oriel_reported_run *run, int width, FILE *out);

/* Write the events for the Perfetto viewer and as an OTF2 archive. On failure they return false
 * with a line on standard error. */
bool oriel_report_perfetto(const struct oriel_traces *traces, const char *path);
bool oriel_report_otf2(const struct oriel_traces *traces, const char *folder);

#endif
