/* What puts and gets of words are verified by: stamps, which tell each operation from all others, and renewed data.
 * Every operation's head, its first word, differs from the one before; every byte of the last ones is what nobody left there.
 * Included by the files of the patterns that put and get from rank 0 to rank 1 without computing. */
#ifndef ORIEL_BENCH_WORDS_H
#define ORIEL_BENCH_WORDS_H

#include <string.h>

#include "rma.h"

enum { WORDS_TARGET = 1 };

/* The first word of what a put of this batch sends is this plus the operation's number. */
static inline uint64_t words_stamp(const struct rma_run *run)
{
    return data_word(rma_origin_seed(run, 0), 0);
}

static inline void words_head_set(char *head, uint64_t value)
{
    memcpy(head, &value, sizeof value);
}

/* Zero: the head holds the value. Differences of many heads can be or'ed, which costs no branch. */
static inline uint64_t words_head_differs(const char *head, uint64_t value)
{
    uint64_t found;
    memcpy(&found, head, sizeof found);
    return found ^ value;
}

void words_prepare(struct rma_run *run);

/* Before the last operations of a batch, at rank 0: other data in the buffer, which puts send and gets have to replace. */
void words_renew(struct rma_run *run);

/* In a batch, while the clock stands: rank 0 reads the heads of the last puts in the target's memory. */
void words_look(struct rma_run *run);

/* Areas of len_bytes, used in turn: each holds what its last operation moved, and the others and the guard what they held. */
void words_put_check(struct rma_run *run);
void words_get_check(struct rma_run *run);

#endif
