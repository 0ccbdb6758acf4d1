/* The counters by their table, observe/stats/counters.def: the words for what statistics, traces and pages tell.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_COUNTERS_H
#define ORIEL_CLI_COUNTERS_H

#include <stdint.h>
#include <stdio.h>

#include "observe/stats/record.h"

/* Rows, by the enums of observe/stats/record.h. */
struct oriel_counter {
    const char *field, *name, *meaning;
};
extern const struct oriel_counter oriel_counted_operations[ORIEL_COUNTED_OPERATIONS];
extern const struct oriel_counter oriel_counted_paths[ORIEL_COUNTED_PATHS];
extern const struct oriel_counter oriel_counted_calls[ORIEL_COUNTED_CALLS];
extern const struct oriel_counter oriel_counted_causes[ORIEL_COUNTED_CAUSES];

/* All rows, with the keys of JSON and what they mean. */
void oriel_counters_print(FILE *out);

/* Of an event of a trace: "put", "fence". */
const char *oriel_kind_name(uint8_t kind);

/* By enum oriel_flavour: "create", or the second where it is not known, e.g. the host's; and "MPI_Win_create". */
const char *oriel_flavour_name(uint32_t flavour, const char *otherwise);
const char *oriel_flavour_call(uint32_t flavour);

#endif
