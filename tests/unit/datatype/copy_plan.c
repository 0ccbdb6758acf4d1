/* Copies between blocks of different lengths. A cached plan moves each byte to the position that
 * the type maps specify, and no other byte, for every later count, partner and thread. The model is
 * a list of the bytes of each side. Buffers end at their last byte before an inaccessible page, or
 * begin after one. */
#include "datatype/copy_layout.h"
#include "datatype/copy_plan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"
#include "guarded_memory.h"

enum { BYTES_MOST = 20000, ROOM = 1 << 20, ROUNDS = 4000, THREADS = 4, TIMES = 200 };

/* One side: a layout, the number of its items, and the offsets of their bytes. */
struct side {
    struct oriel_items items;
    int64_t length, high;
    int64_t at[BYTES_MOST];
};

static void side_close(struct side *side)
{
    oriel_node_free((struct oriel_node *)(uintptr_t)side->items.layout);
}

/* count items of blocks at the given offsets, all of one length, with items extent_bytes apart. */
static void side_map(struct side *side, const int64_t *offsets, const uint64_t *lengths,
                     unsigned blocks)
{
    side->length = 0;
    side->high = 0;
    for (uint64_t item = 0; item < side->items.count; item++)
        for (unsigned i = 0; i < blocks; i++)
            for (uint64_t k = 0; k < lengths[i]; k++) {
                const int64_t at =
                    (int64_t)item * side->items.extent_bytes + offsets[i] + (int64_t)k;
                assert_true(side->length < BYTES_MOST);
                side->at[side->length++] = at;
                side->high = at + 1 > side->high ? at + 1 : side->high;
            }
}

/* Blocks of one length at equal distances. */
static void side_vector(struct side *side, uint64_t blocks, uint64_t len_bytes,
                        int64_t stride_bytes)
{
    const int64_t zero = 0;
    struct oriel_node *run = oriel_node_run(ORIEL_KIND_CHAR, len_bytes);
    side->items = (struct oriel_items){run, blocks, stride_bytes};
    side_map(side, &zero, &len_bytes, 1);
    side->items = (struct oriel_items){oriel_node_loop(blocks, stride_bytes, run), 1, 0};
    assert_non_null(side->items.layout);
}

static void side_at(struct side *side, const int64_t *offsets, const uint64_t *lengths,
                    unsigned blocks, uint64_t count, int64_t extent_bytes)
{
    struct oriel_branch *branches = malloc(blocks * sizeof *branches);
    assert_non_null(branches);
    for (unsigned i = 0; i < blocks; i++)
        branches[i] =
            (struct oriel_branch){offsets[i], oriel_node_run(ORIEL_KIND_CHAR, lengths[i])};
    side->items = (struct oriel_items){oriel_node_list(blocks, branches), count, extent_bytes};
    assert_non_null(side->items.layout);
    side_map(side, offsets, lengths, blocks);
}

/* Blocks at any ascending offsets, at least two bytes apart. */
static void side_indexed(struct side *side, const uint64_t *lengths, unsigned blocks,
                         uint64_t count)
{
    int64_t *offsets = malloc(blocks * sizeof *offsets);
    int64_t at = 0;
    assert_non_null(offsets);
    for (unsigned i = 0; i < blocks; i++) {
        offsets[i] = at;
        at += (int64_t)lengths[i] + 2 + (int64_t)below(9);
    }
    side_at(side, offsets, lengths, blocks, count, at);
    free(offsets);
}

static struct guarded sinks, sources;

static void copy_and_compare(const struct side *to_side, const struct side *from_side)
{
    const size_t shift = below(16), to_bytes = (size_t)to_side->high + shift,
                 from_bytes = (size_t)from_side->high;
    char *to = guarded_part(&sinks, to_bytes, below(2) == 0),
         *from = guarded_part(&sources, from_bytes, below(2) == 0);
    char *wanted = malloc(to_bytes);
    assert_non_null(wanted);
    assert_int_equal(to_side->length, from_side->length);
    for (size_t i = 0; i < from_bytes; i++)
        from[i] = (char)below(256);
    memset(to, 0x5a, to_bytes);
    memset(wanted, 0x5a, to_bytes);
    for (int64_t i = 0; i < to_side->length; i++)
        wanted[shift + (size_t)to_side->at[i]] = from[from_side->at[i]];
    assert_true(oriel_copy_is_supported(&to_side->items, &from_side->items));
    assert_true(oriel_copy_items(to + shift, &to_side->items, from, &from_side->items));
    if (memcmp(to, wanted, to_bytes) != 0)
        fail_msg("%ld bytes went to other offsets", (long)to_side->length);
    free(wanted);
}

static struct side to, from, other;

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* Every pair of lengths of up to nine units of 1 to 16 bytes. */
static void blocks_of_every_length_copy_from_blocks_of_every_other(void **state)
{
    (void)state;
    for (uint64_t unit = 1; unit <= 16; unit *= 2)
        for (uint64_t a = 1; a <= 9; a++)
            for (uint64_t b = 1; b <= 9; b++) {
                const uint64_t periods = 1 + below(12), divisor = greatest_divisor(a, b);
                side_vector(&to, periods * b / divisor, a * unit,
                            (int64_t)(a * unit + 1 + below(40)));
                side_vector(&from, periods * a / divisor, b * unit,
                            (int64_t)(b * unit + 1 + below(40)));
                for (int time = 0; time < 3; time++)
                    copy_and_compare(&to, &from);
                side_close(&to);
                side_close(&from);
            }
}

/* Random lengths that add up to total bytes; returns their number. */
static unsigned lengths_of(uint64_t *lengths, uint64_t unit, uint64_t most, uint64_t total)
{
    unsigned blocks = 0;
    for (; total > 0; blocks++) {
        const uint64_t units = 1 + below(most);
        lengths[blocks] = units * unit < total ? units * unit : total;
        total -= lengths[blocks];
    }
    return blocks;
}

/* Every second word of a vector, gathered into blocks and scattered from them: loads include the
 * words between. */
static void blocks_copy_from_every_second_word(void **state)
{
    (void)state;
    for (uint64_t word = 4; word <= 8; word += 4)
        for (uint64_t words = 2; words <= 12; words++)
            for (uint64_t items = 1; items <= 9; items++) {
                side_vector(&to, items, words * word,
                            (int64_t)(words * word + below(3) * word + below(2)));
                side_vector(&from, items * words, word,
                            (int64_t)(2 * word + (below(8) == 0 ? below(9) : 0)));
                for (int time = 0; time < 3; time++) {
                    copy_and_compare(&to, &from);
                    copy_and_compare(&from, &to);
                }
                side_close(&to);
                side_close(&from);
            }
    static uint64_t lengths[12];
    for (unsigned blocks = 2; blocks <= 12; blocks++) { /* pairs that are not adjacent */
        for (unsigned i = 0; i < blocks; i++)
            lengths[i] = 8;
        side_indexed(&to, lengths, blocks, 1 + below(9));
        side_vector(&from, 2 * blocks * to.items.count, 4, 8);
        for (int time = 0; time < 3; time++) {
            copy_and_compare(&to, &from);
            copy_and_compare(&from, &to);
        }
        side_close(&to);
        side_close(&from);
    }
}

/* Blocks of two words anywhere from words at equal distances, one of which may have another offset
 * or distance. */
static void pairs_of_words_copy_from_equal_distances(void **state)
{
    (void)state;
    enum { PAIRS = 100 };
    static uint64_t lengths[2 * PAIRS];
    static int64_t offsets[2 * PAIRS];
    for (int round = 0; round < 400; round++) {
        const uint64_t word = below(2) == 0 ? 8 : 4;
        const int64_t step = (int64_t)(word + 1 + below(30)), jump = 1 + (int64_t)below(9);
        const uint64_t odd = below(4 * PAIRS), count = 1 + below(3);
        for (unsigned i = 0; i < 2 * PAIRS; i++) {
            lengths[i] = word;
            offsets[i] = (int64_t)i * step + (i >= odd ? jump : 0);
        }
        side_at(&from, offsets, lengths, 2 * PAIRS, count, 2 * PAIRS * step + 16);
        for (unsigned i = 0; i < PAIRS; i++)
            lengths[i] = 2 * word;
        side_indexed(&to, lengths, PAIRS, count);
        for (int time = 0; time < 3; time++) {
            copy_and_compare(&to, &from);
            copy_and_compare(&from, &to);
        }
        side_close(&to);
        side_close(&from);
    }
}

/* Of few blocks, which become rows, and of many, which become lists. */
static void irregular_blocks_copy_from_others(void **state)
{
    (void)state;
    static uint64_t lengths[BYTES_MOST];
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t unit = (uint64_t)1 << below(4),
                       total = unit * (2 + below(below(2) ? 12 : 300)), count = 1 + below(5);
        side_indexed(&to, lengths, lengths_of(lengths, unit, 1 + below(12), total), count);
        side_indexed(&from, lengths, lengths_of(lengths, unit, 1 + below(12), total), count);
        for (int time = 0; time < 3; time++)
            copy_and_compare(&to, &from);
        side_close(&to);
        side_close(&from);
    }
}

/* Partners are freed and created at reused addresses; more of them than a layout caches plans
 * for. */
static void a_plan_is_for_one_partner_only(void **state)
{
    (void)state;
    static uint64_t lengths[BYTES_MOST];
    const uint64_t sizes[] = {8, 16, 24, 40, 56};
    for (int round = 0; round < 50; round++) {
        side_vector(&to, 210, 16, 24);
        for (int partner = 0; partner < 2 * ORIEL_PLANS_CACHED; partner++) {
            if (below(3) == 0) {
                side_indexed(&from, lengths, lengths_of(lengths, 8, 1 + below(5), 3360), 1);
            } else {
                const uint64_t len_bytes = sizes[below(5)];
                side_vector(&from, 3360 / len_bytes, len_bytes,
                            (int64_t)(len_bytes + 8 * below(4)));
            }
            for (int time = 0; time < 3; time++) {
                copy_and_compare(&to, &from);
                copy_and_compare(&from, &to);
            }
            side_close(&from);
        }
        side_close(&to);
    }
}

/* More or fewer items with a cached plan, and other distances between them. */
static void a_plan_serves_other_counts(void **state)
{
    (void)state;
    const int64_t to_offsets[] = {0, 24, 40}, from_offsets[] = {0, 16};
    const uint64_t to_lengths[] = {16, 8, 16}, from_lengths[] = {12, 28};
    for (int round = 0; round < 200; round++) {
        struct oriel_branch *here = malloc(3 * sizeof *here), *there = malloc(2 * sizeof *there);
        assert_true(here != NULL && there != NULL);
        for (int i = 0; i < 3; i++)
            here[i] = (struct oriel_branch){to_offsets[i],
                                            oriel_node_run(ORIEL_KIND_CHAR, to_lengths[i])};
        for (int i = 0; i < 2; i++)
            there[i] = (struct oriel_branch){from_offsets[i],
                                             oriel_node_run(ORIEL_KIND_CHAR, from_lengths[i])};
        to.items.layout = oriel_node_list(3, here);
        from.items.layout = oriel_node_list(2, there);
        for (int time = 0; time < 20; time++) {
            to.items.count = from.items.count = 1 + below(100);
            to.items.extent_bytes = 56 + 8 * (int64_t)below(3);
            from.items.extent_bytes = 44 + 4 * (int64_t)below(3);
            side_map(&to, to_offsets, to_lengths, 3);
            side_map(&from, from_offsets, from_lengths, 2);
            copy_and_compare(&to, &from);
        }
        side_close(&to);
        side_close(&from);
    }
}

/* A constructor that changes a node in place changes its identity. */
static void a_node_that_grows_has_no_plans_of_its_old_size(void **state)
{
    (void)state;
    side_vector(&to, 12, 16, 24);
    side_vector(&from, 8, 24, 32);
    side_vector(&other, 16, 24, 32);
    for (int time = 0; time < 3; time++)
        copy_and_compare(&to, &from);
    struct oriel_node *node = (struct oriel_node *)(uintptr_t)to.items.layout;
    const uint64_t number = node->number;
    assert_non_null(atomic_load(&node->memos)); /* there is a cached plan to drop */
    struct oriel_node *longer = oriel_node_loop(2, 12 * 24, node);
    assert_true(longer == node && longer->number != number && atomic_load(&longer->memos) == NULL);
    const uint64_t len_bytes = 16;
    const int64_t zero = 0;
    to.items = (struct oriel_items){longer, 24, 24};
    side_map(&to, &zero, &len_bytes, 1);
    to.items = (struct oriel_items){longer, 1, 0};
    copy_and_compare(&to, &other);
    side_close(&to);
    side_close(&from);
    side_close(&other);
}

/* ---- threads ---- */

static void *copy_over_and_over(void *argument)
{
    char *sink = argument, *source = malloc((size_t)from.high);
    if (source == NULL)
        return NULL;
    bool right = true;
    for (int64_t i = 0; i < from.high; i++)
        source[i] = (char)(i * 7 + 1);
    for (int time = 0; time < TIMES && right; time++) {
        memset(sink, 0, (size_t)to.high);
        right = oriel_copy_items(sink, &to.items, source, &from.items);
        for (int64_t i = 0; i < to.length; i++)
            right = right && sink[to.at[i]] == source[from.at[i]];
    }
    free(source);
    return right ? sink : NULL;
}

static void threads_share_the_plan_of_one_of_them(void **state)
{
    (void)state;
    static uint64_t lengths[BYTES_MOST];
    for (int round = 0; round < 8; round++) {
        pthread_t threads[THREADS];
        void *copies[THREADS], *result;
        side_indexed(&to, lengths, lengths_of(lengths, 8, 3, 2400), 1);
        if (round % 2 == 0)
            side_indexed(&from, lengths, lengths_of(lengths, 8, 4, 2400), 1);
        else
            side_vector(&from, 100, 24, 40);
        for (int i = 0; i < THREADS; i++) {
            copies[i] = malloc((size_t)to.high);
            assert_non_null(copies[i]);
            assert_int_equal(pthread_create(&threads[i], NULL, copy_over_and_over, copies[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], &result), 0);
            assert_ptr_equal(result, copies[i]);
            free(copies[i]);
        }
        side_close(&to);
        side_close(&from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_every_length_copy_from_blocks_of_every_other),
        cmocka_unit_test(blocks_copy_from_every_second_word),
        cmocka_unit_test(pairs_of_words_copy_from_equal_distances),
        cmocka_unit_test(irregular_blocks_copy_from_others),
        cmocka_unit_test(a_plan_is_for_one_partner_only),
        cmocka_unit_test(a_plan_serves_other_counts),
        cmocka_unit_test(a_node_that_grows_has_no_plans_of_its_old_size),
        cmocka_unit_test(threads_share_the_plan_of_one_of_them),
    };
    sinks = guarded_map(ROOM);
    sources = guarded_map(ROOM);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
