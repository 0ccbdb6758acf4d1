/* Hand-written loops for accumulates of elements other than a run of doubles: complex numbers, long
 * doubles, every second double, single doubles.  None of them is atomic. raw.c drives the table at
 * the end. */
#include "raw.h"
#include "shapes.h"

#include <string.h>

enum { CLASSES = 17 }; /* data_double is from 1 to 16 */

static struct shape shape;
static unsigned places[SHAPE_SINGLES]; /* a program's table of their positions */

static uint64_t from_seed(const struct raw_run *run)
{
    return 2 * run->batch;
}

static uint64_t to_seed(const struct raw_run *run)
{
    return 2 * run->batch + 1;
}

/* ---- sums of doubles with holes between them ---- */

static void places_keep(void)
{
    for (size_t i = 0; i < shape.runs_len; i++)
        places[i] = (unsigned)(shape.runs[i].offset / SHAPE_WORD);
}

static size_t span_strided(const struct raw_run *run)
{
    shape_strided(&shape, run->len_bytes);
    return shape.span_bytes;
}

static size_t span_singles(const struct raw_run *run)
{
    shape_singles(&shape, run->len_bytes);
    places_keep();
    return shape.span_bytes;
}

static void doubles_prepare(struct raw_run *run)
{
    data_fill_doubles(run->from, shape.span_bytes, from_seed(run));
    data_fill_doubles(run->to, shape.span_bytes, to_seed(run));
}

static void strided_sum(struct raw_run *run, uint64_t count)
{
    const double *restrict from = (const double *)(const void *)run->from;
    double *restrict to = (double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < run->len_bytes / sizeof *to; k++)
            to[2 * k] += from[k];
        raw_memory_used(to);
    }
    run->done += count;
}

static void singles_sum(struct raw_run *run, uint64_t count)
{
    const double *restrict from = (const double *)(const void *)run->from;
    double *restrict to = (double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < run->len_bytes / sizeof *to; k++)
            to[places[k]] += from[k];
        raw_memory_used(to);
    }
    run->done += count;
}

/* The holes must be unchanged. */
static void sums_check(struct raw_run *run)
{
    const double *seen = (const double *)(const void *)run->seen;
    size_t next = 0;
    for (size_t i = 0; i < shape.span_bytes / sizeof *seen; i++) {
        double wanted = data_double(to_seed(run), i);
        if (next < shape.runs_len && shape.runs[next].offset == i * sizeof *seen)
            wanted += (double)run->done * data_double(from_seed(run), next++);
        run->wrong |= seen[i] != wanted;
    }
}

/* ---- single doubles, put, and replaced with their previous values fetched ---- */

static void words_prepare(struct raw_run *run)
{
    data_fill(run->from, shape.span_bytes, from_seed(run));
    data_fill(run->to, shape.span_bytes, to_seed(run));
}

static void singles_put(struct raw_run *run, uint64_t count)
{
    const double *restrict from = (const double *)(const void *)run->from;
    double *restrict to = (double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < run->len_bytes / sizeof *to; k++)
            to[places[k]] = from[k];
        raw_memory_used(to);
    }
    run->done += count;
}

static void singles_replace(struct raw_run *run, uint64_t count)
{
    const double *restrict from = (const double *)(const void *)run->from;
    double *restrict fetched = (double *)(void *)(run->from + run->len_bytes);
    double *restrict to = (double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < run->len_bytes / sizeof *to; k++) {
            fetched[k] = to[places[k]];
            to[places[k]] = from[k];
        }
        raw_memory_used(to);
    }
    run->done += count;
}

static void singles_check(struct raw_run *run)
{
    size_t end = 0;
    for (size_t i = 0; i < shape.runs_len; i++) {
        const size_t at = shape.runs[i].offset;
        run->wrong |= !data_holds_from(run->seen + end, end, at - end, to_seed(run)) ||
                      !data_holds_from(run->seen + at, i * SHAPE_WORD, SHAPE_WORD, from_seed(run));
        end = at + SHAPE_WORD;
    }
    run->wrong |= !data_holds_from(run->seen + end, end, shape.span_bytes - end, to_seed(run));
}

/* ---- complex numbers and long doubles ---- */

/* Real factors slightly above 1: no product overflows, and each differs from the previous one. */
static double factor_of(double class)
{
    return 1 + class / (1 << 20);
}

static void products_prepare(struct raw_run *run)
{
    for (size_t i = 0; i < run->len_bytes / (2 * sizeof(double)); i++) {
        const double there[2] = {data_double(to_seed(run), i), 0};
        const double factor[2] = {factor_of(data_double(from_seed(run), i)), 0};
        memcpy(run->to + i * sizeof there, there, sizeof there);
        memcpy(run->from + i * sizeof factor, factor, sizeof factor);
    }
}

static void complex_product(struct raw_run *run, uint64_t count)
{
    const double *restrict from = (const double *)(const void *)run->from;
    double *restrict to = (double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < run->len_bytes / sizeof *to; k += 2) {
            const double real = to[k] * from[k] - to[k + 1] * from[k + 1];
            to[k + 1] = to[k] * from[k + 1] + to[k + 1] * from[k];
            to[k] = real;
        }
        raw_memory_used(to);
    }
    run->done += count;
}

static void products_check(struct raw_run *run)
{
    static double products[CLASSES][CLASSES];
    const double *seen = (const double *)(const void *)run->seen;
    for (int value = 1; value < CLASSES; value++)
        for (int class = 1; class < CLASSES; class ++) {
            products[value][class] = value;
            for (uint64_t i = 0; i < run->done; i++)
                products[value][class] *= factor_of(class);
        }
    for (size_t i = 0; i < run->len_bytes / (2 * sizeof *seen); i++)
        run->wrong |=
            seen[2 * i + 1] != 0 ||
            seen[2 * i] !=
                products[(int)data_double(to_seed(run), i)][(int)data_double(from_seed(run), i)];
}

static void long_doubles_fill(char *memory, size_t len_bytes, uint64_t seed)
{
    long double *values = (long double *)(void *)memory;
    for (size_t i = 0; i < len_bytes / sizeof *values; i++)
        values[i] = data_double(seed, i);
}

static void long_doubles_prepare(struct raw_run *run)
{
    long_doubles_fill(run->from, run->len_bytes, from_seed(run));
    long_doubles_fill(run->to, run->len_bytes, to_seed(run));
}

static void long_double_sum(struct raw_run *run, uint64_t count)
{
    const long double *restrict from = (const long double *)(const void *)run->from;
    long double *restrict to = (long double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < run->len_bytes / sizeof *to; k++)
            to[k] += from[k];
        raw_memory_used(to);
    }
    run->done += count;
}

static void long_doubles_check(struct raw_run *run)
{
    const long double *seen = (const long double *)(const void *)run->seen;
    for (size_t i = 0; i < run->len_bytes / sizeof *seen; i++)
        run->wrong |= seen[i] != data_double(to_seed(run), i) +
                                     (long double)run->done * data_double(from_seed(run), i);
}

#define LOOP(its_name, its_span, its_prepare, its_repeat, its_check)                               \
    {                                                                                              \
        .name = its_name, .shared = true, .span = its_span, .prepare = its_prepare,                \
        .repeat = its_repeat, .check = its_check                                                   \
    }

const struct raw_operation raw_elements[] = {
    LOOP("raw-strided-sum", span_strided, doubles_prepare, strided_sum, sums_check),
    LOOP("raw-singles-sum", span_singles, doubles_prepare, singles_sum, sums_check),
    LOOP("raw-put-singles", span_singles, words_prepare, singles_put, singles_check),
    LOOP("raw-replace-singles", span_singles, words_prepare, singles_replace, singles_check),
    LOOP("raw-complex-product", NULL, products_prepare, complex_product, products_check),
    LOOP("raw-long-double-sum", NULL, long_doubles_prepare, long_double_sum, long_doubles_check),
    {0},
};
