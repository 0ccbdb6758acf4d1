/* Reads the traces of one run: all rank-*.oriel files of a folder. Windows are merged by id, and
 * clocks are aligned to rank 0's. Truncated and foreign files, and files of another version or run,
 * are reported in one line each; their readable parts are used. Invalid data is left out: ranks,
 * targets, kinds and causes are within bounds, and strings are UTF-8 without control characters. */
#ifndef ORIEL_CLI_REPORT_TRACE_MERGE_H
#define ORIEL_CLI_REPORT_TRACE_MERGE_H

#include "cli/site_sums.h"
#include "observe/stats/record.h"
#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct oriel_traced_rank {
    int32_t world_rank;
    struct oriel_trace_header header;
    bool ended; /* reached MPI_Finalize */
    /* Its figures are known: --trace-filter selects it, and its file is not cut off before the
     * first event. */
    bool is_counted;
    uint64_t events; /* readable events */
    uint64_t dropped;
    uint64_t paused_ns; /* by MPI_Pcontrol */
    /* Maximum error of its times. UINT64_MAX: the clock was not compared, and times are based
     * on the system dates. */
    uint64_t error_ns;
    const char *problem; /* NULL, or the problem with the file */
};

enum { ORIEL_TRACED_PATH_UNKNOWN = 255 };

struct oriel_traced_window {
    uint64_t window_id;
    bool is_freed; /* by a call that is not traced */
    int32_t n;
    int32_t *world_ranks;  /* n; -1 when no file contains it */
    uint64_t *sizes_bytes; /* n; 0 when no file contains it */
    /* n: enum oriel_counted_path of the rank's memory; ORIEL_TRACED_PATH_UNKNOWN when no file
     * contains it */
    uint8_t *paths;
    char name[64];
    uint32_t place; /* of its creating call: index into sites.places; 0: unknown */
    char site[ORIEL_CODE_ADDRESS_TEXT]; /* the same as a text; "" */
    char (*reasons)[160];               /* n */
    uint32_t flavour;
    int64_t disp_unit;
};

/* An event with its times since the beginning of the run, on rank 0's clock, and indices into
 * the tables below. */
struct oriel_trace_record {
    int64_t begin_ns, end_ns;
    uint32_t rank;   /* index into ranks */
    uint32_t window; /* index into windows */
    uint32_t place;  /* of its call site: index into sites.places; 0: unknown */
    /* The number of operations that it stands for: 1, or the sample of a sampled trace. */
    uint32_t weight;
    /* The time of that number of operations (observe/stats/sampled_time.h), and of their waits. */
    uint64_t time_ns;
    /* the event as in the file: bytes, target, kind, and times of the process's own clock */
    const struct oriel_trace_event *event;
};

/* A region or a pause, with its times in the same way. */
struct oriel_trace_mark_record {
    int64_t begin_ns, end_ns;
    uint32_t rank; /* index into ranks */
    /* of a region: from the table of its rank's file; "": one of those without a name */
    const char *name;
    uint64_t paused_ns; /* of a region: the part of its time in pauses, which is not observed */
    const struct oriel_trace_mark *mark;
};

struct oriel_traces {
    struct oriel_traced_rank *ranks; /* sorted by world_rank */
    size_t ranks_count;
    size_t ranks_counted; /* of them: is_counted */
    /* in the order of the lowest rank's trace, then those of the next ranks */
    struct oriel_traced_window *windows;
    size_t windows_count;
    struct oriel_site_sums sites; /* the places of all call sites, without calls */
    /* the run's length, from the first MPI_Init to the last MPI_Finalize or event */
    int64_t last_ns;
    char host_version[ORIEL_HOST_VERSION]; /* "MPICH 5.0.2"; "": unknown */
    const char *filter;                    /* "": all calls were traced */
    uint32_t sample;                       /* one in that number of operations was traced */
};

/* Returns false, with a line on complaints, when nothing can be read. */
bool oriel_traces_open(const char *folder, FILE *complaints, struct oriel_traces **out);

/* Calls visit for each event, rank by rank, each rank in the order of its file: the events of a
 * thread by their end times. Stops when visit returns false. Files are read block by block, with
 * bounded memory; the event is valid until visit returns. */
void oriel_traces_each(const struct oriel_traces *traces,
                       bool (*visit)(const struct oriel_trace_record *event, void *context),
                       void *context);

/* The same for regions and pauses. */
void oriel_traces_marks_each(const struct oriel_traces *traces,
                             bool (*visit)(const struct oriel_trace_mark_record *mark,
                                           void *context),
                             void *context);

void oriel_traces_close(struct oriel_traces *traces);

#endif
