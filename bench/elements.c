/* Accumulates from rank 0 to rank 1 of elements other than a run of doubles: complex numbers, long
 * doubles, and doubles with holes between them. A sum or product shows the number of operations:
 * each changes it in one direction, and exactly. timing.c drives the table at the end. */
#include "shapes.h"
#include "words.h"

static const int target = WORDS_TARGET;
enum { CLASSES = 17 }; /* data_double is from 1 to 16 */

static struct shape shape; /* of the patterns with holes */

/* One operation of the current pattern. */
static struct {
    MPI_Datatype type; /* of the origin's elements */
    MPI_Op op;
    int count;
    MPI_Datatype target_type;
    int target_count;
} update;

static size_t span_dense(const struct rma_run *run)
{
    return run->len_bytes;
}

static size_t span_strided(const struct rma_run *run)
{
    return 2 * run->len_bytes;
}

static size_t span_singles(const struct rma_run *run)
{
    return SHAPE_SINGLE_ROOM * run->len_bytes;
}

static void set_up(const struct rma_run *run, MPI_Datatype type, size_t element_bytes, MPI_Op op)
{
    update.type = update.target_type = type;
    update.op = op;
    update.count = update.target_count = (int)(run->len_bytes / element_bytes);
}

static void complex_sum(struct rma_run *run)
{
    set_up(run, MPI_C_DOUBLE_COMPLEX, 2 * sizeof(double), MPI_SUM);
}

static void complex_product(struct rma_run *run)
{
    set_up(run, MPI_C_DOUBLE_COMPLEX, 2 * sizeof(double), MPI_PROD);
}

static void long_double_sum(struct rma_run *run)
{
    set_up(run, MPI_LONG_DOUBLE, sizeof(long double), MPI_SUM);
}

static void set_up_holes(struct rma_run *run, MPI_Op op)
{
    set_up(run, MPI_DOUBLE, sizeof(double), op);
    MPI_Type_commit(&run->target_type);
    update.target_type = run->target_type;
    update.target_count = 1;
}

static void strided_sum(struct rma_run *run)
{
    shape_strided(&shape, run->len_bytes);
    MPI_Type_vector((int)(run->len_bytes / SHAPE_WORD), 1, 2, MPI_DOUBLE, &run->target_type);
    set_up_holes(run, MPI_SUM);
}

static void singles(struct rma_run *run, MPI_Op op)
{
    static int places[SHAPE_SINGLES];
    shape_singles(&shape, run->len_bytes);
    for (size_t i = 0; i < shape.runs_len; i++)
        places[i] = (int)(shape.runs[i].offset / SHAPE_WORD);
    MPI_Type_create_indexed_block((int)shape.runs_len, 1, places, MPI_DOUBLE, &run->target_type);
    set_up_holes(run, op);
}

static void indexed_sum(struct rma_run *run)
{
    singles(run, MPI_SUM);
}

static void indexed_replace(struct rma_run *run)
{
    singles(run, MPI_REPLACE);
}

/* ---- sums of doubles ---- */

/* The memory after the doubles has other data. */
static void guard_fill(const struct rma_run *run, char *memory, uint64_t seed)
{
    data_fill(memory + run->span_bytes, RMA_GUARD_BYTES, seed);
}

static bool guard_holds(const struct rma_run *run, const char *memory, uint64_t seed)
{
    return data_holds(memory + run->span_bytes, RMA_GUARD_BYTES, seed);
}

static void doubles_prepare(struct rma_run *run)
{
    data_fill_doubles(run->mine, run->span_bytes, rma_target_seed(run, run->rank));
    guard_fill(run, run->mine, rma_target_seed(run, run->rank));
    data_fill_doubles(run->buffer, run->span_bytes, rma_origin_seed(run, run->rank));
}

static void accumulate(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Accumulate(run->buffer, update.count, update.type, target, run->begin[target],
                       update.target_count, update.target_type, update.op, run->win);
        MPI_Win_flush(target, run->win);
    }
}

static double double_at(const char *memory, size_t index)
{
    double value;
    memcpy(&value, memory + index * sizeof value, sizeof value);
    return value;
}

static void dense_check(struct rma_run *run)
{
    const uint64_t before = rma_target_seed(run, target);
    if (run->rank == target)
        run->wrong |= !data_holds_sums(run->mine, 0, run->len_bytes / sizeof(double), before,
                                       rma_origin_seed(run, 0), run->done) ||
                      !guard_holds(run, run->mine, before);
}

/* The doubles in the holes are unchanged. */
static void holes_check(struct rma_run *run)
{
    const uint64_t before = rma_target_seed(run, target);
    size_t next = 0;
    for (size_t i = 0; i < run->span_bytes / sizeof(double) && run->rank == target; i++) {
        double wanted = data_double(before, i);
        if (next < shape.runs_len && shape.runs[next].offset == i * sizeof(double))
            wanted += (double)run->done * data_double(rma_origin_seed(run, 0), next++);
        run->wrong |= double_at(run->mine, i) != wanted;
    }
    run->wrong |= run->rank == target && !guard_holds(run, run->mine, before);
}

/* ---- products: real factors slightly above 1, so that each operation increases the value ---- */

static double factor_of(double class)
{
    return 1 + class / (1 << 20);
}

static void products_prepare(struct rma_run *run)
{
    for (size_t i = 0; i < run->len_bytes / (2 * sizeof(double)); i++) {
        const double there[2] = {data_double(rma_target_seed(run, run->rank), i), 0};
        const double factor[2] = {factor_of(data_double(rma_origin_seed(run, run->rank), i)), 0};
        memcpy(run->mine + i * sizeof there, there, sizeof there);
        memcpy(run->buffer + i * sizeof factor, factor, sizeof factor);
    }
    guard_fill(run, run->mine, rma_target_seed(run, run->rank));
}

/* Rounds as often as the operations did. */
static double product_of(double value, double factor, uint64_t times)
{
    while (times-- > 0)
        value *= factor;
    return value;
}

static void products_check(struct rma_run *run)
{
    static double products[CLASSES][CLASSES];
    const uint64_t before = rma_target_seed(run, target);
    if (run->rank != target)
        return;
    for (int value = 1; value < CLASSES; value++)
        for (int class = 1; class < CLASSES; class ++)
            products[value][class] = product_of(value, factor_of(class), run->done);
    for (size_t i = 0; i < run->len_bytes / (2 * sizeof(double)); i++) {
        const int value = (int)data_double(before, i),
                  class = (int)data_double(rma_origin_seed(run, 0), i);
        run->wrong |= double_at(run->mine, 2 * i) != products[value][class] ||
                      double_at(run->mine, 2 * i + 1) != 0;
    }
    run->wrong |= !guard_holds(run, run->mine, before);
}

/* ---- sums of long doubles ---- */

static void long_doubles_fill(char *memory, size_t len_bytes, uint64_t seed)
{
    for (size_t i = 0; i < len_bytes / sizeof(long double); i++) {
        const long double value = data_double(seed, i);
        memcpy(memory + i * sizeof value, &value, sizeof value);
    }
}

static void long_doubles_prepare(struct rma_run *run)
{
    long_doubles_fill(run->mine, run->len_bytes, rma_target_seed(run, run->rank));
    long_doubles_fill(run->buffer, run->len_bytes, rma_origin_seed(run, run->rank));
    guard_fill(run, run->mine, rma_target_seed(run, run->rank));
}

static void long_doubles_check(struct rma_run *run)
{
    const uint64_t before = rma_target_seed(run, target);
    for (size_t i = 0; i < run->len_bytes / sizeof(long double) && run->rank == target; i++) {
        long double found;
        memcpy(&found, run->mine + i * sizeof found, sizeof found);
        run->wrong |= found != data_double(before, i) +
                                   (long double)run->done * data_double(rma_origin_seed(run, 0), i);
    }
    run->wrong |= run->rank == target && !guard_holds(run, run->mine, before);
}

/* ---- replacing: each operation fetches the value of the previous one ---- */

static char *fetched_of(const struct rma_run *run)
{
    return run->buffer + run->len_bytes;
}

static void replace_prepare(struct rma_run *run)
{
    data_fill(run->mine, run->span_bytes + RMA_GUARD_BYTES, rma_target_seed(run, run->rank));
    data_fill(run->buffer, run->span_bytes + RMA_GUARD_BYTES, rma_origin_seed(run, run->rank));
    run->heads[0] =
        data_word(rma_target_seed(run, target), shape.runs[0].offset / sizeof(uint64_t));
}

static void get_and_replace(struct rma_run *run, uint64_t count)
{
    const uint64_t stamp = words_stamp(run);
    for (uint64_t i = 0; i < count; i++, run->done++) {
        words_head_set(run->buffer, stamp + run->done);
        MPI_Get_accumulate(run->buffer, update.count, update.type, fetched_of(run), update.count,
                           update.type, target, run->begin[target], update.target_count,
                           update.target_type, update.op, run->win);
        MPI_Win_flush(target, run->win);
        run->wrong |= words_head_differs(fetched_of(run), run->done > 0 ? stamp + run->done - 1
                                                                        : run->heads[0]) != 0;
    }
}

static void replace_renew(struct rma_run *run)
{
    data_fill(run->buffer, run->len_bytes, rma_renewed_seed(run));
}

/* The last operation's data are at the target; those of the previous one have been fetched. */
static void replace_check(struct rma_run *run)
{
    const uint64_t before = rma_target_seed(run, target);
    size_t end = 0;
    for (size_t i = 0; i < shape.runs_len && run->rank == target; i++) {
        const size_t at = shape.runs[i].offset, packed = i * SHAPE_WORD;
        run->wrong |=
            !data_holds_from(run->mine + end, end, at - end, before) ||
            (i > 0 && !data_holds_from(run->mine + at, packed, SHAPE_WORD, rma_renewed_seed(run)));
        end = at + SHAPE_WORD;
    }
    if (run->rank == target)
        run->wrong |=
            words_head_differs(run->mine + shape.runs[0].offset,
                               words_stamp(run) + run->done - 1) != 0 ||
            !data_holds_from(run->mine + end, end, run->span_bytes + RMA_GUARD_BYTES - end, before);
    if (run->rank == 0)
        run->wrong |= !data_holds_from(fetched_of(run) + SHAPE_WORD, SHAPE_WORD,
                                       run->len_bytes - SHAPE_WORD, rma_origin_seed(run, 0));
}

const struct rma_pattern rma_elements[] = {
    {.name = "accumulate-complex",
     .span = span_dense,
     .setup = complex_sum,
     .prepare = doubles_prepare,
     .repeat = accumulate,
     .check = dense_check},
    {.name = "accumulate-complex-product",
     .span = span_dense,
     .setup = complex_product,
     .prepare = products_prepare,
     .repeat = accumulate,
     .check = products_check},
    {.name = "accumulate-long-double",
     .span = span_dense,
     .setup = long_double_sum,
     .prepare = long_doubles_prepare,
     .repeat = accumulate,
     .check = long_doubles_check},
    {.name = "accumulate-strided",
     .span = span_strided,
     .setup = strided_sum,
     .prepare = doubles_prepare,
     .repeat = accumulate,
     .check = holes_check},
    {.name = "accumulate-indexed",
     .span = span_singles,
     .setup = indexed_sum,
     .prepare = doubles_prepare,
     .repeat = accumulate,
     .check = holes_check},
    {.name = "get-accumulate-indexed",
     .span = span_singles,
     .setup = indexed_replace,
     .prepare = replace_prepare,
     .repeat = get_and_replace,
     .check = replace_check,
     .renew = replace_renew},
    {0},
};
