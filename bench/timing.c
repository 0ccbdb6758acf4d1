/* Drives a pattern: prepares data, times a batch of operations, checks the result, and repeats.
 * Only the operations are timed. Every batch's data are checked before the next batch. */
#define _POSIX_C_SOURCE 200809L
#include "rma.h"

#include <time.h>

static const double compute_s = 1.0;
/* a pause, and more than the time of an operation that does not wait */
static const double busy_margin_s = 0.15;
enum { BUSY_SAMPLES = 32, FIRST_PAUSE_NS = 100000000, BUSY_PAUSE_NS = 20000000 };
enum { FREE_CHUNK = 64, LOOKS = 16, SEEDS = 3 };

uint64_t rma_origin_seed(const struct rma_run *run, int rank)
{
    return (run->batch * RMA_RANKS + (uint64_t)rank) * SEEDS;
}

uint64_t rma_target_seed(const struct rma_run *run, int rank)
{
    return rma_origin_seed(run, rank) + 1;
}

uint64_t rma_renewed_seed(const struct rma_run *run)
{
    return rma_origin_seed(run, 0) + 2;
}

static bool is_passive(enum rma_kind kind)
{
    return kind != RMA_ACTIVE;
}

static bool is_free(enum rma_kind kind)
{
    return kind == RMA_ALL_PASSIVE || kind == RMA_ALL_LOCKING;
}

/* A rank changes and reads its own memory as the standard requires: in a lock on itself, or between
 * active epochs. */
static void own_memory(struct rma_run *run, void (*use)(struct rma_run *run))
{
    if (!use)
        return;
    if (is_passive(run->pattern->kind))
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, run->rank, 0, run->win);
    use(run);
    if (is_passive(run->pattern->kind))
        MPI_Win_unlock(run->rank, run->win);
}

static void batch_prepare(struct rma_run *run)
{
    run->batch++;
    run->done = run->looked = 0;
    run->renewed = UINT64_MAX;
    own_memory(run, run->pattern->prepare);
    /* otherwise the operations synchronise the ranks, faster than some hosts do */
    if (is_passive(run->pattern->kind))
        MPI_Barrier(MPI_COMM_WORLD);
}

static void batch_check(struct rma_run *run, uint64_t operations)
{
    if (is_passive(run->pattern->kind))
        MPI_Barrier(MPI_COMM_WORLD);
    run->done = operations;
    if (run->pattern->renew)
        MPI_Bcast(&run->renewed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    own_memory(run, run->pattern->check);
}

static double repeat_timed(struct rma_run *run, uint64_t count)
{
    double start_s = schedule_clock_s();
    run->pattern->repeat(run, count);
    return schedule_clock_s() - start_s;
}

/* The operations in several parts, with an inspection after each. The last operations, at least one
 * for each area, have renewed data. The clock is stopped in between. It is read twice for each
 * part, which is negligible for a sixteenth of a batch, and little for the parts of short gets.
 * Parts end with a flush. */
static double parts_time(struct rma_run *run, uint64_t count)
{
    const struct rma_pattern *pattern = run->pattern;
    const uint64_t areas =
        run->target_type == MPI_DATATYPE_NULL ? run->span_bytes / run->len_bytes : 1;
    const uint64_t flight = (uint64_t)run->in_flight;
    const uint64_t end = run->done + count,
                   part = run->part ? run->part : (count / LOOKS / flight + 1) * flight;
    const uint64_t renewal = end > areas ? (end - areas) / flight * flight : 0;
    double elapsed_s = 0;

    while (run->done < renewal) {
        uint64_t until = (run->done / part + 1) * part;
        elapsed_s += repeat_timed(run, (until < renewal ? until : renewal) - run->done);
        if (pattern->look)
            pattern->look(run);
        run->looked = run->done;
    }
    pattern->renew(run);
    run->renewed = run->done;
    return elapsed_s + repeat_timed(run, end - run->done);
}

/* First comes one untimed operation, or a whole flight when operations are in flight together, so
 * that all timed flights start alike. In active patterns another untimed one comes last. Otherwise
 * a rank could already spin in the host's collective while rank 0's clock runs, and take the
 * processor from others. */
static double batch_time(struct rma_run *run, uint64_t count)
{
    const struct rma_pattern *pattern = run->pattern;
    const bool inside = pattern->kind == RMA_PASSIVE;

    if (run->rank != 0 && pattern->kind != RMA_ACTIVE)
        return 0;
    if (inside)
        MPI_Win_lock_all(0, run->win);
    pattern->repeat(run, (uint64_t)run->in_flight);
    double elapsed_s = pattern->renew ? parts_time(run, count) : repeat_timed(run, count);
    if (pattern->kind == RMA_ACTIVE)
        pattern->repeat(run, 1);
    if (inside)
        MPI_Win_unlock_all(run->win);
    return elapsed_s;
}

static double measure_batches(struct rma_run *run, const struct schedule_limits *limits)
{
    const uint64_t flight = (uint64_t)run->in_flight;
    /* number of untimed operations */
    const uint64_t around = run->pattern->kind == RMA_ACTIVE ? 2 : flight;
    struct schedule plan;

    schedule_start(&plan, limits, (limits->least + flight - 1) / flight * flight);
    for (;;) {
        MPI_Bcast(&plan.count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (plan.count == 0)
            return plan.best_s;
        batch_prepare(run);
        double elapsed_s = batch_time(run, plan.count);
        batch_check(run, plan.count + around);
        if (run->rank == 0)
            schedule_advance(&plan, elapsed_s);
    }
}

/* Operations of this rank until the time is over: a fixed number could take any time once ranks
 * wait for each other. */
static double free_time(struct rma_run *run, double batch_s)
{
    const bool inside = run->pattern->kind == RMA_ALL_PASSIVE;
    double start_s, now_s, before_s;
    uint64_t chunk = 1;

    if (inside)
        MPI_Win_lock_all(0, run->win);
    run->pattern->repeat(run, 1);
    start_s = now_s = schedule_clock_s();
    do {
        before_s = now_s;
        run->pattern->repeat(run, chunk);
        now_s = schedule_clock_s();
        if (chunk < FREE_CHUNK && now_s - before_s < batch_s / 100)
            chunk *= 2;
    } while (now_s - start_s < batch_s);
    if (inside)
        MPI_Win_unlock_all(run->win);
    return now_s - start_s;
}

/* When ranks do not keep pace, the time of one operation is the mean over all ranks' operations. */
static double measure_free(struct rma_run *run, const struct schedule_limits *limits)
{
    const double start_s = schedule_clock_s();
    double best_s = 0;

    for (int batch = 0, more = 1; more; batch++) {
        batch_prepare(run);
        double elapsed_s = free_time(run, limits->batch_s), sum_s = 0;
        uint64_t timed = 0;
        MPI_Allgather(&run->done, 1, MPI_UINT64_T, run->done_by, 1, MPI_UINT64_T, MPI_COMM_WORLD);
        batch_check(run, run->done);
        MPI_Reduce(&elapsed_s, &sum_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        for (int rank = 0; rank < run->ranks; rank++)
            timed += run->done_by[rank] - 1;
        if (batch == 0 || sum_s / (double)timed < best_s)
            best_s = sum_s / (double)timed;
        more = batch + 1 < limits->batches && schedule_clock_s() - start_s < limits->budget_s;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return best_s;
}

/* Operations of rank 0, each after a pause, while rank 1 computes. Returns their number, and their
 * median time. */
static int time_at_busy(struct rma_run *run, int most, double begin_s, double *median_s)
{
    double took_s[BUSY_SAMPLES];
    int count = 0;

    while (count == 0 ||
           (count < most && schedule_clock_s() - begin_s < compute_s - busy_margin_s)) {
        /* longer at first, until rank 1 computes */
        const long pause_ns = count == 0 ? FIRST_PAUSE_NS : BUSY_PAUSE_NS;
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        took_s[count++] = repeat_timed(run, 1);
    }
    *median_s = schedule_median(took_s, count);
    return count;
}

/* The time of rank 0's operation while rank 1 computes without any MPI call, not even MPI_Wtime. It
 * measures the first operation, or later ones; if an operation waits for the end of the
 * computation, it is the only one. */
static double measure_busy(struct rma_run *run)
{
    const uint64_t before = run->pattern->kind == RMA_BUSY_AGAIN;
    double elapsed_s = 0;
    int count = 1;

    batch_prepare(run);
    if (before) {
        if (run->rank == 0)
            run->pattern->repeat(run, 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    double start_s = schedule_clock_s();
    if (run->rank == 1)
        while (schedule_clock_s() - start_s < compute_s)
            continue;
    if (run->rank == 0) {
        if (run->pattern->renew) { /* the timed operation has data that no earlier one had */
            run->pattern->renew(run);
            run->renewed = before;
        }
        count = time_at_busy(run, before ? BUSY_SAMPLES : 1, start_s, &elapsed_s);
    }
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    batch_check(run, before + (uint64_t)count);
    return elapsed_s;
}

bool rma_measure(struct rma_run *run, const struct schedule_limits *limits, double *best_s_out)
{
    const bool busy = run->pattern->kind == RMA_BUSY || run->pattern->kind == RMA_BUSY_AGAIN;

    *best_s_out = busy                          ? measure_busy(run)
                  : is_free(run->pattern->kind) ? measure_free(run, limits)
                                                : measure_batches(run, limits);
    int wrong = run->wrong;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !wrong;
}
