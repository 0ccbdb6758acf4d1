/* The calls whose times count for others: each call of a loop has the same chance, whatever the
 * loop's period, and a long one has a limit. */
#include "observe/stats/sampled_time.h"

#include "cmocka_all.h"

enum { CALLS = 1 << 20, PERIODS = 200 };

static void one_of_each_block_is_drawn(void **state)
{
    (void)state;
    for (uint64_t block = 0; block < CALLS / ORIEL_CALL_SAMPLE; block++) {
        unsigned drawn = 0;
        for (uint64_t i = 0; i < ORIEL_CALL_SAMPLE; i++)
            drawn += oriel_call_is_drawn(block * ORIEL_CALL_SAMPLE + i);
        assert_int_equal(drawn, 1);
    }
}

static void periods_have_equal_chances(void **state)
{
    (void)state;
    for (unsigned period = 2; period <= PERIODS; period++) {
        unsigned drawn[PERIODS] = {0};
        unsigned each = CALLS / ORIEL_CALL_SAMPLE / period;
        for (uint64_t i = 0; i < CALLS; i++)
            drawn[i % period] += oriel_call_is_drawn(i);
        for (unsigned i = 0; i < period; i++)
            assert_in_range(drawn[i], each / 2, each + each / 2);
    }
}

static void long_times_are_limited_only_for_others(void **state)
{
    (void)state;
    assert_int_equal(oriel_sampled_ns(5000000, 8, 1), 5000000);
    assert_int_equal(oriel_sampled_ns(5000000, 8, 64), 64 * 10008);
    assert_int_equal(oriel_sampled_ns(10008, 8, 64), 64 * 10008);
    assert_int_equal(oriel_sampled_ns(5000000, 6000000, 64), 64 * 5000000);
    assert_int_equal(oriel_sampled_ns(30, 8, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_each_block_is_drawn),
        cmocka_unit_test(periods_have_equal_chances),
        cmocka_unit_test(long_times_are_limited_only_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
