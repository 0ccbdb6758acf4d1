/* Copying between blocks that do not fit each other: word by word, in steps of two words where one side has them side by side.
 * A row of up to three steps is one loop over items at equal distances, a list of steps of one kind is one loop over the list.
 * datatype/copy_plan.c calls. */
#ifndef ORIEL_TRANSPORT_SHARED_COPY_WORDS_H
#define ORIEL_TRANSPORT_SHARED_COPY_WORDS_H

#include <stdint.h>

/* What a step moves; words have 8 or 4 bytes. */
enum oriel_step {
    ORIEL_STEP_BOTH,    /* two words, side by side here and there */
    ORIEL_STEP_GATHER,  /* two words that come to lie side by side */
    ORIEL_STEP_SCATTER, /* two words that lay side by side */
    ORIEL_STEP_SINGLE,  /* one word */
    ORIEL_STEP_NONE,    /* behind the last step of a row */
};
enum { ORIEL_STEP_KINDS = ORIEL_STEP_NONE, ORIEL_ROW_STEPS = 3 };

/* Where the words of a step lie, from the row's place on; a second one only where the words are not side by side. */
struct oriel_step_at {
    int64_t to[2];
    int64_t from[2];
};

/* count items of a row whose first step lies at 0 on both sides; the sides do not overlap. */
typedef void oriel_row_loop(char *restrict to, int64_t to_step, const char *restrict from,
                            int64_t from_step, const struct oriel_step_at at[ORIEL_ROW_STEPS],
                            uint64_t count);

/* The loop for rows of these kinds, whose first is a step. */
oriel_row_loop *oriel_row_loop_of(unsigned word_bytes,
                                  const enum oriel_step kinds[ORIEL_ROW_STEPS]);

/* The loop for rows of words of 8, 4, 3, 2 and 1 bytes; 0: behind the last of a row. */
oriel_row_loop *oriel_words_loop_of(const unsigned bytes[ORIEL_ROW_STEPS]);

/* Rows of four words of 4 bytes that come to lie side by side, and of which every second one is taken. */
oriel_row_loop oriel_row_seconds;

/* count steps of one kind, whose offsets follow each other in the order of oriel_step_at, those that the kind has. */
typedef void oriel_list_loop(char *restrict to, const char *restrict from, const int32_t *offsets,
                             uint64_t count);

oriel_list_loop *oriel_list_loop_of(unsigned word_bytes, enum oriel_step kind);

/* The same where the two words that are not side by side lie stride_bytes behind those of the step before, the second one
 * second_bytes behind the first: offsets are those of the other side alone. */
typedef void oriel_even_loop(char *restrict to, const char *restrict from, int64_t stride_bytes,
                             int64_t second_bytes, const int32_t *offsets, uint64_t count);

/* For steps that gather or scatter. */
oriel_even_loop *oriel_even_loop_of(unsigned word_bytes, enum oriel_step kind);

/* How many offsets a step of the kind has. */
static inline unsigned oriel_step_offsets(enum oriel_step kind)
{
    return kind == ORIEL_STEP_GATHER || kind == ORIEL_STEP_SCATTER ? 3 : 2;
}

#endif
