/* Reads JSON files that Oriel wrote. A file of a job that still runs is empty, and is named as
 * such. */
#include "cli/report/json_file.h"

#include <sys/stat.h>

#include "cli/trace_text.h"

const char *oriel_json_member_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

bool oriel_json_member_number(const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_integer_value(value);
    return json_is_integer(value);
}

static void strings_clean(json_t *value)
{
    size_t i;
    const char *key;
    json_t *inner;
    if (json_is_string(value))
        oriel_trace_text_clean((char *)(uintptr_t)json_string_value(value),
                               json_string_length(value) + 1);
    json_array_foreach(value, i, inner) strings_clean(inner);
    json_object_foreach(value, key, inner) strings_clean(inner);
}

static bool file_is_empty(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

json_t *oriel_json_file_read(const char *path, FILE *complaints)
{
    json_error_t error;
    if (file_is_empty(path)) {
        fprintf(complaints, "oriel: %s is empty: the job that writes it has not finished\n", path);
        return NULL;
    }
    json_t *value = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (value == NULL) {
        oriel_trace_text_clean(error.text, sizeof error.text); /* The message quotes the file. */
        if (error.line > 0)
            fprintf(complaints, "oriel: %s: line %d: %s\n", path, error.line, error.text);
        else
            fprintf(complaints, "oriel: %s\n", error.text); /* the message names the file */
        return NULL;
    }
    strings_clean(value);
    return value;
}
