/* Copies between blocks that do not match: word by word, in steps of two words if these are
 * adjacent on one side. A row of up to three steps is one loop over items with equal strides. A
 * list of steps of one kind is one loop over the list. */
#ifndef ORIEL_TRANSPORT_SHARED_COPY_WORDS_H
#define ORIEL_TRANSPORT_SHARED_COPY_WORDS_H

#include <stdint.h>

/* The words of a step have 8 or 4 bytes. */
enum oriel_step {
    ORIEL_STEP_BOTH,    /* two words, adjacent on both sides */
    ORIEL_STEP_GATHER,  /* two words, adjacent only in the destination */
    ORIEL_STEP_SCATTER, /* two words, adjacent only in the source */
    ORIEL_STEP_SINGLE,  /* one word */
    ORIEL_STEP_NONE,    /* after the last step of a row */
};
enum { ORIEL_STEP_KINDS = ORIEL_STEP_NONE, ORIEL_ROW_STEPS = 3 };

/* The offsets of a step's words, relative to the row. A second one is used only where the words are
 * not adjacent. */
struct oriel_step_at {
    int64_t to[2];
    int64_t from[2];
};

/* Copies count items of a row whose first step is at offset 0 on both sides. The sides do not
 * overlap. */
typedef void oriel_row_loop(char *restrict to, int64_t to_step, const char *restrict from,
                            int64_t from_step, const struct oriel_step_at at[ORIEL_ROW_STEPS],
                            uint64_t count);

/* The loop for rows of these kinds, of which the first is not NONE. */
oriel_row_loop *oriel_row_loop_of(unsigned word_bytes,
                                  const enum oriel_step kinds[ORIEL_ROW_STEPS]);

/* The loop for rows of words of 8, 4, 3, 2 and 1 bytes; 0 after the last of a row. */
oriel_row_loop *oriel_words_loop_of(const unsigned bytes[ORIEL_ROW_STEPS]);

/* Copies rows of four 4-byte words: every second word of the source, to a contiguous
 * destination. */
oriel_row_loop oriel_row_every_second;

/* Copies count steps of one kind. Their offsets are consecutive, in the order of oriel_step_at,
 * without those that the kind does not use. */
typedef void oriel_list_loop(char *restrict to, const char *restrict from, const int32_t *offsets,
                             uint64_t count);

oriel_list_loop *oriel_list_loop_of(unsigned word_bytes, enum oriel_step kind);

/* The same with constant strides on the side where the two words are not adjacent. There each step
 * is stride_bytes after the previous one, and its second word second_bytes after the first. offsets
 * are those of the other side. */
typedef void oriel_even_loop(char *restrict to, const char *restrict from, int64_t stride_bytes,
                             int64_t second_bytes, const int32_t *offsets, uint64_t count);

/* For steps that gather or scatter. */
oriel_even_loop *oriel_even_loop_of(unsigned word_bytes, enum oriel_step kind);

/* The number of offsets that a step of the kind has. */
static inline unsigned oriel_step_offsets(enum oriel_step kind)
{
    return kind == ORIEL_STEP_GATHER || kind == ORIEL_STEP_SCATTER ? 3 : 2;
}

#endif
