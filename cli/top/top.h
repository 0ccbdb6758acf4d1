/* What `oriel top` prints of jobs, as text and as JSON.  top.c calls. */
#ifndef ORIEL_CLI_TOP_TOP_H
#define ORIEL_CLI_TOP_TOP_H

#include <jansson.h>

#include "cli/waits.h"

/* One job: what it is, its deadlocks, and a line for each rank. */
void oriel_top_print(const struct oriel_waits *waits, FILE *out);

/* Its first line, without the end of it. */
void oriel_top_title(const struct oriel_waits *waits, FILE *out);

json_t *oriel_top_json(const struct oriel_waits *waits);

/* Number and unit for people: 1.2 M. */
void oriel_rate_say(double rate, const char *unit, FILE *out);

#endif
