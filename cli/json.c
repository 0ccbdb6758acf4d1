/* JSON values whose allocation must succeed, and writing them to files. */
#include "cli/json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

json_t *oriel_json_checked(json_t *value)
{
    return oriel_alloc_checked(value);
}

json_t *oriel_json_text(const char *bytes, size_t room)
{
    size_t len = strnlen(bytes, room);
    if (len == 0)
        return oriel_json_checked(json_null());
    json_t *value = json_stringn(bytes, len);
    if (value != NULL)
        return value;
    char *plain = oriel_format("%.*s", (int)len, bytes);
    for (char *at = plain; *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    value = oriel_json_checked(json_string(plain));
    free(plain);
    return value;
}

void oriel_json_append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, oriel_json_checked(value)) != 0)
        oriel_die("out of memory");
}

void oriel_json_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, oriel_json_checked(value)) != 0)
        oriel_die("out of memory");
}

void oriel_json_append_number(json_t *list, uint64_t number)
{
    oriel_json_append(list, json_integer((json_int_t)(number < INT64_MAX ? number : INT64_MAX)));
}

char *oriel_json_write(const char *path, const json_t *value)
{
    errno = 0;
    FILE *out = fopen(path, "we");
    return oriel_file_finish(out, out != NULL && json_dumpf(value, out, JSON_INDENT(2)) == 0, path);
}
