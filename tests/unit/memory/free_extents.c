/* Free extents against a model of one byte per unit: allocations never overlap, freed extents
 * merge, and nothing is lost. The units are 64 bytes of a fictitious address space. */
#include "memory/free_extents.h"

#include <string.h>

#include "cmocka_all.h"

enum { UNIT_BYTES = 64, UNITS = 2048, BLOCKS = 256, ROUNDS = 60000, START = 64 };

struct block {
    uint64_t offset;
    uint64_t len_bytes;
};

static uint8_t is_free[UNITS];
static struct block blocks[BLOCKS];

static uint64_t next_random(void)
{
    static uint64_t random = 0x123456789abcdefu;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random >> 16;
}

static void mark(const struct block *block, uint8_t value)
{
    for (uint64_t i = 0; i < block->len_bytes / UNIT_BYTES; i++) {
        uint64_t unit = block->offset / UNIT_BYTES - START + i;
        assert_in_range(unit, 0, UNITS - 1);
        assert_int_equal(is_free[unit], !value);
        is_free[unit] = value;
    }
}

/* Whether the model has space for len_bytes at a multiple of align_bytes. */
static bool model_has_room(uint64_t len_bytes, uint64_t align_bytes)
{
    uint64_t run = 0;
    for (uint64_t first = 0; first < UNITS; first++) {
        if (((first + START) * UNIT_BYTES) % align_bytes != 0)
            continue;
        for (run = 0; first + run < UNITS && is_free[first + run]; run++)
            if ((run + 1) * UNIT_BYTES >= len_bytes)
                return true;
    }
    return false;
}

/* Extents are sorted, disjoint, and cover exactly the model's free units. */
static void compare(const struct oriel_free_extents *arena)
{
    uint64_t unit = 0;
    for (size_t i = 0; i < arena->count; i++) {
        const struct oriel_free_extent *extent = &arena->extents[i];
        uint64_t first = extent->offset / UNIT_BYTES - START;
        assert_true(extent->len_bytes > 0);
        assert_true(i == 0 || first > unit);
        for (; unit < first; unit++)
            assert_int_equal(is_free[unit], 0);
        for (; unit < first + extent->len_bytes / UNIT_BYTES; unit++)
            assert_int_equal(is_free[unit], 1);
    }
    for (; unit < UNITS; unit++)
        assert_int_equal(is_free[unit], 0);
}

static void random_allocations_and_frees_agree_with_the_model(void **state)
{
    (void)state;
    struct oriel_free_extents arena = {0};
    struct block all = {(uint64_t)START * UNIT_BYTES, (uint64_t)UNITS * UNIT_BYTES};
    assert_true(oriel_free_extents_add(&arena, all.offset, all.len_bytes));
    mark(&all, 1);
    int refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct block *block = &blocks[next_random() % BLOCKS];
        if (block->len_bytes > 0) {
            assert_true(oriel_free_extents_add(&arena, block->offset, block->len_bytes));
            mark(block, 1);
            block->len_bytes = 0;
        } else {
            uint64_t len_bytes =
                UNIT_BYTES * (1 + next_random() % (next_random() % 8 == 0 ? 200 : 20));
            uint64_t align_bytes = (uint64_t)UNIT_BYTES << (next_random() % 6);
            bool room = model_has_room(len_bytes, align_bytes);
            assert_int_equal(
                oriel_free_extents_remove_fit(&arena, len_bytes, align_bytes, &block->offset),
                room);
            refused += !room;
            if (room) {
                assert_int_equal(block->offset % align_bytes, 0);
                block->len_bytes = len_bytes;
                mark(block, 0);
            }
        }
        if (round % 16 == 0)
            compare(&arena);
    }
    assert_true(refused > 0); /* the arena was full now and then */
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].len_bytes == 0)
            continue;
        assert_true(oriel_free_extents_add(&arena, blocks[i].offset, blocks[i].len_bytes));
        mark(&blocks[i], 1);
    }
    assert_int_equal(arena.count, 1);
    assert_int_equal(arena.extents[0].offset, all.offset);
    assert_int_equal(arena.extents[0].len_bytes, all.len_bytes);
    oriel_free_extents_close(&arena);
    assert_int_equal(arena.count, 0);
}

static void empty_arena_allocates_nothing(void **state)
{
    (void)state;
    struct oriel_free_extents arena = {0};
    uint64_t offset = 17;
    assert_false(oriel_free_extents_remove_fit(&arena, 64, 64, &offset));
    assert_int_equal(offset, 17);
    oriel_free_extents_close(&arena);
}

static void prepared_changes_need_no_more_room(void **state)
{
    (void)state;
    struct oriel_free_extents arena = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(oriel_free_extents_reserve(&arena));
        assert_true(arena.count + 2 <= arena.capacity);
        assert_true(oriel_free_extents_add(&arena, i * 128, 64)); /* never two adjacent ones */
    }
    assert_int_equal(arena.count, 1000);
    oriel_free_extents_close(&arena);
}

static void a_range_is_allocated_at_its_address_or_not_at_all(void **state)
{
    (void)state;
    struct oriel_free_extents arena = {0};
    assert_false(oriel_free_extents_remove(&arena, 0, 64));
    assert_true(oriel_free_extents_add(&arena, 1000, 1000));
    assert_true(oriel_free_extents_add(&arena, 3000, 1000));
    assert_false(oriel_free_extents_remove(&arena, 999, 10));  /* begins before */
    assert_false(oriel_free_extents_remove(&arena, 1990, 11)); /* ends after */
    assert_false(oriel_free_extents_remove(&arena, 2500, 10));
    assert_false(oriel_free_extents_remove(&arena, 1000, 3000)); /* with a gap */
    assert_false(oriel_free_extents_remove(&arena, 5000, 10));
    assert_int_equal(arena.count, 2);
    assert_true(oriel_free_extents_remove(&arena, 1400, 100)); /* the middle */
    assert_true(oriel_free_extents_remove(&arena, 1000, 100)); /* the start */
    assert_true(oriel_free_extents_remove(&arena, 3900, 100)); /* the end */
    assert_true(oriel_free_extents_remove(&arena, 1500, 500)); /* all of one */
    static const struct oriel_free_extent left[] = {{1100, 300}, {3000, 900}};
    assert_int_equal(arena.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(arena.extents[i].offset, left[i].offset);
        assert_int_equal(arena.extents[i].len_bytes, left[i].len_bytes);
    }
    oriel_free_extents_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_allocated_at_its_address_or_not_at_all),
        cmocka_unit_test(random_allocations_and_frees_agree_with_the_model),
        cmocka_unit_test(empty_arena_allocates_nothing),
        cmocka_unit_test(prepared_changes_need_no_more_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
