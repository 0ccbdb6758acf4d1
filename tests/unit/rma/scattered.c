/* Updates of elements with gaps: for any layout of the sides, the result equals one update after
 * the other in type map order, and no other byte changes. The model is a list of the offset of each
 * element of a side, and the plain kernel for one element. Buffers end at the last byte of an
 * element, so sanitizers detect accesses outside. */
#include "rma/scattered.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"

enum { MAP_MOST = 20000, ROUNDS = 1500, BLOCKS_MOST = 700 };

/* Elements of one side, in the order of the type map. */
struct map {
    int count;
    int64_t at[MAP_MOST];
};

static void map_repeat(struct map *map, uint64_t count, int64_t stride_bytes)
{
    const int each = map->count;
    for (uint64_t i = 1; i < count; i++)
        for (int k = 0; k < each; k++)
            map->at[map->count++] = map->at[k] + (int64_t)i * stride_bytes;
}

/* A distance at which items of this node do not overlap, or now and then any multiple of the
 * unit. */
static int64_t distance_for(const struct oriel_node *node, uint64_t unit_bytes, bool disjoint)
{
    const int64_t extent_bytes = oriel_kinds[node->kind].extent_bytes;
    const int64_t span_bytes =
        (node->high_bytes - node->low_bytes + extent_bytes - 1) / extent_bytes * extent_bytes;
    const int64_t wider_bytes = span_bytes + (int64_t)(below(4) * unit_bytes);
    if (!disjoint && below(4) == 0)
        return (int64_t)(below(30) * unit_bytes) - (int64_t)(15 * unit_bytes);
    return below(4) == 0 ? -wider_bytes : wider_bytes;
}

static struct oriel_node *grow_blocks(struct map *map, enum oriel_kind kind, uint64_t unit_bytes,
                                      bool disjoint)
{
    static int lengths[BLOCKS_MOST], displacements[BLOCKS_MOST];
    const int extent_units = (int)(oriel_kinds[kind].extent_bytes / unit_bytes);
    const uint64_t count = 2 + below(below(4) == 0 ? BLOCKS_MOST - 2 : 12);
    const bool alike = below(2), ordered = disjoint || below(3) != 0;
    struct oriel_node *item = oriel_node_run(kind, 1);
    int at = 0;
    map->count = 0;
    for (uint64_t i = 0; i < count; i++) {
        lengths[i] = alike ? 1 : 1 + (int)below(below(8) == 0 ? 30 : 4);
        at = ordered ? at + (int)below(3) * (below(8) == 0 ? 1 : extent_units) : (int)below(3000);
        displacements[i] = at;
        for (int k = 0; k < lengths[i]; k++)
            map->at[map->count++] =
                at * (int64_t)unit_bytes + k * (int64_t)oriel_kinds[kind].extent_bytes;
        at += lengths[i] * extent_units;
    }
    const struct oriel_block_list listed = {.count = count,
                                            .lengths = {lengths, NULL},
                                            .displacements = {displacements, NULL},
                                            .unit_bytes = (int64_t)unit_bytes};
    struct oriel_node *node = oriel_node_blocks(item, oriel_kinds[kind].extent_bytes, &listed);
    oriel_node_free(item);
    assert_non_null(node);
    return node;
}

/* Two subtrees, one after the other. */
static struct oriel_node *grow(struct map *map, enum oriel_kind kind, uint64_t unit_bytes,
                               bool disjoint, int depth);

static struct oriel_node *grow_list(struct map *map, enum oriel_kind kind, uint64_t unit_bytes,
                                    bool disjoint, int depth)
{
    static struct map second;
    struct oriel_branch *branches = malloc(2 * sizeof *branches);
    assert_non_null(branches);
    struct oriel_node *a = grow(map, kind, unit_bytes, disjoint, depth - 1);
    struct oriel_node *b = grow(&second, kind, unit_bytes, disjoint, 0);
    const int64_t extent_bytes = oriel_kinds[kind].extent_bytes;
    const int64_t after =
        (a->high_bytes - b->low_bytes + extent_bytes - 1) / extent_bytes * extent_bytes;
    const int64_t offset = !disjoint && below(3) == 0 ? (int64_t)(below(20) * unit_bytes)
                                                      : after + (int64_t)(below(3) * unit_bytes);
    for (int k = 0; k < second.count; k++)
        map->at[map->count++] = second.at[k] + offset;
    branches[0] = (struct oriel_branch){0, a};
    branches[1] = (struct oriel_branch){offset, b};
    return oriel_node_list(2, branches);
}

static struct oriel_node *grow(struct map *map, enum oriel_kind kind, uint64_t unit_bytes,
                               bool disjoint, int depth)
{
    if (depth == 0 && below(3) == 0 && !oriel_kinds[kind].padded)
        return grow_blocks(map, kind, unit_bytes, disjoint);
    if (depth > 0 && below(3) == 0)
        return grow_list(map, kind, unit_bytes, disjoint, depth);
    if (depth > 0) {
        struct oriel_node *child = grow(map, kind, unit_bytes, disjoint, depth - 1);
        const int64_t stride_bytes = distance_for(child, unit_bytes, disjoint);
        uint64_t count = 1 + below(below(3) == 0 ? 200 : 9);
        while (count > 1 && count * (uint64_t)map->count > MAP_MOST / 8)
            count--;
        map_repeat(map, count, stride_bytes);
        return oriel_node_loop(count, stride_bytes, child);
    }
    const uint64_t count = 1 + below(below(6) == 0 ? 600 : 3);
    map->count = 1;
    map->at[0] = 0;
    map_repeat(map, count, oriel_kinds[kind].extent_bytes);
    return oriel_node_run(kind, count);
}

/* A buffer and the part of it that is a side. */
struct side {
    struct map map; /* of all items */
    struct oriel_node *node;
    struct oriel_part part;
    char *bytes;
    uint64_t len_bytes;
};

static void side_make(struct side *side, enum oriel_kind kind, uint64_t unit_bytes, bool disjoint)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    const int64_t tail_bytes = (int64_t)oriel_kind_tail_bytes(&oriel_kinds[kind]);
    side->node = grow(&side->map, kind, unit_bytes, disjoint, (int)below(4));
    assert_non_null(side->node);
    uint64_t count = 1 + below(below(2) ? 40 : 2);
    while (count > 1 && count * (uint64_t)side->map.count > MAP_MOST)
        count--;
    const int64_t stride_bytes = distance_for(side->node, unit_bytes, disjoint);
    map_repeat(&side->map, count, stride_bytes);
    for (int i = 0; i < side->map.count; i++) {
        const int64_t end = side->map.at[i] + oriel_kinds[kind].extent_bytes - tail_bytes;
        low = side->map.at[i] < low ? side->map.at[i] : low;
        high = end > high ? end : high;
    }
    side->len_bytes = (uint64_t)(high - low);
    side->bytes = malloc(side->len_bytes);
    assert_non_null(side->bytes);
    for (uint64_t i = 0; i < side->len_bytes; i++)
        side->bytes[i] = (char)below(64); /* finite as reals */
    side->part = (struct oriel_part){oriel_at(side->bytes, -low), side->node, count, stride_bytes};
}

static void side_free(struct side *side)
{
    oriel_node_free(side->node);
    free(side->bytes);
}

/* The address of element i in a copy of the side's buffer. */
static char *place_in(const struct side *side, char *copy, int i)
{
    return copy + (oriel_at(side->part.at, side->map.at[i]) - side->bytes);
}

static char *copy_of(const struct side *side)
{
    char *copy = malloc(side->len_bytes);
    assert_non_null(copy);
    memcpy(copy, side->bytes, side->len_bytes);
    return copy;
}

/* The padding of long doubles is up to the compiler. */
static void wipe_unused(const struct side *side, char *bytes, enum oriel_kind kind, int count)
{
    enum { USED_BYTES = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double) };
    const int values = kind == ORIEL_KIND_LONG_DOUBLE || kind == ORIEL_KIND_LONG_DOUBLE_INT ? 1
                       : kind == ORIEL_KIND_LONG_DOUBLE_COMPLEX                             ? 2
                                                                                            : 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < values; k++)
            memset(place_in(side, bytes, i) + k * (int)sizeof(long double) + USED_BYTES, 0,
                   sizeof(long double) - USED_BYTES);
}

static void expect_bytes(const struct side *side, char *wanted, enum oriel_kind kind, int count)
{
    wipe_unused(side, wanted, kind, count);
    wipe_unused(side, side->bytes, kind, count);
    assert_memory_equal(side->bytes, wanted, side->len_bytes);
    free(wanted);
}

static void update_and_compare(struct side *target, struct side *origin, struct side *result,
                               enum oriel_kind kind, enum oriel_operator operator, bool fetches)
{
    struct oriel_scattered scattered;
    const bool reads_origin = operator!= ORIEL_OPERATOR_NO_OP;
    int count = target->map.count < origin->map.count ? target->map.count : origin->map.count;
    count = result->map.count < count ? result->map.count : count;
    char *wanted = copy_of(target), *wanted_result = copy_of(result), *expected = copy_of(origin);
    for (int i = 0; i < count; i++)
        oriel_kinds[kind].plain[operator](place_in(target, wanted, i),
                                          reads_origin ? place_in(origin, origin->bytes, i) : NULL,
                                          fetches ? place_in(result, wanted_result, i) : NULL, 1);
    assert_true(oriel_scattered_open(&scattered, kind, operator, & target->part,
                                     reads_origin ? &origin->part : NULL,
                                     fetches ? &result->part : NULL));
    const uint64_t most = ORIEL_SCATTERED_BYTES / oriel_kinds[kind].extent_bytes;
    for (uint64_t left = (uint64_t)count, now; left > 0; left -= now) {
        now = below(2) ? most : 1 + below(most);
        now = left < now ? left : now;
        oriel_scattered_update(&scattered, now);
    }
    oriel_scattered_close(&scattered);
    expect_bytes(target, wanted, kind, count);
    expect_bytes(result, wanted_result, kind, fetches ? count : 0);
    assert_memory_equal(origin->bytes, expected, origin->len_bytes);
    free(expected);
}

static bool is_integer(enum oriel_kind kind)
{
    return kind <= ORIEL_KIND_UINT64;
}

/* Elements of a target may overlap, in part or in whole: then one is updated after the other. Reals
 * overlap only in whole, because halves of two numbers may not be a number. */
static void elements_are_updated_in_their_order(void **state)
{
    (void)state;
    static struct side target, origin, result;
    int staged = 0, in_place = 0, long_ones = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const enum oriel_kind kind = (enum oriel_kind)below(ORIEL_KIND_COUNT);
        const enum oriel_operator operator=(enum oriel_operator) below(ORIEL_OPERATOR_COUNT);
        if (oriel_kinds[kind].plain[operator] == NULL)
            continue;
        const uint64_t extent_bytes = oriel_kinds[kind].extent_bytes;
        const uint64_t unit_bytes = is_integer(kind) && below(4) == 0 ? 1 : extent_bytes;
        side_make(&target, kind, unit_bytes, below(2) || oriel_kinds[kind].padded);
        side_make(&origin, kind, extent_bytes, false);
        side_make(&result, kind, extent_bytes, true);
        const bool apart =
            oriel_layout_apart(target.node, target.part.count, target.part.stride_bytes);
        staged += apart && !oriel_part_is_dense(&target.part);
        in_place += !apart;
        long_ones += target.map.count * (int)extent_bytes > ORIEL_SCATTERED_BYTES;
        update_and_compare(&target, &origin, &result, kind, operator, below(2));
        side_free(&target);
        side_free(&origin);
        side_free(&result);
    }
    assert_true(staged > ROUNDS / 20 && in_place > ROUNDS / 20 && long_ones > ROUNDS / 20);
}

static struct oriel_part part_of(void *at, const struct oriel_node *node, uint64_t count,
                                 int64_t stride_bytes)
{
    return (struct oriel_part){at, node, count, stride_bytes};
}

/* Sparse parts of a matrix are worth it; dense parts and long rows are not. */
static void short_blocks_pay(void **state)
{
    (void)state;
    struct oriel_node *one = oriel_node_run(ORIEL_KIND_DOUBLE, 1),
                      *row = oriel_node_run(ORIEL_KIND_DOUBLE, 1000);
    const struct oriel_part dense = part_of(NULL, one, 1000, 8),
                            column = part_of(NULL, one, 1000, 800);
    const struct oriel_part rows = part_of(NULL, row, 10, 16000);
    assert_false(oriel_scattered_pays(&dense));
    assert_true(oriel_scattered_pays(&column));
    assert_false(oriel_scattered_pays(&rows));
    oriel_node_free(one);
    oriel_node_free(row);
}

/* The result may be the operands' memory, as the kernels allow. */
static void a_result_may_replace_its_operands(void **state)
{
    (void)state;
    enum { COUNT = 1500 };
    static double target[2 * COUNT], operands[3 * COUNT];
    struct oriel_node *one = oriel_node_run(ORIEL_KIND_DOUBLE, 1);
    const struct oriel_part there = part_of(target, one, COUNT, 16),
                            here = part_of(operands, one, COUNT, 24);
    struct oriel_scattered scattered;
    for (int i = 0; i < COUNT; i++) {
        target[2 * i] = i;
        operands[3 * i] = 2 * i;
    }
    assert_true(oriel_scattered_open(&scattered, ORIEL_KIND_DOUBLE, ORIEL_OPERATOR_SUM, &there,
                                     &here, &here));
    for (int left = COUNT; left > 0; left -= 500)
        oriel_scattered_update(&scattered, 500);
    oriel_scattered_close(&scattered);
    for (int i = 0; i < COUNT; i++)
        assert_true(target[2 * i] == 3 * i && operands[3 * i] == i && target[2 * i + 1] == 0 &&
                    operands[3 * i + 1] == 0);
    oriel_node_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_updated_in_their_order),
        cmocka_unit_test(short_blocks_pay),
        cmocka_unit_test(a_result_may_replace_its_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
