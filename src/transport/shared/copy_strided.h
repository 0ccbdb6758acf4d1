/* Copies runs of one length with equal strides on both sides: the inner loops of derived datatypes.
 * The length selects the loop once. Each loop then moves with the widest loads and stores that the
 * length allows. */
#ifndef ORIEL_TRANSPORT_SHARED_COPY_STRIDED_H
#define ORIEL_TRANSPORT_SHARED_COPY_STRIDED_H

#include <stdint.h>
#include <string.h>

/* How runs of a length move. Words take one load and one store. A byte is only ever stored with its
 * final value. */
enum oriel_width {
#define WIDTH(name, least, most, head_bytes, tail_bytes) ORIEL_WIDTH_##name,
#include "transport/shared/widths.def"
#undef WIDTH
    ORIEL_WIDTH_129_TO_256,
    ORIEL_WIDTH_MORE, /* memmove */
};

static inline enum oriel_width oriel_width_of(uint64_t len_bytes)
{
    static const unsigned char widths[129] = {
#define WIDTH(name, least, most, head_bytes, tail_bytes) [least... most] = ORIEL_WIDTH_##name,
#include "transport/shared/widths.def"
#undef WIDTH
    };
    if (len_bytes <= 128)
        return (enum oriel_width)widths[len_bytes];
    return len_bytes <= 256 ? ORIEL_WIDTH_129_TO_256 : ORIEL_WIDTH_MORE;
}

/* A vector register of 16 bytes, which every processor with vectors has. Loads and stores need no
 * alignment. */
typedef uint64_t oriel_v16 __attribute__((vector_size(16)));

static inline oriel_v16 oriel_load_16(const char *from)
{
    oriel_v16 vector;
    __builtin_memcpy(&vector, from, sizeof vector);
    return vector;
}

static inline void oriel_store_16(char *to, oriel_v16 vector)
{
    __builtin_memcpy(to, &vector, sizeof vector);
}

/* A word in a register: of 1, 2, 4 and 8 bytes, or of 16. */
struct oriel_copy_word {
    uint64_t narrow;
    oriel_v16 wide;
};

static inline __attribute__((always_inline)) struct oriel_copy_word oriel_load(const char *from,
                                                                               unsigned bytes)
{
    struct oriel_copy_word word = {0, {0, 0}};
    uint32_t four;
    uint16_t two;
    if (bytes == 16) {
        word.wide = oriel_load_16(from);
    } else if (bytes == 8) {
        __builtin_memcpy(&word.narrow, from, 8);
    } else if (bytes == 4) {
        __builtin_memcpy(&four, from, 4);
        word.narrow = four;
    } else if (bytes == 2) {
        __builtin_memcpy(&two, from, 2);
        word.narrow = two;
    } else {
        word.narrow = *(const unsigned char *)from;
    }
    return word;
}

static inline __attribute__((always_inline)) void oriel_store(char *to, unsigned bytes,
                                                              struct oriel_copy_word word)
{
    const uint32_t four = (uint32_t)word.narrow;
    const uint16_t two = (uint16_t)word.narrow;
    if (bytes == 16)
        oriel_store_16(to, word.wide);
    else if (bytes == 8)
        __builtin_memcpy(to, &word.narrow, 8);
    else if (bytes == 4)
        __builtin_memcpy(to, &four, 4);
    else if (bytes == 2)
        __builtin_memcpy(to, &two, 2);
    else
        *to = (char)two;
}

/* All loads precede all stores. Stores are in ascending order, which processors combine. */
static inline __attribute__((always_inline)) void oriel_move_parts(unsigned head_bytes,
                                                                   unsigned tail_bytes, char *to,
                                                                   const char *from,
                                                                   uint64_t len_bytes)
{
    const unsigned part = head_bytes > 16 ? 16 : head_bytes;
    struct oriel_copy_word first = oriel_load(from, part);
    struct oriel_copy_word second = head_bytes > 16 ? oriel_load(from + 16, 16) : first;
    struct oriel_copy_word third = head_bytes > 32 ? oriel_load(from + 32, 16) : first;
    struct oriel_copy_word fourth = head_bytes > 48 ? oriel_load(from + 48, 16) : first;
    struct oriel_copy_word fifth = head_bytes > 64 ? oriel_load(from + 64, 16) : first;
    struct oriel_copy_word sixth = head_bytes > 80 ? oriel_load(from + 80, 16) : first;
    struct oriel_copy_word seventh = head_bytes > 96 ? oriel_load(from + 96, 16) : first;
    struct oriel_copy_word last =
        tail_bytes > 0 ? oriel_load(from + len_bytes - tail_bytes, tail_bytes) : first;
    oriel_store(to, part, first);
    if (head_bytes > 16)
        oriel_store(to + 16, 16, second);
    if (head_bytes > 32)
        oriel_store(to + 32, 16, third);
    if (head_bytes > 48)
        oriel_store(to + 48, 16, fourth);
    if (head_bytes > 64)
        oriel_store(to + 64, 16, fifth);
    if (head_bytes > 80)
        oriel_store(to + 80, 16, sixth);
    if (head_bytes > 96)
        oriel_store(to + 96, 16, seventh);
    if (tail_bytes > 0)
        oriel_store(to + len_bytes - tail_bytes, tail_bytes, last);
}

/* More than 64 bytes. */
static inline void oriel_move_long(char *to, const char *from, uint64_t len_bytes)
{
    for (; len_bytes > 64; to += 64, from += 64, len_bytes -= 64)
        oriel_move_parts(48, 16, to, from, 64);
    if (len_bytes > 48)
        oriel_move_parts(48, 16, to, from, len_bytes);
    else if (len_bytes > 32)
        oriel_move_parts(32, 16, to, from, len_bytes);
    else if (len_bytes > 16)
        oriel_move_parts(16, 16, to, from, len_bytes);
    else
        oriel_store_16(to + len_bytes - 16, oriel_load_16(from + len_bytes - 16));
}

/* Copies one run of a width; with a constant width that is a few instructions. */
static inline __attribute__((always_inline)) void
oriel_move_run(enum oriel_width width, char *to, const char *from, uint64_t len_bytes)
{
    switch (width) {
#define WIDTH(name, least, most, head_bytes, tail_bytes)                                           \
    case ORIEL_WIDTH_##name:                                                                       \
        oriel_move_parts(head_bytes, tail_bytes, to, from,                                         \
                         (least) == (most) ? (least) : len_bytes);                                 \
        return;
#include "transport/shared/widths.def"
#undef WIDTH
    case ORIEL_WIDTH_129_TO_256: oriel_move_long(to, from, len_bytes); return;
    case ORIEL_WIDTH_MORE: memmove(to, from, len_bytes); return;
    }
}

/* Copies one run among others of different lengths: a few branches, which processors predict better
 * than an indirect jump. */
static inline void oriel_move_any(char *to, const char *from, uint64_t len_bytes)
{
    if (len_bytes > 256)
        memmove(to, from, len_bytes);
    else if (len_bytes > 64)
        oriel_move_long(to, from, len_bytes);
    else if (len_bytes > 48)
        oriel_move_parts(48, 16, to, from, len_bytes);
    else if (len_bytes > 32)
        oriel_move_parts(32, 16, to, from, len_bytes);
    else if (len_bytes >= 16)
        oriel_move_parts(16, 16, to, from, len_bytes);
    else if (len_bytes >= 8)
        oriel_move_parts(8, 8, to, from, len_bytes);
    else if (len_bytes >= 4)
        oriel_move_parts(4, 4, to, from, len_bytes);
    else if (len_bytes >= 2)
        oriel_move_parts(2, 2, to, from, len_bytes);
    else if (len_bytes == 1)
        *to = *from; /* NOLINT(clang-analyzer-core.uninitialized.Assign): padding is copied too */
}

/* Copies count runs of len_bytes (at least 1) with a stride on each side. The sides do not
 * overlap. */
typedef void oriel_copy_strided_loop(char *restrict to, int64_t to_stride,
                                     const char *restrict from, int64_t from_stride,
                                     uint64_t len_bytes, uint64_t count);

/* The loop for runs of this length and these strides. */
oriel_copy_strided_loop *oriel_copy_strided_loop_of(uint64_t run_bytes, int64_t to_stride,
                                                    int64_t from_stride);

/* Copies count runs of run_bytes (at least 1) with a stride on each side. The sides do not
 * overlap. */
void oriel_copy_runs(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                     uint64_t run_bytes, uint64_t count);

#endif
