/* The loops over runs. Elements of one word are the usual case. They are collected in full
 * registers if the destination is contiguous, and loaded in full registers if every second one is
 * wanted. */
#include "transport/shared/copy_strided.h"

#include <stdbool.h>
#include <stddef.h>

typedef uint32_t v4x4 __attribute__((vector_size(16)));

/* Offsets of the second to fourth of four runs on one side. Compilers would step from each to the
 * next and wait for as many additions. The empty asm statement hides the values, so they stay in
 * registers. */
struct run_offsets {
    int64_t second, third, fourth;
};

static inline __attribute__((always_inline)) struct run_offsets
offsets_in_registers(struct run_offsets offsets)
{
    __asm__("" : "+r"(offsets.second), "+r"(offsets.third), "+r"(offsets.fourth));
    return offsets;
}

/* Copies one run at each of the four offsets. */
static inline __attribute__((always_inline)) void
copy_four_runs(enum oriel_width width, char *restrict to, struct run_offsets to_offsets,
               const char *restrict from, struct run_offsets from_offsets, uint64_t len_bytes)
{
    oriel_move_run(width, to, from, len_bytes);
    oriel_move_run(width, to + to_offsets.second, from + from_offsets.second, len_bytes);
    oriel_move_run(width, to + to_offsets.third, from + from_offsets.third, len_bytes);
    oriel_move_run(width, to + to_offsets.fourth, from + from_offsets.fourth, len_bytes);
}

static inline __attribute__((always_inline)) void
copy_single_runs(enum oriel_width width, char *restrict to, int64_t to_stride,
                 const char *restrict from, int64_t from_stride, uint64_t len_bytes, uint64_t count)
{
    for (; count > 0; count--, to += to_stride, from += from_stride)
        oriel_move_run(width, to, from, len_bytes);
}

/* Runs with equal strides. Words and short runs are copied four at a time, so the stores are the
 * bottleneck. Runs that need two stores each leave no registers for the offsets. A few runs need no
 * stack frame. */
static inline __attribute__((always_inline)) void
copy_strided_runs(enum oriel_width width, char *restrict to, int64_t to_stride,
                  const char *restrict from, int64_t from_stride, uint64_t len_bytes,
                  uint64_t count)
{
    const bool is_word = width == ORIEL_WIDTH_1 || width == ORIEL_WIDTH_2 ||
                         width == ORIEL_WIDTH_4 || width == ORIEL_WIDTH_8 ||
                         width == ORIEL_WIDTH_16;
    if (width > ORIEL_WIDTH_32 || count < 4) {
        copy_single_runs(width, to, to_stride, from, from_stride, len_bytes, count);
        return;
    }
    struct run_offsets to_offsets = {to_stride, 2 * to_stride, 3 * to_stride};
    struct run_offsets from_offsets = {from_stride, 2 * from_stride, 3 * from_stride};
    if (is_word) {
        to_offsets = offsets_in_registers(to_offsets);
        from_offsets = offsets_in_registers(from_offsets);
    }
#pragma GCC unroll 1 /* clang runs out of registers otherwise */
    for (uint64_t fours = count / 4; fours > 0;
         fours--, to += 4 * to_stride, from += 4 * from_stride)
        copy_four_runs(width, to, to_offsets, from, from_offsets, len_bytes);
    copy_single_runs(width, to, to_stride, from, from_stride, len_bytes, count % 4);
}

static inline uint64_t load_8(const char *from)
{
    uint64_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

static inline uint32_t load_4(const char *from)
{
    uint32_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

static inline v4x4 load_4x4(const char *from)
{
    v4x4 vector;
    __builtin_memcpy(&vector, from, sizeof vector);
    return vector;
}

static inline void store_4x4(char *to, v4x4 vector)
{
    __builtin_memcpy(to, &vector, sizeof vector);
}

/* A separate function for each width: inlined into one function the loops would compete for
 * registers. */
#define LOOP(name, width)                                                                          \
    static void name(char *restrict to, int64_t to_stride, const char *restrict from,              \
                     int64_t from_stride, uint64_t len_bytes, uint64_t count)                      \
    {                                                                                              \
        copy_strided_runs(width, to, to_stride, from, from_stride, len_bytes, count);              \
    }

#define WIDTH(name, least, most, head_bytes, tail_bytes) LOOP(copy_##name, ORIEL_WIDTH_##name)
#include "transport/shared/widths.def"
#undef WIDTH
LOOP(copy_129_to_256, ORIEL_WIDTH_129_TO_256)
LOOP(copy_more, ORIEL_WIDTH_MORE)

/* ---- contiguous destination ---- */

/* A loop that collects some runs at a time in full registers, while there are at least `least`; the
 * rest are copied one by one. */
#define GATHER(name, width, least, step)                                                           \
    static void name(char *restrict to, int64_t to_stride, const char *restrict from,              \
                     int64_t stride, uint64_t len_bytes, uint64_t count)                           \
    {                                                                                              \
        for (; count >= (least); count -= (step), to += (step) * (width), from += (step)*stride)   \
            name##_once(to, from, stride);                                                         \
        for (; count > 0; count--, to += to_stride, from += stride)                                \
            oriel_move_run(ORIEL_WIDTH_##width, to, from, len_bytes);                              \
    }

static inline void gather_8_once(char *restrict to, const char *restrict from, int64_t stride)
{
    oriel_store_16(to, (oriel_v16){load_8(from), load_8(from + stride)});
    oriel_store_16(to + 16, (oriel_v16){load_8(from + 2 * stride), load_8(from + 3 * stride)});
}

static inline void gather_4_once(char *restrict to, const char *restrict from, int64_t stride)
{
    store_4x4(to, (v4x4){load_4(from), load_4(from + stride), load_4(from + 2 * stride),
                         load_4(from + 3 * stride)});
}

/* Every second word: the words in between are loaded too, and discarded. Nothing after the last
 * wanted word is loaded. */
static inline void gather_every_second_4_once(char *restrict to, const char *restrict from,
                                              int64_t stride)
{
    (void)stride;
    store_4x4(to, __builtin_shufflevector(load_4x4(from), load_4x4(from + 16), 0, 2, 4, 6));
    store_4x4(to + 16,
              __builtin_shufflevector(load_4x4(from + 32), load_4x4(from + 48), 0, 2, 4, 6));
}

static inline void gather_every_second_8_once(char *restrict to, const char *restrict from,
                                              int64_t stride)
{
    (void)stride;
    oriel_store_16(to,
                   __builtin_shufflevector(oriel_load_16(from), oriel_load_16(from + 16), 0, 2));
    oriel_store_16(
        to + 16, __builtin_shufflevector(oriel_load_16(from + 32), oriel_load_16(from + 48), 0, 2));
}

/* Runs of a number of vectors and one word, two at a time. The last word of the first run and the
 * first of the second form a vector. If the destination is aligned, no store crosses a cache line.
 */
static inline __attribute__((always_inline)) void
gather_uneven(unsigned vectors, char *restrict to, const char *restrict from, int64_t stride)
{
    const unsigned half = 16 * vectors;
    const char *second = from + stride;
    const oriel_v16 middle = {load_8(from + half), load_8(second)};
    oriel_move_parts(half, 0, to, from, half);
    oriel_store_16(to + half, middle);
    oriel_move_parts(half, 0, to + half + 16, second + 8, half);
}

static inline void gather_24_once(char *restrict to, const char *restrict from, int64_t stride)
{
    gather_uneven(1, to, from, stride);
}

static inline void gather_40_once(char *restrict to, const char *restrict from, int64_t stride)
{
    gather_uneven(2, to, from, stride);
}

static inline void gather_56_once(char *restrict to, const char *restrict from, int64_t stride)
{
    gather_uneven(3, to, from, stride);
}

GATHER(gather_4, 4, 4, 4)
GATHER(gather_8, 8, 4, 4)
GATHER(gather_every_second_4, 4, 9, 8)
GATHER(gather_every_second_8, 8, 5, 4)
GATHER(gather_24, 24, 2, 2)
GATHER(gather_40, 40, 2, 2)
GATHER(gather_56, 56, 2, 2)

/* Words with large strides wait for memory: a single load instruction lets the processor recognise
 * the stride and prefetch. */
#define GATHER_WIDE_STRIDE(name, width)                                                            \
    static void name(char *restrict to, int64_t to_stride, const char *restrict from,              \
                     int64_t from_stride, uint64_t len_bytes, uint64_t count)                      \
    {                                                                                              \
        _Pragma("GCC unroll 1") for (; count > 0; count--, to += to_stride, from += from_stride)   \
            oriel_move_run(ORIEL_WIDTH_##width, to, from, len_bytes);                              \
    }
GATHER_WIDE_STRIDE(gather_wide_stride_4, 4)
GATHER_WIDE_STRIDE(gather_wide_stride_8, 8)

enum { WIDE_STRIDE_BYTES = 256 };

/* The loop for runs with a contiguous destination; `other` if there is no special one. */
static oriel_copy_strided_loop *gather_loop_of(uint64_t len_bytes, int64_t from_stride,
                                               oriel_copy_strided_loop *other)
{
    const bool is_wide = from_stride > WIDE_STRIDE_BYTES || from_stride < -WIDE_STRIDE_BYTES;
    switch (len_bytes) {
    case 4:
        return is_wide ? gather_wide_stride_4 : from_stride == 8 ? gather_every_second_4 : gather_4;
    case 8:
        return is_wide             ? gather_wide_stride_8
               : from_stride == 16 ? gather_every_second_8
                                   : gather_8;
    case 24: return gather_24;
    case 40: return gather_40;
    case 56: return gather_56;
    default: return other;
    }
}

oriel_copy_strided_loop *oriel_copy_strided_loop_of(uint64_t run_bytes, int64_t to_stride,
                                                    int64_t from_stride)
{
    static oriel_copy_strided_loop *const loops[] = {
#define WIDTH(name, least, most, head_bytes, tail_bytes) [ORIEL_WIDTH_##name] = copy_##name,
#include "transport/shared/widths.def"
#undef WIDTH
        [ORIEL_WIDTH_129_TO_256] = copy_129_to_256,
        [ORIEL_WIDTH_MORE] = copy_more,
    };
    oriel_copy_strided_loop *loop = loops[oriel_width_of(run_bytes)];
    return (uint64_t)to_stride == run_bytes ? gather_loop_of(run_bytes, from_stride, loop) : loop;
}

void oriel_copy_runs(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                     uint64_t run_bytes, uint64_t count)
{
    oriel_copy_strided_loop_of(run_bytes, to_stride, from_stride)(to, to_stride, from, from_stride,
                                                                  run_bytes, count);
}
