/* Reads the traces of one run: all rank-*.oriel of a folder, their windows put together by id, their clocks aligned to rank 0's.
 * Files that are truncated, foreign, of another version or of another run are told in one line each; what can be read of them
 * is, and what makes no sense in them is left out: ranks, targets, kinds and causes are within their bounds, texts are UTF-8
 * without control characters.  report*.c, the pages and the exporters call. */
#ifndef ORIEL_CLI_REPORT_TRACE_MERGE_H
#define ORIEL_CLI_REPORT_TRACE_MERGE_H

#include "observe/stats/record.h"
#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct oriel_traced_rank {
    int32_t world_rank;
    struct oriel_trace_header header;
    bool ended;      /* came to MPI_Finalize */
    uint64_t events; /* that can be read */
    uint64_t dropped;
    int64_t first_ns, last_ns; /* aligned: since the earliest event of the run */
    uint64_t
        error_ns; /* how far off its times may be; UINT64_MAX: its clock has not been compared, the dates are all there is */
    const char *trouble; /* NULL, or what is wrong with the file */
};

struct oriel_traced_window {
    uint64_t window_id;
    int32_t n;
    int32_t *world_ranks;  /* n; -1 where no file tells */
    uint64_t *sizes_bytes; /* n; 0 where no file tells */
    uint8_t *paths; /* n: enum oriel_counted_path of the rank's memory; 255 where no file tells */
    char name[64], site[128];
    char (*reasons)[160]; /* n */
    uint32_t flavour;
    int64_t disp_unit;
};

/* An event with its times since the earliest of the run, on rank 0's clock, and indices into the tables below. */
struct oriel_trace_record {
    int64_t begin_ns, end_ns;
    uint32_t rank;   /* index of oriel_traced_rank */
    uint32_t window; /* index of oriel_traced_window */
    const struct oriel_trace_event
        *event; /* bytes, target, kind, times of the own clock: as they are in the file */
};

struct oriel_traces {
    struct oriel_traced_rank *ranks; /* by world_rank */
    size_t ranks_count;
    struct oriel_traced_window *windows; /* by creation */
    size_t windows_count;
    int64_t last_ns; /* of all */
};

/* False, with a line on complaints, when there is nothing that can be read. */
bool oriel_traces_open(const char *folder, FILE *complaints, struct oriel_traces **out);

/* Calls visit for each event, rank by rank, each rank's in the order of its file: a thread's by their ends.  False from visit
 * ends it.  Files are read block by block, so millions of events are no trouble; the event is gone when visit returns. */
void oriel_traces_each(const struct oriel_traces *traces,
                       bool (*visit)(const struct oriel_trace_record *event, void *context),
                       void *context);

void oriel_traces_close(struct oriel_traces *traces);

#endif
