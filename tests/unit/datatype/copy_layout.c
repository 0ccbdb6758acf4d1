/* Copies between layouts: for any two sides, each byte moves to the position that the type maps
 * specify, and no other byte changes. The model is a list of the bytes of each side in type map
 * order. Buffers end at their last byte, so sanitizers detect loads beyond it. */
#include "datatype/copy_layout.h"

#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"

enum { MAP_MOST = 6000, ROUNDS = 30000 };

struct map {
    int count;
    int64_t at[MAP_MOST];
};

/* ---- layouts ---- */

static void map_append(struct map *map, const struct map *from, int64_t offset)
{
    for (int i = 0; i < from->count; i++)
        map->at[map->count++] = from->at[i] + offset;
}

static struct oriel_node *grow_run(struct map *map)
{
    static const enum oriel_kind kinds[] = {ORIEL_KIND_CHAR, ORIEL_KIND_INT16, ORIEL_KIND_INT32,
                                            ORIEL_KIND_DOUBLE};
    enum oriel_kind kind = kinds[below(4)];
    uint64_t count = 1 + below(below(8) == 0 ? 40 : 7);
    map->count = 0;
    for (uint64_t i = 0; i < count * oriel_kinds[kind].extent_bytes; i++)
        map->at[map->count++] = (int64_t)i;
    return oriel_node_run(kind, count);
}

/* A stride at which items of this map do not overlap, as in most datatypes; now and then any
 * stride. */
static int64_t stride_for(const struct map *map)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int i = 0; i < map->count; i++) {
        low = map->at[i] < low ? map->at[i] : low;
        high = map->at[i] + 1 > high ? map->at[i] + 1 : high;
    }
    int64_t span = map->count > 0 ? high - low : 8;
    int64_t strides[] = {span, span + (int64_t)below(30), 2 * span, -span - (int64_t)below(9),
                         (int64_t)below(200) - 100};
    return strides[below(5)];
}

static struct oriel_node *grow(struct map *map, int depth);

static struct oriel_node *grow_loop(struct map *map, int depth)
{
    struct map *child = malloc(sizeof *child);
    assert_non_null(child);
    struct oriel_node *old = grow(child, depth - 1);
    int64_t stride_bytes = stride_for(child);
    uint64_t count = 1 + below(below(4) == 0 ? 40 : 6);
    while (count > 1 && (int)count * child->count > MAP_MOST / 8)
        count--;
    map->count = 0;
    for (uint64_t i = 0; i < count; i++)
        map_append(map, child, (int64_t)i * stride_bytes);
    free(child);
    return oriel_node_loop(count, stride_bytes, old);
}

/* Of one node shared by all branches, of runs, or of anything. */
static struct oriel_node *grow_list(struct map *map, int depth)
{
    struct map *child = malloc(sizeof *child);
    uint64_t wanted = 1 + below(below(3) == 0 ? 30 : 4), used = 0;
    struct oriel_branch *branches = malloc(wanted * sizeof *branches);
    assert_true(child != NULL && branches != NULL);
    const bool alike = below(2);
    const int below_this = below(2) ? 1 : depth;
    int64_t at = (int64_t)below(50) - 20;
    map->count = 0;
    for (; used < wanted && map->count < MAP_MOST / 16; used++) {
        branches[used].node = alike && used > 0 ? oriel_node_share(branches[0].node)
                                                : grow(child, (int)below((uint64_t)below_this));
        branches[used].offset_bytes = at;
        map_append(map, child, at);
        at += below(10) == 0 ? -(int64_t)below(500) : (int64_t)child->count + (int64_t)below(3) * 8;
    }
    free(child);
    return oriel_node_list(used, branches);
}

static struct oriel_node *grow(struct map *map, int depth)
{
    struct oriel_node *node = depth == 0 ? grow_run(map)
                              : below(2) ? grow_loop(map, depth)
                                         : grow_list(map, depth);
    assert_non_null(node);
    return node;
}

struct side {
    struct oriel_items items;
    struct oriel_node *node;
    struct map map; /* of all items */
    int64_t low, high;
};

static int compare(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return first < second ? -1 : first > second;
}

static bool is_disjoint(const struct map *map)
{
    static struct map sorted;
    sorted = *map;
    qsort(sorted.at, (size_t)sorted.count, sizeof sorted.at[0], compare);
    for (int i = 1; i < sorted.count; i++)
        if (sorted.at[i] == sorted.at[i - 1])
            return false;
    return true;
}

static void side_expand(struct side *side, const struct map *item, uint64_t count)
{
    side->items = (struct oriel_items){side->node, count, stride_for(item)};
    side->map.count = 0;
    side->low = INT64_MAX;
    side->high = INT64_MIN;
    for (uint64_t i = 0; i < count; i++)
        map_append(&side->map, item, (int64_t)i * side->items.extent_bytes);
    for (int i = 0; i < side->map.count; i++) {
        side->low = side->map.at[i] < side->low ? side->map.at[i] : side->low;
        side->high = side->map.at[i] + 1 > side->high ? side->map.at[i] + 1 : side->high;
    }
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* Two sides of one size. Returns false, with the nodes freed, if they would be too large. */
static bool sides_make(struct side *to, struct side *from)
{
    static struct map to_item, from_item;
    to->node = grow(&to_item, (int)below(4));
    const bool same = below(4) == 0;
    from->node =
        same ? oriel_node_share(to->node) : grow(&from_item, below(3) == 0 ? 0 : (int)below(4));
    if (same)
        from_item = to_item;
    uint64_t divisor = greatest_divisor((uint64_t)to_item.count, (uint64_t)from_item.count);
    uint64_t times = 1 + below(below(2) ? 20 : 2);
    uint64_t to_count = (uint64_t)from_item.count / divisor,
             from_count = (uint64_t)to_item.count / divisor;
    while (times > 1 && times * to_count * (uint64_t)to_item.count > MAP_MOST)
        times--;
    if (to_count * (uint64_t)to_item.count <= MAP_MOST) {
        side_expand(to, &to_item, times * to_count);
        side_expand(from, &from_item, times * from_count);
        if (is_disjoint(&to->map))
            return true;
    }
    oriel_node_free(to->node);
    oriel_node_free(from->node);
    return false;
}

/* Directly, or through a prepared copy. */
static bool sides_copy(char *to, const struct oriel_items *to_items, const char *from,
                       const struct oriel_items *from_items)
{
    struct oriel_copy_prepared prepared;
    if (below(2))
        return oriel_copy_items(to, to_items, from, from_items);
    oriel_copy_prepare(&prepared, to_items, from_items);
    if (prepared.loop == NULL)
        return oriel_copy_general(&prepared, to, from);
    oriel_copy_loop(&prepared, to, from);
    return true;
}

static void sides_copy_and_compare(const struct side *to_side, const struct side *from_side)
{
    size_t shift = below(2) ? below(16) : 0;
    size_t to_bytes = (size_t)(to_side->high - to_side->low) + shift,
           from_bytes = (size_t)(from_side->high - from_side->low);
    char *to = malloc(to_bytes), *wanted = malloc(to_bytes), *from = malloc(from_bytes);
    assert_true(to != NULL && wanted != NULL && from != NULL);
    for (size_t i = 0; i < from_bytes; i++)
        from[i] = (char)below(256);
    memset(to, 0x5a, to_bytes);
    memset(wanted, 0x5a, to_bytes);
    char *at_to = to + shift - to_side->low, *at_wanted = wanted + shift - to_side->low,
         *at_from = from - from_side->low;
    for (int i = 0; i < to_side->map.count; i++)
        at_wanted[to_side->map.at[i]] = at_from[from_side->map.at[i]];
    assert_true(oriel_copy_is_supported(&to_side->items, &from_side->items));
    assert_true(sides_copy(at_to, &to_side->items, at_from, &from_side->items));
    assert_memory_equal(to, wanted, to_bytes);
    free(to);
    free(wanted);
    free(from);
}

static void random_layouts_copy_as_their_maps(void **state)
{
    (void)state;
    static struct side to, from;
    int done = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (!sides_make(&to, &from))
            continue;
        done++;
        for (int time = 0; time < 4; time++) /* walked, planned, by the cached plan */
            sides_copy_and_compare(&to, &from);
        oriel_node_free(to.node);
        oriel_node_free(from.node);
    }
    assert_true(done > ROUNDS / 4);
}

static struct oriel_node *loop(uint64_t count, int64_t stride_bytes, uint64_t words)
{
    return oriel_node_loop(count, stride_bytes, oriel_node_run(ORIEL_KIND_INT64, words));
}

static void copy_nodes(struct oriel_node *to_node, struct oriel_node *from_node)
{
    static struct side to, from;
    struct side *sides[] = {&to, &from};
    struct oriel_node *nodes[] = {to_node, from_node};
    for (int i = 0; i < 2; i++) {
        struct oriel_cursor cursor;
        struct map *item = calloc(1, sizeof *item);
        assert_non_null(item);
        sides[i]->node = nodes[i];
        assert_true(oriel_cursor_open(&cursor, nodes[i], 1, 0));
        while (oriel_cursor_fill(&cursor)) {
            item->at[item->count++] = cursor.batch.at_bytes;
            oriel_batch_use(&cursor.batch, 1);
        }
        oriel_cursor_close(&cursor);
        side_expand(sides[i], item, 1);
        free(item);
    }
    for (int time = 0; time < 3; time++)
        sides_copy_and_compare(&to, &from);
    oriel_node_free(to_node);
    oriel_node_free(from_node);
}

static struct oriel_node *list_of(int count, struct oriel_node *const nodes[], int64_t apart_bytes)
{
    struct oriel_branch *branches = malloc((size_t)count * sizeof *branches);
    assert_non_null(branches);
    for (int i = 0; i < count; i++)
        branches[i] = (struct oriel_branch){i * apart_bytes, nodes[i]};
    return oriel_node_list((uint64_t)count, branches);
}

/* Lists with equal numbers of branches and bytes, whose branches have different sizes. */
static void lists_of_other_parts_copy(void **state)
{
    (void)state;
    struct oriel_node *const up[] = {loop(1, 0, 1), loop(1, 0, 2), loop(1, 0, 3)};
    struct oriel_node *const down[] = {loop(1, 0, 3), loop(1, 0, 2), loop(1, 0, 1)};
    copy_nodes(list_of(3, up, 40), list_of(3, down, 48));
    struct oriel_node *const few[] = {loop(3, 24, 1), loop(5, 16, 1)};
    struct oriel_node *const many[] = {loop(5, 24, 1), loop(3, 16, 1)};
    copy_nodes(list_of(2, few, 200), list_of(2, many, 160));
}

/* The pairs that select the paths through copy.c, at least one of each. */
static void sides_that_match_in_part_copy(void **state)
{
    (void)state;
    copy_nodes(loop(64, 16, 1), loop(16, 48, 4)); /* blocks of 1 from blocks of 4 */
    copy_nodes(loop(16, 48, 4), loop(64, 16, 1)); /* the other direction */
    copy_nodes(oriel_node_loop(20, 72, loop(3, 24, 2)),
               oriel_node_loop(20, 56, loop(2, 32, 3))); /* of 2 from blocks of 3 */
    copy_nodes(loop(3, 24, 2), loop(2, 32, 3));          /* once only */
    copy_nodes(oriel_node_loop(3, 720, loop(30, 24, 1)),
               oriel_node_loop(3, 960, loop(30, 32, 1))); /* faces */
    copy_nodes(oriel_node_loop(3, 720, loop(30, 24, 1)), loop(1, 0, 90));
    copy_nodes(oriel_node_loop(5, 7, oriel_node_run(ORIEL_KIND_CHAR, 3)),
               oriel_node_loop(3, 11, oriel_node_run(ORIEL_KIND_CHAR, 5)));
}

static void padded_pairs_and_unequal_sides_are_refused(void **state)
{
    (void)state;
    struct oriel_node *pair = oriel_node_run(ORIEL_KIND_SHORT_INT, 2),
                      *words = oriel_node_run(ORIEL_KIND_INT32, 3);
    struct oriel_node *spread = oriel_node_loop(3, 40, oriel_node_share(pair));
    struct oriel_items pairs = {pair, 2, 16}, others = {words, 2, 12}, more = {words, 3, 12},
                       loops = {spread, 1, 120};
    assert_false(oriel_copy_is_supported(&pairs, &others));
    assert_false(oriel_copy_is_supported(&others, &pairs));
    assert_false(oriel_copy_is_supported(&loops, &more));
    assert_false(oriel_copy_is_supported(&others, &more));
    assert_true(oriel_copy_is_supported(&others, &others));
    oriel_node_free(pair);
    oriel_node_free(words);
    oriel_node_free(spread);
}

/* All in one piece, as the program may do to its own memory. */
static void prepared_sides_may_overlap(void **state)
{
    (void)state;
    enum { BYTES = 3 << 18 };
    const uint64_t lengths[] = {2, 3, 8, 24, 100, 200, 1000, BYTES - 4096};
    const size_t offsets[][2] = {{0, 1}, {1, 0}, {5, 4000}, {4000, 5}};
    char *memory = malloc(BYTES), *wanted = malloc(BYTES);
    assert_true(memory != NULL && wanted != NULL);
    for (unsigned length = 0; length < sizeof lengths / sizeof *lengths; length++)
        for (unsigned pair = 0; pair < sizeof offsets / sizeof *offsets; pair++) {
            struct oriel_copy_prepared prepared;
            struct oriel_node *run = oriel_node_run(ORIEL_KIND_CHAR, lengths[length]);
            const struct oriel_items items = {run, 1, (int64_t)lengths[length]};
            for (int i = 0; i < BYTES; i++)
                memory[i] = (char)below(256);
            memcpy(wanted, memory, BYTES);
            memmove(wanted + offsets[pair][0], wanted + offsets[pair][1], lengths[length]);
            oriel_copy_prepare(&prepared, &items, &items);
            assert_non_null(prepared.loop);
            oriel_copy_loop(&prepared, memory + offsets[pair][0], memory + offsets[pair][1]);
            assert_memory_equal(memory, wanted, BYTES);
            oriel_node_free(run);
        }
    free(memory);
    free(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layouts_copy_as_their_maps),
        cmocka_unit_test(sides_that_match_in_part_copy),
        cmocka_unit_test(lists_of_other_parts_copy),
        cmocka_unit_test(prepared_sides_may_overlap),
        cmocka_unit_test(padded_pairs_and_unequal_sides_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
