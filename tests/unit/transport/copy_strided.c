/* Copies of strided runs, as derived datatypes need them, and of long ones: every byte of a run is
 * moved, and no other. Buffers end at the last byte, so sanitizers detect loads beyond it. */
#include "transport/shared/copy.h"
#include "transport/shared/copy_strided.h"

#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"

/* The range of count runs of len_bytes, stride_bytes apart. */
static void bounds(uint64_t len_bytes, int64_t stride_bytes, uint64_t count, int64_t *low,
                   int64_t *high)
{
    int64_t last = (int64_t)(count - 1) * stride_bytes;
    *low = last < 0 ? last : 0;
    *high = (last > 0 ? last : 0) + (int64_t)len_bytes;
}

static void copy_and_compare(uint64_t len_bytes, uint64_t count, int64_t to_stride,
                             int64_t from_stride)
{
    int64_t to_low, to_high, from_low, from_high;
    bounds(len_bytes, to_stride, count, &to_low, &to_high);
    bounds(len_bytes, from_stride, count, &from_low, &from_high);
    size_t to_bytes = (size_t)(to_high - to_low), from_bytes = (size_t)(from_high - from_low);
    char *to = malloc(to_bytes), *wanted = malloc(to_bytes), *from = malloc(from_bytes);
    assert_true(to != NULL && wanted != NULL && from != NULL);
    for (size_t i = 0; i < from_bytes; i++)
        from[i] = (char)below(256);
    memset(to, 0x5a, to_bytes);
    memset(wanted, 0x5a, to_bytes);
    for (uint64_t i = 0; i < count; i++)
        memcpy(wanted - to_low + (int64_t)i * to_stride, from - from_low + (int64_t)i * from_stride,
               len_bytes);
    oriel_copy_runs(to - to_low, to_stride, from - from_low, from_stride, len_bytes, count);
    if (memcmp(to, wanted, to_bytes) != 0)
        fail_msg("%lu runs of %lu bytes, %ld and %ld apart", (unsigned long)count,
                 (unsigned long)len_bytes, (long)to_stride, (long)from_stride);
    free(to);
    free(wanted);
    free(from);
}

static void runs_of_every_length_move_at_any_distance(void **state)
{
    (void)state;
    for (int64_t len = 1; len <= 330; len++) {
        const int64_t to_strides[] = {len, len + 1 + (int64_t)below(40), 2 * len, -len,
                                      -(len + 1 + (int64_t)below(40))};
        const int64_t from_strides[] = {
            len, 2 * len, len + 1 + (int64_t)below(40), 0, -2 * len, -len, 300 + len, -300 - len};
        for (unsigned to = 0; to < 5; to++)
            for (unsigned from = 0; from < 8; from++)
                for (uint64_t count = 1; count<20; count += len> 64 ? 5 : 1)
                    copy_and_compare((uint64_t)len, count, to_strides[to], from_strides[from]);
    }
}

static void single_runs_of_every_length_move(void **state)
{
    (void)state;
    for (uint64_t len_bytes = 1; len_bytes <= 600; len_bytes++) {
        char *from = malloc(len_bytes), *to = malloc(len_bytes);
        assert_true(from != NULL && to != NULL);
        for (uint64_t i = 0; i < len_bytes; i++)
            from[i] = (char)below(256);
        memset(to, 0, len_bytes);
        oriel_move_any(to, from, len_bytes);
        assert_memory_equal(to, from, len_bytes);
        memset(to, 0, len_bytes);
        oriel_move_run(oriel_width_of(len_bytes), to, from, len_bytes);
        assert_memory_equal(to, from, len_bytes);
        free(from);
        free(to);
    }
}

/* In pieces, with a possibly shorter last one; overlapping ranges move as by memmove. */
static void long_copies_move_whole_and_over_themselves(void **state)
{
    (void)state;
    const uint64_t piece = ORIEL_COPY_PIECE_BYTES, room = 4 * piece;
    const uint64_t lengths[] = {piece - 1, piece,          piece + 1,
                                2 * piece, 2 * piece + 24, 3 * piece - 8};
    const uint64_t offsets[][2] = {{0, 1},     {1, 0},     {8, 4096}, {4096, 8},
                                   {0, piece}, {piece, 0}, {64, 0},   {0, 0}};
    char *memory = malloc(room), *wanted = malloc(room), *apart = malloc(room);
    assert_true(memory != NULL && wanted != NULL && apart != NULL);
    for (unsigned length = 0; length < sizeof lengths / sizeof *lengths; length++) {
        for (unsigned pair = 0; pair < sizeof offsets / sizeof *offsets; pair++) {
            for (uint64_t i = 0; i < room; i++)
                memory[i] = (char)below(256);
            memcpy(wanted, memory, room);
            memmove(wanted + offsets[pair][0], wanted + offsets[pair][1], lengths[length]);
            oriel_copy(memory + offsets[pair][0], memory + offsets[pair][1], lengths[length]);
            assert_memory_equal(memory, wanted, room);
        }
        memset(apart, 0, room);
        memset(wanted, 0, room);
        memcpy(wanted + 3, memory + 1, lengths[length]);
        oriel_copy(apart + 3, memory + 1, lengths[length]);
        assert_memory_equal(apart, wanted, room);
    }
    free(memory);
    free(wanted);
    free(apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_every_length_move_at_any_distance),
        cmocka_unit_test(single_runs_of_every_length_move),
        cmocka_unit_test(long_copies_move_whole_and_over_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
