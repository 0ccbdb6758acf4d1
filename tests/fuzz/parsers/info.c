/* The parser of info hints, on arbitrary values of the window keys.  A hint takes the given value
 * or keeps its old one; a repeated value replaces the old one entirely.  Info objects of the host
 * are lists of texts here. */
#include "fuzzer.h"

#include "host/host.h"
#include "memory/file.h"
#include "window/hints.h"
#include "create/path_info.h"

enum { KEYS_MOST = 16, VALUE_BYTES = 300 };

static struct {
    char key[64];
    char value[VALUE_BYTES];
} stored[KEYS_MOST];
static unsigned stored_count;

static int info_get(MPI_Info info, const char *key, int room, char *value, int *found)
{
    (void)info;
    *found = 0;
    for (unsigned i = 0; i < stored_count; i++) {
        if (strcmp(stored[i].key, key) != 0)
            continue;
        *found = 1;
        snprintf(value, (size_t)room + 1, "%s", stored[i].value);
    }
    return MPI_SUCCESS;
}

static int info_set(MPI_Info info, const char *key, const char *value)
{
    (void)info;
    REQUIRE(stored_count < KEYS_MOST && strlen(value) < MPI_MAX_INFO_VAL);
    snprintf(stored[stored_count].key, sizeof stored[0].key, "%s", key);
    snprintf(stored[stored_count++].value, VALUE_BYTES, "%s", value);
    return MPI_SUCCESS;
}

static int info_create(MPI_Info *out)
{
    stored_count = 0;
    *out = MPI_INFO_ENV;
    return MPI_SUCCESS;
}

const struct oriel_host_calls *oriel_host(void)
{
    static const struct oriel_host_calls calls = {
        .Info_get = info_get, .Info_set = info_set, .Info_create = info_create};
    return &calls;
}

static void check_hint(const char *field, const char *before, const char *given)
{
    REQUIRE(memchr(field, '\0', ORIEL_HINT_BYTES) != NULL);
    REQUIRE(strcmp(field, before) == 0 || (given != NULL && strcmp(field, given) == 0));
}

static const char *given(const char *key)
{
    const char *value = NULL;
    for (unsigned i = 0; i < stored_count; i++)
        if (strcmp(stored[i].key, key) == 0)
            value = stored[i].value;
    return value;
}

static void draw(struct input *input)
{
    static const char *const keys[] = {
#define HINT(field, key, initial, sort) key,
#include "window/hints.def"
#undef HINT
        "unknown"};
    stored_count = 0;
    while (input->left_bytes > 0 && stored_count < KEYS_MOST) {
        const char *key = keys[input_below(input, sizeof keys / sizeof keys[0])];
        snprintf(stored[stored_count].key, sizeof stored[0].key, "%s", key);
        input_text(input, stored[stored_count++].value, VALUE_BYTES);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {data, len_bytes};
    struct oriel_hints before;
    struct oriel_hints hints;
    struct oriel_hints again;
    const struct oriel_path_info paths = {.names = "", .reason = ""};
    MPI_Info info;
    oriel_hints_init(&before);
    hints = before;
    draw(&input);
    REQUIRE(oriel_hints_read(&hints, MPI_INFO_ENV) == ORIEL_OK);
#define HINT(field, key, initial, sort) check_hint(hints.field, before.field, given(key));
#include "window/hints.def"
#undef HINT
    uint64_t align_bytes = oriel_hints_alignment(&hints);
    REQUIRE(align_bytes >= 64 && align_bytes <= ORIEL_MAP_ALIGN &&
            (align_bytes & (align_bytes - 1)) == 0);
    again = before;
    REQUIRE(oriel_hints_update(&again, MPI_INFO_ENV) == ORIEL_OK);
    REQUIRE(strcmp(again.noncontig, before.noncontig) == 0 &&
            strcmp(again.minimum_alignment, before.minimum_alignment) == 0);
    REQUIRE(oriel_hints_write(&hints, &paths, &info) == ORIEL_OK);
    oriel_hints_init(&again);
    REQUIRE(oriel_hints_read(&again, info) == ORIEL_OK);
#define HINT(field, key, initial, sort) REQUIRE(strcmp(hints.field, again.field) == 0);
#include "window/hints.def"
#undef HINT
    return 0;
}
