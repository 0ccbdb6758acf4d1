/* Parses the ORIEL_* variables according to the table in options.def. One parser per kind reads
 * both defaults and the environment, so a default is always well formed. */
#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/similar.h"
#include "oriel/oriel.h"

enum option_kind { KIND_bool, KIND_int, KIND_count, KIND_size, KIND_choice, KIND_string };

static const char *const kind_names[] = {
    [KIND_bool] = "bool", [KIND_int] = "int",       [KIND_count] = "count",
    [KIND_size] = "size", [KIND_choice] = "choice", [KIND_string] = "string",
};

struct option_row {
    enum option_kind kind;
    bool shown;
    size_t offset;
    const char *name;
    const char *initial;
    const char *words;
    const char *meaning;
};

static const struct option_row rows[] = {
#define OPTION(kind_, field_, name_, initial_, words_, shown_, meaning_)                           \
    {.kind = KIND_##kind_,                                                                         \
     .shown = shown_,                                                                              \
     .offset = offsetof(struct oriel_options, field_),                                             \
     .name = name_,                                                                                \
     .initial = initial_,                                                                          \
     .words = words_,                                                                              \
     .meaning = meaning_},
#include "base/options.def"
#undef OPTION
};

static const char prefix[] = "ORIEL_";

enum { ROWS = sizeof rows / sizeof rows[0], PREFIX_LEN = sizeof prefix - 1 };

/* Parses a whole decimal number of 0 or more; *end is the first character after it. */
static bool number_parse(const char *text, uint64_t *out, const char **end)
{
    if (!isdigit((unsigned char)text[0])) {
        return false; /* strtoull would accept blanks and signs */
    }
    char *stop = NULL;
    errno = 0;
    *out = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0;
}

static bool bool_parse(const char *text, bool *out)
{
    static const char *const yes[] = {"1", "yes", "true", "on"};
    static const char *const no[] = {"0", "no", "false", "off"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *out = strcmp(text, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

static bool int_parse(const char *text, int *out)
{
    uint64_t number = 0;
    const char *end = NULL;
    if (!number_parse(text, &number, &end) || *end != '\0' || number > INT_MAX) {
        return false;
    }
    *out = (int)number;
    return true;
}

static bool size_parse(const char *text, uint64_t *out)
{
    uint64_t number = 0;
    const char *end = NULL;
    if (!number_parse(text, &number, &end)) {
        return false;
    }
    unsigned shift = 0;
    switch (toupper((unsigned char)*end)) {
    case '\0': break;
    case 'K': shift = 10; break;
    case 'M': shift = 20; break;
    case 'G': shift = 30; break;
    default: return false;
    }
    if ((*end != '\0' && end[1] != '\0') || number > UINT64_MAX >> shift) {
        return false;
    }
    *out = number << shift;
    return true;
}

/* The word at a position of "first|second|third". Returns false if there are fewer words. */
static bool word_find(const char *words, int position, const char **word, size_t *len_bytes)
{
    for (int i = 0; *words != '\0'; i++) {
        size_t len = strcspn(words, "|");
        if (i == position) {
            *word = words;
            *len_bytes = len;
            return true;
        }
        words += len + (words[len] == '|');
    }
    return false;
}

static bool choice_parse(const char *words, const char *text, int *out)
{
    const char *word = NULL;
    size_t len = 0;
    for (int i = 0; word_find(words, i, &word, &len); i++) {
        if (strlen(text) == len && memcmp(text, word, len) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool value_parse(const struct option_row *row, const char *text, void *field)
{
    switch (row->kind) {
    case KIND_bool: return bool_parse(text, field);
    case KIND_int: return int_parse(text, field);
    case KIND_count: return int_parse(text, field) && *(int *)field > 0;
    case KIND_size: return size_parse(text, field);
    case KIND_choice: return choice_parse(row->words, text, field);
    case KIND_string: *(char **)field = text[0] == '\0' ? NULL : strdup(text); return true;
    }
    return false;
}

static void value_error_print(FILE *out, const struct option_row *row, const char *text)
{
    static const char *const wanted[] = {
        [KIND_bool] = "0 or 1",
        [KIND_int] = "a whole number of 0 or more",
        [KIND_count] = "a whole number of 1 or more",
        [KIND_size] = "a number of bytes with an optional K, M or G",
        [KIND_choice] = "one of",
        [KIND_string] = "text",
    };
    fprintf(out, "oriel: %s=%s is not %s%s%s; using the default, %s\n", row->name, text,
            wanted[row->kind], row->words[0] == '\0' ? "" : " ", row->words, row->initial);
}

void oriel_options_read(FILE *complaints, struct oriel_options *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < ROWS; i++) {
        void *field = (char *)out + rows[i].offset;
        const char *text = getenv(rows[i].name);
        /* An empty variable counts as not set, because shells create such variables easily. */
        bool is_set = text != NULL && text[0] != '\0';
        if (is_set && value_parse(&rows[i], text, field)) {
            continue;
        }
        if (is_set && complaints != NULL) {
            value_error_print(complaints, &rows[i], text);
        }
        value_parse(&rows[i], rows[i].initial, field);
    }
}

static struct oriel_options process_options;
static pthread_once_t process_options_once = PTHREAD_ONCE_INIT;

static bool is_second_copy;

void oriel_options_leave_complaints(void)
{
    is_second_copy = true;
}

/* The ranks of a job have the same environment: the first one alone complains about it. */
static void process_options_read(void)
{
    bool complains = !is_second_copy && oriel_job_rank() <= 0;
    oriel_options_read(complains ? stderr : NULL, &process_options);
    if (complains)
        oriel_options_warn_unknown(stderr);
}

const struct oriel_options *oriel_options(void)
{
    pthread_once(&process_options_once, process_options_read);
    return &process_options;
}

uint64_t oriel_timeout_ns(void)
{
    return UINT64_C(1000000000) * (uint64_t)oriel_options()->timeout_s;
}

static bool name_is_known(const char *name, size_t len_bytes)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strlen(rows[i].name) == len_bytes && memcmp(rows[i].name, name, len_bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* The shown option whose name is most similar, compared after ORIEL_; NULL if none is. */
static const char *name_similar(const char *name, size_t len_bytes)
{
    struct oriel_similar similar;
    oriel_similar_start(&similar, name + PREFIX_LEN, len_bytes - PREFIX_LEN);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].shown) {
            oriel_similar_offer(&similar, rows[i].name + PREFIX_LEN);
        }
    }
    return similar.found == NULL ? NULL : similar.found - PREFIX_LEN;
}

static void unknown_name_print(FILE *out, const char *name, size_t len_bytes)
{
    const char *similar = name_similar(name, len_bytes);
    fprintf(out, "oriel: %.*s is not an option of Oriel %s and is ignored%s%s%s\n", (int)len_bytes,
            name, ORIEL_VERSION, similar == NULL ? "" : "; did you mean ",
            similar == NULL ? "" : similar, similar == NULL ? "" : "?");
}

int oriel_options_warn_unknown(FILE *out)
{
    extern char **environ;
    int unknown = 0;
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        size_t len = strcspn(*entry, "=");
        if (strncmp(*entry, prefix, PREFIX_LEN) == 0 && !name_is_known(*entry, len)) {
            unknown_name_print(out, *entry, len);
            unknown++;
        }
    }
    return unknown;
}

/* Whole multiples of G, M or K are written with their suffix. */
static void size_format(uint64_t size, char *text, size_t text_bytes)
{
    static const char suffixes[] = {'G', 'M', 'K'};
    for (unsigned i = 0; i < 3 && size != 0; i++) {
        unsigned shift = 30 - 10 * i;
        if (size % (UINT64_C(1) << shift) == 0) {
            snprintf(text, text_bytes, "%" PRIu64 "%c", size >> shift, suffixes[i]);
            return;
        }
    }
    snprintf(text, text_bytes, "%" PRIu64, size);
}

static void value_format(const struct option_row *row, const void *field, char *text,
                         size_t text_bytes)
{
    const char *word = "";
    size_t len = 0;
    switch (row->kind) {
    case KIND_bool: snprintf(text, text_bytes, "%d", *(const bool *)field); break;
    case KIND_int:
    case KIND_count: snprintf(text, text_bytes, "%d", *(const int *)field); break;
    case KIND_size: size_format(*(const uint64_t *)field, text, text_bytes); break;
    case KIND_choice:
        word_find(row->words, *(const int *)field, &word, &len);
        snprintf(text, text_bytes, "%.*s", (int)len, word);
        break;
    case KIND_string: text[0] = '\0'; break; /* the caller prints the string itself, if it is set */
    }
}

/* True if the environment sets the option to a value that its parser accepts. */
static bool row_is_set(const struct option_row *row)
{
    const char *text = getenv(row->name);
    if (text == NULL || text[0] == '\0' || row->kind == KIND_string) {
        return text != NULL && text[0] != '\0';
    }
    uint64_t scratch = 0; /* wide enough for the field of every kind except string */
    return value_parse(row, text, &scratch);
}

bool oriel_option_describe(size_t index, const struct oriel_options *options,
                           struct oriel_option_description *out)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (!rows[i].shown || index-- != 0) {
            continue;
        }
        out->name = rows[i].name;
        out->kind = kind_names[rows[i].kind];
        out->initial = rows[i].initial;
        out->words = rows[i].words;
        out->meaning = rows[i].meaning;
        out->is_set = row_is_set(&rows[i]);
        const char *field = (const char *)options + rows[i].offset;
        out->string =
            rows[i].kind == KIND_string ? *(const char *const *)(const void *)field : NULL;
        value_format(&rows[i], field, out->short_value, sizeof out->short_value);
        return true;
    }
    return false;
}
