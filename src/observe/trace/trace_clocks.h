/* How the processes of a traced run come to one identity and one time: rank 0 draws the first, and its clock is the other.
 * Processes that share a monotonic clock have nothing to find out; for each other machine, its first rank and rank 0 send a
 * message to and fro, and the shortest round trip tells best.  trace.c calls, in MPI_Init and MPI_Finalize. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_CLOCKS_H
#define ORIEL_OBSERVE_TRACE_TRACE_CLOCKS_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>

struct oriel_trace_run {
    uint64_t job[2];
    uint64_t machine[2];
    struct oriel_trace_clock clock;
    bool is_aligned; /* clock is known */
};

/* Who is there, what the run is called, how the clocks stand.  refusal: NULL, or why this rank cannot be traced, which rank 0
 * tells for all.  Of ranks in MPI_COMM_WORLD; waits no longer than some seconds for those that are not there. */
void oriel_trace_clocks_begin(int32_t world_rank, int32_t world_size, const char *refusal,
                              struct oriel_trace_run *out);

/* The clocks again; false where nothing new is known. */
bool oriel_trace_clocks_end(struct oriel_trace_clock *out);

#endif
