/* How the processes of a traced run agree on one run id and one clock: rank 0 draws the id, and its
 * clock is the reference. Processes with a common monotonic clock need no measurement. For each
 * other node, its first rank and rank 0 exchange messages, and the shortest round trip gives the
 * best estimate. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_CLOCKS_H
#define ORIEL_OBSERVE_TRACE_TRACE_CLOCKS_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>

struct oriel_trace_run {
    uint64_t job[2];
    uint64_t node[2];
    struct oriel_trace_clock clock;
    bool is_aligned; /* clock is known */
};

/* Collects which ranks are traced, the run's id and the clocks. refusal: NULL, or why this rank
 * cannot be traced, which rank 0 reports for all. Ranks are of MPI_COMM_WORLD. Waits at most some
 * seconds for absent ranks. */
void oriel_trace_clocks_begin(int32_t world_rank, int32_t world_size, const char *refusal,
                              struct oriel_trace_run *out);

/* Measures the clocks again; false if there is no new result. */
bool oriel_trace_clocks_end(struct oriel_trace_clock *out);

#endif
