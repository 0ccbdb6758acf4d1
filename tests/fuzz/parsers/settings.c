/* A settings file of arbitrary bytes, from the file to the options. What is no text, or too large,
 * is refused as a whole. Every other line sets a known option to an accepted value, or is reported
 * once. The effective options, written as a file, read back without complaint. */
#include "fuzzer.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/options.h"

enum { MISTAKES_REPORTED = 8 };

static char path[64];

static void free_strings(struct oriel_options *options)
{
#define FREE_bool(field)
#define FREE_int(field)
#define FREE_count(field)
#define FREE_size(field)
#define FREE_choice(field)
#define FREE_string(field) free((char *)(uintptr_t)options->field);
#define OPTION(kind, field, name, initial, words, shown, meaning) FREE_##kind(field)
#include "base/options.def"
#undef OPTION
}

/* Reads these bytes as a settings file. */
static void settings_of(const void *bytes, size_t len_bytes, struct oriel_settings *out)
{
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("settings", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, len_bytes, 0) == (ssize_t)len_bytes);
    *out = (struct oriel_settings){0};
    out->files[ORIEL_SETTINGS_USER] =
        (struct oriel_settings_file){.kind = ORIEL_SETTINGS_USER, .path = path};
    oriel_settings_file_read(&out->files[ORIEL_SETTINGS_USER]);
}

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

static void part_check(const char *part)
{
    size_t len = strlen(part);
    REQUIRE(strchr(part, '\n') == NULL);
    REQUIRE(len == 0 || (!is_blank(part[0]) && !is_blank(part[len - 1])));
}

/* Returns the number of lines that set something or are wrong. */
static unsigned lines_check(const char *text)
{
    struct oriel_setting setting;
    unsigned line = 0;
    unsigned last = 0;
    unsigned count = 0;
    while (oriel_settings_next(&text, &line, &setting)) {
        REQUIRE(setting.line > last && setting.line == line);
        last = setting.line;
        count++;
        if (setting.mistake != NULL)
            continue;
        part_check(setting.name);
        part_check(setting.value);
        REQUIRE(setting.name[0] != '\0');
    }
    return count;
}

static char *options_of(const struct oriel_settings *settings, struct oriel_options *out)
{
    char *complaints = NULL;
    size_t complaints_bytes = 0;
    FILE *file = open_memstream(&complaints, &complaints_bytes);
    REQUIRE(file != NULL);
    oriel_options_read(file, settings, out);
    fclose(file);
    return complaints;
}

/* The shown options as a settings file; what a file cannot express is left out. */
static char *file_of(const struct oriel_options *options)
{
    struct oriel_option_description option;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    REQUIRE(file != NULL);
    for (size_t i = 0; oriel_option_describe(i, options, &option); i++)
        if (strcmp(option.name, "ORIEL_CONFIG") != 0)
            fprintf(file, "%s=%s\n", option.name, oriel_option_value(&option));
    fclose(file);
    return text;
}

static unsigned lines_of(const char *text)
{
    unsigned lines = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++)
        lines++;
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct oriel_settings settings;
    struct oriel_options first;
    struct oriel_options second;
    settings_of(data, len_bytes, &settings);
    struct oriel_settings_file *file = &settings.files[ORIEL_SETTINGS_USER];
    REQUIRE(file->is_refused == (file->text == NULL));
    REQUIRE(file->text == NULL || strlen(file->text) == len_bytes);
    unsigned lines = file->text == NULL ? 0 : lines_check(file->text);
    char *complaints = options_of(&settings, &first);
    unsigned reported = lines_of(complaints);
    REQUIRE(file->text == NULL ? reported == 1
                               : reported <= lines && reported <= MISTAKES_REPORTED + 1);
    free(complaints);
    free(file->text);

    char *text = file_of(&first);
    settings_of(text, strlen(text), &settings);
    complaints = options_of(&settings, &second);
    char *again = file_of(&second);
    REQUIRE(complaints[0] == '\0' && strcmp(text, again) == 0);
    free(text);
    free(again);
    free(complaints);
    free(file->text);
    free_strings(&first);
    free_strings(&second);
    return 0;
}
