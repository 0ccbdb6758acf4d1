/* MPI's progress rule (MPI-4.1, 2.9): while a call of a window waits, the host's outstanding
 * communication must progress. In each case rank 0 has an outstanding send that needs its help. It
 * waits in a window for rank 1, which waits for that message. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { LONG_BYTES = 1 << 20 };

static MPI_Request request;
static char *message;

static void send_begin(void)
{
    message = calloc(1, LONG_BYTES);
    if (world_rank == 0)
        MPI_Isend(message, LONG_BYTES, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &request);
}

static void receive(void)
{
    MPI_Recv(message, LONG_BYTES, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_end(void)
{
    if (world_rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(message);
}

static void a_fence_lets_a_send_progress(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    send_begin();
    if (world_rank == 1)
        receive();
    CHECK_OK(MPI_Win_fence(0, window.win));
    send_end();
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    window_free(&window);
}

static void a_fence_lets_a_barrier_progress(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (world_rank == 1)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    if (world_rank != 1)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    window_free(&window);
}

static MPI_Group group_of(MPI_Win win, int rank)
{
    MPI_Group all, one;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &rank, &one);
    MPI_Group_free(&all);
    return one;
}

static void exposure(enum window_kind kind, bool poll)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    MPI_Group other = group_of(window.win, world_rank == 0 ? 1 : 0);
    int done = 0;
    send_begin();
    if (world_rank == 0) {
        CHECK_OK(MPI_Win_post(other, 0, window.win));
        while (poll && !done)
            CHECK_OK(MPI_Win_test(window.win, &done));
        if (!poll)
            CHECK_OK(MPI_Win_wait(window.win));
    } else if (world_rank == 1) {
        CHECK_OK(MPI_Win_start(other, 0, window.win));
        receive();
        CHECK_OK(MPI_Win_complete(window.win));
    }
    send_end();
    MPI_Group_free(&other);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void a_wait_lets_a_send_progress(enum window_kind kind)
{
    exposure(kind, false);
}
static void a_test_lets_a_send_progress(enum window_kind kind)
{
    exposure(kind, true);
}

static void a_lock_lets_a_send_progress(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    if (world_rank == 1)
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
    barrier(MPI_COMM_WORLD);
    send_begin();
    if (world_rank == 0)
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
    if (world_rank == 1)
        receive();
    if (world_rank < 2)
        CHECK_OK(MPI_Win_unlock(0, window.win));
    send_end();
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void polling_lets_a_send_progress(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    int nothing = 0, one = 1, flag = 0;
    memset(window.base, 0, 64);
    MPI_Win_lock_all(0, window.win);
    barrier(MPI_COMM_WORLD);
    send_begin();
    while (world_rank == 0 && flag == 0) {
        MPI_Fetch_and_op(&nothing, &flag, MPI_INT, 0, 0, MPI_SUM, window.win);
        MPI_Win_flush(0, window.win);
    }
    if (world_rank == 1) {
        receive();
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window.win);
    }
    send_end();
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void freeing_lets_a_send_progress(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    send_begin();
    if (world_rank == 1)
        receive();
    window_free(&window);
    send_end();
}

static const struct test_case cases[] = {
    CASE(a_fence_lets_a_send_progress, KINDS_BOTH, 2),
    CASE(a_fence_lets_a_barrier_progress, KIND_ALLOCATE, 2),
    CASE(a_wait_lets_a_send_progress, KIND_ALLOCATE, 2),
    CASE(a_test_lets_a_send_progress, KIND_ALLOCATE, 2),
    CASE(a_lock_lets_a_send_progress, KIND_ALLOCATE, 2),
    CASE(polling_lets_a_send_progress, KINDS_BOTH, 2),
    CASE(freeing_lets_a_send_progress, KIND_ALLOCATE, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
