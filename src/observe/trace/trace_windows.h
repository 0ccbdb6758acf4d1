/* The windows of this process's trace: their numbers, and the list of their descriptions for the
 * writer. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_WINDOWS_H
#define ORIEL_OBSERVE_TRACE_TRACE_WINDOWS_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>

/* Passes all descriptions since the last call to take, in order; world_ranks has count entries. */
void oriel_trace_windows_empty(void (*take)(const struct oriel_trace_window *window, size_t count));

#endif
