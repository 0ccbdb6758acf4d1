/* Values of JSON that must be there, and files of them.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_JSON_H
#define ORIEL_CLI_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Ends the command when there was no memory for it. */
json_t *oriel_json_checked(json_t *value);

/* null for an empty text; the odd bytes of one that is not UTF-8 are replaced. */
json_t *oriel_json_text(const char *bytes, size_t room);

/* "" or why it could not be written, to be freed. */
char *oriel_json_write(const char *path, const json_t *value);

#endif
