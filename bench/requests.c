/* Request-based operations of 8 bytes from rank 0 to rank 1: rput and rget with a wait each, and 64
 * rputs with one waitall. A wait completes a put only at its origin, so each timed loop ends with a
 * flush. timing.c drives the table at the end. */
#include "words.h"

static const int target = WORDS_TARGET;

static size_t place_of(uint64_t operation)
{
    return operation % RMA_SLOTS * sizeof(uint64_t);
}

static void put_begin(struct rma_run *run, MPI_Request *request)
{
    const size_t at = place_of(run->done);
    words_head_set(run->buffer + at, words_stamp(run) + run->done++);
    MPI_Rput(run->buffer + at, 1, MPI_UINT64_T, target, run->begin[target] + (MPI_Aint)at, 1,
             MPI_UINT64_T, run->win, request);
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
    /* MPICH declares the array so that gcc warns about MPI_STATUSES_IGNORE */
    MPI_Status statuses[RMA_SLOTS];
    while (count > 0) {
        int group = count < RMA_SLOTS ? (int)count : RMA_SLOTS;
        for (int i = 0; i < group; i++)
            put_begin(run, &run->requests[i]);
        MPI_Waitall(group, run->requests, statuses);
        count -= (uint64_t)group;
    }
    MPI_Win_flush(target, run->win);
}

static void rget_wait(struct rma_run *run, uint64_t count)
{
    MPI_Request request;
    uint64_t differ = 0;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        const uint64_t head = run->heads[run->done % RMA_SLOTS];
        const size_t at = place_of(run->done);
        words_head_set(run->buffer + at, ~head);
        MPI_Rget(run->buffer + at, 1, MPI_UINT64_T, target, run->begin[target] + (MPI_Aint)at, 1,
                 MPI_UINT64_T, run->win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        differ |= words_head_differs(run->buffer + at, head);
    }
    run->wrong |= differ != 0;
}

#define REQUESTS(its_name, its_repeat, its_check, its_look)                                        \
    {                                                                                              \
        .name = its_name, .prepare = words_prepare, .repeat = its_repeat, .check = its_check,      \
        .renew = words_renew, .look = its_look                                                     \
    }

const struct rma_pattern rma_requests[] = {
    REQUESTS("rput-wait", rput_wait, words_put_check, words_look),
    REQUESTS("rget-wait", rget_wait, words_get_check, NULL),
    REQUESTS("rput-64-waitall", rput_waitall, words_put_check, words_look),
    {0},
};
