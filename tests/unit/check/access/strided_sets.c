/* Strided sets: intersection, containment, union and difference, against sets of single bytes.
 * Random shapes, small enough to enumerate and large enough to overlap in unusual ways. */
#include "check/access/strided_sets.h"

#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"

enum { BYTES = 400, ROUNDS = 300000 };

struct bytes {
    bool in[BYTES];
};

static void count_out(const struct oriel_access_extent *runs, struct bytes *out)
{
    memset(out, 0, sizeof *out);
    for (uint64_t i = 0; i < runs->count; i++)
        for (uint64_t k = 0; k < runs->len_bytes; k++)
            out->in[runs->offset + (int64_t)i * (runs->count == 1 ? 0 : runs->stride_bytes) +
                    (int64_t)k] = true;
}

static struct oriel_access_extent draw(void)
{
    struct oriel_access_extent runs = {.len_bytes = 1 + below(9),
                                       .count = below(3) == 0 ? 1 : 1 + below(8)};
    runs.stride_bytes = (int64_t)below(31) - 4;
    int64_t reach = (int64_t)(runs.count - 1) * runs.stride_bytes;
    runs.offset = (int64_t)below(100) + (reach < 0 ? -reach : 0);
    return runs;
}

static void tidied_runs_have_the_same_bytes(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct oriel_access_extent runs = draw();
        struct oriel_access_extent tidy;
        struct bytes before;
        struct bytes after;
        assert_true(oriel_byte_runs_tidy(&runs, &tidy));
        count_out(&runs, &before);
        count_out(&tidy, &after);
        assert_memory_equal(&before, &after, sizeof before);
        assert_true(tidy.count == 1 || tidy.stride_bytes > (int64_t)tidy.len_bytes);
    }
    struct oriel_access_extent tidy;
    assert_false(oriel_byte_runs_tidy(
        &(struct oriel_access_extent){.offset = 3, .count = 4, .stride_bytes = 8}, &tidy));
    assert_false(oriel_byte_runs_tidy(
        &(struct oriel_access_extent){.offset = 3, .len_bytes = 4, .stride_bytes = 8}, &tidy));
}

static void runs_intersect_where_a_byte_is_in_both(void **state)
{
    (void)state;
    int met = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct oriel_access_extent first = draw();
        struct oriel_access_extent second = draw();
        struct oriel_access_extent a;
        struct oriel_access_extent b;
        struct bytes in_a;
        struct bytes in_b;
        oriel_byte_runs_tidy(&first, &a);
        oriel_byte_runs_tidy(&second, &b);
        count_out(&a, &in_a);
        count_out(&b, &in_b);
        int64_t expected = 0;
        while (expected < BYTES && !(in_a.in[expected] && in_b.in[expected]))
            expected++;
        int64_t offset = -1;
        uint64_t len_bytes = 0;
        assert_int_equal(oriel_byte_runs_meet(&a, &b, &offset, &len_bytes), expected < BYTES);
        if (expected == BYTES)
            continue;
        met++;
        assert_int_equal(offset, expected);
        assert_true(len_bytes > 0);
        for (uint64_t i = 0; i < len_bytes; i++)
            assert_true(in_a.in[offset + (int64_t)i] && in_b.in[offset + (int64_t)i]);
    }
    assert_in_range(met, ROUNDS / 10, ROUNDS - ROUNDS / 10);
}

static void long_runs_intersect_at_once(void **state)
{
    (void)state;
    int64_t offset;
    uint64_t len_bytes;
    struct oriel_access_extent even = {
        .offset = 0, .len_bytes = 1, .count = UINT64_C(1) << 40, .stride_bytes = 6};
    struct oriel_access_extent odd = {
        .offset = 3, .len_bytes = 1, .count = UINT64_C(1) << 39, .stride_bytes = 12};
    assert_false(oriel_byte_runs_meet(&even, &odd, &offset, &len_bytes));
    /* 6 x = 7 y + 3 first holds at y = 3; with 10^9 + 7 instead of 7, far away */
    odd.stride_bytes = 7;
    assert_true(oriel_byte_runs_meet(&even, &odd, &offset, &len_bytes));
    assert_int_equal(offset, 24);
    odd.count = 1 << 30;
    odd.stride_bytes = 1000000007;
    assert_true(oriel_byte_runs_meet(&even, &odd, &offset, &len_bytes));
    assert_int_equal(offset % 6, 0);
    assert_int_equal((offset - 3) % 1000000007, 0);
    assert_int_equal((offset - 3) / 1000000007, 3);
}

static void contained_runs_are_contained_and_joined_runs_are_both(void **state)
{
    (void)state;
    int contained = 0;
    int joined = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct oriel_access_extent first = draw();
        struct oriel_access_extent second = draw();
        struct oriel_access_extent a;
        struct oriel_access_extent b;
        struct bytes in_a;
        struct bytes in_b;
        oriel_byte_runs_tidy(&first, &a);
        oriel_byte_runs_tidy(&second, &b);
        count_out(&a, &in_a);
        count_out(&b, &in_b);
        if (oriel_byte_runs_contain(&a, &b)) {
            contained++;
            for (int i = 0; i < BYTES; i++)
                assert_true(in_a.in[i] || !in_b.in[i]);
        }
        struct oriel_access_extent both;
        if (oriel_byte_runs_join(&a, &b, &both)) {
            struct bytes in_both;
            joined++;
            count_out(&both, &in_both);
            for (int i = 0; i < BYTES; i++)
                assert_int_equal(in_both.in[i], in_a.in[i] || in_b.in[i]);
            assert_true(both.count == 1 || both.stride_bytes > (int64_t)both.len_bytes);
        }
    }
    assert_true(contained > 1000 && joined > contained);
}

static void the_rest_of_runs_is_all_but_the_hole(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct oriel_access_extent drawn = draw();
        struct oriel_access_extent from;
        struct oriel_access_extent hole = {
            .offset = (int64_t)below(200), .len_bytes = 1 + below(60), .count = 1};
        struct oriel_access_extent pieces[ORIEL_RUNS_PIECES];
        struct bytes expected;
        struct bytes out;
        struct bytes left = {{0}};
        oriel_byte_runs_tidy(&drawn, &from);
        count_out(&from, &expected);
        count_out(&hole, &out);
        size_t count = oriel_byte_runs_subtract(&from, &hole, pieces);
        assert_true(count <= ORIEL_RUNS_PIECES);
        for (size_t i = 0; i < count; i++) {
            struct bytes piece;
            count_out(&pieces[i], &piece);
            for (int k = 0; k < BYTES; k++) {
                assert_false(left.in[k] && piece.in[k]);
                left.in[k] |= piece.in[k];
            }
        }
        for (int k = 0; k < BYTES; k++)
            assert_int_equal(left.in[k], expected.in[k] && !out.in[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tidied_runs_have_the_same_bytes),
        cmocka_unit_test(runs_intersect_where_a_byte_is_in_both),
        cmocka_unit_test(long_runs_intersect_at_once),
        cmocka_unit_test(contained_runs_are_contained_and_joined_runs_are_both),
        cmocka_unit_test(the_rest_of_runs_is_all_but_the_hole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
