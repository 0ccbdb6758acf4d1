/* JSON values whose allocation must succeed, and writing them to files. */
#ifndef ORIEL_CLI_JSON_H
#define ORIEL_CLI_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the command when value is NULL for lack of memory. */
json_t *oriel_json_checked(json_t *value);

/* Returns null for an empty text. Bytes above 0x7f become '?' when the text is not UTF-8. */
json_t *oriel_json_text(const char *bytes, size_t room);

/* Append to a list or set in an object, which then owns the value. */
void oriel_json_append(json_t *list, json_t *value);
void oriel_json_set(json_t *object, const char *key, json_t *value);

/* Appends a number to a list; JSON integers have 63 bits here. */
void oriel_json_append_number(json_t *list, uint64_t number);

/* Writes value to the file at path. Returns "" or the reason for failure, to be freed. */
char *oriel_json_write(const char *path, const json_t *value);

#endif
