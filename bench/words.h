/* Verification of puts and gets of words: stamps, which identify each operation, and renewed data.
 * The first word of every operation, its head, differs from the previous one. Every byte of the
 * last operations has a value that was not there before. The patterns that put and get from rank 0
 * to rank 1 use this file. */
#ifndef ORIEL_BENCH_WORDS_H
#define ORIEL_BENCH_WORDS_H

#include <string.h>

#include "rma.h"

enum { WORDS_TARGET = 1 };

/* The first word of a put is this stamp plus the operation's number in the batch. */
static inline uint64_t words_stamp(const struct rma_run *run)
{
    return data_word(rma_origin_seed(run, 0), 0);
}

static inline void words_head_set(char *head, uint64_t value)
{
    memcpy(head, &value, sizeof value);
}

/* Zero when the head holds the value. Results of many heads can be combined with OR, without
 * branches. */
static inline uint64_t words_head_differs(const char *head, uint64_t value)
{
    uint64_t found;
    memcpy(&found, head, sizeof found);
    return found ^ value;
}

void words_prepare(struct rma_run *run);

/* Called on rank 0 before the last operations of a batch: writes other data to the buffer, which
 * puts send and gets must replace. */
void words_renew(struct rma_run *run);

/* Called within a batch while the clock is stopped: rank 0 reads the heads of the last puts in the
 * target's memory. */
void words_look(struct rma_run *run);

/* Areas of len_bytes, used in turn. Each must hold the data of its last operation; unused areas and
 * the guard must be unchanged. */
void words_put_check(struct rma_run *run);
void words_get_check(struct rma_run *run);

#endif
