/* Settings files: their syntax, which files are read, and what they set. */
#include "base/options.h"
#include "base/settings.h"
#include "oriel/oriel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"

enum { NOBODY = 65534 };

/* --- lines --- */

/* What a text sets, one line for each setting or mistake: "LINE NAME=VALUE" or "LINE MISTAKE". */
static void parse(const char *text, const char *expected)
{
    char found[2 * ORIEL_SETTINGS_LINE_BYTES] = "";
    struct oriel_setting setting;
    unsigned line = 0;
    while (oriel_settings_next(&text, &line, &setting)) {
        size_t used = strlen(found);
        if (setting.mistake != NULL)
            snprintf(found + used, sizeof found - used, "%u %s\n", setting.line, setting.mistake);
        else
            snprintf(found + used, sizeof found - used, "%u %s=%s\n", setting.line, setting.name,
                     setting.value);
    }
    assert_string_equal(found, expected);
}

static void a_line_is_a_name_and_a_value(void **state)
{
    (void)state;
    parse("", "");
    parse("\n\n", "");
    parse("A=b", "1 A=b\n");
    parse("A=b\nC=d\n", "1 A=b\n2 C=d\n");
    parse("\n \tA \t = \t b c \t\n", "2 A=b c\n");
    parse("A=b\r\nC=d\r\n", "1 A=b\n2 C=d\n");
    parse("A = b = c", "1 A=b = c\n");
    parse("A =", "1 A=\n");
}

static void comments_begin_after_a_blank(void **state)
{
    (void)state;
    parse("# A = b\n  # C = d\n#", "");
    parse("A = b # c", "1 A=b\n");
    parse("A = b\t# c", "1 A=b\n");
    parse("A = b#c", "1 A=b#c\n");
    parse("A =#c", "1 A=#c\n");
    parse("A = # c", "1 A=\n");
    parse("A # = b", "1 not NAME = VALUE\n");
}

static void mistakes_have_their_line(void **state)
{
    (void)state;
    parse("A=b\nnever\nC=d", "1 A=b\n2 not NAME = VALUE\n3 C=d\n");
    parse("= b", "1 not NAME = VALUE\n");
    parse(" = b", "1 not NAME = VALUE\n");
    parse("A = \"b\"\nA = 'b'", "1 values are written without quotes\n"
                                "2 values are written without quotes\n");
    parse("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLM = b",
          "1 the name is too long\n");
}

static void long_lines_are_mistakes(void **state)
{
    (void)state;
    static char text[3 * ORIEL_SETTINGS_LINE_BYTES];
    static char value[ORIEL_SETTINGS_LINE_BYTES];
    struct oriel_setting setting;
    memset(value, 'x', ORIEL_SETTINGS_LINE_BYTES - 3);
    snprintf(text, sizeof text, "A=%s\nA=%sx\nB=c", value, value);
    const char *at = text;
    unsigned line = 0;
    assert_true(oriel_settings_next(&at, &line, &setting));
    assert_null(setting.mistake);
    assert_string_equal(setting.value, value);
    assert_true(oriel_settings_next(&at, &line, &setting));
    assert_string_equal(setting.mistake, "longer than 4095 bytes");
    assert_true(oriel_settings_next(&at, &line, &setting));
    assert_string_equal(setting.value, "c");
    assert_false(oriel_settings_next(&at, &line, &setting));
}

/* --- files --- */

static char folder[] = "/tmp/oriel-settings.XXXXXX";

static char *path_in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static char *file_write(const char *name, const void *bytes, size_t len_bytes)
{
    char *path = path_in_folder(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len_bytes), len_bytes);
    close(fd);
    return path;
}

/* Reads a file as one of this kind. */
static void file_read(enum oriel_settings_kind kind, char *path, bool is_read, bool is_refused,
                      const char *expected)
{
    struct oriel_settings_file file = {.kind = kind, .path = path};
    oriel_settings_file_read(&file);
    assert_string_equal(file.state, expected);
    assert_int_equal(file.text != NULL, is_read);
    assert_int_equal(file.is_refused, is_refused);
    free(file.text);
}

static void missing_file_is_refused_only_by_name(void **state)
{
    (void)state;
    char *path = path_in_folder("missing");
    file_read(ORIEL_SETTINGS_USER, path, false, false, "No such file or directory");
    file_read(ORIEL_SETTINGS_NAMED, path, false, true, "No such file or directory");
    path = path_in_folder("missing/oriel.conf");
    file_read(ORIEL_SETTINGS_FOLDER, path, false, false, "No such file or directory");
    path = file_write("file", "", 0);
    strcat(path, "/oriel.conf");
    file_read(ORIEL_SETTINGS_FOLDER, path, false, false, "Not a directory");
}

static void only_text_is_read(void **state)
{
    (void)state;
    static char large[ORIEL_SETTINGS_FILE_BYTES + 1];
    file_read(ORIEL_SETTINGS_USER, file_write("empty", "", 0), true, false, "read");
    file_read(ORIEL_SETTINGS_USER, file_write("text", "A=\xc3\xa4\t\r\n", 7), true, false, "read");
    file_read(ORIEL_SETTINGS_USER, file_write("zero", "A=b\n\0", 5), false, true,
              "is not text (line 2)");
    file_read(ORIEL_SETTINGS_USER, file_write("escape", "\033[1m", 4), false, true,
              "is not text (line 1)");
    memset(large, '\n', sizeof large);
    file_read(ORIEL_SETTINGS_USER, file_write("large", large, sizeof large - 1), true, false,
              "read");
    file_read(ORIEL_SETTINGS_USER, file_write("larger", large, sizeof large), false, true,
              "is larger than 64 KiB");
}

static void only_regular_files_are_opened(void **state)
{
    (void)state;
    file_read(ORIEL_SETTINGS_USER, folder, false, true, "is not a regular file");
    char *path = path_in_folder("fifo");
    assert_int_equal(mkfifo(path, 0644), 0);
    file_read(ORIEL_SETTINGS_FOLDER, path, false, true, "is not a regular file");
    path = path_in_folder("loop");
    assert_int_equal(symlink(path, path), 0);
    file_read(ORIEL_SETTINGS_FOLDER, path, false, true, "Too many levels of symbolic links");
    file_read(ORIEL_SETTINGS_USER, (char *)(uintptr_t) "/dev/null", false, true,
              "is not a regular file");
    /* a regular file that cannot be read, because nothing is mapped at its first byte */
    file_read(ORIEL_SETTINGS_USER, (char *)(uintptr_t) "/proc/self/mem", false, true,
              "Input/output error");
}

static void file_of_the_folder_is_this_users(void **state)
{
    (void)state;
    char *path = file_write("open", "A=b", 3);
    file_read(ORIEL_SETTINGS_FOLDER, path, true, false, "read");
    assert_int_equal(chmod(path, 0646), 0);
    file_read(ORIEL_SETTINGS_FOLDER, path, false, true,
              "may be written by every user: use chmod o-w");
    file_read(ORIEL_SETTINGS_NAMED, path, true, false, "read"); /* the user named it */
    if (geteuid() != 0)
        return;
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    file_read(ORIEL_SETTINGS_FOLDER, path, false, true, "belongs to another user (uid 65534)");
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    file_read(ORIEL_SETTINGS_FOLDER, path, true, false, "read"); /* root's file */
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    file_read(ORIEL_SETTINGS_USER, path, false, true, "Permission denied");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    file_read(ORIEL_SETTINGS_USER, path, false, false, "Permission denied"); /* unknown if there */
    assert_int_equal(seteuid(0), 0);
}

static void folder_is_that_of_the_start(void **state)
{
    (void)state;
    char start[4096];
    char expected[4096 + 16];
    struct oriel_settings settings;
    assert_non_null(getcwd(start, sizeof start));
    snprintf(expected, sizeof expected, "%s/oriel.conf", start);
    assert_int_equal(chdir(folder), 0);
    oriel_settings_open(&settings);
    assert_string_equal(settings.files[ORIEL_SETTINGS_FOLDER].path, expected);
    oriel_settings_close(&settings);
    assert_int_equal(chdir(start), 0);
}

/* --- what files set --- */

/* Reads the options with these files; NULL for none. The caller frees the complaints. */
static char *read_with(const char *named, const char *system, struct oriel_options *out)
{
    struct oriel_settings settings = {
        .files = {
            [ORIEL_SETTINGS_NAMED] = {.path = (char *)(uintptr_t) "/n",
                                      .text = (char *)(uintptr_t)named},
            [ORIEL_SETTINGS_SYSTEM] = {.path = (char *)(uintptr_t) "/s",
                                       .text = (char *)(uintptr_t)system},
        }};
    char *complaints = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&complaints, &len);
    assert_non_null(file);
    oriel_options_read(file, &settings, out);
    fclose(file);
    return complaints;
}

static void complain(const char *named, const char *system, const char *expected,
                     struct oriel_options *out)
{
    char *complaints = read_with(named, system, out);
    assert_string_equal(complaints, expected);
    free(complaints);
}

static void check_origin(const struct oriel_options *options, enum oriel_option option,
                         const char *file, unsigned line)
{
    const struct oriel_option_origin *origin = &options->origins[option];
    assert_true(origin->is_set);
    assert_int_equal(origin->line, line);
    if (file == NULL)
        assert_null(origin->file);
    else
        assert_string_equal(origin->file, file);
}

static void the_first_file_that_sets_an_option_decides(void **state)
{
    (void)state;
    struct oriel_options options;
    complain("\nORIEL_SPIN = 5\n", "ORIEL_SPIN = 6\nORIEL_CMA = never", "", &options);
    assert_int_equal(options.spin_ns, 5);
    check_origin(&options, ORIEL_OPTION_spin_ns, "/n", 2);
    assert_int_equal(options.cma, ORIEL_CMA_NEVER);
    check_origin(&options, ORIEL_OPTION_cma, "/s", 2);
    assert_false(options.origins[ORIEL_OPTION_net].is_set);
    setenv("ORIEL_SPIN", "7", 1);
    setenv("ORIEL_CMA", "", 1);
    complain("ORIEL_SPIN = 5", "ORIEL_CMA = never", "", &options);
    assert_int_equal(options.spin_ns, 7);
    check_origin(&options, ORIEL_OPTION_spin_ns, NULL, 0);
    assert_int_equal(options.cma, ORIEL_CMA_NEVER); /* an empty variable is not set */
    unsetenv("ORIEL_SPIN");
    unsetenv("ORIEL_CMA");
}

static void the_last_line_of_a_file_counts(void **state)
{
    (void)state;
    struct oriel_options options;
    complain("ORIEL_SPIN=5\nORIEL_TRACE=/a\nORIEL_SPIN=6\nORIEL_TRACE=/b", NULL, "", &options);
    assert_int_equal(options.spin_ns, 6);
    check_origin(&options, ORIEL_OPTION_spin_ns, "/n", 3);
    assert_string_equal(options.trace, "/b");
    free((char *)(uintptr_t)options.trace);
}

static void an_empty_value_is_the_default(void **state)
{
    (void)state;
    struct oriel_options options;
    complain("ORIEL_SPIN =\nORIEL_TRACE = # none", "ORIEL_SPIN = 6\nORIEL_TRACE = /a", "",
             &options);
    assert_int_equal(options.spin_ns, 2000);
    check_origin(&options, ORIEL_OPTION_spin_ns, "/n", 1);
    assert_null(options.trace);
}

static void wrong_lines_are_reported_and_ignored(void **state)
{
    (void)state;
    struct oriel_options options;
    complain("ORIEL_SPIN = fast\nORIEL_TIMEOUT = 0\nspin = 3\nnever",
             "ORIEL_SPIN = 6\nORIEL_TIMEOUT = 5",
             "oriel: /n:1: ORIEL_SPIN=fast is not a whole number of 0 or more; the line is "
             "ignored\n"
             "oriel: /n:2: ORIEL_TIMEOUT=0 is not a whole number of 1 or more; the line is "
             "ignored\n"
             "oriel: /n:3: spin is not an option of Oriel " ORIEL_VERSION " and is ignored\n"
             "oriel: /n:4: not NAME = VALUE; the line is ignored\n",
             &options);
    assert_int_equal(options.spin_ns, 6);
    assert_int_equal(options.timeout_s, 5);
    check_origin(&options, ORIEL_OPTION_timeout_s, "/s", 2);
}

static void some_names_count_only_in_the_environment(void **state)
{
    (void)state;
    struct oriel_options options;
    complain("ORIEL_CONFIG = /a\nORIEL_PRELOADED = /b", NULL,
             "oriel: /n:1: ORIEL_CONFIG counts only in the environment; the line is ignored\n"
             "oriel: /n:2: ORIEL_PRELOADED counts only in the environment; the line is ignored\n",
             &options);
    assert_null(options.config);
    assert_null(options.preloaded);
}

static void wrong_variable_leaves_the_files_value(void **state)
{
    (void)state;
    struct oriel_options options;
    setenv("ORIEL_SPIN", "fast", 1);
    complain(NULL, "ORIEL_SPIN = 6",
             "oriel: ORIEL_SPIN=fast is not a whole number of 0 or more; using 6 from /s:1\n",
             &options);
    unsetenv("ORIEL_SPIN");
    assert_int_equal(options.spin_ns, 6);
    check_origin(&options, ORIEL_OPTION_spin_ns, "/s", 1);
}

static void many_wrong_lines_are_counted(void **state)
{
    (void)state;
    struct oriel_options options;
    char text[256] = "";
    for (int i = 0; i < 11; i++)
        strcat(text, "never\n");
    char *complaints = read_with(text, "never", &options);
    assert_non_null(strstr(complaints, "/n:8: not NAME"));
    assert_null(strstr(complaints, "/n:9:"));
    assert_non_null(strstr(complaints, "oriel: /n: 3 further lines are ignored\n"));
    assert_non_null(strstr(complaints, "/s:1: not NAME"));
    free(complaints);
}

static void refused_file_is_reported(void **state)
{
    (void)state;
    struct oriel_options options;
    struct oriel_settings settings = {0};
    struct oriel_settings_file *file = &settings.files[ORIEL_SETTINGS_USER];
    file->path = path_in_folder("refused");
    assert_int_equal(mkdir(file->path, 0755), 0);
    oriel_settings_file_read(file);
    char *complaints = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&complaints, &len);
    oriel_options_read(out, &settings, &options);
    fclose(out);
    char expected[256];
    snprintf(expected, sizeof expected, "oriel: %s: is not a regular file; the file is ignored\n",
             file->path);
    assert_string_equal(complaints, expected);
    free(complaints);
}

static int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int folder_remove(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    static const char *const names[] = {
#define OPTION(kind, field, name, initial, words, shown, meaning) name,
#include "base/options.def"
#undef OPTION
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_name_and_a_value),
        cmocka_unit_test(comments_begin_after_a_blank),
        cmocka_unit_test(mistakes_have_their_line),
        cmocka_unit_test(long_lines_are_mistakes),
        cmocka_unit_test(missing_file_is_refused_only_by_name),
        cmocka_unit_test(only_text_is_read),
        cmocka_unit_test(only_regular_files_are_opened),
        cmocka_unit_test(file_of_the_folder_is_this_users),
        cmocka_unit_test(folder_is_that_of_the_start),
        cmocka_unit_test(the_first_file_that_sets_an_option_decides),
        cmocka_unit_test(the_last_line_of_a_file_counts),
        cmocka_unit_test(an_empty_value_is_the_default),
        cmocka_unit_test(wrong_lines_are_reported_and_ignored),
        cmocka_unit_test(some_names_count_only_in_the_environment),
        cmocka_unit_test(wrong_variable_leaves_the_files_value),
        cmocka_unit_test(many_wrong_lines_are_counted),
        cmocka_unit_test(refused_file_is_reported),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
