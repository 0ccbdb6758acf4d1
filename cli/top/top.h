/* The output of `oriel top`, as text and as JSON. */
#ifndef ORIEL_CLI_TOP_TOP_H
#define ORIEL_CLI_TOP_TOP_H

#include <jansson.h>

#include "cli/waits.h"

/* Prints one job: its title, its deadlocks, and a line for each rank. */
void oriel_top_print(const struct oriel_waits *waits, FILE *out);

/* Prints the job's title without a newline. */
void oriel_top_title(const struct oriel_waits *waits, FILE *out);

json_t *oriel_top_json(const struct oriel_waits *waits);

/* Prints a number with a metric prefix and unit: 1.2 M. */
void oriel_rate_print(double rate, const char *unit, FILE *out);

#endif
