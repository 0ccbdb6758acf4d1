/* Data of the patterns that put and get words between areas of equal length on rank 0 and rank 1.
 * Operation k uses area k modulo the number of areas in the span. A put's first word is a stamp
 * with its number. A get's destination is overwritten before it, so that missing data is detected.
 */
#include "words.h"

static const uint64_t never = UINT64_MAX;

void words_prepare(struct rma_run *run)
{
    if (run->rank == WORDS_TARGET)
        data_fill(run->mine, run->span_bytes + RMA_GUARD_BYTES, rma_target_seed(run, run->rank));
    if (run->rank == 0)
        data_fill(run->buffer, run->span_bytes + RMA_GUARD_BYTES, rma_origin_seed(run, run->rank));
    for (size_t area = 0; area < RMA_SLOTS; area++)
        run->heads[area] =
            data_word(rma_target_seed(run, WORDS_TARGET), area * run->len_bytes / sizeof(uint64_t));
}

void words_renew(struct rma_run *run)
{
    data_fill(run->buffer, run->span_bytes, rma_renewed_seed(run));
}

static size_t areas_of(const struct rma_run *run)
{
    return run->span_bytes / run->len_bytes;
}

/* The number of the operation that used the area last. */
static uint64_t last_at(const struct rma_run *run, size_t area)
{
    return area < run->done ? run->done - 1 - (run->done - 1 - area) % areas_of(run) : never;
}

void words_look(struct rma_run *run)
{
    uint64_t found[RMA_SLOTS] = {0};
    for (size_t area = 0; area < areas_of(run); area++)
        if (area < run->done)
            MPI_Get(&found[area], 1, MPI_UINT64_T, WORDS_TARGET,
                    run->begin[WORDS_TARGET] + (MPI_Aint)(area * run->len_bytes), 1, MPI_UINT64_T,
                    run->win);
    MPI_Win_flush(WORDS_TARGET, run->win);
    for (size_t area = 0; area < areas_of(run); area++)
        if (area < run->done)
            run->wrong |= found[area] != words_stamp(run) + last_at(run, area);
}

static bool guard_holds(const struct rma_run *run, const char *memory, uint64_t seed)
{
    return data_holds_from(memory + run->span_bytes, run->span_bytes, RMA_GUARD_BYTES, seed);
}

void words_put_check(struct rma_run *run)
{
    const uint64_t before = rma_target_seed(run, WORDS_TARGET);
    if (run->rank != WORDS_TARGET)
        return;
    for (size_t area = 0; area < areas_of(run); area++) {
        const size_t at = area * run->len_bytes, rest = at + sizeof(uint64_t);
        const uint64_t last = last_at(run, area);
        const uint64_t sent =
            last >= run->renewed ? rma_renewed_seed(run) : rma_origin_seed(run, 0);
        if (last == never) {
            run->wrong |= !data_holds_from(run->mine + at, at, run->len_bytes, before);
            continue;
        }
        run->wrong |= words_head_differs(run->mine + at, words_stamp(run) + last) != 0;
        run->wrong |=
            !data_holds_from(run->mine + rest, rest, run->len_bytes - sizeof(uint64_t), sent);
    }
    run->wrong |= !guard_holds(run, run->mine, before);
}

/* Areas whose last get came before the renewal hold the renewed data again. */
void words_get_check(struct rma_run *run)
{
    if (run->rank != 0)
        return;
    for (size_t area = 0; area < areas_of(run); area++) {
        const size_t at = area * run->len_bytes;
        const uint64_t last = last_at(run, area);
        const bool came = last != never && last >= run->renewed;
        run->wrong |=
            !data_holds_from(run->buffer + at, at, run->len_bytes,
                             came ? rma_target_seed(run, WORDS_TARGET) : rma_renewed_seed(run));
    }
    run->wrong |= !guard_holds(run, run->buffer, rma_origin_seed(run, 0));
}
