/* Layouts: constructors simplify, sums and bounds are right, and cursors return the bytes in type
 * map order. The model lists the offset of each byte that moves, expanded by the definition of each
 * constructor. Each test owns its trees. */
#include "datatype/layout.h"

#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"
#include "layout_lists.h"

enum { MAP_MOST = 4096, ROUNDS = 20000 };

struct map {
    int count;
    int64_t at[MAP_MOST];
};

/* One element: its fields, without the padding. */
static void map_element(struct map *map, enum oriel_kind kind, int64_t at)
{
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    for (uint32_t i = 0; i < properties->extent_bytes; i++)
        if (!properties->padded || i < properties->value_bytes ||
            (i >= properties->index_offset &&
             i < properties->index_offset + properties->index_bytes))
            map->at[map->count++] = at + i;
}

static void map_append(struct map *map, const struct map *from, int64_t offset)
{
    for (int i = 0; i < from->count; i++)
        map->at[map->count++] = from->at[i] + offset;
}

/* Takes pieces of any length that a cursor allows; every byte must be the map's next one. */
static void expect_walk(const struct oriel_node *node, uint64_t count, int64_t extent_bytes,
                        const struct map *item)
{
    struct oriel_cursor cursor;
    assert_true(oriel_cursor_open(&cursor, node, count, extent_bytes));
    for (uint64_t i = 0; i < count; i++) {
        for (int k = 0; k < item->count;) {
            assert_true(oriel_cursor_fill(&cursor));
            uint64_t most = oriel_batch_piece(&cursor.batch);
            uint64_t len_bytes = below(3) == 0 ? 1 + below(most) : most;
            int64_t at_bytes = cursor.batch.at_bytes;
            oriel_batch_use(&cursor.batch, len_bytes);
            for (uint64_t byte = 0; byte < len_bytes; byte++) {
                assert_int_equal(at_bytes + (int64_t)byte, (int64_t)i * extent_bytes + item->at[k]);
                if (++k == item->count &&
                    byte + 1 < len_bytes) { /* a piece may extend into the next item */
                    k = 0;
                    i++;
                }
            }
        }
    }
    assert_false(oriel_cursor_fill(&cursor));
    oriel_cursor_close(&cursor);
}

/* The same by whole elements: adjacent blocks, up to this total length. */
static void expect_stretches(const struct oriel_node *node, uint64_t count, int64_t extent_bytes,
                             const struct map *item)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[node->kind];
    const uint64_t most_bytes = kind->extent_bytes * (1 + below(12));
    static struct map element, walked;
    struct oriel_cursor cursor;
    struct oriel_block_group group;
    element.count = walked.count = 0;
    map_element(&element, node->kind, 0);
    assert_true(oriel_cursor_open(&cursor, node, count, extent_bytes));
    while (oriel_cursor_blocks(&cursor, most_bytes, &group)) {
        uint64_t len_bytes = 0;
        assert_true(group.count > 0);
        for (uint64_t i = 0; i < group.count; i++) {
            const uint64_t block_bytes =
                group.lengths != NULL ? group.lengths[i] : group.block_bytes;
            const int64_t block_at =
                group.offsets != NULL ? group.offsets[i] : (int64_t)i * group.stride_bytes;
            for (uint64_t at = 0; at < block_bytes; at += kind->extent_bytes)
                map_append(&walked, &element, group.at_bytes + block_at + (int64_t)at);
            len_bytes += block_bytes;
        }
        assert_int_equal(group.len_bytes, len_bytes);
        assert_true(len_bytes <= most_bytes);
    }
    oriel_cursor_close(&cursor);
    assert_int_equal(walked.count, (int)count * item->count);
    for (int i = 0; i < walked.count; i++)
        assert_int_equal(walked.at[i], i / item->count * extent_bytes + item->at[i % item->count]);
}

static int compare_places(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Whether the layout guarantees that no byte moves twice; then none does. */
static bool expect_apart(const struct oriel_node *node, uint64_t count, int64_t extent_bytes,
                         const struct map *item)
{
    static struct map all;
    all.count = 0;
    for (uint64_t i = 0; i < count; i++)
        map_append(&all, item, (int64_t)i * extent_bytes);
    qsort(all.at, (size_t)all.count, sizeof all.at[0], compare_places);
    int twice = 0;
    for (int i = 1; i < all.count; i++)
        twice += all.at[i] == all.at[i - 1];
    const bool apart = oriel_layout_apart(node, count, extent_bytes);
    assert_true(!apart || twice == 0);
    assert_int_equal(oriel_layout_apart(node, count, extent_bytes), apart); /* as cached */
    return apart;
}

static void expect_sums(const struct oriel_node *node, uint64_t count, int64_t extent_bytes,
                        const struct map *item)
{
    int64_t low_bytes, high_bytes;
    int64_t low = item->count > 0 ? INT64_MAX : 0, high = item->count > 0 ? INT64_MIN : 0;
    assert_int_equal(node->size_bytes, item->count);
    for (int i = 0; i < item->count; i++) {
        low = item->at[i] < low ? item->at[i] : low;
        high = item->at[i] + 1 > high ? item->at[i] + 1 : high;
    }
    assert_int_equal(node->low_bytes, low);
    assert_int_equal(node->high_bytes, high);
    int64_t last = (int64_t)(count - 1) * extent_bytes;
    assert_true(oriel_layout_bounds(node, count, extent_bytes, &low_bytes, &high_bytes));
    assert_int_equal(low_bytes, low + (last < 0 ? last : 0));
    assert_int_equal(high_bytes, high + (last > 0 ? last : 0));
}

static void loops_over_touching_runs_are_runs(void **state)
{
    (void)state;
    struct oriel_node *node = oriel_node_loop(5, 12, oriel_node_run(ORIEL_KIND_INT32, 3));
    assert_int_equal(node->form, ORIEL_NODE_RUN);
    assert_int_equal(node->count, 15);
    assert_int_equal(node->size_bytes, 60);
    node = oriel_node_loop(4, 100, oriel_node_loop(5, 20, oriel_node_loop(1, 999, node)));
    assert_int_equal(node->form, ORIEL_NODE_LOOP);
    assert_int_equal(node->count, 20);
    assert_int_equal(node->depth, 2);
    assert_int_equal(node->elements, 300);
    oriel_node_free(node);
}

static void loops_that_do_not_touch_stay(void **state)
{
    (void)state;
    struct oriel_node *node = oriel_node_loop(5, -12, oriel_node_run(ORIEL_KIND_INT32, 3));
    assert_int_equal(node->form, ORIEL_NODE_LOOP);
    assert_int_equal(node->low_bytes, -48);
    assert_int_equal(node->high_bytes, 12);
    assert_int_equal(node->kind, ORIEL_KIND_INT32);
    oriel_node_free(node);
    node = oriel_node_loop(2, 16, oriel_node_run(ORIEL_KIND_DOUBLE_INT, 1));
    assert_int_equal(node->form, ORIEL_NODE_RUN);
    assert_int_equal(node->high_bytes, 28); /* the padding after the last pair does not move */
    assert_int_equal(node->size_bytes, 24);
    oriel_node_free(node);
}

static void empty_parts_vanish(void **state)
{
    (void)state;
    struct oriel_node *node = oriel_node_loop(0, 8, oriel_node_run(ORIEL_KIND_INT32, 3));
    assert_int_equal(node->elements, 0);
    assert_int_equal(node->high_bytes, 0);
    node = list_of_two(-700, oriel_node_loop(7, 8, node), 0, oriel_node_run(ORIEL_KIND_CHAR, 4));
    assert_int_equal(node->form, ORIEL_NODE_RUN);
    assert_int_equal(node->low_bytes, 0);
    oriel_node_free(node);
    node =
        list_of_two(3, oriel_node_run(ORIEL_KIND_CHAR, 0), 9, oriel_node_run(ORIEL_KIND_INT8, 0));
    assert_int_equal(node->elements, 0);
    struct oriel_cursor cursor;
    assert_true(oriel_cursor_open(&cursor, node, 5, 8));
    assert_false(oriel_cursor_fill(&cursor));
    oriel_cursor_close(&cursor);
    oriel_node_free(node);
}

static void lists_join_runs_that_touch_in_order(void **state)
{
    (void)state;
    struct oriel_node *node =
        list_of_two(0, oriel_node_run(ORIEL_KIND_INT16, 2), 4, oriel_node_run(ORIEL_KIND_INT16, 3));
    assert_int_equal(node->form, ORIEL_NODE_RUN);
    assert_int_equal(node->count, 5);
    oriel_node_free(node);
    node =
        list_of_two(6, oriel_node_run(ORIEL_KIND_INT16, 2), 0, oriel_node_run(ORIEL_KIND_INT16, 3));
    assert_int_equal(node->form, ORIEL_NODE_BLOCKS);
    assert_int_equal(node->count, 2);
    assert_int_equal(node->kind, ORIEL_KIND_INT16);
    oriel_node_free(node);
}

/* Where only movement matters, runs of different kinds are joined; elements are counted as
 * before. */
static void runs_of_several_kinds_are_blocks_joined_where_they_touch(void **state)
{
    (void)state;
    struct oriel_node *node = list_of_two(0, oriel_node_run(ORIEL_KIND_INT16, 2), 4,
                                          oriel_node_run(ORIEL_KIND_UINT16, 3));
    assert_int_equal(node->form, ORIEL_NODE_BLOCKS);
    assert_int_equal(node->kind, ORIEL_KIND_NONE);
    assert_int_equal(node->count, 1);
    assert_int_equal(node->elements, 5);
    assert_int_equal(node->size_bytes, 10);
    oriel_node_free(node);
    node = list_of_two(0, oriel_node_run(ORIEL_KIND_INT16, 2), 8,
                       oriel_node_run(ORIEL_KIND_UINT16, 3));
    assert_int_equal(node->count, 2);
    assert_int_equal(node->runs, 2);
    assert_int_equal(node->block_bytes, 0);
    oriel_node_free(node);
    node = list_of_two(0, oriel_node_run(ORIEL_KIND_INT16, 2), 8,
                       oriel_node_run(ORIEL_KIND_SHORT_INT, 1));
    assert_int_equal(node->form, ORIEL_NODE_LIST);
    assert_true(node->padded);
    oriel_node_free(node);
}

static void equal_runs_at_equal_distances_are_a_loop(void **state)
{
    (void)state;
    struct oriel_node *item = oriel_node_run(ORIEL_KIND_INT32, 2);
    struct oriel_branch *branches = malloc(3 * sizeof *branches);
    assert_non_null(branches);
    for (int i = 0; i < 3; i++)
        branches[i] = (struct oriel_branch){40 - 20 * i, oriel_node_share(item)};
    struct oriel_node *node = oriel_node_list(3, branches);
    assert_int_equal(node->form, ORIEL_NODE_LIST);
    assert_int_equal(node->count, 1);
    assert_int_equal(node->branches[0].offset_bytes, 40);
    assert_int_equal(node->branches[0].node->form, ORIEL_NODE_LOOP);
    assert_int_equal(node->branches[0].node->stride_bytes, -20);
    assert_int_equal(node->low_bytes, 0);
    assert_int_equal(node->high_bytes, 48);
    assert_int_equal(node->depth, 3);
    oriel_node_free(node);
    node = list_of_two(0, oriel_node_share(item), 0,
                       oriel_node_share(item)); /* the same offset twice is no distance */
    assert_int_equal(node->form, ORIEL_NODE_BLOCKS);
    assert_int_equal(node->block_bytes, 8);
    oriel_node_free(node);
    assert_int_equal(item->references, 1);
    oriel_node_free(item);
}

static void a_missing_child_is_passed_on(void **state)
{
    (void)state;
    assert_null(oriel_node_loop(3, 8, NULL));
    assert_null(oriel_node_list(2, NULL));
    assert_null(list_of_two(0, oriel_node_run(ORIEL_KIND_INT32, 1), 8, NULL));
}

/* A node and its map, built together; no larger than MAP_MOST / 8. */
static struct oriel_node *grow(struct map *map, int depth)
{
    static const enum oriel_kind kinds[] = {ORIEL_KIND_CHAR,     ORIEL_KIND_INT32,
                                            ORIEL_KIND_DOUBLE,   ORIEL_KIND_SHORT_INT,
                                            ORIEL_KIND_LONG_INT, ORIEL_KIND_LONG_DOUBLE_INT};
    map->count = 0;
    if (depth == 0) {
        enum oriel_kind kind = kinds[below(sizeof kinds / sizeof kinds[0])];
        uint64_t count = below(4);
        for (uint64_t i = 0; i < count; i++)
            map_element(map, kind, (int64_t)(i * oriel_kinds[kind].extent_bytes));
        return oriel_node_run(kind, count);
    }
    struct map *child = malloc(sizeof *child);
    assert_non_null(child);
    struct oriel_node *node;
    if (below(2)) {
        struct oriel_node *old = grow(child, depth - 1);
        uint64_t count = below(4);
        int64_t run_bytes = old->form == ORIEL_NODE_RUN
                                ? (int64_t)(old->count * oriel_kinds[old->kind].extent_bytes)
                                : 8;
        int64_t strides[] = {run_bytes, (int64_t)below(200) - 100,
                             (int64_t)old->count * old->stride_bytes};
        int64_t stride_bytes = strides[below(3)];
        while ((int)count * child->count > MAP_MOST / 8)
            count--;
        for (uint64_t i = 0; i < count; i++)
            map_append(map, child, (int64_t)i * stride_bytes);
        node = oriel_node_loop(count, stride_bytes, old);
    } else {
        uint64_t count = below(4), used = 0;
        struct oriel_branch *branches = malloc((count + 1) * sizeof *branches);
        assert_non_null(branches);
        for (; used < count && map->count < MAP_MOST / 8; used++) {
            branches[used].node = grow(child, (int)below((uint64_t)depth));
            branches[used].offset_bytes = below(2) && map->count > 0 ? map->at[map->count - 1] + 1
                                                                     : (int64_t)below(300) - 100;
            map_append(map, child, branches[used].offset_bytes);
        }
        node = oriel_node_list(used, branches);
    }
    free(child);
    assert_non_null(node);
    return node;
}

static void random_trees_walk_as_their_maps(void **state)
{
    (void)state;
    struct map *map = malloc(sizeof *map);
    assert_non_null(map);
    int apart = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct oriel_node *node = grow(map, (int)below(6));
        uint64_t count = 1 + below(3);
        int64_t extent_bytes = (int64_t)below(400) - 100;
        expect_sums(node, count, extent_bytes, map);
        expect_walk(node, count, extent_bytes, map);
        if (node->kind != ORIEL_KIND_NONE)
            expect_stretches(node, count, extent_bytes, map);
        apart += expect_apart(node, count, extent_bytes, map) && count > 1 && node->runs > 1;
        oriel_node_free(node);
    }
    assert_true(apart > ROUNDS / 50);
    free(map);
}

/* Blocks of items, some of them adjacent, with offsets of either width. A list without a node per
 * block walks like its map. */
static void listed_blocks_walk_as_their_maps(void **state)
{
    (void)state;
    enum { BLOCKS_MOST = 40 };
    static struct map map;
    int made_blocks = 0, separate_touching = 0;
    for (int round = 0; round < ROUNDS / 4; round++) {
        int narrow[2 * BLOCKS_MOST];
        int64_t wide[2 * BLOCKS_MOST];
        const uint64_t count = 1 + below(BLOCKS_MOST);
        const enum oriel_kind kind = below(2) ? ORIEL_KIND_INT32 : ORIEL_KIND_DOUBLE_COMPLEX;
        const int64_t item_bytes = oriel_kinds[kind].extent_bytes;
        const bool alike = below(2), has_holes = below(4) == 0;
        const int64_t extent_bytes = has_holes ? item_bytes + 4 : item_bytes;
        const int64_t unit_bytes = below(2) ? item_bytes : 4;
        int touching = 0;
        map.count = 0;
        for (uint64_t i = 0; i < count; i++) {
            narrow[i] = has_holes || alike ? 1 : (int)below(4);
            const bool touches = i > 0 && below(alike ? 4 : 2) == 0;
            narrow[count + i] =
                touches ? narrow[count + i - 1] + narrow[i - 1] * (int)(item_bytes / unit_bytes)
                        : (int)below(300) - 100;
            touching += touches;
            wide[i] = narrow[i];
            wide[count + i] = narrow[count + i];
            for (int k = 0; k < narrow[i]; k++)
                map_element(&map, kind, narrow[count + i] * unit_bytes + k * extent_bytes);
        }
        struct oriel_block_list listed = {.count = count, .length = 1, .unit_bytes = unit_bytes};
        listed.displacements = below(2) ? (struct oriel_numbers){narrow + count, NULL}
                                        : (struct oriel_numbers){NULL, wide + count};
        if (!alike || below(2))
            listed.lengths = below(2) ? (struct oriel_numbers){narrow, NULL}
                                      : (struct oriel_numbers){NULL, wide};
        struct oriel_node *item = oriel_node_run(kind, 1);
        struct oriel_node *node = oriel_node_blocks(item, extent_bytes, &listed);
        assert_true(node != NULL || map.count == 0);
        if (node != NULL) {
            expect_sums(node, 2, 1000, &map);
            expect_walk(node, 2, 1000, &map);
            expect_stretches(node, 2, 1000, &map);
            expect_apart(node, 2, 1000, &map);
            made_blocks += node->form == ORIEL_NODE_BLOCKS;
            separate_touching +=
                node->form == ORIEL_NODE_BLOCKS && node->count == count && touching > 0;
        }
        oriel_node_free(node);
        oriel_node_free(item);
    }
    assert_true(made_blocks > ROUNDS / 8 && separate_touching > ROUNDS / 100);
}

/* They become a loop or a run, like a list of them. If they are not plain blocks or extend too far,
 * the result is NULL. */
static void listed_blocks_are_simplified(void **state)
{
    (void)state;
    const int even[] = {5, 8, 11, 14}, dense[] = {7, 8, 9, 10}, once[] = {1, 1, 1, 1},
              none[] = {0, 0, 0, 0}, twice[] = {1, 2, 1, 1};
    const int64_t far[] = {0, INT64_MAX / 4, 3, 9};
    struct oriel_node *item = oriel_node_run(ORIEL_KIND_DOUBLE, 1);
    struct oriel_block_list listed = {
        .count = 4, .lengths = {once, NULL}, .displacements = {even, NULL}, .unit_bytes = 8};
    struct oriel_node *node = oriel_node_blocks(item, 8, &listed);
    assert_int_equal(node->form, ORIEL_NODE_LIST);
    assert_int_equal(node->branches[0].node->form, ORIEL_NODE_LOOP);
    oriel_node_free(node);
    listed.displacements.narrow = dense;
    node = oriel_node_blocks(item, 8, &listed);
    assert_int_equal(node->branches[0].node->form, ORIEL_NODE_RUN);
    assert_int_equal(node->branches[0].node->count, 4);
    oriel_node_free(node);
    listed.lengths.narrow = none;
    assert_null(oriel_node_blocks(item, 8, &listed));
    listed.lengths.narrow = twice;
    assert_null(oriel_node_blocks(item, 16, &listed));
    listed.lengths.narrow = once;
    listed.displacements = (struct oriel_numbers){NULL, far};
    assert_null(oriel_node_blocks(item, 8, &listed));
    listed.displacements = (struct oriel_numbers){even, NULL};
    oriel_node_free(item);
    item = oriel_node_run(ORIEL_KIND_SHORT_INT, 1);
    assert_null(oriel_node_blocks(item, 8, &listed));
    oriel_node_free(item);
}

static void deep_trees_walk_with_frames_from_the_heap(void **state)
{
    (void)state;
    enum { LEVELS = 100 };
    struct map *map = malloc(sizeof *map);
    assert_non_null(map);
    map->count = 0;
    struct oriel_node *node = oriel_node_run(ORIEL_KIND_INT32, 1);
    map_element(map, ORIEL_KIND_INT32, 0);
    for (int level = 1; level <= LEVELS; level++) {
        node = list_of_two(0, node, 8 * level, oriel_node_run(ORIEL_KIND_INT32, 1));
        map_element(map, ORIEL_KIND_INT32, 8 * level);
    }
    assert_int_equal(node->depth, LEVELS + 1);
    assert_true(node->depth > ORIEL_CURSOR_DEPTH);
    expect_sums(node, 2, 4, map);
    expect_walk(node, 2, 4, map);
    oriel_node_free(node);
    free(map);
}

static void whole_runs_can_be_used_at_once(void **state)
{
    (void)state;
    struct oriel_cursor cursor;
    struct oriel_node *node = oriel_node_loop(10, -24, oriel_node_run(ORIEL_KIND_INT64, 2));
    assert_true(oriel_cursor_open(&cursor, node, 1, 16));
    assert_true(oriel_cursor_fill(&cursor));
    assert_int_equal(cursor.batch.further, 9);
    oriel_batch_use_runs(&cursor.batch, 7);
    assert_true(oriel_cursor_fill(&cursor));
    assert_int_equal(cursor.batch.at_bytes, -7 * 24);
    assert_int_equal(cursor.batch.left_bytes, 16);
    oriel_batch_use(&cursor.batch, 5);
    assert_int_equal(cursor.batch.left_bytes, 11);
    oriel_batch_use(&cursor.batch, 11);
    assert_int_equal(cursor.batch.at_bytes, -8 * 24);
    oriel_batch_use_runs(&cursor.batch, 2);
    assert_false(oriel_cursor_fill(&cursor));
    oriel_cursor_close(&cursor);
    oriel_node_free(node);
}

static void padding_is_stepped_over(void **state)
{
    (void)state;
    struct oriel_cursor cursor;
    struct oriel_node *node = oriel_node_run(ORIEL_KIND_SHORT_INT, 2);
    assert_true(oriel_cursor_open(&cursor, node, 1, 16));
    assert_true(oriel_cursor_fill(&cursor));
    static const int64_t offsets[] = {0, 4, 8, 12};
    static const uint64_t lengths[] = {2, 4, 2, 4};
    for (int i = 0; i < 4; i++) {
        assert_true(oriel_cursor_fill(&cursor));
        assert_int_equal(cursor.batch.at_bytes, offsets[i]);
        assert_int_equal(oriel_batch_piece(&cursor.batch), lengths[i]);
        oriel_batch_use(&cursor.batch, lengths[i]);
    }
    assert_false(oriel_cursor_fill(&cursor));
    oriel_cursor_close(&cursor);
    oriel_node_free(node);
}

static struct oriel_node *four_blocks(const int *displacements)
{
    struct oriel_node *item = oriel_node_run(ORIEL_KIND_DOUBLE, 1);
    const struct oriel_block_list listed = {
        .count = 4, .length = 1, .displacements = {displacements, NULL}, .unit_bytes = 8};
    struct oriel_node *blocks = oriel_node_blocks(item, 8, &listed);
    oriel_node_free(item);
    assert_non_null(blocks);
    return blocks;
}

/* Usual layouts are recognised as free of overlaps: blocks in order, any sufficient distance, the
 * columns of a matrix. */
static void usual_layouts_are_known_to_be_apart(void **state)
{
    (void)state;
    struct oriel_node *ascending = four_blocks((const int[]){0, 2, 3, 9});
    assert_true(oriel_layout_apart(ascending, 1, 0));
    assert_true(oriel_layout_apart(ascending, 2, 80));
    assert_true(oriel_layout_apart(ascending, 2, -80));
    assert_false(oriel_layout_apart(ascending, 2, 72));
    oriel_node_free(ascending);
    struct oriel_node *unordered = four_blocks((const int[]){0, 3, 2, 9});
    assert_false(oriel_layout_apart(unordered, 1, 0));
    oriel_node_free(unordered);
    struct oriel_node *column = oriel_node_loop(8, 64, oriel_node_run(ORIEL_KIND_DOUBLE, 1));
    assert_true(oriel_layout_apart(column, 8, 8));
    assert_true(oriel_layout_apart(column, 8, -8));
    assert_false(oriel_layout_apart(column, 9, 8));
    assert_false(oriel_layout_apart(column, 8, 4));
    oriel_node_free(column);
    struct oriel_node *backwards = oriel_node_loop(8, -16, oriel_node_run(ORIEL_KIND_DOUBLE, 2));
    assert_true(oriel_layout_apart(backwards, 1, 0));
    struct oriel_node *and_one =
        list_of_two(0, backwards, 200, oriel_node_run(ORIEL_KIND_DOUBLE, 1));
    assert_true(oriel_layout_apart(and_one, 1, 0));
    oriel_node_free(and_one);
    struct oriel_node *overlapping = oriel_node_loop(8, 4, oriel_node_run(ORIEL_KIND_DOUBLE, 1));
    assert_false(oriel_layout_apart(overlapping, 1, 0));
    oriel_node_free(overlapping);
}

/* Constructors that simplify must not change a node that another tree shares. */
static void shared_nodes_stay_as_they_are(void **state)
{
    (void)state;
    struct oriel_node *item = oriel_node_run(ORIEL_KIND_INT32, 2);
    struct oriel_node *longer = oriel_node_loop(3, 8, oriel_node_share(item));
    assert_int_equal(longer->elements, 6);
    struct oriel_node *joined = list_of_two(0, oriel_node_share(item), 8, oriel_node_share(item));
    assert_int_equal(joined->form, ORIEL_NODE_RUN);
    assert_int_equal(joined->elements, 4);
    struct oriel_node *spread = oriel_node_loop(4, 32, oriel_node_share(item));
    struct oriel_node *wider = oriel_node_loop(2, 128, oriel_node_share(spread));
    assert_int_equal(wider->elements, 16);
    assert_int_equal(spread->elements, 8);
    assert_int_equal(item->elements, 2);
    assert_int_equal(item->count, 2);
    oriel_node_free(item);
    oriel_node_free(longer);
    oriel_node_free(joined);
    oriel_node_free(spread);
    assert_int_equal(wider->child->count, 2); /* alive while a tree references it */
    oriel_node_free(wider);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_over_touching_runs_are_runs),
        cmocka_unit_test(loops_that_do_not_touch_stay),
        cmocka_unit_test(empty_parts_vanish),
        cmocka_unit_test(lists_join_runs_that_touch_in_order),
        cmocka_unit_test(runs_of_several_kinds_are_blocks_joined_where_they_touch),
        cmocka_unit_test(equal_runs_at_equal_distances_are_a_loop),
        cmocka_unit_test(a_missing_child_is_passed_on),
        cmocka_unit_test(random_trees_walk_as_their_maps),
        cmocka_unit_test(listed_blocks_walk_as_their_maps),
        cmocka_unit_test(listed_blocks_are_simplified),
        cmocka_unit_test(deep_trees_walk_with_frames_from_the_heap),
        cmocka_unit_test(whole_runs_can_be_used_at_once),
        cmocka_unit_test(padding_is_stepped_over),
        cmocka_unit_test(usual_layouts_are_known_to_be_apart),
        cmocka_unit_test(shared_nodes_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
