/* The thread that writes this process's trace. It empties the rings into the file every 50 ms, or
 * earlier when a ring is half full, which bounds the loss when the process is killed. It makes no
 * MPI calls and handles no signals. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_WRITE_H
#define ORIEL_OBSERVE_TRACE_TRACE_WRITE_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>

/* Starts the thread, which creates the file. path must stay valid until the end. Returns NULL, or
 * why it failed. */
const char *oriel_trace_writer_open(const char *path, uint64_t limit_bytes);

/* Writes the header, the host, what is traced (NULL: everything) and the first clock (NULL: none);
 * from then on events are written. header NULL ends the writer instead. Returns false after a
 * failed write, which has been reported. */
bool oriel_trace_writer_begin(struct oriel_trace_header *header,
                              const struct oriel_trace_host *host,
                              const struct oriel_trace_selection *selection,
                              const struct oriel_trace_clock *clock);

/* Writes everything in the rings, the last clock (NULL: none) and the end, with that time. Waits at
 * most some seconds for the disk. */
void oriel_trace_writer_end(const struct oriel_trace_clock *clock, uint64_t end_ns);

#endif
