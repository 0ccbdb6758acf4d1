/* Reads one trace file (observe/trace/trace_format.h) and validates everything in it. All returned
 * data has been checked, and the rest is reported.  trace_merge.c merges the files of a run. */
#ifndef ORIEL_CLI_REPORT_TRACE_READER_H
#define ORIEL_CLI_REPORT_TRACE_READER_H

#include "base/code_address.h"
#include "observe/stats/process_record.h"
#include "observe/stats/record.h"
#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    ORIEL_TRACE_WINDOWS_MOST = 1 << 16,
    ORIEL_TRACE_SITES_MOST = 1 << 12,
    ORIEL_TRACE_RANKS_MOST = 1 << 20
};

/* The source of bytes: a file, or memory when fd is -1. */
struct oriel_trace_source {
    int fd;
    const unsigned char *bytes;
    uint64_t len_bytes;
};

/* A window of one file. The strings of head are terminated, UTF-8 and without control
 * characters. */
struct oriel_trace_file_window {
    uint64_t since_bytes; /* position of its first description; earlier events cannot refer to it */
    uint32_t ranks_count; /* at most head.n */
    int32_t *world_ranks;
    struct oriel_trace_window head; /* without its ranks */
};

/* A pause of a file, with the sum of the earlier ones. */
struct oriel_trace_pause {
    uint64_t begin_ns, duration_ns, before_ns;
};

struct oriel_trace_parsed {
    struct oriel_trace_header header;         /* with strings cleaned in the same way */
    struct oriel_trace_file_window **windows; /* by window number; NULL when not described */
    uint32_t windows_count;
    /* of call sites, by number; [0] and those that are not described are empty */
    struct oriel_code_address *places;
    uint32_t places_count;
    /* names by number, cleaned in the same way; "" for those that are not described */
    char (*regions)[64];
    uint32_t regions_count;
    struct oriel_trace_pause *pauses; /* by time */
    size_t pauses_count;
    struct oriel_trace_selection selection; /* filter is cleaned; sample is 1 or more */
    struct oriel_trace_host host;           /* cleaned; "": the file does not have it */
    struct oriel_trace_clock clocks[2];     /* the first and the last measurement */
    uint32_t clocks_count;
    bool ended;
    uint64_t events;  /* number of valid events, without marks */
    uint64_t marks;   /* number of valid marks */
    uint64_t invalid; /* number of invalid events and marks, which are left out */
    uint64_t dropped;
    uint64_t paused_ns; /* of its marks */
    /* On the process's clock. The run begins in MPI_Init and ends in MPI_Finalize, or with the last
     * event or mark of a process that did not reach it. */
    uint64_t begin_ns, end_ns;
    uint64_t end_bytes; /* the file is not read beyond this position */
    char problem[200];  /* "" or the problem with the file */
};

/* Returns false when nothing can be read, with the reason in problem. The result must be freed in
 * both cases. */
bool oriel_trace_parse(const struct oriel_trace_source *source, struct oriel_trace_parsed *out);
void oriel_trace_parsed_free(struct oriel_trace_parsed *parsed);

/* How much of that time was paused. */
uint64_t oriel_trace_paused_ns(const struct oriel_trace_parsed *parsed, uint64_t begin_ns,
                               uint64_t duration_ns);

/* Calls visit for each valid event, and mark (unless it is NULL) for each valid mark, in the order
 * of the file. Stops when one returns false, and returns that. */
struct oriel_trace_visitor {
    bool (*visit)(const struct oriel_trace_event *event, void *context);
    bool (*mark)(const struct oriel_trace_mark *mark, void *context);
    void *context;
};
bool oriel_trace_events_visit(const struct oriel_trace_source *source,
                              const struct oriel_trace_parsed *parsed,
                              const struct oriel_trace_visitor *visitor);

#endif
