/* Parses the ORIEL_* variables and the lines of settings files according to the table in
 * options.def. One parser per kind reads defaults, files and the environment, so a default is
 * always well formed.
 *
 * The first of these that sets an option decides: the environment, the file that ORIEL_CONFIG
 * names, the files of the folder, of the user and of the system, the default. They are applied in
 * the reverse order. A value that no parser accepts sets nothing. */
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

enum {
    ROWS = ORIEL_OPTIONS,
    PREFIX_LEN = sizeof prefix - 1,
    VALUE_BYTES = 32,  /* of a value that is no string */
    WANTED_BYTES = 64, /* of the description of a kind's values */
    MESSAGE_BYTES = 256,
    SHOWN_BYTES = 80,      /* of a text from outside, in a message */
    MISTAKES_REPORTED = 8, /* for each file */
};

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

static bool count_parse(const char *text, int *out)
{
    int number = 0;
    if (!int_parse(text, &number) || number == 0)
        return false;
    *out = number;
    return true;
}

/* An empty text is no string. */
static bool string_parse(const char *text, char **out)
{
    free(*out);
    *out = text[0] == '\0' ? NULL : strdup(text);
    return true;
}

/* Replaces the value in the field, unless the text is refused. */
static bool value_parse(const struct option_row *row, const char *text, void *field)
{
    switch (row->kind) {
    case KIND_bool: return bool_parse(text, field);
    case KIND_int: return int_parse(text, field);
    case KIND_count: return count_parse(text, field);
    case KIND_size: return size_parse(text, field);
    case KIND_choice: return choice_parse(row->words, text, field);
    case KIND_string: return string_parse(text, field);
    }
    return false;
}

static void wanted_format(const struct option_row *row, char out[WANTED_BYTES])
{
    static const char *const wanted[] = {
        [KIND_bool] = "0 or 1",
        [KIND_int] = "a whole number of 0 or more",
        [KIND_count] = "a whole number of 1 or more",
        [KIND_size] = "a number of bytes with an optional K, M or G",
        [KIND_choice] = "one of",
        [KIND_string] = "text",
    };
    snprintf(out, WANTED_BYTES, "%s%s%s", wanted[row->kind], row->words[0] == '\0' ? "" : " ",
             row->words);
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

static void *row_field(const struct option_row *row, struct oriel_options *options)
{
    return (char *)options + row->offset;
}

static const struct option_row *row_find(const char *name, size_t len_bytes)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == len_bytes && memcmp(rows[i].name, name, len_bytes) == 0)
            return &rows[i];
    return NULL;
}

/* The shown option whose name is most similar, compared after ORIEL_; NULL if none is. */
static const char *name_similar(const char *name, size_t len_bytes)
{
    struct oriel_similar similar;
    if (strncmp(name, prefix, PREFIX_LEN) != 0)
        return NULL;
    oriel_similar_start(&similar, name + PREFIX_LEN, len_bytes - PREFIX_LEN);
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].shown)
            oriel_similar_offer(&similar, rows[i].name + PREFIX_LEN);
    return similar.found == NULL ? NULL : similar.found - PREFIX_LEN;
}

static void unknown_name_format(const char *name, size_t len_bytes, char out[MESSAGE_BYTES])
{
    const char *similar = name_similar(name, len_bytes);
    int shown = len_bytes < SHOWN_BYTES ? (int)len_bytes : SHOWN_BYTES;
    snprintf(out, MESSAGE_BYTES, "%.*s is not an option of Oriel %s and is ignored%s%s%s", shown,
             name, ORIEL_VERSION, similar == NULL ? "" : "; did you mean ",
             similar == NULL ? "" : similar, similar == NULL ? "" : "?");
}

/* --- settings files --- */

/* The options while one settings file is read. */
struct file_reading {
    FILE *complaints;
    const struct oriel_settings_file *file;
    struct oriel_options *options;
    unsigned mistakes;
};

static void mistake_report(struct file_reading *reading, unsigned line, const char *message)
{
    if (reading->complaints != NULL && ++reading->mistakes <= MISTAKES_REPORTED)
        fprintf(reading->complaints, "oriel: %s:%u: %s\n", reading->file->path, line, message);
}

/* An empty value sets the default. Of several lines of a file the last one counts. Returns false
 * with a message if the line is wrong. */
static bool setting_apply(struct file_reading *reading, const struct oriel_setting *setting,
                          char message[MESSAGE_BYTES])
{
    size_t name_len = strlen(setting->name);
    const struct option_row *row = row_find(setting->name, name_len);
    if (setting->mistake != NULL) {
        snprintf(message, MESSAGE_BYTES, "%s; the line is ignored", setting->mistake);
        return false;
    }
    if (row == NULL) {
        unknown_name_format(setting->name, name_len, message);
        return false;
    }
    if (!row->shown || row == &rows[ORIEL_OPTION_config]) {
        snprintf(message, MESSAGE_BYTES, "%s counts only in the environment; the line is ignored",
                 row->name);
        return false;
    }
    const char *text = setting->value[0] == '\0' ? row->initial : setting->value;
    if (!value_parse(row, text, row_field(row, reading->options))) {
        char wanted[WANTED_BYTES];
        wanted_format(row, wanted);
        snprintf(message, MESSAGE_BYTES, "%s=%.*s is not %s; the line is ignored", row->name,
                 SHOWN_BYTES, setting->value, wanted);
        return false;
    }
    reading->options->origins[row - rows] =
        (struct oriel_option_origin){true, reading->file->path, setting->line};
    return true;
}

static void file_apply(FILE *complaints, const struct oriel_settings_file *file,
                       struct oriel_options *options)
{
    struct file_reading reading = {.complaints = complaints, .file = file, .options = options};
    struct oriel_setting setting;
    char message[MESSAGE_BYTES];
    const char *at = file->text;
    unsigned line = 0;
    if (file->is_refused && complaints != NULL)
        fprintf(complaints, "oriel: %s: %s; the file is ignored\n", file->path, file->state);
    while (at != NULL && oriel_settings_next(&at, &line, &setting))
        if (!setting_apply(&reading, &setting, message))
            mistake_report(&reading, setting.line, message);
    if (reading.mistakes > MISTAKES_REPORTED)
        fprintf(complaints, "oriel: %s: %u further lines are ignored\n", file->path,
                reading.mistakes - MISTAKES_REPORTED);
}

/* --- the environment --- */

static void variable_apply(FILE *complaints, const struct option_row *row,
                           struct oriel_options *options)
{
    struct oriel_option_origin *origin = &options->origins[row - rows];
    void *field = row_field(row, options);
    const char *text = getenv(row->name);
    /* An empty variable counts as not set, because shells create such variables easily. */
    if (text == NULL || text[0] == '\0')
        return;
    if (value_parse(row, text, field)) {
        *origin = (struct oriel_option_origin){.is_set = true};
        return;
    }
    if (complaints == NULL)
        return;
    char wanted[WANTED_BYTES];
    char value[VALUE_BYTES];
    wanted_format(row, wanted);
    value_format(row, field, value, sizeof value);
    if (origin->is_set)
        fprintf(complaints, "oriel: %s=%s is not %s; using %s from %s:%u\n", row->name, text,
                wanted, value, origin->file, origin->line);
    else
        fprintf(complaints, "oriel: %s=%s is not %s; using the default, %s\n", row->name, text,
                wanted, value);
}

void oriel_options_read(FILE *complaints, const struct oriel_settings *settings,
                        struct oriel_options *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < ROWS; i++)
        value_parse(&rows[i], rows[i].initial, row_field(&rows[i], out));
    for (int kind = ORIEL_SETTINGS_KINDS; settings != NULL && kind-- > 0;)
        file_apply(complaints, &settings->files[kind], out);
    for (size_t i = 0; i < ROWS; i++)
        variable_apply(complaints, &rows[i], out);
}

static struct oriel_options process_options;
static struct oriel_settings process_settings;
static pthread_once_t process_options_once = PTHREAD_ONCE_INIT;

static bool is_second_copy;

void oriel_options_leave_complaints(void)
{
    is_second_copy = true;
}

/* The ranks of a job have the same environment and files: the first one alone complains. */
static void process_options_read(void)
{
    FILE *complaints = is_second_copy || oriel_job_rank() > 0 ? NULL : stderr;
    oriel_settings_open(&process_settings);
    oriel_options_read(complaints, &process_settings, &process_options);
    if (complaints != NULL)
        oriel_options_warn_unknown(complaints);
}

const struct oriel_options *oriel_options(void)
{
    pthread_once(&process_options_once, process_options_read);
    return &process_options;
}

/* The shown option at index; NULL after the last. */
static const struct option_row *row_shown(size_t index)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].shown && index-- == 0)
            return &rows[i];
    return NULL;
}

bool oriel_options_set(size_t index, const char *text)
{
    const struct option_row *row = row_shown(index);
    (void)oriel_options();
    if (row == NULL || !value_parse(row, text, row_field(row, &process_options)))
        return false;
    process_options.origins[row - rows] = (struct oriel_option_origin){.is_set = true};
    return true;
}

const struct oriel_settings *oriel_options_settings(void)
{
    (void)oriel_options();
    return &process_settings;
}

uint64_t oriel_timeout_ns(void)
{
    return UINT64_C(1000000000) * (uint64_t)oriel_options()->timeout_s;
}

int oriel_options_warn_unknown(FILE *out)
{
    extern char **environ;
    char message[MESSAGE_BYTES];
    int unknown = 0;
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        size_t len = strcspn(*entry, "=");
        if (strncmp(*entry, prefix, PREFIX_LEN) == 0 && row_find(*entry, len) == NULL) {
            unknown_name_format(*entry, len, message);
            fprintf(out, "oriel: %s\n", message);
            unknown++;
        }
    }
    return unknown;
}

static uint64_t value_number(const struct option_row *row, const void *field)
{
    switch (row->kind) {
    case KIND_bool: return *(const bool *)field;
    case KIND_size: return *(const uint64_t *)field;
    case KIND_string: return 0;
    default: return (uint64_t) * (const int *)field;
    }
}

bool oriel_option_describe(size_t index, const struct oriel_options *options,
                           struct oriel_option_description *out)
{
    const struct option_row *row = row_shown(index);
    if (row == NULL)
        return false;
    const void *field = (const char *)options + row->offset;
    out->name = row->name;
    out->kind = kind_names[row->kind];
    out->initial = row->initial;
    out->words = row->words;
    out->meaning = row->meaning;
    out->origin = options->origins[row - rows];
    out->string = row->kind == KIND_string ? *(const char *const *)field : NULL;
    out->number = value_number(row, field);
    value_format(row, field, out->short_value, sizeof out->short_value);
    return true;
}
