/* Copies, strided copies, sums and touches of whole buffers in the shortest possible loops: the
 * limits of long transfers. The sum uses compiler vectors and is not atomic, so accumulates cannot
 * reach it. raw.c drives the table at the end. */
#include "raw.h"

#include <string.h>

static void copies_prepare(struct raw_run *run)
{
    data_fill(run->from, run->len_bytes, 2 * run->batch);
    data_fill(run->to, 2 * run->len_bytes, 2 * run->batch + 1);
}

static void copy(struct raw_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        memcpy(run->to, run->from, run->len_bytes);
        raw_memory_used(run->to);
    }
    run->done += count;
}

static void copies_check(struct raw_run *run)
{
    run->wrong |= !data_holds(run->seen, run->len_bytes, 2 * run->batch) ||
                  !data_holds_from(run->seen + run->len_bytes, run->len_bytes, run->len_bytes,
                                   2 * run->batch + 1);
}

/* Every second double of the target. */
static void strided_copy(struct raw_run *run, uint64_t count)
{
    const size_t doubles = run->len_bytes / sizeof(double);
    const double *restrict from = (const double *)(const void *)run->from;
    double *restrict to = (double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < doubles; k++)
            to[2 * k] = from[k];
        raw_memory_used(to);
    }
    run->done += count;
}

static void strided_check(struct raw_run *run)
{
    for (size_t k = 0; k < run->len_bytes / sizeof(double); k++) {
        uint64_t words[2];
        memcpy(words, run->seen + k * sizeof words, sizeof words);
        run->wrong |= words[0] != data_word(2 * run->batch, k) ||
                      words[1] != data_word(2 * run->batch + 1, 2 * k + 1);
    }
}

/* Every second double of the source. */
static void gathered_prepare(struct raw_run *run)
{
    data_fill(run->from, 2 * run->len_bytes, 2 * run->batch);
    data_fill(run->to, 2 * run->len_bytes, 2 * run->batch + 1);
}

static void gathered_copy(struct raw_run *run, uint64_t count)
{
    const size_t doubles = run->len_bytes / sizeof(double);
    const double *restrict from = (const double *)(const void *)run->from;
    double *restrict to = (double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < doubles; k++)
            to[k] = from[2 * k];
        raw_memory_used(to);
    }
    run->done += count;
}

static void gathered_check(struct raw_run *run)
{
    for (size_t k = 0; k < run->len_bytes / sizeof(double); k++) {
        uint64_t word;
        memcpy(&word, run->seen + k * sizeof word, sizeof word);
        run->wrong |= word != data_word(2 * run->batch, 2 * k);
    }
    run->wrong |= !data_holds_from(run->seen + run->len_bytes, run->len_bytes, run->len_bytes,
                                   2 * run->batch + 1);
}

typedef double vector __attribute__((vector_size(64), aligned(8), may_alias));
enum { LANES = sizeof(vector) / sizeof(double) };

static void sums_prepare(struct raw_run *run)
{
    data_fill_doubles(run->from, run->len_bytes, 2 * run->batch);
    data_fill_doubles(run->to, run->len_bytes, 2 * run->batch + 1);
}

/* Uses the processor's best instructions when the compiler can select them at run time. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
static void
sum_once(double *to, const double *from, size_t doubles)
{
    size_t k = 0;
    for (; k + LANES <= doubles; k += LANES)
        *(vector *)(void *)(to + k) += *(const vector *)(const void *)(from + k);
    for (; k < doubles; k++)
        to[k] += from[k];
}

static void sum(struct raw_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        sum_once((double *)(void *)run->to, (const double *)(const void *)run->from,
                 run->len_bytes / sizeof(double));
        raw_memory_used(run->to);
    }
    run->done += count;
}

static void sums_check(struct raw_run *run)
{
    run->wrong |= !data_holds_sums(run->seen, 0, run->len_bytes / sizeof(double),
                                   2 * run->batch + 1, 2 * run->batch, run->done);
}

/* As get_accumulate does: computes the sum, and copies the previous contents to other memory. */
static size_t fetched_span(const struct raw_run *run)
{
    return 2 * run->len_bytes;
}

static void fetched_sum(struct raw_run *run, uint64_t count)
{
    char *const fetched = run->from + run->len_bytes;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(fetched, run->to, run->len_bytes);
        sum_once((double *)(void *)run->to, (const double *)(const void *)run->from,
                 run->len_bytes / sizeof(double));
        raw_memory_used(run->to);
    }
    run->done += count;
}

static void fetched_check(struct raw_run *run)
{
    sums_check(run);
    run->wrong |= !data_holds_sums(run->from + run->len_bytes, 0, run->len_bytes / sizeof(double),
                                   2 * run->batch + 1, 2 * run->batch, run->done - 1);
}

enum { PAGE_BYTES = 4096 };

static size_t touched_span(const struct raw_run *run)
{
    return run->len_bytes;
}

/* One word of each page. */
static void touch(struct raw_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++)
        for (size_t at = 0; at < run->len_bytes; at += PAGE_BYTES)
            memcpy(run->to + at, &run->done, sizeof run->done);
}

static void touched_check(struct raw_run *run)
{
    const uint64_t last = run->done - 1;
    for (size_t at = 0; at < run->len_bytes; at += PAGE_BYTES)
        run->wrong |= memcmp(run->to + at, &last, sizeof last) != 0;
}

const struct raw_operation raw_bulk[] = {
    {.name = "raw-memcpy", .prepare = copies_prepare, .repeat = copy, .check = copies_check},
    {.name = "raw-memcpy-shared",
     .shared = true,
     .prepare = copies_prepare,
     .repeat = copy,
     .check = copies_check},
    {.name = "raw-strided",
     .shared = true,
     .prepare = copies_prepare,
     .repeat = strided_copy,
     .check = strided_check},
    {.name = "raw-gathered",
     .prepare = gathered_prepare,
     .repeat = gathered_copy,
     .check = gathered_check},
    {.name = "raw-sum",
     .shared = true,
     .prepare = sums_prepare,
     .repeat = sum,
     .check = sums_check},
    {.name = "raw-fetched-sum",
     .shared = true,
     .span = fetched_span,
     .prepare = sums_prepare,
     .repeat = fetched_sum,
     .check = fetched_check},
    {.name = "raw-touch", .span = touched_span, .repeat = touch, .check = touched_check},
    {0},
};
