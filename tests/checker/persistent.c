/* Persistent operations: each start is an access, as an operation with a request is one. */
#include "offenders.h"

#include <oriel/ext.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes a request on a window that it frees: each start fails, and is not the checker's business.
 * Errors without a window are returned until freed_window_forget. */
static MPI_Request freed_window_request(void)
{
    MPI_Request request;
    MPI_Win win = ints_window(1);
    MPIX_Put_init(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win, &request);
    MPI_Win_free(&win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return request;
}

static void freed_window_forget(MPI_Request *request)
{
    MPI_Request_free(request);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void expect_freed_window(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    if (class != MPI_ERR_WIN)
        abort();
}

/* The completion of the request does not complete a put at the target. The first start is beside
 * one that fails. */
CASE(E17, put_started_twice_without_a_flush, 2)
{
    MPI_Request requests[2];
    MPI_Win win = ints_window(2);
    requests[0] = freed_window_request();
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_init(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &requests[1]); /* FINDS E17 here */
        expect_freed_window(MPI_Startall(2, requests)); /* FINDS E17 here */
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        if (right)
            MPI_Win_flush(1, win);
        MPI_Start(&requests[1]); /* FINDS E17 here */
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Request_free(&requests[1]);
    }
    freed_window_forget(&requests[0]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The datatype is freed before the start. */
CASE(C1, started_put_beside_a_get, 2)
{
    int got, values[3] = {1, 2, 3};
    MPI_Request request;
    MPI_Datatype both;
    MPI_Win win = ints_window(4);
    MPI_Type_vector(2, 1, 2, MPI_INT, &both);
    MPI_Type_commit(&both);
    if (rank == 0)
        MPIX_Put_init(values, 1, both, 1, 0, 1, both, win, &request); /* FINDS C1 here */
    MPI_Type_free(&both);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Start(&request); /* FINDS C1 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    if (rank == 1)
        MPI_Get(&got, 1, MPI_INT, 1, right ? 1 : 2, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The completion of the request completes a get. */
CASE(C1, started_get_that_is_not_waited_for, 2)
{
    int got;
    MPI_Request request;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Get_init(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS C1 here */
        MPI_Start(&request); /* FINDS C1 here */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A pair with an index of 64 bits. */
struct best {
    double value;
    int64_t at;
};

static MPI_Datatype best_type(void)
{
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0, offsetof(struct best, at)};
    const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT64_T};
    MPI_Datatype made;
    MPI_Type_create_struct(2, lengths, places, types, &made);
    MPI_Type_commit(&made);
    return made;
}

/* Accumulates are atomic with accumulates. The datatype of pairs is freed before the start. */
CASE(E17, started_accumulate_beside_a_put, 2)
{
    enum { STARTED = 6 };
    int before, found;
    struct best offered = {1, 2}, former;
    MPI_Request requests[STARTED];
    MPI_Win win = ints_window(8);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Datatype pair = best_type();
        MPIX_Accumulate_init(&size, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win, &requests[0]); /* FINDS E17 here */
        MPIX_Get_accumulate_init(&size, 1, MPI_INT, &before, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM,
                                 win, &requests[1]);
        MPIX_Fetch_and_op_init(&size, &before, MPI_INT, 1, 0, MPI_SUM, win, &requests[2]);
        MPIX_Compare_and_swap_init(&size, &size, &found, MPI_INT, 1, 0, win, &requests[3]);
        MPIX_Accumulate_init(&offered, 1, pair, 1, 4, 1, pair, MPI_MAXLOC, win, &requests[4]);
        MPIX_Fetch_and_op_init(&offered, &former, pair, 1, 4, MPI_MAXLOC, win, &requests[5]);
        MPI_Type_free(&pair);
        for (int i = 0; i < STARTED; i++) {
            MPI_Start(&requests[i]); /* FINDS E17 here */
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
        if (right)
            MPI_Win_flush(1, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E17 here */
        for (int i = 0; i < STARTED; i++)
            MPI_Request_free(&requests[i]);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C4, origin_of_a_start_that_is_not_waited_for, 2)
{
    int value = 1;
    MPI_Request request;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_init(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS C4 here */
        MPI_Start(&request); /* FINDS C4 here */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Get(&value, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(E17, started_request_is_not_the_target, 2)
{
    MPI_Request request;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_init(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS E17 here */
        MPI_Start(&request); /* FINDS E17 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (right)
            MPI_Win_flush(1, win);
        MPI_Request_free(&request);
        notify(1);
    }
    if (rank == 1) {
        int got;
        await_notice(0);
        MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E17 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(E1, start_before_any_epoch, 2)
{
    MPI_Request request;
    MPI_Win win = ints_window(4);
    MPIX_Put_init(&rank, 1, MPI_INT, (rank + 1) % size, 2, 1, MPI_INT, win, &request); /* FINDS E1 here */
    if (right)
        MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Start(&request); /* FINDS E1 here, saying 'bytes 8 to 11' */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    fence_and_free(win);
    MPI_Request_free(&request);
}

CASE(A4, request_for_the_rank_after_the_last, 2)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win win = ints_window(4);
    if (rank == 0)
        MPIX_Put_init(&rank, 1, MPI_INT, right ? size - 1 : size, 0, 1, MPI_INT, win, /* FINDS A4 here */
                      &request);
    if (request != MPI_REQUEST_NULL)
        MPI_Request_free(&request);
    MPI_Win_free(&win);
}

CASE(E20, start_of_an_active_put, 2)
{
    MPI_Request request;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_init(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS E20 here */
        MPI_Start(&request); /* FINDS E20 here */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_flush(1, win);
        MPI_Startall(1, &request); /* FINDS E20 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* MPI_Startall starts the requests beside one that fails and one that is reported. */
CASE(E20, second_start_after_a_startall, 2)
{
    enum { FREED, MESSAGE, REPORTED, RIGHT, STARTED };
    int got = -1;
    MPI_Request requests[STARTED];
    MPI_Win win = ints_window(2);
    requests[FREED] = freed_window_request();
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Recv_init(&got, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &requests[MESSAGE]);
        MPIX_Put_init(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &requests[REPORTED]);
        MPIX_Put_init(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win, &requests[RIGHT]); /* FINDS E20 here */
        MPI_Start(&requests[REPORTED]);
        if (right)
            MPI_Wait(&requests[REPORTED], MPI_STATUS_IGNORE);
        MPI_Win_flush(1, win);
        expect_freed_window(MPI_Startall(STARTED, requests)); /* FINDS E20 here */
        if (right)
            MPI_Wait(&requests[RIGHT], MPI_STATUS_IGNORE);
        MPI_Win_flush(1, win);
        MPI_Start(&requests[RIGHT]); /* FINDS E20 here */
        MPI_Send(&rank, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
        for (int i = MESSAGE; i < STARTED; i++) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            MPI_Request_free(&requests[i]);
        }
        if (got != rank)
            abort();
    }
    freed_window_forget(&requests[FREED]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(E20, start_of_an_active_request_of_notifications, 2)
{
    MPI_Request request;
    MPI_Win win = hinted_window(1, "oriel_notifications", "1");
    MPI_Win_lock_all(0, win);
    if (rank == 1)
        for (int i = 0; i < 2; i++)
            MPIX_Put_notify(NULL, 0, MPI_INT, 0, 0, 0, MPI_INT, 0, win);
    if (rank == 0) {
        int flag = 0;
        MPIX_Win_notify_init(win, 0, 1, &request); /* FINDS E20 here */
        MPI_Start(&request); /* FINDS E20 here */
        while (right && !flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        MPI_Start(&request); /* FINDS E20 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
