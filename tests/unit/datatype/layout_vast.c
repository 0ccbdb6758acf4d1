/* Layouts whose sums overflow 64 bits: their bounds are refused, and they are marked as vast. */
#include "datatype/layout.h"

#include "cmocka_all.h"
#include "layout_lists.h"

static void bounds_that_overflow_are_refused(void **state)
{
    (void)state;
    int64_t low_bytes, high_bytes;
    struct oriel_node *node = oriel_node_run(ORIEL_KIND_INT64, 1);
    assert_true(oriel_layout_bounds(node, 1 + INT64_MAX / 16, 8, &low_bytes, &high_bytes));
    assert_false(oriel_layout_bounds(node, INT64_MAX, 8, &low_bytes, &high_bytes));
    assert_false(oriel_layout_bounds(node, UINT64_MAX, 1, &low_bytes, &high_bytes));
    assert_false(oriel_layout_bounds(node, INT64_MAX, 1, &low_bytes, &high_bytes));
    assert_true(oriel_layout_bounds(node, UINT64_C(1) << 60, 0, &low_bytes, &high_bytes));
    assert_false(oriel_layout_bounds(node, (UINT64_C(1) << 61) + 1, 0, &low_bytes,
                                     &high_bytes)); /* 8 bytes, modulo 2^64 */
    assert_true(oriel_layout_bounds(node, 3, -8, &low_bytes, &high_bytes));
    assert_int_equal(low_bytes, -16);
    assert_int_equal(high_bytes, 8);
    oriel_node_free(node);
}

static void impossible_offsets_make_a_layout_vast(void **state)
{
    (void)state;
    struct oriel_node *before = list_of_two(-64, oriel_node_run(ORIEL_KIND_INT64, 1), -32,
                                            oriel_node_run(ORIEL_KIND_INT32, 1));
    struct oriel_node *list = list_of_two(0, oriel_node_run(ORIEL_KIND_INT64, 1),
                                          ORIEL_OFFSET_OVERFLOW, oriel_node_share(before));
    struct oriel_node *loop = oriel_node_loop(2, ORIEL_OFFSET_OVERFLOW, before);
    assert_true(list->vast);
    assert_true(loop->vast);
    oriel_node_free(list);
    oriel_node_free(loop);
}

static void vast_nodes_are_not_dropped_as_empty(void **state)
{
    (void)state;
    const uint64_t half = UINT64_C(1) << 62;
    struct oriel_node *rows =
        oriel_node_loop(half, 64, oriel_node_loop(4, 32, oriel_node_run(ORIEL_KIND_INT64, 1)));
    assert_int_equal(rows->elements, 0); /* 2^64 */
    struct oriel_node *list =
        list_of_two(0, oriel_node_run(ORIEL_KIND_INT64, 1), 8, oriel_node_share(rows));
    struct oriel_node *loop = oriel_node_loop(2, 128, rows);
    assert_true(list->vast);
    assert_true(loop->vast);
    oriel_node_free(list);
    oriel_node_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_that_overflow_are_refused),
        cmocka_unit_test(impossible_offsets_make_a_layout_vast),
        cmocka_unit_test(vast_nodes_are_not_dropped_as_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
