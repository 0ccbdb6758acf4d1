/* Contiguous put, get, accumulate and get_accumulate from rank 0 to rank 1, of any length.
 * Operation k uses area k modulo the number of areas in the span, so that operations in flight
 * together do not overlap. timing.c drives the table at the end. */
#include "words.h"

static const int target = WORDS_TARGET;
enum { SMALL_BYTES = 128, SHORT_BYTES = 32, LOOKED_BYTES = 8192 };

/* Small operations use many areas in turn, as programs do. Long ones use one area unless they are
 * in flight together. */
static size_t span(const struct rma_run *run)
{
    return run->in_flight > 1 || (run->len_bytes <= SMALL_BYTES && !run->place)
               ? RMA_SLOTS * run->len_bytes
               : run->len_bytes;
}

/* Short gets use more areas, so that many can be checked together; they stay in the first-level
 * cache. */
static size_t span_get(const struct rma_run *run)
{
    size_t areas = RMA_SLOTS;
    while (run->len_bytes <= SHORT_BYTES && 2 * areas * run->len_bytes <= LOOKED_BYTES)
        areas *= 2;
    return areas > RMA_SLOTS && !run->place ? areas * run->len_bytes : span(run);
}

/* The first half is sent, the second half is received. */
static size_t span_both(const struct rma_run *run)
{
    return 2 * span(run);
}

/* The loops' inputs as local variables: the compiler must assume that an MPI call changes the run's
 * fields. */
struct loop {
    MPI_Win win;
    MPI_Datatype type;
    MPI_Aint begin;
    char *buffer;
    uint64_t area_mask, flight_mask;
    size_t len_bytes;
    int count, doubles;
};

static struct loop loop_of(const struct rma_run *run, size_t span_bytes)
{
    const bool odd = run->place && run->place->offset_bytes % (int)sizeof(uint64_t) != 0;
    return (struct loop){
        .win = run->win,
        .type = odd ? MPI_BYTE : MPI_UINT64_T,
        .begin = run->begin[target],
        .buffer = run->buffer,
        .area_mask = span_bytes / run->len_bytes - 1,
        .flight_mask = (uint64_t)run->in_flight - 1,
        .len_bytes = run->len_bytes,
        .count = (int)(odd ? run->len_bytes : run->len_bytes / sizeof(uint64_t)),
        .doubles = (int)(run->len_bytes / sizeof(double)),
    };
}

/* ---- put and get ---- */

static void put(struct rma_run *run, uint64_t count)
{
    const struct loop loop = loop_of(run, run->span_bytes);
    const uint64_t end = run->done + count, stamp = words_stamp(run);
    for (uint64_t k = run->done; k < end; k++) {
        size_t at = (k & loop.area_mask) * loop.len_bytes;
        words_head_set(loop.buffer + at, stamp + k);
        MPI_Put(loop.buffer + at, loop.count, loop.type, target, loop.begin + (MPI_Aint)at,
                loop.count, loop.type, loop.win);
        if (((k + 1) & loop.flight_mask) == 0)
            MPI_Win_flush(target, loop.win);
    }
    if ((end & loop.flight_mask) != 0)
        MPI_Win_flush(target, loop.win);
    run->done = end;
}

/* Differences of the heads from `first` to before `end`. */
static uint64_t heads_differ(const struct rma_run *run, const struct loop *loop, uint64_t first,
                             uint64_t end)
{
    uint64_t differ = 0;
    for (uint64_t k = first; k < end; k++)
        differ |= words_head_differs(loop->buffer + (k & loop->area_mask) * loop->len_bytes,
                                     run->heads[k & loop->area_mask]);
    return differ;
}

/* Short gets are checked completely while the clock is stopped: a comparison takes a good part of
 * the time of a get. Patterns with an alignment have one area, and would need a check after each
 * get. */
static void get_setup(struct rma_run *run)
{
    run->part = run->len_bytes <= SHORT_BYTES && !run->place ? run->span_bytes / run->len_bytes : 0;
}

static void get_look(struct rma_run *run)
{
    for (uint64_t k = run->looked; run->part && k < run->done; k++) {
        const size_t at = (k & (run->part - 1)) * run->len_bytes;
        run->wrong |=
            !data_holds_from(run->buffer + at, at, run->len_bytes, rma_target_seed(run, target));
        /* no byte of the next operation may have arrived already */
        for (size_t i = 0; i < run->len_bytes; i++)
            run->buffer[at + i] = (char)~run->buffer[at + i];
    }
}

static void get_short(struct rma_run *run, uint64_t count)
{
    const struct loop loop = loop_of(run, run->span_bytes);
    const uint64_t end = run->done + count;
    for (uint64_t k = run->done; k < end; k++) {
        const size_t at = (k & loop.area_mask) * loop.len_bytes;
        MPI_Get(loop.buffer + at, loop.count, loop.type, target, loop.begin + (MPI_Aint)at,
                loop.count, loop.type, loop.win);
        if (((k + 1) & loop.flight_mask) == 0)
            MPI_Win_flush(target, loop.win);
    }
    if ((end & loop.flight_mask) != 0)
        MPI_Win_flush(target, loop.win);
    run->done = end;
}

static void get_long(struct rma_run *run, uint64_t count)
{
    const struct loop loop = loop_of(run, run->span_bytes);
    const uint64_t end = run->done + count, *const heads = run->heads;
    uint64_t first = run->done, differ = 0;
    for (uint64_t k = first; k < end; k++) {
        const size_t at = (k & loop.area_mask) * loop.len_bytes;
        const uint64_t head = heads[k & loop.area_mask];
        words_head_set(loop.buffer + at, ~head);
        MPI_Get(loop.buffer + at, loop.count, loop.type, target, loop.begin + (MPI_Aint)at,
                loop.count, loop.type, loop.win);
        if (((k + 1) & loop.flight_mask) != 0)
            continue;
        MPI_Win_flush(target, loop.win);
        if (first == k)
            differ |= words_head_differs(loop.buffer + at, head);
        else
            differ |= heads_differ(run, &loop, first, k + 1);
        first = k + 1;
    }
    if (first < end)
        MPI_Win_flush(target, loop.win);
    run->wrong |= (differ | heads_differ(run, &loop, first, end)) != 0;
    run->done = end;
}

static void get(struct rma_run *run, uint64_t count)
{
    if (run->part)
        get_short(run, count);
    else
        get_long(run, count);
}

/* ---- accumulate and get_accumulate ---- */

/* Doubles, followed by a guard without doubles. */
static void doubles_fill(const struct rma_run *run, char *memory, uint64_t seed)
{
    data_fill_doubles(memory, run->span_bytes, seed);
    for (size_t at = 0; at < RMA_GUARD_BYTES; at += sizeof(uint64_t)) {
        const uint64_t word = data_word(seed, (run->span_bytes + at) / sizeof word);
        memcpy(memory + run->span_bytes + at, &word, sizeof word);
    }
}

static void doubles_prepare(struct rma_run *run)
{
    if (run->rank == target)
        doubles_fill(run, run->mine, rma_target_seed(run, target));
    if (run->rank == 0)
        doubles_fill(run, run->buffer, rma_origin_seed(run, 0));
}

static void accumulate(struct rma_run *run, uint64_t count)
{
    const struct loop loop = loop_of(run, run->span_bytes);
    const uint64_t end = run->done + count;
    for (uint64_t k = run->done; k < end; k++) {
        size_t at = (k & loop.area_mask) * loop.len_bytes;
        MPI_Accumulate(loop.buffer + at, loop.doubles, MPI_DOUBLE, target,
                       loop.begin + (MPI_Aint)at, loop.doubles, MPI_DOUBLE, MPI_SUM, loop.win);
        if (((k + 1) & loop.flight_mask) == 0)
            MPI_Win_flush(target, loop.win);
    }
    if ((end & loop.flight_mask) != 0)
        MPI_Win_flush(target, loop.win);
    run->done = end;
}

static void get_accumulate(struct rma_run *run, uint64_t count)
{
    const size_t half_bytes = run->span_bytes / 2;
    const struct loop loop = loop_of(run, half_bytes);
    const uint64_t end = run->done + count;
    for (uint64_t k = run->done; k < end; k++) {
        size_t at = (k & loop.area_mask) * loop.len_bytes;
        MPI_Get_accumulate(loop.buffer + at, loop.doubles, MPI_DOUBLE,
                           loop.buffer + half_bytes + at, loop.doubles, MPI_DOUBLE, target,
                           loop.begin + (MPI_Aint)at, loop.doubles, MPI_DOUBLE, MPI_SUM, loop.win);
        if (((k + 1) & loop.flight_mask) == 0)
            MPI_Win_flush(target, loop.win);
    }
    if ((end & loop.flight_mask) != 0)
        MPI_Win_flush(target, loop.win);
    run->done = end;
}

/* Each area received as many additions as operations used it. back_by is 1 for the values that the
 * last operation fetched. */
static bool areas_hold_sums(const struct rma_run *run, const char *memory, size_t span_bytes,
                            uint64_t back_by)
{
    const size_t areas = span_bytes / run->len_bytes, each = run->len_bytes / sizeof(double);
    for (size_t area = 0; area < areas; area++) {
        uint64_t times = run->done / areas + (area < run->done % areas);
        if (times < back_by)
            continue;
        if (!data_holds_sums(memory + area * run->len_bytes, area * each, each,
                             rma_target_seed(run, target), rma_origin_seed(run, 0),
                             times - back_by))
            return false;
    }
    return true;
}

/* The memory after the summed doubles has other data, which must be unchanged. */
static bool guard_holds(const struct rma_run *run, const char *memory, uint64_t seed)
{
    return data_holds_from(memory + run->span_bytes, run->span_bytes, RMA_GUARD_BYTES, seed);
}

static void accumulate_check(struct rma_run *run)
{
    if (run->rank == target)
        run->wrong |= !areas_hold_sums(run, run->mine, run->span_bytes, 0) ||
                      !guard_holds(run, run->mine, rma_target_seed(run, target));
}

static void get_accumulate_check(struct rma_run *run)
{
    const size_t half_bytes = run->span_bytes / 2;
    if (run->rank == target)
        run->wrong |=
            !areas_hold_sums(run, run->mine, half_bytes, 0) ||
            !data_holds_sums(run->mine + half_bytes, half_bytes / sizeof(double),
                             half_bytes / sizeof(double), rma_target_seed(run, target), 0, 0) ||
            !guard_holds(run, run->mine, rma_target_seed(run, target));
    if (run->rank == 0)
        run->wrong |= !areas_hold_sums(run, run->buffer + half_bytes, half_bytes, 1) ||
                      !guard_holds(run, run->buffer, rma_origin_seed(run, 0));
}

const struct rma_pattern rma_contiguous[] = {
    {.name = "put",
     .span = span,
     .prepare = words_prepare,
     .repeat = put,
     .check = words_put_check,
     .renew = words_renew,
     .look = words_look,
     .placeable = true},
    {.name = "get",
     .span = span_get,
     .setup = get_setup,
     .prepare = words_prepare,
     .repeat = get,
     .check = words_get_check,
     .renew = words_renew,
     .look = get_look,
     .placeable = true},
    {.name = "accumulate",
     .span = span,
     .prepare = doubles_prepare,
     .repeat = accumulate,
     .check = accumulate_check,
     .placeable = true},
    {.name = "get-accumulate",
     .span = span_both,
     .prepare = doubles_prepare,
     .repeat = get_accumulate,
     .check = get_accumulate_check},
    {0},
};
