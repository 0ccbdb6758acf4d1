/* The thread that writes this process's trace: it empties the rings into the file at least every 100 ms, so that a process that
 * is killed loses no more.  It makes no MPI calls and takes no signals.  trace.c opens, begins and ends it. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_WRITE_H
#define ORIEL_OBSERVE_TRACE_TRACE_WRITE_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>

/* Starts the thread, which makes the file; path stays the caller's until the end.  NULL, or why it cannot be. */
const char *oriel_trace_writer_open(const char *path, uint64_t limit_bytes);

/* Writes the header and the first clock (NULL: none); from then on events are taken.  header: NULL ends the writer instead.
 * False when it cannot be written, which has been reported. */
bool oriel_trace_writer_begin(struct oriel_trace_header *header,
                              const struct oriel_trace_clock *clock);

/* Everything that is in the rings, the last clock (NULL: none) and the end.  Waits no longer than some seconds for the disk. */
void oriel_trace_writer_end(const struct oriel_trace_clock *clock);

#endif
