/* The options parser, on arbitrary texts in the environment.  The parser reports each refused value
 * in one line. The effective options, written out again, parse to the same values. */
#include "fuzzer.h"

#include "base/options.h"

enum { TEXT_BYTES = 200, OPTIONS_MOST = 32 };

static void free_string(const char *text)
{
    free((char *)(uintptr_t)text);
}

static void free_strings(struct oriel_options *options)
{
#define FREE_bool(field)
#define FREE_int(field)
#define FREE_count(field)
#define FREE_size(field)
#define FREE_choice(field)
#define FREE_string(field)                                        free_string(options->field);
#define OPTION(kind, field, name, initial, words, shown, meaning) FREE_##kind(field)
#include "base/options.def"
#undef OPTION
}

static bool is_same(const struct oriel_options *a, const struct oriel_options *b)
{
    bool same = true;
#define SAME_bool(field) same = same && a->field == b->field;
#define SAME_int         SAME_bool
#define SAME_count       SAME_bool
#define SAME_size        SAME_bool
#define SAME_choice      SAME_bool
#define SAME_string(field)                                                                         \
    same = same && (a->field == NULL) == (b->field == NULL) &&                                     \
           (!a->field || !strcmp(a->field, b->field));
#define OPTION(kind, field, name, initial, words, shown, meaning) SAME_##kind(field)
#include "base/options.def"
#undef OPTION
    return same;
}

static const char *const names[] = {
#define OPTION(kind, field, name, initial, words, shown, meaning) name,
#include "base/options.def"
#undef OPTION
};
enum { NAMES = sizeof names / sizeof names[0] };

static unsigned lines_of(const char *text)
{
    unsigned lines = 0;
    for (const char *at = text; (at = strstr(at, "oriel: ORIEL_")) != NULL; at++)
        lines++;
    return lines;
}

/* Sets the environment to the printed form of the effective options. */
static void set_as_described(const struct oriel_options *options)
{
    struct oriel_option_description described;
    for (size_t i = 0; oriel_option_describe(i, options, &described); i++)
        if (described.string != NULL)
            setenv(described.name, described.string, 1);
        else
            setenv(described.name, described.short_value, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {data, len_bytes};
    struct oriel_options first;
    struct oriel_options second;
    char *complaints = NULL;
    size_t complaints_bytes = 0;
    for (size_t i = 0; i < NAMES; i++) {
        char text[TEXT_BYTES];
        unsetenv(names[i]);
        if (input_byte(&input) % 2 == 0)
            continue;
        input_text(&input, text, sizeof text);
        setenv(names[i], text, 1);
    }
    FILE *out = open_memstream(&complaints, &complaints_bytes);
    REQUIRE(out != NULL);
    oriel_options_read(out, NULL, &first);
    REQUIRE(oriel_options_warn_unknown(out) == 0);
    fclose(out);
    unsigned refused = lines_of(complaints);
    unsigned accepted = 0;
    unsigned set = 0;
    struct oriel_option_description described;
    for (size_t i = 0; oriel_option_describe(i, &first, &described); i++) {
        const char *text = getenv(described.name);
        set += text != NULL && text[0] != '\0';
        accepted += described.origin.is_set;
    }
    REQUIRE(accepted <= set && refused >= set - accepted);
    REQUIRE(complaints_bytes == 0 || refused > 0);
    set_as_described(&first);
    oriel_options_read(NULL, NULL, &second);
    REQUIRE(is_same(&first, &second));
    free(complaints);
    free_strings(&first);
    free_strings(&second);
    return 0;
}
