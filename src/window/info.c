/* Reads and writes the hints.  A key is taken over only when its value means something; unknown keys are ignored, as the
 * standard asks.  Creation and api/ call. */
#include "window/info.h"

#include "host/host.h"

#include <stdlib.h>
#include <string.h>

void oriel_hints_init(struct oriel_hints *hints)
{
#define HINT(field, key, initial) strcpy(hints->field, initial);
#include "window/hints.def"
#undef HINT
}

bool oriel_hint_is_true(const char *value)
{
    return strcmp(value, "true") == 0;
}

static bool is_boolean(const char *value)
{
    return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

static bool is_ordering(const char *value)
{
    char copy[ORIEL_HINT_BYTES];
    char *rest = NULL;
    if (strcmp(value, "none") == 0)
        return true;
    strcpy(copy, value);
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
        if (strcmp(word, "rar") != 0 && strcmp(word, "raw") != 0 && strcmp(word, "war") != 0 && strcmp(word, "waw") != 0)
            return false;
    return value[0] != '\0';
}

static bool is_number(const char *value)
{
    return value[0] != '\0' && strspn(value, "0123456789") == strlen(value);
}

static bool is_valid(const char *value, const char *initial)
{
    if (is_boolean(initial))
        return is_boolean(value);
    if (is_number(initial))
        return is_number(value);
    if (strcmp(initial, "same_op_no_op") == 0)
        return strcmp(value, "same_op_no_op") == 0 || strcmp(value, "same_op") == 0;
    return is_ordering(value);
}

static bool read_hint(char *field, const char *key, const char *initial, MPI_Info info)
{
    char value[ORIEL_HINT_BYTES];
    int found = 0;
    if (oriel_host()->Info_get(info, key, ORIEL_HINT_BYTES - 1, value, &found) != MPI_SUCCESS)
        return false;
    if (found && is_valid(value, initial))
        strcpy(field, value);
    return true;
}

enum oriel_status oriel_hints_read(struct oriel_hints *hints, MPI_Info info)
{
    bool read = true;
    if (info == MPI_INFO_NULL)
        return ORIEL_OK;
#define HINT(field, key, initial) read = read && read_hint(hints->field, key, initial, info);
#include "window/hints.def"
#undef HINT
    return read ? ORIEL_OK : oriel_fail(ORIEL_E_INFO, "the info object is not valid");
}

enum oriel_status oriel_hints_update(struct oriel_hints *hints, MPI_Info info)
{
    struct oriel_hints updated = *hints;
    enum oriel_status status = oriel_hints_read(&updated, info);
    if (status != ORIEL_OK)
        return status;
    strcpy(updated.noncontig, hints->noncontig);
    strcpy(updated.minimum_alignment, hints->minimum_alignment);
    *hints = updated;
    return ORIEL_OK;
}

enum oriel_status oriel_hints_write(const struct oriel_hints *hints, MPI_Info *out)
{
    const struct oriel_host_calls *host = oriel_host();
    int code = host->Info_create(out);
#define HINT(field, key, initial)  \
    if (code == MPI_SUCCESS)       \
        code = host->Info_set(*out, key, hints->field);
#include "window/hints.def"
#undef HINT
    return code == MPI_SUCCESS ? ORIEL_OK : oriel_fail(ORIEL_E_NO_MEM, "the host cannot make an info object");
}

uint64_t oriel_hints_alignment(const struct oriel_hints *hints)
{
    uint64_t wanted = strtoull(hints->minimum_alignment, NULL, 10);
    uint64_t align_bytes = 64;
    while (align_bytes < wanted && align_bytes < UINT64_C(1) << 40)
        align_bytes *= 2;
    return align_bytes;
}
