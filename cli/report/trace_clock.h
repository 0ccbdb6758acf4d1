/* Puts the times of all processes of a run on rank 0's clock.  trace.c calls. */
#ifndef ORIEL_CLI_REPORT_TRACE_CLOCK_H
#define ORIEL_CLI_REPORT_TRACE_CLOCK_H

#include "cli/report/trace_reader.h"

/* How one machine's clock stands to rank 0's. */
struct oriel_trace_alignment {
    struct oriel_trace_clock first, last; /* the same where there is one only */
    bool is_known;
};

/* From the clocks of all files of one machine; count may be 0. */
void oriel_trace_alignment_add(struct oriel_trace_alignment *alignment,
                               const struct oriel_trace_parsed *file);

/* A process's time, on rank 0's clock. */
int64_t oriel_trace_aligned_ns(const struct oriel_trace_alignment *alignment, uint64_t own_ns);

/* How far off aligned times up to last_ns may be. */
uint64_t oriel_trace_alignment_error_ns(const struct oriel_trace_alignment *alignment,
                                        uint64_t last_ns);

#endif
