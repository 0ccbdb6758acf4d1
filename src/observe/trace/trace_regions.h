/* The names of regions in this process's trace: their numbers are those of the rows in the
 * process's record (observe/stats/process_record.h). */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_REGIONS_H
#define ORIEL_OBSERVE_TRACE_TRACE_REGIONS_H

#include "observe/stats/process_record.h"
#include "observe/trace/trace_format.h"

/* The first count rows, whose names do not change. Marks may name them after this call. One thread
 * at a time calls it. */
void oriel_trace_regions_set(const struct oriel_counted_region *rows, uint32_t count);

/* For the writer: passes the names since the last call to take. */
void oriel_trace_regions_empty(void (*take)(const struct oriel_trace_region *region));

#endif
