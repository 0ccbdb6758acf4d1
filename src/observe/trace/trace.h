/* The interface of the observing entries to the trace: one event per call. Events go into a ring of
 * the calling thread, which a thread of the library empties into the file (trace_format.h). Never
 * waits: an event that finds the ring full is dropped and counted. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_H
#define ORIEL_OBSERVE_TRACE_TRACE_H

#include "observe/stats/record.h"
#include "observe/trace/trace_format.h"

#include <stdbool.h>

/* Whether this process is traced; constant between the start and the end of tracing. */
extern bool oriel_tracing __attribute__((visibility("hidden")));

/* In MPI_Init: opens the file in the folder ORIEL_TRACE, starts the writer, compares the clocks. If
 * the folder cannot be written, one warning is printed and the program runs untraced. Rank and size
 * are of MPI_COMM_WORLD. */
void oriel_trace_start(int32_t world_rank, int32_t world_size);

/* A window is new, or its description has changed. Returns its number in the file. Cheap if nothing
 * has changed. */
uint32_t oriel_trace_window(const struct oriel_window_record *record, int64_t disp_unit,
                            const int32_t *world_ranks);

void oriel_trace_add(const struct oriel_trace_event *event);

/* Has everything written that the caller's thread has added. Waits at most some seconds for the
 * disk. Returns at once if this process is not traced. */
void oriel_trace_flush(void);

/* In MPI_Finalize, which the program reached at end_ns: compares the clocks again, empties all
 * rings, writes the last block. */
void oriel_trace_stop(uint64_t end_ns);

#endif
