/* The windows of this process's trace: their numbers, and their descriptions on the way to the file.  trace.h's
 * oriel_trace_window describes; the writer (trace_write.c) takes. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_WINDOWS_H
#define ORIEL_OBSERVE_TRACE_TRACE_WINDOWS_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>

/* Gives all descriptions that have come since the last time to take, in their order: world_ranks has count of them. */
void oriel_trace_windows_empty(void (*take)(const struct oriel_trace_window *window, size_t count));

#endif
