/* This process's trace file (trace_format.h): creates it, writes it block by block, ends it. Writer
 * thread only (trace_write.c). It does not allocate, and waits only for the disk. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_FILE_H
#define ORIEL_OBSERVE_TRACE_TRACE_FILE_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>

/* Creates path. Replaces a trace of an earlier run, and leaves any other file alone. Returns NULL,
 * or why it failed, valid for the lifetime of the process. */
const char *oriel_trace_file_open(const char *path, uint64_t limit_bytes);

/* Whether the file is a trace of an earlier run, or of this one. */
bool oriel_trace_file_is_trace(const char *path);

/* Writes the header and sets its checksum. Call it first. */
bool oriel_trace_file_head(struct oriel_trace_header *header);

/* Prints a warning if the disk has refused a write, once. */
void oriel_trace_file_warn(void);

/* Appends a block in two pieces, of which the second may be empty, if there is room below the limit
 * and on the disk. Events may need it: after it has found no room, or the disk has refused once, no
 * events are written. dropped: by the rings. */
bool oriel_trace_file_append(enum oriel_block_type type, const void *first, size_t first_bytes,
                             const void *second, size_t second_bytes, uint64_t dropped);

/* Appends the description of a call site, and keeps room for another one at the end (is_again).
 * Descriptions fill at most half of a file: events of further call sites have none. */
void oriel_trace_file_site(const struct oriel_trace_site *site, bool is_again, uint64_t dropped);

/* Appends events; they count as dropped if there is no room. */
void oriel_trace_file_events(const struct oriel_trace_event *events, size_t count,
                             uint64_t dropped);

/* Appends the last clock (NULL: none) and the end. There is always room for them, if necessary by
 * replacing the last events. */
void oriel_trace_file_end(const struct oriel_trace_clock *clock, uint64_t end_ns, uint64_t dropped);

/* Closes without an end, e.g. because tracing never began; removes an empty file. */
void oriel_trace_file_close(void);

#endif
