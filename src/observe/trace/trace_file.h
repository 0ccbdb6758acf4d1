/* This process's trace file (trace_format.h): made, written block by block, ended.  One thread calls, the writer's
 * (trace_write.c); nothing here allocates, and nothing but the disk is waited for. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_FILE_H
#define ORIEL_OBSERVE_TRACE_TRACE_FILE_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>

/* Makes path anew.  What an earlier run has left there is replaced, anything else is left alone: NULL, or why it cannot be, for
 * as long as the process lives. */
const char *oriel_trace_file_open(const char *path, uint64_t limit_bytes);

/* Whether what is there was written by an earlier run, or by this one. */
bool oriel_trace_file_is_trace(const char *path);

/* Writes the header, whose checksum it fills; to be called first. */
bool oriel_trace_file_head(struct oriel_trace_header *header);

/* Appends a block, in two pieces of which the second may be empty, where there is room for it: below the limit, and on the disk.
 * The first time that the disk refuses there is a line, and from then on nothing is written any more.  dropped: by others. */
bool oriel_trace_file_append(enum oriel_block_type type, const void *first, size_t first_bytes,
                             const void *second, size_t second_bytes, uint64_t dropped);

/* The same of events, which count as dropped where there is no room. */
void oriel_trace_file_events(const struct oriel_trace_event *events, size_t count,
                             uint64_t dropped);

/* The last clock (NULL: none) and the end, for which there is room in any case, if need be in the place of the last events. */
void oriel_trace_file_end(const struct oriel_trace_clock *clock, uint64_t end_ns, uint64_t dropped);

/* Without an end, e.g. because nothing has begun; an empty file is taken away. */
void oriel_trace_file_close(void);

#endif
