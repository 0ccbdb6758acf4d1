/* The call sites of this process's trace: their numbers are those of the process's list of places
 * (observe/stats/site_places.h). */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_SITES_H
#define ORIEL_OBSERVE_TRACE_TRACE_SITES_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>

/* The first count places of an array that stays, and whose entries do not change. A second array
 * describes the same places again, with their lines. Events may name them after this call. */
void oriel_trace_sites_set(const struct oriel_code_address *places, uint32_t count);

/* For the writer: passes the descriptions since the last call to take. is_again: it is of the
 * second array. */
void oriel_trace_sites_empty(void (*take)(const struct oriel_trace_site *site, bool is_again));

#endif
