/* The regions of a job (oriel_region_begin): the sums of each name over ranks and threads. */
#ifndef ORIEL_CLI_REGION_SUMS_H
#define ORIEL_CLI_REGION_SUMS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hash_table.h"
#include "observe/stats/process_record.h"

struct oriel_region_sum {
    char name[ORIEL_REGION_NAME]; /* "": those for whose names there was no room */
    uint64_t count, time_ns, calls_ns, waiting_ns, operations, bytes;
};

struct oriel_region_sums {
    struct oriel_region_sum *list;
    size_t count;
    struct oriel_hash_table known; /* from a digest of a name to its index, plus 1 */
};

void oriel_region_sums_open(struct oriel_region_sums *sums);

/* Adds to the row of the name, which it cleans of control characters. */
void oriel_region_sums_add(struct oriel_region_sums *sums, const struct oriel_region_sum *more);

/* After the last one: sorts the list, the most time first. Times in calls are estimates, and are
 * bounded by the region's. */
void oriel_region_sums_finish(struct oriel_region_sums *sums);

void oriel_region_sums_close(struct oriel_region_sums *sums);

/* "other regions" for the name "". */
const char *oriel_region_title(const char *name);

/* Prints a table, if there is any region. The names are at the end of the lines, or in lines of
 * their own where that exceeds width. */
void oriel_region_sums_print(const struct oriel_region_sums *sums, int width, FILE *out);

json_t *oriel_region_sums_json(const struct oriel_region_sums *sums);

#endif
