/* Reads JSON files that Oriel wrote, for `oriel report`. */
#ifndef ORIEL_CLI_REPORT_JSON_FILE_H
#define ORIEL_CLI_REPORT_JSON_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the file's contents, whose strings then control no terminal; NULL, with a line on
 * complaints that names the file, when it is not JSON. */
json_t *oriel_json_file_read(const char *path, FILE *complaints);

/* NULL for a value that is not a string. */
const char *oriel_json_member_text(const json_t *object, const char *key);

/* False, with 0 in out, for a value that is not an integer. */
bool oriel_json_member_number(const json_t *object, const char *key, int64_t *out);

#endif
