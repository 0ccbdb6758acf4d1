/* Converts the times of all processes of a run to rank 0's clock. */
#ifndef ORIEL_CLI_REPORT_TRACE_CLOCK_H
#define ORIEL_CLI_REPORT_TRACE_CLOCK_H

#include "cli/report/trace_reader.h"

/* The relation of one node's clock to rank 0's. */
struct oriel_trace_alignment {
    struct oriel_trace_clock first, last; /* equal when there is only one measurement */
    bool is_known;
};

/* Adds the clock measurements of a file of this node; the file may have none. */
void oriel_trace_alignment_add(struct oriel_trace_alignment *alignment,
                               const struct oriel_trace_parsed *file);

/* Converts a process's time to rank 0's clock. */
int64_t oriel_trace_aligned_ns(const struct oriel_trace_alignment *alignment, uint64_t own_ns);

/* The maximum error of aligned times up to last_ns. */
uint64_t oriel_trace_alignment_error_ns(const struct oriel_trace_alignment *alignment,
                                        uint64_t last_ns);

#endif
