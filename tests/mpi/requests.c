/* Operations with a request: the request completes by every completion function, and what it promises holds.
 * Waiting on a put or accumulate frees the origin buffer; waiting on a get or get_accumulate brings the data.
 * A plain MPI program, run by the test rows. */
#include "harness.h"

#include <string.h>

static int right_of(int rank) { return (rank + 1) % world_size; }

/* Completes the request in one of the four ways. */
static void complete(MPI_Request *request, int way)
{
    MPI_Status status;
    int done = 0, index = -1;
    switch (way % 4) {
    case 0: CHECK_OK(MPI_Wait(request, MPI_STATUS_IGNORE)); break;
    case 1:
        while (!done)
            CHECK_OK(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        break;
    case 2: CHECK_OK(MPI_Waitall(1, request, &status)); break;
    default: CHECK_OK(MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE)); break;
    }
    CHECK(*request == MPI_REQUEST_NULL, "a completed request is not MPI_REQUEST_NULL");
}

static void rget_brings_the_data_at_its_wait(enum window_kind kind)
{
    struct window window = window_make(kind, (MPI_Aint)8 * world_size, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base;
    for (int i = 0; i < world_size; i++)
        words[i] = 100 * world_rank + i;
    MPI_Win_sync(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int way = 0; way < 8; way++) {
        int64_t seen = -1;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rget(&seen, 1, MPI_INT64_T, right_of(world_rank), world_rank, 1, MPI_INT64_T, window.win, &request);
        complete(&request, way);
        CHECK_EQUAL(seen, 100 * right_of(world_rank) + world_rank);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void rput_frees_its_buffer_at_its_wait(enum window_kind kind)
{
    struct window window = window_make(kind, (MPI_Aint)8 * world_size * 8, 8, MPI_COMM_WORLD);
    const int64_t *words = (const int64_t *)window.base;
    MPI_Win_lock_all(0, window.win);
    for (int way = 0; way < 8; way++) {
        int64_t value = 1000 * way + world_rank;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rput(&value, 1, MPI_INT64_T, right_of(world_rank), 8 * world_rank + way, 1, MPI_INT64_T, window.win, &request);
        complete(&request, way);
        value = -1;
    }
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window.win);
    int origin = (world_rank + world_size - 1) % world_size;
    for (int way = 0; way < 8; way++)
        CHECK_EQUAL(words[8 * origin + way], 1000 * way + origin);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void many_requests_complete_together(enum window_kind kind)
{
    enum { MANY = 64 };
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    MPI_Request requests[2 * MANY];
    MPI_Status statuses[2 * MANY];
    int64_t one[MANY], old[MANY], total = 0;
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < MANY; i++) {
        one[i] = 1;
        old[i] = -1;
        MPI_Raccumulate(&one[i], 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, window.win, &requests[2 * i]);
        MPI_Rget_accumulate(&one[i], 1, MPI_INT64_T, &old[i], 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, window.win,
                            &requests[2 * i + 1]);
    }
    CHECK_OK(MPI_Waitall(2 * MANY, requests, statuses));
    for (int i = 0; i < MANY; i++)
        CHECK(old[i] >= (i ? old[i - 1] + 1 : 0) && old[i] < (int64_t)MANY * world_size, "result %d is %lld", i,
              (long long)old[i]);
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int word = 0; word < 2; word++) {
        MPI_Fetch_and_op(NULL, &total, MPI_INT64_T, 0, word, MPI_NO_OP, window.win);
        MPI_Win_flush(0, window.win);
        CHECK_EQUAL(total, (int64_t)MANY * world_size);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void proc_null_gives_a_completed_request(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int64_t word = 5;
    MPI_Request requests[4] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL };
    MPI_Status statuses[4];
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(MPI_Rput(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win, &requests[0]));
    CHECK_OK(MPI_Rget(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win, &requests[1]));
    CHECK_OK(MPI_Raccumulate(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM, window.win, &requests[2]));
    CHECK_OK(MPI_Rget_accumulate(&word, 1, MPI_INT64_T, &word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM,
                                 window.win, &requests[3]));
    CHECK_OK(MPI_Waitall(4, requests, statuses));
    CHECK_EQUAL(word, 5);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void requests_are_refused_outside_passive_epochs(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int64_t word = 5;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Rput(&word, 1, MPI_INT64_T, right_of(world_rank), 0, 1, MPI_INT64_T, window.win,
                                           &request));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Rget(&word, 1, MPI_INT64_T, right_of(world_rank), 0, 1, MPI_INT64_T, window.win,
                                           &request));
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Rput(&word, 1, MPI_INT64_T, right_of(world_rank), 1, 1, MPI_INT64_T, window.win,
                                            &request));
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(rget_brings_the_data_at_its_wait, KINDS_ALL, 1),
    CASE(rput_frees_its_buffer_at_its_wait, KINDS_ALL, 1),
    CASE(many_requests_complete_together, KINDS_ALL, 1),
    CASE(proc_null_gives_a_completed_request, KINDS_BOTH, 1),
    CASE(requests_are_refused_outside_passive_epochs, KINDS_BOTH, 1),
};

int main(int argc, char **argv) { return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases)); }
