/* The counters as a table, generated from observe/stats/counters.def: names and descriptions for
 * statistics, traces and reports. */
#ifndef ORIEL_CLI_COUNTERS_H
#define ORIEL_CLI_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "observe/stats/record.h"

/* Rows, indexed by the enums of observe/stats/record.h. */
struct oriel_counter {
    const char *field, *name, *meaning;
};
extern const struct oriel_counter oriel_counted_operations[ORIEL_COUNTED_OPERATIONS];
extern const struct oriel_counter oriel_counted_paths[ORIEL_COUNTED_PATHS];
extern const struct oriel_counter oriel_counted_calls[ORIEL_COUNTED_CALLS];
extern const struct oriel_counter oriel_counted_causes[ORIEL_COUNTED_CAUSES];

/* Prints all rows with their JSON keys and meanings. */
void oriel_counters_print(FILE *out);

/* Whether a kind of trace event exists; and its name: "put", "fence". */
bool oriel_kind_exists(uint8_t kind);
const char *oriel_kind_name(uint8_t kind);

/* Indexed by enum oriel_flavour. Returns "create", or otherwise when the flavour is unknown, for
 * example a window of the host; and "MPI_Win_create". */
const char *oriel_flavour_name(uint32_t flavour, const char *otherwise);
const char *oriel_flavour_call(uint32_t flavour);

#endif
