/* The words for what is in traces, by the rows of observe/counters.def.  report*.c call. */
#ifndef ORIEL_CLI_TRACE_NAMES_H
#define ORIEL_CLI_TRACE_NAMES_H

#include "observe/record.h"
#include "observe/trace_format.h"

extern const char *const oriel_operation_names[ORIEL_COUNTED_OPERATIONS];
extern const char *const oriel_path_names[ORIEL_COUNTED_PATHS];
extern const char *const oriel_call_names[ORIEL_COUNTED_CALLS];
extern const char *const oriel_cause_names[ORIEL_COUNTED_CAUSES];

/* Of an event of the reader's: "put", "fence". */
const char *oriel_kind_name(uint8_t kind);

/* Of a window; "window" where it is not known, e.g. the host's. */
const char *oriel_flavour_name(uint32_t flavour);

#endif
