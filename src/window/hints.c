/* Reads and writes the hints. A key is accepted only with a valid value. Unknown keys are ignored,
 * as the standard requires. */
#include "window/hints.h"

#include "host/host.h"
#include "memory/file.h"
#include "oriel/ext.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ALIGNMENT = 64 };

void oriel_hints_init(struct oriel_hints *hints)
{
#define HINT(field, key, initial, sort) strcpy(hints->field, initial);
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
        if (strcmp(word, "rar") != 0 && strcmp(word, "raw") != 0 && strcmp(word, "war") != 0 &&
            strcmp(word, "waw") != 0)
            return false;
    return value[0] != '\0';
}

/* The restrictors of a kind of memory; NULL: unknown kind. */
static const char *const *restrictors_of(const char *kind)
{
    static const char *const of_mpi[] = {"alloc_mem", "win_allocate", "win_allocate_shared", NULL};
    static const char *const of_cuda[] = {"device", "managed", "host", NULL};
    static const char *const none[] = {NULL};
    return strcmp(kind, "mpi") == 0      ? of_mpi
           : strcmp(kind, "cuda") == 0   ? of_cuda
           : strcmp(kind, "system") == 0 ? none
                                         : NULL;
}

/* The kinds of memory that the program may pass to this library (MPI-4.1, 12.4.3), each with or
 * without restrictors. */
static bool is_memory_kinds(const char *value)
{
    char copy[ORIEL_HINT_BYTES];
    char *rest = NULL;
    strcpy(copy, value);
    for (char *kind = strtok_r(copy, ",", &rest); kind != NULL; kind = strtok_r(NULL, ",", &rest)) {
        char *inner = NULL;
        const char *word = strtok_r(kind, ":", &inner);
        const char *const *restrictors = word != NULL ? restrictors_of(word) : NULL;
        bool known = restrictors != NULL;
        while (known && (word = strtok_r(NULL, ":", &inner)) != NULL) {
            known = false;
            for (unsigned i = 0; restrictors[i] != NULL; i++)
                known = known || strcmp(word, restrictors[i]) == 0;
        }
        if (!known)
            return false;
    }
    return value[0] != '\0';
}

static bool is_number(const char *value)
{
    return value[0] != '\0' && strspn(value, "0123456789") == strlen(value);
}

static bool is_operators(const char *value)
{
    return strcmp(value, "same_op_no_op") == 0 || strcmp(value, "same_op") == 0;
}

static bool is_counters(const char *value)
{
    return is_number(value) && strlen(value) < 8 && atoi(value) <= MPIX_NOTIFICATIONS_MOST;
}

static bool is_numa_node(const char *value)
{
    return (is_number(value) && strlen(value) < 6) || strcmp(value, "local") == 0 ||
           strcmp(value, "interleave") == 0;
}

/* A handle as printed by %p or as a decimal number. */
static bool is_stream(const char *value)
{
    char *end;
    strtoull(value, &end, 0);
    return isdigit((unsigned char)value[0]) && *end == '\0';
}

/* Powers of two. Values below the default may be ignored (MPI-4.1, 10.2). */
static bool is_alignment(const char *value)
{
    uint64_t bytes = is_number(value) ? strtoull(value, NULL, 10) : 0;
    return bytes >= LEAST_ALIGNMENT && bytes <= ORIEL_MAP_ALIGN && (bytes & (bytes - 1)) == 0;
}

static bool read_hint(char *field, const char *key, bool (*is_valid)(const char *value),
                      MPI_Info info)
{
    char value[MPI_MAX_INFO_VAL + 1];
    int found = 0;
    if (oriel_host()->Info_get(info, key, MPI_MAX_INFO_VAL, value, &found) != MPI_SUCCESS)
        return false;
    if (found && strlen(value) < ORIEL_HINT_BYTES && is_valid(value))
        strcpy(field, value);
    return true;
}

enum oriel_status oriel_hints_read(struct oriel_hints *hints, MPI_Info info)
{
    bool read = true;
    if (info == MPI_INFO_NULL)
        return ORIEL_OK;
    /* an uninitialised handle: the host would raise the error itself, and not on the program's
     * communicator or window */
    if (!info)
        return oriel_fail(ORIEL_E_INFO, "the info object is not valid");
#define HINT(field, key, initial, sort)                                                            \
    read = read && read_hint(hints->field, key, is_##sort, info);
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
    strcpy(updated.notifications, hints->notifications);
    strcpy(updated.minimum_alignment, hints->minimum_alignment);
    strcpy(updated.numa_node, hints->numa_node);
    strcpy(updated.memory_kinds, hints->memory_kinds);
    strcpy(updated.wanted_kinds, hints->wanted_kinds);
    *hints = updated;
    return ORIEL_OK;
}

/* Truncates the value to the host's limit. */
static int write_text(MPI_Info info, const char *key, const char *text)
{
    char value[MPI_MAX_INFO_VAL];
    if (text[0] == '\0')
        return MPI_SUCCESS;
    memcpy(value, text, strnlen(text, sizeof value - 1));
    value[strnlen(text, sizeof value - 1)] = '\0';
    return oriel_host()->Info_set(info, key, value);
}

/* What every window guarantees, whatever its hints. */
static int write_guarantees(MPI_Info info)
{
    static const char *const guarantees[][2] = {
        {"oriel_accumulate_mixed", "true"},
        {"oriel_accumulate_granularity", "element"},
        {"oriel_accumulate_ordering", "rar,raw,war,waw"},
    };
    int code = MPI_SUCCESS;
    for (unsigned i = 0; code == MPI_SUCCESS && i < sizeof guarantees / sizeof guarantees[0]; i++)
        code = write_text(info, guarantees[i][0], guarantees[i][1]);
    return code;
}

enum oriel_status oriel_hints_write(const struct oriel_hints *hints,
                                    const struct oriel_path_info *paths, MPI_Info *out)
{
    const struct oriel_host_calls *host = oriel_host();
    int code = host->Info_create(out);
    if (code == MPI_SUCCESS)
        code = write_text(*out, "oriel_memory", paths->names);
    if (code == MPI_SUCCESS)
        code = write_text(*out, "oriel_memory_reason", paths->reason);
    if (code == MPI_SUCCESS)
        code = write_text(*out, "oriel_progress", paths->progress);
    if (code == MPI_SUCCESS)
        code = write_guarantees(*out);
#define HINT(field, key, initial, sort)                                                            \
    if (code == MPI_SUCCESS)                                                                       \
        code = write_text(*out, key, hints->field);
#include "window/hints.def"
#undef HINT
    return code == MPI_SUCCESS
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_NO_MEM, "the host cannot create an info object");
}

uint64_t oriel_hints_alignment(const struct oriel_hints *hints)
{
    return strtoull(hints->minimum_alignment, NULL, 10);
}

uint32_t oriel_hints_notifications(const struct oriel_hints *hints)
{
    return (uint32_t)strtoul(hints->notifications, NULL, 10);
}

struct oriel_pages_placement oriel_hints_placement(const struct oriel_hints *hints)
{
    const char *value = hints->numa_node;
    if (value[0] == '\0')
        return (struct oriel_pages_placement){ORIEL_PAGES_ANYWHERE, -1};
    if (strcmp(value, "interleave") == 0)
        return (struct oriel_pages_placement){ORIEL_PAGES_INTERLEAVED, -1};
    return (struct oriel_pages_placement){
        ORIEL_PAGES_ON_NODE, strcmp(value, "local") == 0 ? oriel_pages_node() : atoi(value)};
}

bool oriel_hints_stream(const struct oriel_hints *hints, uint64_t *out)
{
    *out = strtoull(hints->cuda_stream, NULL, 0);
    return hints->cuda_stream[0] != '\0';
}

/* Whether a list of kinds has device memory. */
static bool has_device(const char *kinds)
{
    const char *cuda = strstr(kinds, "cuda");
    for (; cuda != NULL; cuda = strstr(cuda + 1, "cuda")) {
        const size_t len = strcspn(cuda, ",");
        const char *device = strstr(cuda, "device");
        if (len == strlen("cuda") || (device != NULL && device < cuda + len))
            return true;
    }
    return false;
}

bool oriel_hints_allow_device(const struct oriel_hints *hints)
{
    return hints->memory_kinds[0] == '\0' || has_device(hints->memory_kinds);
}

bool oriel_hints_want_device(const struct oriel_hints *hints)
{
    return has_device(hints->wanted_kinds);
}

void oriel_hints_clear_placement(struct oriel_hints *hints)
{
    hints->numa_node[0] = '\0';
}

void oriel_hints_set_contiguous(struct oriel_hints *hints, const void *address)
{
    uint64_t align_bytes = oriel_hints_alignment(hints);
    strcpy(hints->noncontig, "false");
    while ((uintptr_t)address % align_bytes != 0)
        align_bytes /= 2;
    snprintf(hints->minimum_alignment, sizeof hints->minimum_alignment, "%lu",
             (unsigned long)align_bytes);
}
