/* The loops over runs.  Elements of a machine word are the usual case: they are collected into full registers where they come to
 * lie side by side, and loaded so where every second one is wanted.  ops/copy.c calls. */
#include "transport/shared/runs.h"

#include <stdbool.h>

typedef uint32_t v4x4 __attribute__((vector_size(16)));

struct runs {
    char *restrict to;
    const char *restrict from;
    int64_t to_stride;
    int64_t from_stride;
    uint64_t len_bytes;
    uint64_t count;
};

static inline __attribute__((always_inline)) void advance(struct runs *runs, uint64_t count)
{
    runs->to += (int64_t)count * runs->to_stride;
    runs->from += (int64_t)count * runs->from_stride;
    runs->count -= count;
}

static inline __attribute__((always_inline)) void copy_four(enum oriel_width width, const struct runs *runs, uint64_t first)
{
    char *to = runs->to + (int64_t)first * runs->to_stride;
    const char *from = runs->from + (int64_t)first * runs->from_stride;
    oriel_move_run(width, to, from, runs->len_bytes);
    oriel_move_run(width, to + runs->to_stride, from + runs->from_stride, runs->len_bytes);
    oriel_move_run(width, to + 2 * runs->to_stride, from + 2 * runs->from_stride, runs->len_bytes);
    oriel_move_run(width, to + 3 * runs->to_stride, from + 3 * runs->from_stride, runs->len_bytes);
}

/* Short ones many at a time, so that it is the stores that limit it. */
static inline __attribute__((always_inline)) void copy_all(enum oriel_width width, struct runs runs)
{
    const bool is_word = width == ORIEL_WIDTH_1 || width == ORIEL_WIDTH_2 || width == ORIEL_WIDTH_4 || width == ORIEL_WIDTH_8;
    for (; is_word && runs.count >= 8; advance(&runs, 8)) {
        copy_four(width, &runs, 0);
        copy_four(width, &runs, 4);
    }
    for (; !is_word && width <= ORIEL_WIDTH_32 && runs.count >= 4; advance(&runs, 4))
        copy_four(width, &runs, 0);
    for (; runs.count > 0; advance(&runs, 1))
        oriel_move_run(width, runs.to, runs.from, runs.len_bytes);
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

typedef void loop(char *restrict to, int64_t to_stride, const char *restrict from, int64_t from_stride, uint64_t run_bytes,
                  uint64_t count);

/* A loop of its own for each width: inlined into one function they would take registers from each other. */
#define LOOP(name, width)                                                                                                 \
    static void name(char *restrict to, int64_t to_stride, const char *restrict from, int64_t from_stride, uint64_t run_bytes, \
                     uint64_t count)                                                                                      \
    {                                                                                                                     \
        copy_all(width, (struct runs){to, from, to_stride, from_stride, run_bytes, count});                               \
    }

#define WIDTH(name, least, most, head_bytes, tail_bytes) LOOP(copy_##name, ORIEL_WIDTH_##name)
#include "transport/shared/widths.def"
#undef WIDTH
LOOP(copy_65_to_256, ORIEL_WIDTH_65_TO_256)
LOOP(copy_more, ORIEL_WIDTH_MORE)

static inline struct runs gather_8(struct runs runs)
{
    for (; runs.count >= 4; advance(&runs, 4)) {
        const char *from = runs.from;
        oriel_store_16(runs.to, (oriel_v16){load_8(from), load_8(from + runs.from_stride)});
        oriel_store_16(runs.to + 16, (oriel_v16){load_8(from + 2 * runs.from_stride), load_8(from + 3 * runs.from_stride)});
    }
    return runs;
}

static inline struct runs gather_4(struct runs runs)
{
    for (; runs.count >= 4; advance(&runs, 4)) {
        const char *from = runs.from;
        v4x4 words = {load_4(from), load_4(from + runs.from_stride), load_4(from + 2 * runs.from_stride),
                      load_4(from + 3 * runs.from_stride)};
        store_4x4(runs.to, words);
    }
    return runs;
}

/* Every second word: what lies between two that are wanted is loaded with them, and dropped.  Nothing behind the last is. */
static inline struct runs gather_every_second_4(struct runs runs)
{
    for (; runs.count >= 9; advance(&runs, 8)) {
        const char *from = runs.from;
        store_4x4(runs.to, __builtin_shufflevector(load_4x4(from), load_4x4(from + 16), 0, 2, 4, 6));
        store_4x4(runs.to + 16, __builtin_shufflevector(load_4x4(from + 32), load_4x4(from + 48), 0, 2, 4, 6));
    }
    return runs;
}

static inline struct runs gather_every_second_8(struct runs runs)
{
    for (; runs.count >= 5; advance(&runs, 4)) {
        const char *from = runs.from;
        oriel_store_16(runs.to, __builtin_shufflevector(oriel_load_16(from), oriel_load_16(from + 16), 0, 2));
        oriel_store_16(runs.to + 16, __builtin_shufflevector(oriel_load_16(from + 32), oriel_load_16(from + 48), 0, 2));
    }
    return runs;
}

/* Runs of so many vectors and a word more, two at a time: the word of the first run and the first of the second make a vector, and
 * no store crosses a cache line where the destination is aligned. */
static inline __attribute__((always_inline)) struct runs gather_uneven(unsigned vectors, struct runs runs)
{
    const unsigned half = 16 * vectors;
    for (; runs.count >= 2; advance(&runs, 2)) {
        const char *first = runs.from;
        const char *second = runs.from + runs.from_stride;
        const oriel_v16 middle = {load_8(first + half), load_8(second)};
        oriel_move_parts(half, 0, runs.to, first, half);
        oriel_store_16(runs.to + half, middle);
        oriel_move_parts(half, 0, runs.to + half + 16, second + 8, half);
    }
    return runs;
}

/* Where the destination is dense: as many runs as there are special loops for. */
static struct runs gather(struct runs runs)
{
    switch (runs.len_bytes) {
    case 4:
        return runs.from_stride == 8 ? gather_every_second_4(runs) : gather_4(runs);
    case 8:
        return runs.from_stride == 16 ? gather_every_second_8(runs) : gather_8(runs);
    case 24:
        return gather_uneven(1, runs);
    case 40:
        return gather_uneven(2, runs);
    case 56:
        return gather_uneven(3, runs);
    default:
        return runs;
    }
}

void oriel_copy_runs(char *to, int64_t to_stride, const char *from, int64_t from_stride, uint64_t run_bytes, uint64_t count)
{
    static loop *const loops[] = {
#define WIDTH(name, least, most, head_bytes, tail_bytes) [ORIEL_WIDTH_##name] = copy_##name,
#include "transport/shared/widths.def"
#undef WIDTH
        [ORIEL_WIDTH_65_TO_256] = copy_65_to_256,
        [ORIEL_WIDTH_MORE] = copy_more,
    };
    struct runs runs = {to, from, to_stride, from_stride, run_bytes, count};
    if ((uint64_t)to_stride == run_bytes)
        runs = gather(runs);
    loops[oriel_width_of(run_bytes)](runs.to, to_stride, runs.from, from_stride, run_bytes, runs.count);
}
