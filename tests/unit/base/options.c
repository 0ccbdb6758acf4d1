/* The options table: defaults, every type of value, and the messages about invalid values. */
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "oriel/oriel.h"

/* Reads the options with one variable set, and returns the complaints; the caller frees them. */
static char *read_with(const char *name, const char *value, struct oriel_options *out)
{
    char *complaints = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&complaints, &len);
    assert_non_null(file);
    assert_int_equal(setenv(name, value, 1), 0);
    oriel_options_read(file, NULL, out);
    fclose(file);
    unsetenv(name);
    return complaints;
}

static void accept(const char *name, const char *value, struct oriel_options *out)
{
    char *complaints = read_with(name, value, out);
    assert_string_equal(complaints, "");
    free(complaints);
}

static void refuse(const char *name, const char *value, const char *expected,
                   struct oriel_options *out)
{
    char *complaints = read_with(name, value, out);
    assert_string_equal(complaints, expected);
    free(complaints);
}

static void defaults_apply_without_variables(void **state)
{
    (void)state;
    struct oriel_options options;
    oriel_options_read(stderr, NULL, &options);
    assert_false(options.bypass);
    assert_int_equal(options.verbose, 0);
    assert_int_equal(options.cma, ORIEL_CMA_AUTO);
    assert_int_equal(options.reserve_bytes, 0);
    assert_int_equal(options.spin_ns, 2000);
    assert_null(options.preloaded);
}

static void empty_variable_counts_as_unset(void **state)
{
    (void)state;
    struct oriel_options options;
    accept("ORIEL_SPIN", "", &options);
    assert_int_equal(options.spin_ns, 2000);
}

static void bool_accepts_words_and_digits(void **state)
{
    (void)state;
    struct oriel_options options;
    accept("ORIEL_BYPASS", "yes", &options);
    assert_true(options.bypass);
    accept("ORIEL_BYPASS", "1", &options);
    assert_true(options.bypass);
    accept("ORIEL_BYPASS", "off", &options);
    assert_false(options.bypass);
    refuse("ORIEL_BYPASS", "2", "oriel: ORIEL_BYPASS=2 is not 0 or 1; using the default, 0\n",
           &options);
    assert_false(options.bypass);
}

static void int_refuses_signs_rests_and_overflow(void **state)
{
    (void)state;
    struct oriel_options options;
    accept("ORIEL_SPIN", "0", &options);
    assert_int_equal(options.spin_ns, 0);
    accept("ORIEL_SPIN", "2147483647", &options);
    assert_int_equal(options.spin_ns, 2147483647);
    static const char *const bad[] = {"-1", "+1",   " 1",         "1 ",
                                      "1x", "0x10", "2147483648", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char expected[128];
        snprintf(
            expected, sizeof expected,
            "oriel: ORIEL_SPIN=%s is not a whole number of 0 or more; using the default, 2000\n",
            bad[i]);
        refuse("ORIEL_SPIN", bad[i], expected, &options);
        assert_int_equal(options.spin_ns, 2000);
    }
}

static void count_refuses_0(void **state)
{
    (void)state;
    struct oriel_options options;
    accept("ORIEL_TIMEOUT", "1", &options);
    assert_int_equal(options.timeout_s, 1);
    static const char *const bad[] = {"0", "00", "-1", "2147483648"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char expected[128];
        snprintf(
            expected, sizeof expected,
            "oriel: ORIEL_TIMEOUT=%s is not a whole number of 1 or more; using the default, 30\n",
            bad[i]);
        refuse("ORIEL_TIMEOUT", bad[i], expected, &options);
        assert_int_equal(options.timeout_s, 30);
    }
}

static void size_accepts_suffixes_and_refuses_overflow(void **state)
{
    (void)state;
    struct oriel_options options;
    accept("ORIEL_RESERVE", "4096", &options);
    assert_int_equal(options.reserve_bytes, 4096);
    accept("ORIEL_RESERVE", "3k", &options);
    assert_int_equal(options.reserve_bytes, 3072);
    accept("ORIEL_RESERVE", "64M", &options);
    assert_int_equal(options.reserve_bytes, 64 << 20);
    accept("ORIEL_RESERVE", "2G", &options);
    assert_int_equal(options.reserve_bytes, INT64_C(2) << 30);
    static const char *const bad[] = {"-1", "1T",           "1KB",
                                      "K",  "17179869184G", "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char expected[128];
        snprintf(expected, sizeof expected,
                 "oriel: ORIEL_RESERVE=%s is not a number of bytes with an optional K, M or G; "
                 "using the default, 0\n",
                 bad[i]);
        refuse("ORIEL_RESERVE", bad[i], expected, &options);
        assert_int_equal(options.reserve_bytes, 0);
    }
}

static void choice_accepts_its_words_only(void **state)
{
    (void)state;
    struct oriel_options options;
    accept("ORIEL_CMA", "never", &options);
    assert_int_equal(options.cma, ORIEL_CMA_NEVER);
    accept("ORIEL_CMA", "auto", &options);
    assert_int_equal(options.cma, ORIEL_CMA_AUTO);
    static const char *const bad[] = {"aut", "autos", "auto|never", "NEVER"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char expected[128];
        snprintf(expected, sizeof expected,
                 "oriel: ORIEL_CMA=%s is not one of auto|never; using the default, auto\n", bad[i]);
        refuse("ORIEL_CMA", bad[i], expected, &options);
        assert_int_equal(options.cma, ORIEL_CMA_AUTO);
    }
}

static void string_is_a_copy(void **state)
{
    (void)state;
    struct oriel_options options;
    accept("ORIEL_PRELOADED", "/a:/b", &options); /* unset again by now */
    assert_string_equal(options.preloaded, "/a:/b");
    free((char *)options.preloaded);
}

static void no_complaints_without_a_file(void **state)
{
    (void)state;
    struct oriel_options options;
    setenv("ORIEL_SPIN", "x", 1);
    oriel_options_read(NULL, NULL, &options);
    unsetenv("ORIEL_SPIN");
    assert_int_equal(options.spin_ns, 2000);
}

static void every_shown_row_is_described(void **state)
{
    (void)state;
    static const char *const expected[] = {
#define OPTION(kind, field, name, initial, words, shown, meaning) (shown) ? name : NULL,
#include "base/options.def"
#undef OPTION
    };
    struct oriel_options options;
    oriel_options_read(stderr, NULL, &options);
    struct oriel_option_description option;
    size_t index = 0;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        if (expected[i] == NULL)
            continue;
        assert_true(oriel_option_describe(index++, &options, &option));
        assert_string_equal(option.name, expected[i]);
        assert_string_equal(oriel_option_value(&option),
                            option.initial); /* nothing is set: the default's text reads back */
        assert_false(option.origin.is_set);
        assert_true(strlen(option.meaning) > 0);
    }
    assert_false(oriel_option_describe(index, &options, &option));
}

/* The description of a shown option with its variable set to value. */
static struct oriel_option_description describe_with(const char *name, const char *value)
{
    struct oriel_options options;
    struct oriel_option_description option;
    setenv(name, value, 1);
    oriel_options_read(NULL, NULL, &options);
    size_t index = 0;
    bool there = false;
    do
        there = oriel_option_describe(index++, &options, &option);
    while (there && strcmp(option.name, name) != 0);
    unsetenv(name);
    assert_true(there);
    return option;
}

static void described_values_are_those_in_effect(void **state)
{
    (void)state;
    struct oriel_option_description option = describe_with("ORIEL_RESERVE", "65536K");
    assert_string_equal(oriel_option_value(&option), "64M");
    assert_true(option.origin.is_set);
    assert_int_equal(option.number, 64 << 20);
    option = describe_with("ORIEL_RESERVE", "1025");
    assert_string_equal(oriel_option_value(&option), "1025");
    option = describe_with("ORIEL_CMA", "never");
    assert_string_equal(oriel_option_value(&option), "never");
    assert_int_equal(option.number, ORIEL_CMA_NEVER);
    option = describe_with("ORIEL_BYPASS", "yes");
    assert_int_equal(option.number, 1);
    option = describe_with("ORIEL_SPIN", "x");
    assert_string_equal(oriel_option_value(&option), "2000");
    assert_int_equal(option.number, 2000);
    assert_false(option.origin.is_set);
    option = describe_with("ORIEL_TIMEOUT", "0");
    assert_string_equal(oriel_option_value(&option), "30");
    assert_false(option.origin.is_set);
}

static size_t option_position(const char *name)
{
    struct oriel_option_description option;
    size_t at = 0;
    while (oriel_option_describe(at, oriel_options(), &option) && strcmp(option.name, name) != 0)
        at++;
    return at;
}

static void options_are_set_while_the_process_runs(void **state)
{
    (void)state;
    struct oriel_option_description option;
    size_t trace = option_position("ORIEL_TRACE");
    size_t limit = option_position("ORIEL_TRACE_LIMIT");
    assert_true(oriel_options_set(trace, "folder"));
    assert_string_equal(oriel_options()->trace, "folder");
    assert_true(oriel_option_describe(trace, oriel_options(), &option));
    assert_true(option.origin.is_set && option.origin.file == NULL);
    assert_true(oriel_options_set(trace, ""));
    assert_null(oriel_options()->trace);
    assert_true(oriel_options_set(limit, "4K"));
    assert_false(oriel_options_set(limit, "4X"));
    assert_int_equal(oriel_options()->trace_limit_bytes, 4096);
    assert_false(oriel_options_set(ORIEL_OPTIONS, "1"));
}

static void described_texts_are_complete(void **state)
{
    (void)state;
    char text[5000] = "";
    memset(text, 'x', sizeof text - 1);
    struct oriel_option_description option = describe_with("ORIEL_TRACE", text);
    assert_string_equal(oriel_option_value(&option), text);
    assert_true(option.origin.is_set);
    free((char *)oriel_option_value(&option)); /* the options' own copy */
}

static void warn_unknown(const char *name, int expected_count, const char *suggestion)
{
    char *text = NULL;
    char *expected = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    assert_non_null(file);
    setenv(name, "1", 1);
    int unknown = oriel_options_warn_unknown(file);
    unsetenv(name);
    fclose(file);
    assert_int_equal(unknown, expected_count);
    assert_true(asprintf(&expected, "oriel: %s is not an option of Oriel %s and is ignored%s%s%s\n",
                         name, ORIEL_VERSION, suggestion == NULL ? "" : "; did you mean ",
                         suggestion == NULL ? "" : suggestion, suggestion == NULL ? "" : "?") > 0);
    assert_string_equal(text, expected_count == 0 ? "" : expected);
    free(text);
    free(expected);
}

static void unknown_variables_are_named_with_the_similar_one(void **state)
{
    (void)state;
    static const struct {
        const char *name, *similar;
    } rows[] = {
        {"ORIEL_SPINN", "ORIEL_SPIN"},
        {"ORIEL_SIPN", "ORIEL_SPIN"},
        {"ORIEL_SPI", "ORIEL_SPIN"},
        {"ORIEL_spin", "ORIEL_SPIN"},
        {"ORIEL_TIME_OUT", "ORIEL_TIMEOUT"},
        {"ORIEL_STACK", NULL},
        {"ORIEL_CHECK", "ORIEL_CHECK_FAIL"},
        {"ORIEL_VERBOS", "ORIEL_VERBOSE"},
        {"ORIEL_NETT", "ORIEL_NET"},
        {"ORIEL_TRACES", "ORIEL_TRACE"},
        {"ORIEL_TRACE_LMIT", "ORIEL_TRACE_LIMIT"},
        {"ORIEL_X", NULL},
        {"ORIEL_", NULL},
        {"ORIEL_PRELOADE", NULL},
        {"ORIEL_ABCDEFGHIJKLMNOPQRSTUVWXYZ_ABCDEFGHIJKLMNOPQRSTUVWXYZ", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        warn_unknown(rows[i].name, 1, rows[i].similar);
    warn_unknown("ORIEL_SPIN", 0, NULL);
    warn_unknown("ORIELSPIN", 0, NULL);
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
        cmocka_unit_test(defaults_apply_without_variables),
        cmocka_unit_test(empty_variable_counts_as_unset),
        cmocka_unit_test(bool_accepts_words_and_digits),
        cmocka_unit_test(int_refuses_signs_rests_and_overflow),
        cmocka_unit_test(count_refuses_0),
        cmocka_unit_test(size_accepts_suffixes_and_refuses_overflow),
        cmocka_unit_test(choice_accepts_its_words_only),
        cmocka_unit_test(string_is_a_copy),
        cmocka_unit_test(no_complaints_without_a_file),
        cmocka_unit_test(every_shown_row_is_described),
        cmocka_unit_test(described_values_are_those_in_effect),
        cmocka_unit_test(options_are_set_while_the_process_runs),
        cmocka_unit_test(described_texts_are_complete),
        cmocka_unit_test(unknown_variables_are_named_with_the_similar_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
