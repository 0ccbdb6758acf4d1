/* The conflict table, row by row: two accesses to the same bytes that nothing orders. */
#include "check/access/history.h"

#include "cmocka_all.h"

struct row {
    uint8_t kind;
    uint8_t op;
    uint8_t element;
    uint8_t flags;
};

static const struct row LOAD = {ORIEL_ACCESS_LOAD, 0, 0, 0};
static const struct row STORE = {ORIEL_ACCESS_STORE, 0, 0, 0};
static const struct row GET = {ORIEL_ACCESS_GET, 0, 0, 0};
static const struct row PUT = {ORIEL_ACCESS_PUT, 0, 0, 0};

static struct row accumulate(enum oriel_operator op, enum oriel_kind element, uint8_t flags)
{
    return (struct row){ORIEL_ACCESS_ACCUMULATE, (uint8_t)op, (uint8_t)element, flags};
}

static bool conflict(struct row a, int origin_a, struct row b, int origin_b)
{
    struct oriel_access first = {
        .kind = a.kind, .op = a.op, .element = a.element, .flags = a.flags, .origin = origin_a};
    struct oriel_access second = {
        .kind = b.kind, .op = b.op, .element = b.element, .flags = b.flags, .origin = origin_b};
    bool answer = oriel_access_conflicts(&first, &second);
    assert_int_equal(oriel_access_conflicts(&second, &first), answer);
    return answer;
}

static void reads_never_conflict_with_reads(void **state)
{
    (void)state;
    struct row fetch = accumulate(ORIEL_OPERATOR_NO_OP, ORIEL_KIND_INT32, 0);
    const struct row reads[] = {LOAD, GET, fetch};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            assert_false(conflict(reads[a], 1, reads[b], 2));
}

static void writes_conflict_with_everything(void **state)
{
    (void)state;
    struct row sum = accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT32, 0);
    struct row fetch = accumulate(ORIEL_OPERATOR_NO_OP, ORIEL_KIND_INT32, 0);
    const struct row all[] = {LOAD, STORE, GET, PUT, sum, fetch};
    for (int i = 0; i < 6; i++) {
        assert_true(conflict(PUT, 1, all[i], 2));
        assert_true(conflict(STORE, 1, all[i], 2));
        assert_true(conflict(PUT, 1, all[i], 1));
    }
    assert_true(conflict(sum, 1, GET, 2));
    assert_true(conflict(sum, 1, LOAD, 2));
}

static void accumulates_of_one_origin_need_one_type(void **state)
{
    (void)state;
    assert_false(conflict(accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT32, 0), 1,
                          accumulate(ORIEL_OPERATOR_MAX, ORIEL_KIND_INT32, 0), 1));
    assert_false(conflict(accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT32, ORIEL_ACCESS_SAME_OP), 1,
                          accumulate(ORIEL_OPERATOR_NO_OP, ORIEL_KIND_INT32, ORIEL_ACCESS_SAME_OP),
                          1));
    assert_true(conflict(accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT32, 0), 1,
                         accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_DOUBLE, 0), 1));
}

static void accumulates_of_several_origins_need_one_operator(void **state)
{
    (void)state;
    struct row sum = accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT32, 0);
    struct row max = accumulate(ORIEL_OPERATOR_MAX, ORIEL_KIND_INT32, 0);
    struct row fetch = accumulate(ORIEL_OPERATOR_NO_OP, ORIEL_KIND_INT32, 0);
    assert_false(conflict(sum, 1, sum, 2));
    assert_true(conflict(sum, 1, max, 2));
    assert_false(conflict(sum, 1, fetch, 2));
    assert_false(conflict(max, 1, fetch, 2));
}

static void same_op_forbids_no_op_with_another_operator(void **state)
{
    (void)state;
    struct row sum = accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT32, ORIEL_ACCESS_SAME_OP);
    struct row fetch = accumulate(ORIEL_OPERATOR_NO_OP, ORIEL_KIND_INT32, ORIEL_ACCESS_SAME_OP);
    assert_true(conflict(sum, 1, fetch, 2));
    assert_false(conflict(fetch, 1, fetch, 2));
    assert_false(conflict(sum, 1, sum, 2));
}

static void compare_and_swap_combines_with_any_operator(void **state)
{
    (void)state;
    struct row sum = accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT64, 0);
    struct row swap = accumulate(ORIEL_OPERATOR_REPLACE, ORIEL_KIND_INT64, ORIEL_ACCESS_ANY_OP);
    assert_false(conflict(sum, 1, swap, 2));
    assert_true(conflict(GET, 1, swap, 2));
    assert_true(conflict(accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT32, 0), 1, swap, 2));
}

static void elements_of_one_size_and_class_are_one_basic_type(void **state)
{
    (void)state;
    struct row signed_sum = accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT32, 0);
    assert_false(conflict(signed_sum, 1, accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_UINT32, 0), 2));
    assert_false(conflict(accumulate(ORIEL_OPERATOR_LOR, ORIEL_KIND_LOGICAL32, 0), 1,
                          accumulate(ORIEL_OPERATOR_LOR, ORIEL_KIND_INT32, 0), 2));
    assert_true(conflict(signed_sum, 1, accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_FLOAT, 0), 2));
    assert_true(conflict(signed_sum, 1, accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT64, 0), 2));
    assert_true(conflict(accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_FLOAT_COMPLEX, 0), 1,
                         accumulate(ORIEL_OPERATOR_SUM, ORIEL_KIND_DOUBLE, 0), 2));
}

/* A phase that is not known conflicts with none. */
static void elements_that_overlap_in_part_conflict(void **state)
{
    (void)state;
    struct oriel_access whole = {.kind = ORIEL_ACCESS_ACCUMULATE,
                                 .op = ORIEL_OPERATOR_SUM,
                                 .element = ORIEL_KIND_INT32,
                                 .origin = 1};
    struct oriel_access shifted = whole;
    shifted.phase = 2;
    assert_true(oriel_access_conflicts(&whole, &shifted));
    assert_false(oriel_access_supersedes(&shifted, &whole));
    shifted.origin = 2;
    assert_true(oriel_access_conflicts(&whole, &shifted));
    assert_false(oriel_access_conflicts(&shifted, &shifted));
    shifted.phase = ORIEL_PHASE_MIXED;
    assert_false(oriel_access_conflicts(&whole, &shifted));
    for (unsigned kind = 0; kind < ORIEL_KIND_COUNT; kind++) /* oriel_element_last_byte is a mask */
        assert_int_equal(oriel_kinds[kind].extent_bytes & (oriel_kinds[kind].extent_bytes - 1), 0);
}

/* Reals, complex numbers and pairs have no fields of another kind, whatever their size. */
static void elements_with_parts_are_of_no_other_type(void **state)
{
    (void)state;
    static const uint8_t apart[] = {
        ORIEL_KIND_FLOAT,        ORIEL_KIND_DOUBLE,         ORIEL_KIND_LONG_DOUBLE,
        ORIEL_KIND_QUAD_COMPLEX, ORIEL_KIND_DOUBLE_COMPLEX, ORIEL_KIND_LONG_DOUBLE_COMPLEX,
        ORIEL_KIND_FLOAT_INT,    ORIEL_KIND_DOUBLE_INT,     ORIEL_KIND_LONG_INT,
        ORIEL_KIND_INT_INT,      ORIEL_KIND_SHORT_INT,      ORIEL_KIND_LONG_DOUBLE_INT,
        ORIEL_KIND_FLOAT_FLOAT,  ORIEL_KIND_DOUBLE_DOUBLE};
    for (unsigned i = 0; i < sizeof apart; i++)
        for (unsigned kind = 0; kind < ORIEL_KIND_COUNT; kind++)
            assert_int_equal(conflict(accumulate(ORIEL_OPERATOR_REPLACE, apart[i], 0), 1,
                                      accumulate(ORIEL_OPERATOR_REPLACE, (enum oriel_kind)kind, 0),
                                      1),
                             kind != apart[i]);
}

/* Every access of a third origin that conflicts with a superseded access conflicts with the access
 * that supersedes it, too. */
static void superseding_accesses_conflict_with_at_least_as_much(void **state)
{
    (void)state;
    static const uint8_t ops[] = {ORIEL_OPERATOR_SUM, ORIEL_OPERATOR_MAX, ORIEL_OPERATOR_NO_OP};
    static const uint8_t elements[] = {ORIEL_KIND_INT32, ORIEL_KIND_UINT32, ORIEL_KIND_FLOAT};
    static const uint8_t flags[] = {0, ORIEL_ACCESS_SAME_OP, ORIEL_ACCESS_ANY_OP};
    struct oriel_access all[4 + 27];
    int count = 0;
    for (uint8_t kind = ORIEL_ACCESS_LOAD; kind < ORIEL_ACCESS_ACCUMULATE; kind++)
        all[count++] = (struct oriel_access){.kind = kind};
    for (int i = 0; i < 27; i++)
        all[count++] = (struct oriel_access){.kind = ORIEL_ACCESS_ACCUMULATE,
                                             .op = ops[i % 3],
                                             .element = elements[i / 3 % 3],
                                             .flags = flags[i / 9]};
    int pairs = 0;
    for (int later = 0; later < count; later++)
        for (int earlier = 0; earlier < count; earlier++) {
            if (!oriel_access_supersedes(&all[later], &all[earlier]))
                continue;
            pairs++;
            for (int third = 0; third < count; third++) {
                struct oriel_access access = all[third];
                access.origin = 3;
                /* the flags are those of a whole window */
                if (access.kind == ORIEL_ACCESS_ACCUMULATE &&
                    (all[earlier].flags | all[later].flags) != access.flags)
                    continue;
                assert_true(!oriel_access_conflicts(&all[earlier], &access) ||
                            oriel_access_conflicts(&all[later], &access));
            }
        }
    assert_true(pairs > 2 * count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_never_conflict_with_reads),
        cmocka_unit_test(writes_conflict_with_everything),
        cmocka_unit_test(accumulates_of_one_origin_need_one_type),
        cmocka_unit_test(accumulates_of_several_origins_need_one_operator),
        cmocka_unit_test(same_op_forbids_no_op_with_another_operator),
        cmocka_unit_test(compare_and_swap_combines_with_any_operator),
        cmocka_unit_test(elements_of_one_size_and_class_are_one_basic_type),
        cmocka_unit_test(elements_that_overlap_in_part_conflict),
        cmocka_unit_test(elements_with_parts_are_of_no_other_type),
        cmocka_unit_test(superseding_accesses_conflict_with_at_least_as_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
