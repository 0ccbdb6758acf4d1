/* Reads the output of `oriel check --json FILE` (docs/reference/file-formats.md) for
 * `oriel report`, as text and for the HTML page. */
#ifndef ORIEL_CLI_REPORT_FINDINGS_READER_H
#define ORIEL_CLI_REPORT_FINDINGS_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct oriel_findings_file {
    /* The complete object. Every finding has a rule and a title; any other key may be missing or
     * have another type than docs/reference/file-formats.md describes. */
    json_t *job;
};

/* Takes over job, the contents of the file at path. Returns false for any other contents, with a
 * line on complaints that names the file. */
bool oriel_findings_file_open(const char *path, json_t *job, FILE *complaints,
                              struct oriel_findings_file *out);

void oriel_findings_file_print(const struct oriel_findings_file *found, FILE *out);
void oriel_findings_file_close(struct oriel_findings_file *found);

#endif
