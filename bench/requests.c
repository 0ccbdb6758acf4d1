/* Request-based operations of 8 bytes from rank 0 to rank 1: rput and rget with a wait each, and 64 rputs with one waitall.
 * Waiting completes a put at its origin only, so a flush ends each loop inside its time.
 * Driven by timing.c through the table at the end. */
#include "rma.h"

static const int target = 1;

static size_t place_of(uint64_t operation)
{
    return operation % RMA_SLOTS * sizeof(uint64_t);
}

static void prepare(struct rma_run *run)
{
    data_fill(run->mine, run->span_bytes + RMA_GUARD_BYTES, rma_target_seed(run, run->rank));
    data_fill(run->buffer, run->span_bytes + RMA_GUARD_BYTES, rma_origin_seed(run, run->rank));
}

/* Places behind the last operation's keep what was there, before the first round is complete. */
static bool moved(const struct rma_run *run, const char *memory, uint64_t before, uint64_t after)
{
    const size_t bytes = run->done < RMA_SLOTS ? place_of(run->done) : run->span_bytes;
    return data_holds(memory, bytes, after) &&
           data_holds_from(memory + bytes, bytes, run->span_bytes + RMA_GUARD_BYTES - bytes, before);
}

static void put_begin(struct rma_run *run, MPI_Request *request)
{
    const size_t at = place_of(run->done++);
    MPI_Rput(run->buffer + at, 1, MPI_UINT64_T, target, run->begin[target] + (MPI_Aint)at, 1, MPI_UINT64_T, run->win,
             request);
}

static void rput_wait(struct rma_run *run, uint64_t count)
{
    MPI_Request request;
    for (uint64_t i = 0; i < count; i++) {
        put_begin(run, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_flush(target, run->win);
}

/* One operation is one rput. */
static void rput_waitall(struct rma_run *run, uint64_t count)
{
    MPI_Status statuses[RMA_SLOTS]; /* MPICH declares the array so that gcc warns of MPI_STATUSES_IGNORE */
    while (count > 0) {
        int group = count < RMA_SLOTS ? (int)count : RMA_SLOTS;
        for (int i = 0; i < group; i++)
            put_begin(run, &run->requests[i]);
        MPI_Waitall(group, run->requests, statuses);
        count -= (uint64_t)group;
    }
    MPI_Win_flush(target, run->win);
}

static void put_check(struct rma_run *run)
{
    if (run->rank == target)
        run->wrong |= !moved(run, run->mine, rma_target_seed(run, target), rma_origin_seed(run, 0));
}

static void rget_wait(struct rma_run *run, uint64_t count)
{
    MPI_Request request;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        const size_t at = place_of(run->done);
        MPI_Rget(run->buffer + at, 1, MPI_UINT64_T, target, run->begin[target] + (MPI_Aint)at, 1, MPI_UINT64_T, run->win,
                 &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void get_check(struct rma_run *run)
{
    if (run->rank == 0)
        run->wrong |= !moved(run, run->buffer, rma_origin_seed(run, 0), rma_target_seed(run, target));
}

const struct rma_pattern rma_requests[] = {
    {.name = "rput-wait", .prepare = prepare, .repeat = rput_wait, .check = put_check},
    {.name = "rget-wait", .prepare = prepare, .repeat = rget_wait, .check = get_check},
    {.name = "rput-64-waitall", .prepare = prepare, .repeat = rput_waitall, .check = put_check},
    {0},
};
