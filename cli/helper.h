/* The checker's helper: `oriel check --helper WHAT`, which the checker starts for itself (src/base/helper_process.h).
 * Reads one request from standard input, answers on standard output, and ends.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_HELPER_H
#define ORIEL_CLI_HELPER_H

#include <stddef.h>

#include "check/report/finding_record.h"

int oriel_helper_serve(const char *what);

/* Fills in what debug information says of each place. */
void oriel_code_addresses_find(struct oriel_code_address *places, size_t count);

/* Writes the findings of a request as JSON; returns "" or why it could not, to be freed. */
char *oriel_findings_write(const void *request, size_t len_bytes);

#endif
