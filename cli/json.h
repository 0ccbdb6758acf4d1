/* Values of JSON that must be there, and files of them.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_JSON_H
#define ORIEL_CLI_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the command when there was no memory for it. */
json_t *oriel_json_checked(json_t *value);

/* null for an empty text; the odd bytes of one that is not UTF-8 are replaced. */
json_t *oriel_json_text(const char *bytes, size_t room);

/* At a list's end, and in an object, which own the value then. */
void oriel_json_append(json_t *list, json_t *value);
void oriel_json_set(json_t *object, const char *key, json_t *value);

/* A number at a list's end; JSON's integers have 63 bits here. */
void oriel_json_add(json_t *list, uint64_t number);

/* "" or why it could not be written, to be freed. */
char *oriel_json_write(const char *path, const json_t *value);

#endif
