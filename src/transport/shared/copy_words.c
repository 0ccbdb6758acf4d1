/* The loops over rows and lists of steps. The kinds of a row are constants of its loop, and its
 * offsets stay in registers. So a loop equals hand-written code for both layouts: one load or store
 * wherever words are adjacent. */
#include "transport/shared/copy_words.h"

#include "transport/shared/copy_strided.h"

#include <stdbool.h>

/* Two words of 8 bytes, loaded as one vector. Compilers would load two words instead. */
static inline __attribute__((always_inline)) oriel_v16 vector_in_register(oriel_v16 vector)
{
#if defined(__x86_64__)
    __asm__("" : "+x"(vector));
#endif
    return vector;
}

static inline __attribute__((always_inline)) int64_t in_register(int64_t offset)
{
    __asm__("" : "+r"(offset));
    return offset;
}

static inline __attribute__((always_inline)) void scatter(unsigned word_bytes, char *first,
                                                          char *second, const char *from)
{
    if (word_bytes == 8) {
        const oriel_v16 vector = vector_in_register(oriel_load_16(from));
        const uint64_t words[2] = {vector[0], vector[1]};
        __builtin_memcpy(first, &words[0], 8);
        __builtin_memcpy(second, &words[1], 8);
    } else {
        const uint64_t both = oriel_load(from, 8).narrow;
        uint32_t words[2];
        __builtin_memcpy(words, &both, sizeof words);
        __builtin_memcpy(first, &words[0], 4);
        __builtin_memcpy(second, &words[1], 4);
    }
}

static inline __attribute__((always_inline)) void gather(unsigned word_bytes, char *to,
                                                         const char *first, const char *second)
{
    if (word_bytes == 8) {
        oriel_store_16(to, (oriel_v16){oriel_load(first, 8).narrow, oriel_load(second, 8).narrow});
    } else {
        uint32_t words[2];
        __builtin_memcpy(&words[0], first, 4);
        __builtin_memcpy(&words[1], second, 4);
        __builtin_memcpy(to, words, 8);
    }
}

/* Executes one step. Arguments that its kind does not use are ignored. */
static inline __attribute__((always_inline)) void step_execute(enum oriel_step kind,
                                                               unsigned word_bytes, char *to,
                                                               char *to_second, const char *from,
                                                               const char *from_second)
{
    if (kind == ORIEL_STEP_BOTH)
        oriel_store(to, 2 * word_bytes, oriel_load(from, 2 * word_bytes));
    else if (kind == ORIEL_STEP_GATHER)
        gather(word_bytes, to, from, from_second);
    else if (kind == ORIEL_STEP_SCATTER)
        scatter(word_bytes, to, to_second, from);
    else if (kind == ORIEL_STEP_SINGLE)
        oriel_store(to, word_bytes, oriel_load(from, word_bytes));
}

/* ---- rows ---- */

static inline __attribute__((always_inline)) void
row_walk(enum oriel_step a, enum oriel_step b, enum oriel_step c, unsigned word_bytes,
         char *restrict to, int64_t to_step, const char *restrict from, int64_t from_step,
         const struct oriel_step_at *at, uint64_t count)
{
    const int64_t to_a = in_register(at[0].to[1]), from_a = in_register(at[0].from[1]);
    const int64_t to_b = in_register(at[1].to[0]), from_b = in_register(at[1].from[0]);
    const int64_t to_b2 = in_register(at[1].to[1]), from_b2 = in_register(at[1].from[1]);
    const int64_t to_c = in_register(at[2].to[0]), from_c = in_register(at[2].from[0]);
    const int64_t to_c2 = in_register(at[2].to[1]), from_c2 = in_register(at[2].from[1]);
#pragma GCC unroll 1
    for (; count > 0; count--, to += to_step, from += from_step) {
        step_execute(a, word_bytes, to, to + to_a, from, from + from_a);
        step_execute(b, word_bytes, to + to_b, to + to_b2, from + from_b, from + from_b2);
        step_execute(c, word_bytes, to + to_c, to + to_c2, from + from_c, from + from_c2);
    }
}

/* A function for each row of one to three kinds and each word length, and the tables to find
 * them. */
#define KINDS_OF_THIRD(m, n, a, b)                                                                 \
    m(n, a, b, BOTH) m(n, a, b, GATHER) m(n, a, b, SCATTER) m(n, a, b, SINGLE) m(n, a, b, NONE)
#define KINDS_OF_SECOND(m, n, a)                                                                   \
    KINDS_OF_THIRD(m, n, a, BOTH)                                                                  \
    KINDS_OF_THIRD(m, n, a, GATHER)                                                                \
    KINDS_OF_THIRD(m, n, a, SCATTER)                                                               \
    KINDS_OF_THIRD(m, n, a, SINGLE) m(n, a, NONE, NONE)
#define ROWS(m, n)                                                                                 \
    KINDS_OF_SECOND(m, n, BOTH)                                                                    \
    KINDS_OF_SECOND(m, n, GATHER)                                                                  \
    KINDS_OF_SECOND(m, n, SCATTER) KINDS_OF_SECOND(m, n, SINGLE)

#define FUNCTION(n, a, b, c)                                                                       \
    static void row_##n##_##a##_##b##_##c(char *restrict to, int64_t to_step,                      \
                                          const char *restrict from, int64_t from_step,            \
                                          const struct oriel_step_at *at, uint64_t count)          \
    {                                                                                              \
        row_walk(ORIEL_STEP_##a, ORIEL_STEP_##b, ORIEL_STEP_##c, n, to, to_step, from, from_step,  \
                 at, count);                                                                       \
    }
ROWS(FUNCTION, 8)
ROWS(FUNCTION, 4)

oriel_row_loop *oriel_row_loop_of(unsigned word_bytes, const enum oriel_step kinds[ORIEL_ROW_STEPS])
{
#define PLACE(n, a, b, c)                                                                          \
    [ORIEL_STEP_##a][ORIEL_STEP_##b][ORIEL_STEP_##c] = row_##n##_##a##_##b##_##c,
    static oriel_row_loop *const of_8[ORIEL_STEP_KINDS][ORIEL_STEP_KINDS + 1]
                                     [ORIEL_STEP_KINDS + 1] = {ROWS(PLACE, 8)};
    static oriel_row_loop *const of_4[ORIEL_STEP_KINDS][ORIEL_STEP_KINDS + 1]
                                     [ORIEL_STEP_KINDS + 1] = {ROWS(PLACE, 4)};
    return word_bytes == 8 ? of_8[kinds[0]][kinds[1]][kinds[2]]
                           : of_4[kinds[0]][kinds[1]][kinds[2]];
}

/* The words between the wanted ones are loaded too, and discarded. Nothing after the last wanted
 * word is loaded. */
static inline __attribute__((always_inline)) void every_second_words(char *to, const char *from)
{
    typedef uint32_t v4x4 __attribute__((vector_size(16)));
    v4x4 first, second;
    __builtin_memcpy(&first, from, sizeof first);
    __builtin_memcpy(&second, from + 12, sizeof second);
    first = __builtin_shufflevector(first, second, 0, 2, 5, 7);
    __builtin_memcpy(to, &first, sizeof first);
}

void oriel_row_every_second(char *restrict to, int64_t to_step, const char *restrict from,
                            int64_t from_step, const struct oriel_step_at at[ORIEL_ROW_STEPS],
                            uint64_t count)
{
    const int64_t to_next = in_register(to_step), from_next = in_register(from_step);
    (void)at;
#pragma GCC unroll 1
    for (; count > 1; count -= 2, to += 2 * to_step, from += 2 * from_step) {
        every_second_words(to, from);
        every_second_words(to + to_next, from + from_next);
    }
    if (count > 0)
        every_second_words(to, from);
}

/* ---- rows of words of several lengths ---- */

static inline __attribute__((always_inline)) void move_word(unsigned bytes, char *restrict to,
                                                            const char *restrict from)
{
    if (bytes == 3) {
        oriel_store(to, 2, oriel_load(from, 2));
        oriel_store(to + 2, 1, oriel_load(from + 2, 1));
    } else if (bytes > 0) {
        oriel_store(to, bytes, oriel_load(from, bytes));
    }
}

static inline __attribute__((always_inline)) void
walk_words(unsigned a, unsigned b, unsigned c, char *restrict to, int64_t to_step,
           const char *restrict from, int64_t from_step, const struct oriel_step_at *at,
           uint64_t count)
{
    const int64_t to_b = in_register(at[1].to[0]), from_b = in_register(at[1].from[0]);
    const int64_t to_c = in_register(at[2].to[0]), from_c = in_register(at[2].from[0]);
#pragma GCC unroll 1
    for (; count > 0; count--, to += to_step, from += from_step) {
        move_word(a, to, from);
        move_word(b, to + to_b, from + from_b);
        move_word(c, to + to_c, from + from_c);
    }
}

#define WORDS_OF_THIRD(m, a, b) m(a, b, 8) m(a, b, 4) m(a, b, 3) m(a, b, 2) m(a, b, 1) m(a, b, 0)
#define WORDS_OF_SECOND(m, a)                                                                      \
    WORDS_OF_THIRD(m, a, 8)                                                                        \
    WORDS_OF_THIRD(m, a, 4)                                                                        \
    WORDS_OF_THIRD(m, a, 3)                                                                        \
    WORDS_OF_THIRD(m, a, 2) WORDS_OF_THIRD(m, a, 1) m(a, 0, 0)
#define WORDS(m)                                                                                   \
    WORDS_OF_SECOND(m, 8)                                                                          \
    WORDS_OF_SECOND(m, 4)                                                                          \
    WORDS_OF_SECOND(m, 3) WORDS_OF_SECOND(m, 2) WORDS_OF_SECOND(m, 1)

#define WORDS_FUNCTION(a, b, c)                                                                    \
    static void words_##a##_##b##_##c(char *restrict to, int64_t to_step,                          \
                                      const char *restrict from, int64_t from_step,                \
                                      const struct oriel_step_at *at, uint64_t count)              \
    {                                                                                              \
        walk_words(a, b, c, to, to_step, from, from_step, at, count);                              \
    }
WORDS(WORDS_FUNCTION)

oriel_row_loop *oriel_words_loop_of(const unsigned bytes[ORIEL_ROW_STEPS])
{
#define WORDS_PLACE(a, b, c) [a][b][c] = words_##a##_##b##_##c,
    static oriel_row_loop *const loops[9][9][9] = {WORDS(WORDS_PLACE)};
    return loops[bytes[0]][bytes[1]][bytes[2]];
}

/* ---- lists ---- */

static inline __attribute__((always_inline)) void walk_list(enum oriel_step kind,
                                                            unsigned word_bytes, char *restrict to,
                                                            const char *restrict from,
                                                            const int32_t *offsets, uint64_t count)
{
    const unsigned width = oriel_step_offsets(kind);
    const unsigned source = kind == ORIEL_STEP_SCATTER ? 2 : 1;
#pragma GCC unroll 2
    for (; count > 0; count--, offsets += width)
        step_execute(kind, word_bytes, to + offsets[0], to + offsets[1], from + offsets[source],
                     from + offsets[width - 1]);
}

#define LIST(n, kind)                                                                              \
    static void list_##n##_##kind(char *restrict to, const char *restrict from,                    \
                                  const int32_t *offsets, uint64_t count)                          \
    {                                                                                              \
        walk_list(ORIEL_STEP_##kind, n, to, from, offsets, count);                                 \
    }
#define LISTS(n) LIST(n, BOTH) LIST(n, GATHER) LIST(n, SCATTER) LIST(n, SINGLE)
LISTS(8)
LISTS(4)

oriel_list_loop *oriel_list_loop_of(unsigned word_bytes, enum oriel_step kind)
{
#define LISTED(n)                                                                                  \
    {                                                                                              \
        [ORIEL_STEP_BOTH] = list_##n##_BOTH, [ORIEL_STEP_GATHER] = list_##n##_GATHER,              \
        [ORIEL_STEP_SCATTER] = list_##n##_SCATTER, [ORIEL_STEP_SINGLE] = list_##n##_SINGLE,        \
    }
    static oriel_list_loop *const of_8[ORIEL_STEP_KINDS] = LISTED(8);
    static oriel_list_loop *const of_4[ORIEL_STEP_KINDS] = LISTED(4);
    return word_bytes == 8 ? of_8[kind] : of_4[kind];
}

static inline __attribute__((always_inline)) void
walk_even(enum oriel_step kind, unsigned word_bytes, char *restrict to, const char *restrict from,
          int64_t stride_bytes, int64_t second_bytes, const int32_t *offsets, uint64_t count)
{
    const bool gathers = kind == ORIEL_STEP_GATHER;
#pragma GCC unroll 2
    for (uint64_t i = 0; i < count; i++) {
        char *to_at = gathers ? to + offsets[i] : to;
        const char *from_at = gathers ? from : from + offsets[i];
        step_execute(kind, word_bytes, to_at, to_at + second_bytes, from_at,
                     from_at + second_bytes);
        to += gathers ? 0 : stride_bytes;
        from += gathers ? stride_bytes : 0;
    }
}

#define EVEN(n, kind)                                                                              \
    static void even_##n##_##kind(char *restrict to, const char *restrict from,                    \
                                  int64_t stride_bytes, int64_t second_bytes,                      \
                                  const int32_t *offsets, uint64_t count)                          \
    {                                                                                              \
        walk_even(ORIEL_STEP_##kind, n, to, from, stride_bytes, second_bytes, offsets, count);     \
    }
EVEN(8, GATHER)
EVEN(8, SCATTER)
EVEN(4, GATHER)
EVEN(4, SCATTER)

oriel_even_loop *oriel_even_loop_of(unsigned word_bytes, enum oriel_step kind)
{
    if (kind == ORIEL_STEP_GATHER)
        return word_bytes == 8 ? even_8_GATHER : even_4_GATHER;
    return word_bytes == 8 ? even_8_SCATTER : even_4_SCATTER;
}
