/* Calls that complete an operation, and calls that only seem to. Rank 0 puts and then makes an
 * insufficient call; rank 1 receives a message and reads. */
#include "offenders.h"

static void read_after_news(MPI_Win win)
{
    int got = 0;
    if (rank == 0)
        notify(1);
    if (rank == 1) {
        await_notice(0);
        MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(E17, request_is_not_the_target, 2)
{
    MPI_Request request;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Rput(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS E17 here */
        delay();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (right)
            MPI_Win_flush(1, win);
    }
    read_after_news(win);
}

CASE(E18, local_flush_is_not_the_target, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E18 here */
        delay();
        MPI_Win_flush_local(1, win);
        if (right)
            MPI_Win_flush_all(win);
    }
    read_after_news(win);
}

CASE(E19, flush_of_the_wrong_rank, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E19 here */
        delay();
        MPI_Win_flush(right ? 1 : 0, win);
    }
    read_after_news(win);
}

/* --- truncated receives: a failed receive is complete, for every function that waits for it --- */

static int room;

/* MPICH raises errors of awaited requests at another handler than that of their communicator. */
static void set_handlers(MPI_Errhandler handler)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}

static MPI_Win receive_less_than_is_sent(MPI_Comm *comm, MPI_Request *request)
{
    static const int sent[2] = {1, 2};
    MPI_Win win = ints_window(4);
    MPI_Comm_dup(MPI_COMM_WORLD, comm);
    MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
    set_handlers(MPI_ERRORS_RETURN);
    *request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Send(sent, 2, MPI_INT, 1, 0, *comm);
    if (rank == 1)
        MPI_Irecv(&room, 1, MPI_INT, 0, 0, *comm, request);
    MPI_Win_lock_all(0, win);
    return win;
}

static void end_of_receive(MPI_Win win, MPI_Comm *comm, MPI_Request *request)
{
    MPI_Win_unlock_all(win);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    set_handlers(MPI_ERRORS_ARE_FATAL);
    MPI_Win_free(&win);
    MPI_Comm_free(comm);
}

CASE(C4, put_of_a_buffer_larger_than_the_received_message, 2)
{
    MPI_Comm comm;
    MPI_Request request;
    MPI_Win win = receive_less_than_is_sent(&comm, &request);
    int at;
    while (right && request != MPI_REQUEST_NULL)
        MPI_Waitany(1, &request, &at, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Put(&room, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
    end_of_receive(win, &comm, &request);
}

CASE(C4, put_of_a_buffer_larger_than_the_tested_message, 2)
{
    MPI_Comm comm;
    MPI_Request request;
    MPI_Win win = receive_less_than_is_sent(&comm, &request);
    int at, flag;
    while (right && request != MPI_REQUEST_NULL)
        MPI_Testany(1, &request, &at, &flag, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Put(&room, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
    end_of_receive(win, &comm, &request);
}

/* A truncated persistent receive is complete, too, and its request stays valid. */
CASE(C4, put_of_a_buffer_larger_than_the_persistent_message, 2)
{
    enum { VARIANTS = 4 };
    static const int sent[2] = {1, 2};
    static int rooms[VARIANTS];
    MPI_Comm comm;
    MPI_Request requests[VARIANTS];
    MPI_Win win = ints_window(VARIANTS);
    int at, flag = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    set_handlers(MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    for (int variant = 0; variant < VARIANTS && rank == 0; variant++)
        MPI_Send(sent, 2, MPI_INT, 1, variant, comm);
    for (int variant = 0; variant < VARIANTS && rank == 1; variant++) {
        MPI_Recv_init(&rooms[variant], 1, MPI_INT, 0, variant, comm, &requests[variant]);
        MPI_Start(&requests[variant]);
        if (right && variant == 0)
            MPI_Wait(&requests[variant], MPI_STATUS_IGNORE);
        if (right && variant == 1)
            MPI_Waitany(1, &requests[variant], &at, MPI_STATUS_IGNORE);
        while (right && variant == 2 && !flag &&
               MPI_Test(&requests[variant], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            continue;
        flag = 0;
        while (right && variant == 3 && !flag &&
               MPI_Testany(1, &requests[variant], &at, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            continue;
        MPI_Put(&rooms[variant], 1, MPI_INT, 1, variant, 1, MPI_INT, win); /* FINDS C4 here */
    }
    MPI_Win_unlock_all(win);
    for (int variant = 0; variant < VARIANTS && rank == 1; variant++) {
        MPI_Wait(&requests[variant], MPI_STATUS_IGNORE);
        if (requests[variant] != MPI_REQUEST_NULL)
            MPI_Request_free(&requests[variant]);
    }
    set_handlers(MPI_ERRORS_ARE_FATAL);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}
