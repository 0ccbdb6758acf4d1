/* Reads one trace file (observe/trace/trace_format.h), taking nothing in it for granted: what comes out of here has been checked, and
 * what has not is said.  trace.c puts the files of a run together. */
#ifndef ORIEL_CLI_REPORT_TRACE_READER_H
#define ORIEL_CLI_REPORT_TRACE_READER_H

#include "observe/stats/record.h"
#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>

enum { ORIEL_TRACE_WINDOWS_MOST = 1 << 20, ORIEL_TRACE_RANKS_MOST = 1 << 20 };

/* Where the bytes are: a file, or memory where fd is -1. */
struct oriel_trace_source {
    int fd;
    const unsigned char *bytes;
    uint64_t len_bytes;
};

/* A window of one file.  The texts of head are whole, UTF-8 and without control characters. */
struct oriel_trace_described {
    uint64_t since_bytes; /* where it was described first: no event before that is its */
    uint32_t ranks_count; /* at most head.n */
    int32_t *world_ranks;
    struct oriel_trace_window head; /* without its ranks */
};

struct oriel_trace_parsed {
    struct oriel_trace_header header;       /* its texts as above */
    struct oriel_trace_described **windows; /* by number; NULL: not described */
    uint32_t windows_count;
    struct oriel_trace_clock clocks[2]; /* the first and the last one */
    uint32_t clocks_count;
    bool ended;
    uint64_t events; /* that make sense */
    uint64_t odd;    /* that do not, and are left out */
    uint64_t dropped;
    uint64_t first_ns, last_ns; /* of the process's clock, of events; 0 where there are none */
    uint64_t end_bytes;         /* what comes behind is not read */
    char trouble[200];          /* "": none */
};

/* False where nothing can be read of it, with the reason in trouble.  To be freed in any case. */
bool oriel_trace_parse(const struct oriel_trace_source *source, struct oriel_trace_parsed *out);
void oriel_trace_parsed_free(struct oriel_trace_parsed *parsed);

/* Calls visit for each event that makes sense, in the order of the file; false from visit ends it, and is returned. */
bool oriel_trace_events_visit(const struct oriel_trace_source *source,
                              const struct oriel_trace_parsed *parsed,
                              bool (*visit)(const struct oriel_trace_event *event, void *context),
                              void *context);

#endif
