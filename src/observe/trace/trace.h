/* What the observing entries give to the trace: one event for each call, into a ring of the calling thread that a thread of the
 * library's empties into the file (trace_format.h).  Never waits: an event that finds the ring full is dropped and counted. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_H
#define ORIEL_OBSERVE_TRACE_TRACE_H

#include "observe/stats/record.h"
#include "observe/trace/trace_format.h"

#include <stdbool.h>

/* Whether this process is traced; constant between the start and the end of tracing. */
extern bool oriel_tracing __attribute__((visibility("hidden")));

/* Begins, in MPI_Init: opens the file in the folder that ORIEL_TRACE names, starts the writer, reads the clocks.  Where the
 * folder cannot be written: one line, and the program runs untraced.  Rank and size are of MPI_COMM_WORLD. */
void oriel_trace_start(int32_t world_rank, int32_t world_size);

/* A window is there, or something of it has changed: its number in the file.  Cheap when nothing has changed. */
uint32_t oriel_trace_window(const struct oriel_window_record *record, int64_t disp_unit,
                            const int32_t *world_ranks);

void oriel_trace_add(const struct oriel_trace_event *event);

/* Ends, in MPI_Finalize: the clocks again, all rings emptied, the last block. */
void oriel_trace_stop(void);

#endif
