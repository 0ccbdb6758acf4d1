/* Reads the output of `oriel check --json FILE` (docs/checker.md) for `oriel report`, as text and
 * for the HTML page. */
#ifndef ORIEL_CLI_REPORT_FINDINGS_READER_H
#define ORIEL_CLI_REPORT_FINDINGS_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct oriel_found {
    json_t *
        /* The complete object; every finding has the keys and types that docs/checker.md
         * describes. */
        job;
};

/* Returns false for any other file, with a line on complaints that names it. */
bool oriel_found_open(const char *path, FILE *complaints, struct oriel_found *out);

void oriel_found_print(const struct oriel_found *found, FILE *out);
void oriel_found_close(struct oriel_found *found);

#endif
