/* The syntax of ORIEL_TRACE_FILTER: what each filter selects, and the message for each mistake. */
#include "observe/trace/trace_filter.h"

#include "observe/stats/record.h"

#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"

#define PUT        ORIEL_TRACE_KIND_BIT(ORIEL_TRACE_OPERATION + ORIEL_COUNTS_put)
#define GET        ORIEL_TRACE_KIND_BIT(ORIEL_TRACE_OPERATION + ORIEL_COUNTS_get)
#define CALL(name) ORIEL_TRACE_KIND_BIT(ORIEL_TRACE_CALL + ORIEL_CALL_OF_##name)

static struct oriel_trace_filter accept(const char *spec)
{
    struct oriel_trace_filter filter;
    char problem[ORIEL_TRACE_FILTER_PROBLEM] = "";
    assert_true(oriel_trace_filter_read(spec, &filter, problem));
    assert_string_equal(problem, "");
    return filter;
}

static void refuse(const char *spec, const char *expected)
{
    struct oriel_trace_filter filter;
    char problem[ORIEL_TRACE_FILTER_PROBLEM] = "";
    assert_false(oriel_trace_filter_read(spec, &filter, problem));
    assert_string_equal(problem, expected);
}

static void no_filter_selects_everything(void **state)
{
    (void)state;
    static const char *const specs[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        struct oriel_trace_filter filter = accept(specs[i]);
        assert_true((filter.kinds & PUT) != 0 && (filter.kinds & CALL(free)) != 0);
        assert_true(oriel_trace_filter_has_rank(&filter, 7));
        assert_true(oriel_trace_filter_has_window(&filter, "", 3));
    }
}

static void kinds_of_calls_have_distinct_bits(void **state)
{
    (void)state;
    uint64_t all = 0;
    for (int kind = 0; kind < ORIEL_COUNTED_OPERATIONS; kind++)
        all += ORIEL_TRACE_KIND_BIT(kind);
    for (int kind = 0; kind < ORIEL_COUNTED_CALLS; kind++)
        all += ORIEL_TRACE_KIND_BIT(ORIEL_TRACE_CALL + kind);
    assert_int_equal(__builtin_popcountll(all), ORIEL_COUNTED_OPERATIONS + ORIEL_COUNTED_CALLS);
}

static void calls_have_their_own_names_and_those_of_mpi(void **state)
{
    (void)state;
    assert_int_equal(accept("call=put").kinds, PUT);
    assert_int_equal(accept("call=put,get").kinds, PUT | GET);
    assert_int_equal(accept("call=MPI_Put;call=MPI_Win_fence").kinds, PUT | CALL(fence));
    assert_int_equal(accept("call=mpi_win_LOCK*").kinds, CALL(lock) | CALL(lock_all));
    assert_int_equal(accept("call=*et").kinds, GET);
    assert_int_equal(accept("rank=1").kinds, ~UINT64_C(0));
}

static void ranks_are_numbers_and_ranges(void **state)
{
    (void)state;
    struct oriel_trace_filter filter = accept("rank=0,4-6;call=put;rank=9");
    static const int32_t within[] = {0, 4, 5, 6, 9}, without[] = {1, 3, 7, 8, 10};
    for (int i = 0; i < 5; i++) {
        assert_true(oriel_trace_filter_has_rank(&filter, within[i]));
        assert_false(oriel_trace_filter_has_rank(&filter, without[i]));
    }
    assert_true(oriel_trace_filter_has_window(&filter, "halo", 1));
}

static void windows_are_names_and_numbers(void **state)
{
    (void)state;
    struct oriel_trace_filter filter = accept("window=halo,t?ble*,3");
    assert_true(oriel_trace_filter_has_window(&filter, "halo", 9));
    assert_true(oriel_trace_filter_has_window(&filter, "tablet", 9));
    assert_true(oriel_trace_filter_has_window(&filter, "", 3));
    assert_true(oriel_trace_filter_has_window(&filter, "3", 9));
    assert_false(oriel_trace_filter_has_window(&filter, "Halo", 9));
    assert_false(oriel_trace_filter_has_window(&filter, "", 13));
    assert_true(oriel_trace_filter_has_rank(&filter, 5));
}

static void mistakes_are_named(void **state)
{
    char text[300];
    (void)state;
    refuse("halo", "\"halo\" is no KEY=VALUE,...");
    refuse("name=halo", "\"name\" is no key; the keys are window, call and rank");
    refuse("window=", "\"window\" has an empty value");
    refuse("call=put,", "\"call\" has an empty value");
    refuse("call=put;", "\";\" has nothing after it");
    refuse(";call=put", "\"\" is no KEY=VALUE,...");
    refuse("call=putt", "\"putt\" matches no call; oriel run --counters lists them");
    refuse("call=put,putt,get", "\"putt\" matches no call; oriel run --counters lists them");
    refuse("rank=3-1", "\"3-1\" is no rank, such as 3, and no range, such as 0-7");
    refuse("rank=-1", "\"-1\" is no rank, such as 3, and no range, such as 0-7");
    refuse("rank=1-", "\"1-\" is no rank, such as 3, and no range, such as 0-7");
    snprintf(text, sizeof text, "window=%0200d", 1);
    struct oriel_trace_filter filter;
    char problem[ORIEL_TRACE_FILTER_PROBLEM];
    assert_false(oriel_trace_filter_read(text, &filter, problem));
    assert_non_null(strstr(problem, "0\" is too long"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_filter_selects_everything),
        cmocka_unit_test(kinds_of_calls_have_distinct_bits),
        cmocka_unit_test(calls_have_their_own_names_and_those_of_mpi),
        cmocka_unit_test(ranks_are_numbers_and_ranges),
        cmocka_unit_test(windows_are_names_and_numbers),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
