/* Operations on a target on another node move the right bytes, in any layout of both sides, and no
 * others. The model lists the offset of each byte and each element. Answers arrive late, when the
 * datatypes are freed. */
#include "internode/origin/origin_rma.h"

#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"
#include "random_layouts.h"
#include "internode_wire.h"

enum { SLACK_BYTES = 256, ROUNDS = 3000, LONG_ROUNDS = 12 };

/* A side's buffer, with offset 0 of its datatype somewhere inside, and the expected contents. */
struct side {
    struct random_layout layout;
    char *memory;
    char *model;
    uint64_t len_bytes;
    int64_t zero_bytes; /* of offset 0 in memory */
};

static void side_make(struct side *side)
{
    const struct random_layout *layout = &side->layout;
    side->zero_bytes =
        SLACK_BYTES - layout->low_bytes + (int64_t)(8 * below(4) + (below(4) == 0 ? below(8) : 0));
    side->len_bytes = (uint64_t)(side->zero_bytes + layout->high_bytes) + SLACK_BYTES;
    side->memory = malloc(side->len_bytes);
    side->model = malloc(side->len_bytes);
    assert_true(side->memory != NULL && side->model != NULL);
    random_bytes_fill(side->memory, side->len_bytes);
    random_layout_fill(layout, side->memory + side->zero_bytes);
    memcpy(side->model, side->memory, side->len_bytes);
}

static void side_close(struct side *side)
{
    assert_int_equal(memcmp(side->memory, side->model, side->len_bytes), 0);
    free(side->memory);
    free(side->model);
    random_layout_free(&side->layout);
}

/* The target's side is the memory of the window. */
static void target_make(struct side *side)
{
    static char model[WIRE_ALL_BYTES];
    const struct random_layout *layout = &side->layout;
    const uint64_t room = WIRE_WINDOW_BYTES - (uint64_t)(layout->high_bytes - layout->low_bytes);
    assert_true((uint64_t)(layout->high_bytes - layout->low_bytes) <= WIRE_WINDOW_BYTES);
    const uint64_t start = below(8) == 0 ? room
                           : below(2)    ? below(room + 1)
                                         : below(room + 1) & ~UINT64_C(15);
    side->memory = wire.memory;
    side->len_bytes = WIRE_ALL_BYTES;
    side->zero_bytes = WIRE_GUARD_BYTES + (int64_t)start - layout->low_bytes;
    side->model = model;
    random_layout_fill(layout, side->memory + side->zero_bytes);
    memcpy(side->model, side->memory, WIRE_ALL_BYTES);
}

static void target_close(struct side *side)
{
    assert_int_equal(memcmp(side->memory, side->model, WIRE_ALL_BYTES), 0);
    random_layout_free(&side->layout);
}

static struct oriel_span span_of(const struct side *target)
{
    uint64_t offset_bytes = (uint64_t)(target->zero_bytes - WIRE_GUARD_BYTES);
    if (wire.here.flavour == ORIEL_FLAVOUR_DYNAMIC)
        offset_bytes += wire.attached_from;
    return (struct oriel_span){1, offset_bytes, {&target->layout.type, target->layout.count}, 0};
}

static void move_once(bool put, uint64_t about, enum oriel_kind kind)
{
    struct side here;
    struct side there;
    if (wire.has_devices && below(4) == 0)
        random_layout_dense(&here.layout, ORIEL_KIND_CHAR, 1 + below(3 * about));
    else
        random_layout_make(&here.layout, kind, about);
    if (below(4) == 0 && here.layout.moved <= WIRE_WINDOW_BYTES)
        random_layout_dense(&there.layout, ORIEL_KIND_CHAR, here.layout.moved);
    else
        random_layout_make_within(&there.layout, kind, about, WIRE_WINDOW_BYTES);
    side_make(&here);
    target_make(&there);
    struct side *from = put ? &here : &there;
    struct side *to = put ? &there : &here;
    if (from->layout.moved <= to->layout.moved) {
        const struct oriel_span target = span_of(&there);
        const struct oriel_side origin = {&here.layout.type, here.layout.count};
        char *zero = here.memory + here.zero_bytes;
        for (uint64_t i = 0; i < from->layout.moved; i++)
            to->model[to->zero_bytes + to->layout.bytes[i]] =
                from->model[from->zero_bytes + from->layout.bytes[i]];
        assert_int_equal(put ? oriel_put(&wire.here, &target, zero, &origin)
                             : oriel_get(&wire.here, &target, zero, &origin),
                         ORIEL_OK);
        random_layout_free_type(&here.layout);
        random_layout_free_type(&there.layout);
        wire_deliver();
        assert_int_equal(wire.failures, 0);
    }
    target_close(&there);
    side_close(&here);
}

/* Once by messages alone, and once with devices, which move what is one run on both sides. */
static void move_often(bool put)
{
    static const enum oriel_placement placements[] = {ORIEL_PLACEMENT_DIRECT, ORIEL_PLACEMENT_COPY,
                                                      ORIEL_PLACEMENT_REGIONS,
                                                      ORIEL_PLACEMENT_DIRECT};
    for (int m = 0; m < 4; m++) {
        wire_open(placements[m]);
        wire.has_devices = m == 3;
        random_bytes_fill(wire.memory, WIRE_ALL_BYTES);
        for (int round = 0; round < ROUNDS / 10; round++)
            move_once(put, 100, below(3) == 0 ? ORIEL_KIND_SHORT_INT : ORIEL_KIND_NONE);
        for (int round = 0; round < LONG_ROUNDS; round++)
            move_once(put, 60000, ORIEL_KIND_NONE);
        assert_true((wire.by_devices > 0) == (m == 3) && wire.messages > 0);
        wire_close();
    }
}

static void put_moves_the_bytes_of_any_layouts(void **state)
{
    (void)state;
    move_often(true);
}

static void get_moves_the_bytes_of_any_layouts(void **state)
{
    (void)state;
    move_often(false);
}

/* The 6 bytes after the value of an x87 number are undefined. */
static void forget_padding(const struct side *side, enum oriel_kind kind)
{
    if (kind != ORIEL_KIND_LONG_DOUBLE && kind != ORIEL_KIND_LONG_DOUBLE_COMPLEX &&
        kind != ORIEL_KIND_LONG_DOUBLE_INT)
        return;
    for (uint64_t i = 0; i < side->layout.elements; i++)
        for (uint32_t k = 10; k < (kind == ORIEL_KIND_LONG_DOUBLE_COMPLEX ? 32 : 16);
             k = k == 15 ? 26 : k + 1) {
            side->model[side->zero_bytes + side->layout.offsets[i] + k] = 0;
            side->memory[side->zero_bytes + side->layout.offsets[i] + k] = 0;
        }
}

static char *model_at(const struct side *side, uint64_t element)
{
    return side->model + side->zero_bytes + side->layout.offsets[element];
}

/* Only the fields of a pair. */
static void copy_element(enum oriel_kind kind, char *to, const char *from)
{
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    memcpy(to, from, properties->value_bytes);
    memcpy(to + properties->index_offset, from + properties->index_offset, properties->index_bytes);
    if (properties->index_bytes == 0)
        memcpy(to, from, properties->extent_bytes);
}

static void update_model(struct side *there, const struct side *here, struct side *result,
                         enum oriel_kind kind, enum oriel_operator operator, uint64_t count)
{
    _Alignas(64) char target[64];
    _Alignas(64) char origin[64];
    for (uint64_t i = 0; i < count; i++) {
        copy_element(kind, target, model_at(there, i));
        if (operator!= ORIEL_OPERATOR_NO_OP)
            copy_element(kind, origin, model_at(here, i));
        if (result != NULL)
            copy_element(kind, model_at(result, i), target);
        oriel_kinds[kind].plain[operator](target, origin, NULL, 1);
        copy_element(kind, model_at(there, i), target);
    }
}

static void draw_side(struct random_layout *out, enum oriel_kind kind, uint64_t about)
{
    if (below(3) == 0)
        random_layout_dense(out, kind, 1 + below(about));
    else
        random_layout_make(out, kind, about);
}

static void accumulate_once(enum oriel_kind kind, enum oriel_operator operator, bool returns,
                            uint64_t about)
{
    struct side here;
    struct side there;
    struct side result;
    draw_side(&here.layout, kind, about);
    if (below(3) == 0)
        random_layout_dense(&there.layout, kind, 1 + below(about));
    else
        random_layout_make_within(&there.layout, kind, about, WIRE_WINDOW_BYTES);
    draw_side(&result.layout, kind, about);
    side_make(&here);
    side_make(&result);
    target_make(&there);
    const uint64_t count = operator== ORIEL_OPERATOR_NO_OP ? there.layout.elements
                                                           : here.layout.elements;
    bool fits = count <= there.layout.elements && (!returns || count <= result.layout.elements);
    if (fits) {
        const struct oriel_span target = span_of(&there);
        const struct oriel_operand from = {here.memory + here.zero_bytes,
                                           {&here.layout.type, here.layout.count}};
        const struct oriel_operand to = {result.memory + result.zero_bytes,
                                         {&result.layout.type, result.layout.count}};
        update_model(&there, &here, returns ? &result : NULL, kind, operator, count);
        const struct oriel_elements elements = {kind, count};
        assert_int_equal(
            oriel_accumulate(&wire.here, &target, elements, operator, & from, returns ? &to : NULL),
            ORIEL_OK);
        random_layout_free_type(&here.layout);
        random_layout_free_type(&result.layout);
        wire_deliver();
        assert_int_equal(wire.failures, 0);
        forget_padding(&there, kind);
        forget_padding(&result, kind);
    }
    target_close(&there);
    side_close(&result);
    side_close(&here);
}

static void accumulates_of_all_kinds_and_operators_on_any_layouts(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) {
        wire_open(m == 0 ? ORIEL_PLACEMENT_DIRECT : ORIEL_PLACEMENT_COPY);
        random_bytes_fill(wire.memory, WIRE_ALL_BYTES);
        for (int kind = 0; kind < ORIEL_KIND_COUNT; kind++)
            for (int operator= 0; operator<ORIEL_OPERATOR_COUNT; operator++)
                for (int round = 0; round < 6 && oriel_kinds[kind].plain[operator] != NULL; round++)
                    accumulate_once((enum oriel_kind)kind, (enum oriel_operator) operator,
                                    round % 2, round < 2 ? 3 : 40);
        wire_close();
    }
}

static void long_accumulates_are_cut_at_elements(void **state)
{
    (void)state;
    static const enum oriel_kind kinds[] = {ORIEL_KIND_INT8,       ORIEL_KIND_DOUBLE,
                                            ORIEL_KIND_SHORT_INT,  ORIEL_KIND_LONG_DOUBLE,
                                            ORIEL_KIND_DOUBLE_INT, ORIEL_KIND_LONG_DOUBLE_COMPLEX};
    wire_open(ORIEL_PLACEMENT_DIRECT);
    random_bytes_fill(wire.memory, WIRE_ALL_BYTES);
    for (int round = 0; round < 6 * LONG_ROUNDS; round++)
        accumulate_once(kinds[round % 6],
                        round / 6 % 3 == 2 ? ORIEL_OPERATOR_NO_OP : ORIEL_OPERATOR_REPLACE,
                        round / 6 % 3 > 0, 80000);
    wire_close();
}

static void swaps_compare_and_return(void **state)
{
    (void)state;
    wire_open(ORIEL_PLACEMENT_DIRECT);
    for (int kind = 0; kind < ORIEL_KIND_COUNT; kind++) {
        const uint64_t len_bytes = oriel_kinds[kind].extent_bytes;
        if (oriel_kinds[kind].plain[ORIEL_OPERATOR_BAND] == NULL &&
            oriel_kinds[kind].plain[ORIEL_OPERATOR_LAND] == NULL)
            continue;
        struct random_layout one;
        char *at = wire.memory + WIRE_GUARD_BYTES + 512;
        char was[32];
        char result[33] = {[32] = 1};
        random_layout_dense(&one, (enum oriel_kind)kind, 1);
        const struct oriel_span target = {1, 512, {&one.type, 1}, 0};
        for (int equal = 0; equal < 2; equal++) {
            char wanted[16], desired[16];
            random_bytes_fill(at, 32);
            memcpy(was, at, 32);
            memcpy(wanted, at, len_bytes);
            random_bytes_fill(desired, len_bytes);
            wanted[len_bytes - 1] = (char)(wanted[len_bytes - 1] ^ !equal);
            assert_int_equal(oriel_compare_and_swap(&wire.here, &target, desired, wanted, result),
                             ORIEL_OK);
            wire_deliver();
            assert_int_equal(wire.failures, 0);
            assert_memory_equal(result, was, len_bytes);
            assert_memory_equal(at, equal ? desired : was, len_bytes);
            assert_memory_equal(at + len_bytes, was + len_bytes, 32 - len_bytes);
        }
        random_layout_free(&one);
    }
    wire_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_moves_the_bytes_of_any_layouts),
        cmocka_unit_test(get_moves_the_bytes_of_any_layouts),
        cmocka_unit_test(accumulates_of_all_kinds_and_operators_on_any_layouts),
        cmocka_unit_test(long_accumulates_are_cut_at_elements),
        cmocka_unit_test(swaps_compare_and_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
