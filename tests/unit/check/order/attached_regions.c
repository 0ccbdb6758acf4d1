/* Attached regions: the same answers as a check of each byte, in a time that does not depend on the
 * number of runs. */
#include "check/order/attached_regions.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

enum { BYTES = 48, AWAY = 1000, TRIALS = 200000, SEED = 7 };

static uint32_t seed = SEED;

static uint32_t below(uint32_t limit)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % limit;
}

static bool has_run(const bool attached[BYTES], uint64_t address, uint64_t len_bytes)
{
    for (uint64_t i = 0; i < len_bytes; i++)
        if (address + i - AWAY >= BYTES || !attached[address + i - AWAY])
            return false;
    return true;
}

/* Regions that do not overlap, some of them adjacent. */
static void draw_regions(oriel_shm_offset *list, bool attached[BYTES])
{
    memset(attached, 0, BYTES);
    for (uint64_t at = below(6); at < BYTES;) {
        uint64_t len_bytes = 1 + below(12);
        len_bytes = len_bytes < BYTES - at ? len_bytes : BYTES - at;
        oriel_attached_add(list, (struct oriel_member_range){AWAY + at, len_bytes});
        memset(attached + at, 1, len_bytes);
        at += len_bytes + (below(2) == 0 ? 0 : below(9));
    }
}

static void runs_are_attached_if_each_byte_is(void **state)
{
    bool attached[BYTES];
    int found = 0;
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        oriel_shm_offset list = 0;
        draw_regions(&list, attached);
        const struct oriel_member_range first = {AWAY + below(BYTES), below(8)};
        const uint64_t count = below(9);
        const int64_t stride_bytes = (int64_t)below(19) - 9;
        struct oriel_member_range run = first;
        struct oriel_member_range nearest;
        uint64_t i = 0;
        while (i < count &&
               has_run(attached, first.address + i * (uint64_t)stride_bytes, first.len_bytes))
            i++;
        assert_int_equal(oriel_attached_has(list, &run, count, stride_bytes, &nearest), i == count);
        if (i < count)
            assert_true(run.address == first.address + i * (uint64_t)stride_bytes);
        found += i == count;
        oriel_attached_empty(&list);
    }
    assert_true(found > TRIALS / 10 && found < TRIALS / 10 * 9);
}

static void many_runs_need_no_time(void **state)
{
    const uint64_t many = UINT64_C(1) << 60;
    const uint64_t large = UINT64_C(1) << 44;
    struct oriel_member_range nearest;
    oriel_shm_offset list = 0;
    (void)state;
    oriel_attached_add(&list, (struct oriel_member_range){large, large});
    oriel_attached_add(&list, (struct oriel_member_range){2 * large, large});
    assert_true(
        oriel_attached_has(list, &(struct oriel_member_range){large, 8}, many, 0, &nearest));
    assert_true(
        oriel_attached_has(list, &(struct oriel_member_range){large, 0}, many, 8, &nearest));
    assert_false(oriel_attached_has(list, &(struct oriel_member_range){large, large / 2}, many, 1,
                                    &nearest));
    assert_false(oriel_attached_has(list, &(struct oriel_member_range){3 * large - 8, 8}, many, -1,
                                    &nearest));
    oriel_attached_remove(&list, large);
    assert_false(oriel_attached_has(list, &(struct oriel_member_range){large, 8}, 1, 0, &nearest));
    assert_true(nearest.address == 2 * large);
    oriel_attached_empty(&list);
}

int main(void)
{
    char path[64];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_attached_if_each_byte_is),
        cmocka_unit_test(many_runs_need_no_time),
    };
    if (oriel_shm_make_sized(1, 1 << 22, path, sizeof path) != ORIEL_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
