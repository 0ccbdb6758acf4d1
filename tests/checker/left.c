/* Calls that the program's error handlers, or other functions that MPI calls back, leave by a jump: what has begun in them will not
 * come to its end, and what is called behind them is looked at like all else. */
#include "offenders.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

static jmp_buf back;

static void jump_of_comm(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(back, 1);
}

static void jump_of_win(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
    longjmp(back, 1);
}

CASE_APART(E1, behind_a_handler_that_jumps, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled(MPI_COMM_SELF, jump_of_comm);
    if (rank == 1 && calls_back() && setjmp(back) == 0)
        MPI_Send(&rank, 1, MPI_INT, 1, 0, comm); /* there is no such rank */
    if (right)
        MPI_Win_fence(0, win);
    MPI_Get(&size, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    if (right)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

/* Calls that fail when what they send has been numbered; messages behind them go to the same rank. */
CASE_APART(E1, behind_sends_that_are_left, 2)
{
    enum { WAYS = 3, TAG = 7 };
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled(MPI_COMM_WORLD, jump_of_comm);
    MPI_Request request;
    int got = 0;
    for (volatile int way = 0; rank == 1 && calls_back() && way < WAYS; way++)
        if (setjmp(back) == 0) {
            if (way == 0)
                MPI_Send(&rank, -1, MPI_INT, 0, TAG, comm);
            else if (way == 1)
                MPI_Sendrecv(&rank, -1, MPI_INT, 0, TAG, &got, 1, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
            else
                MPI_Isend(&rank, -1, MPI_INT, 0, TAG, comm, &request);
        }
    for (int round = 0; rank < 2 && round < 3; round++) {
        if (rank == 1)
            MPI_Send(&rank, 1, MPI_INT, 0, TAG, comm);
        if (rank == 0)
            MPI_Recv(&got, 1, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE);
    }
    if (right)
        MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    if (right)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static int deep;

static void deeper(MPI_Comm *comm, int *code, ...)
{
    enum { DEPTH = 40 };
    (void)code;
    if (++deep < DEPTH)
        MPI_Send(&rank, 1, MPI_INT, 1, 0, *comm); /* there is no such rank */
    longjmp(back, 1);
}

CASE_APART(E1, behind_many_handlers_in_each_other, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled(MPI_COMM_SELF, deeper);
    deep = 0;
    if (calls_back() && setjmp(back) == 0)
        MPI_Send(&rank, 1, MPI_INT, 1, 0, comm); /* there is no such rank */
    if (right)
        MPI_Win_fence(0, win);
    MPI_Get(&size, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    if (right)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

/* One rank's broadcast has met nobody: the barriers behind it are not those of the same number of the others. */
CASE_APART(C1, order_behind_broadcasts_that_fail, 2)
{
    enum { ROUNDS = 4 };
    MPI_Win win = ints_window(2 * ROUNDS);
    MPI_Comm comms[] = {comm_handled(MPI_COMM_WORLD, jump_of_comm), comm_handled(MPI_COMM_WORLD, jump_of_comm)};
    MPI_Comm_set_errhandler(comms[1], MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    for (volatile int way = calls_back() ? 0 : 1; way < 2; way++) {
        if (rank == 0 && setjmp(back) == 0)
            MPI_Bcast(&size, 1, MPI_INT, size, comms[way]); /* there is no such rank */
        MPI_Barrier(MPI_COMM_WORLD);
        usleep(rank == 1 ? 400000 : 200000); /* until all are out of it: who comes out takes all that others have done by then */
        for (int round = 0; round < ROUNDS; round++) {
            if (rank == 1) {
                MPI_Put(&rank, 1, MPI_INT, 0, way * ROUNDS + round, 1, MPI_INT, win); /* FINDS C1 here */
                MPI_Win_flush(0, win);
            }
            if (right)
                MPI_Barrier(comms[way]);
            if (rank == 0)
                MPI_Put(&rank, 1, MPI_INT, 0, way * ROUNDS + round, 1, MPI_INT, win); /* FINDS C1 here */
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}

CASE_APART(C4, buffers_of_calls_that_are_left, 2)
{
    enum { WAYS = 4 };
    static int buffer;
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled(MPI_COMM_WORLD, jump_of_comm);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock_all(0, win);
    if (rank == 1 && !right)
        MPI_Irecv(&buffer, 1, MPI_INT, 1, 0, comm, &request);
    for (volatile int way = 0; right && rank == 1 && calls_back() && way < WAYS; way++)
        if (setjmp(back) == 0) { /* with no such rank */
            if (way == 0)
                MPI_Isend(&buffer, 1, MPI_INT, size, 0, comm, &request);
            else if (way == 1)
                MPI_Irecv(&buffer, 1, MPI_INT, size, 0, comm, &request);
            else if (way == 2)
                MPI_Ibcast(&buffer, 1, MPI_INT, size, comm, &request);
            else
                MPI_Issend(&buffer, 1, MPI_INT, size, 0, comm, &request);
        }
    if (rank == 1)
        MPI_Get(&buffer, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C4 here */
    MPI_Win_unlock_all(win);
    if (rank == 1 && !right) {
        MPI_Send(&rank, 1, MPI_INT, 1, 0, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

/* For completions: the predefined ones' handler, too, for MPICH does not look whose request has failed.  Where a handler may not
 * jump, the calls return. */
static MPI_Comm comm_handled_everywhere(MPI_Comm_errhandler_function *function)
{
    MPI_Comm comm = comm_handled(MPI_COMM_WORLD, function);
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    if (calls_back())
        MPI_Comm_get_errhandler(comm, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    return comm;
}

static MPI_Comm comm_that_jumps(void)
{
    return comm_handled_everywhere(jump_of_comm);
}

/* A wait for two requests that ends with the error of one: the other goes on, and is over with the next wait for it. */
CASE_APART(C4, request_of_a_wait_that_is_left, 2)
{
    int few, later = 0;
    int pair[] = {1, 2};
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_that_jumps();
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Send(pair, 2, MPI_INT, 0, 0, comm);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(pair, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        MPI_Request requests[2];
        int index;
        MPI_Irecv(&few, 1, MPI_INT, 1, 0, comm, &requests[0]); /* of two */
        MPI_Irecv(&later, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
        if (setjmp(back) == 0)
            MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        if (right)
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Get(&later, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
        if (!right)
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

enum { COMPLETIONS = 8 };

/* Until a request of two is over; the second is none. */
static void complete(int way, MPI_Request requests[2])
{
    int flag = 0, index, count, indices[2];
    MPI_Status statuses[2];
    switch (way) {
    case 0: MPI_Wait(requests, statuses); break;
    case 1: MPI_Waitany(2, requests, &index, statuses); break;
    case 2: MPI_Waitall(2, requests, statuses); break;
    case 3: MPI_Waitsome(2, requests, &count, indices, statuses); break;
    case 4:
        while (!flag)
            MPI_Test(requests, &flag, statuses);
        break;
    case 5:
        while (!flag)
            MPI_Testany(2, requests, &index, &flag, statuses);
        break;
    case 6:
        while (!flag)
            MPI_Testall(2, requests, &flag, statuses);
        break;
    default:
        while (flag == 0)
            MPI_Testsome(2, requests, &flag, indices, statuses);
    }
}

/* A receive of too little: it is over when its completion fails, in whatever call. */
CASE_APART(C4, buffers_of_completions_that_are_left, 2)
{
    static int buffer[COMPLETIONS][2];
    int pair[] = {1, 2};
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_that_jumps();
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Win_lock_all(0, win);
    for (volatile int way = 0; way < COMPLETIONS; way++) {
        if (rank == 1)
            MPI_Send(pair, right && calls_back() ? 2 : 1, MPI_INT, 0, way, comm); /* Open MPI's threads may hang otherwise */
        if (rank == 0) {
            MPI_Irecv(buffer[way], 1, MPI_INT, 1, way, comm, &requests[0]);
            if (right && setjmp(back) == 0)
                complete(way, requests);
            MPI_Get(buffer[way], 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
            MPI_Win_flush(1, win);
            if (!right)
                complete(way, requests);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

/* One that persists, started again: of neither start is anything left. */
CASE_APART(C4, buffer_of_a_persistent_receive_that_is_left, 2)
{
    int few = 0;
    int pair[] = {1, 2};
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_that_jumps();
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Send(pair, calls_back() ? 2 : 1, MPI_INT, 0, 0, comm);
        MPI_Send(pair, 1, MPI_INT, 0, 0, comm);
    }
    if (rank == 0) {
        MPI_Request request;
        MPI_Recv_init(&few, 1, MPI_INT, 1, 0, comm, &request);
        MPI_Start(&request);
        if (setjmp(back) == 0)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (request == MPI_REQUEST_NULL) /* Open MPI makes an end of it */
            MPI_Recv_init(&few, 1, MPI_INT, 1, 0, comm, &request);
        MPI_Start(&request);
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Get(&few, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
        if (!right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static MPI_Comm around;

static void receive_from_1(int first, int count)
{
    int got[4];
    MPI_Status statuses[4];
    MPI_Request requests[4];
    for (int i = 0; i < count; i++)
        MPI_Irecv(&got[i], 1, MPI_INT, 1, first + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(count, requests, statuses);
}

static int leave_and_receive(void *extra, MPI_Status *status)
{
    bool *asked = extra; /* hosts may ask twice */
    if (!*asked && setjmp(back) == 0)
        MPI_Send(&rank, 1, MPI_INT, size, 1, around); /* there is no such rank */
    if (!*asked)
        receive_from_1(30, 4);
    *asked = true;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int free_nothing(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int cancel_nothing(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

/* What the wait around a query function has been given stays its own when a call in the function is left. */
CASE_APART(E1, wait_around_a_call_that_is_left, 2)
{
    bool asked = !calls_back();
    int got = 0;
    MPI_Win win = ints_window(4);
    around = comm_handled(MPI_COMM_WORLD, jump_of_comm);
    if (rank == 0) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Irecv(&got, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Grequest_start(leave_and_receive, free_nothing, cancel_nothing, &asked, &requests[1]);
        MPI_Grequest_complete(requests[1]);
        MPI_Waitall(2, requests, statuses);
        if (!calls_back())
            receive_from_1(30, 4);
    }
    if (rank == 1) {
        MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        for (int i = 0; i < 4; i++)
            MPI_Send(&rank, 1, MPI_INT, 0, 30 + i, MPI_COMM_WORLD);
    }
    if (right)
        MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    if (right)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&around);
}

/* Of a wait for all that fails with one of them the others may be over, too, of whatever kind; what is left is waited for. */
CASE_APART(C4, others_of_a_wait_that_is_left, 2)
{
    enum { REQUESTS = 3 };
    int pair[] = {1, 2};
    int buffers[REQUESTS];
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_that_jumps();
    MPI_Request requests[REQUESTS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[REQUESTS];
    MPI_Win_lock_all(0, win);
    if (rank == 1)
        MPI_Send(pair, right && calls_back() ? 2 : 1, MPI_INT, 0, 0, comm);
    if (rank == 0) {
        MPI_Irecv(&buffers[0], 1, MPI_INT, 1, 0, comm, &requests[0]);
        MPI_Rget(&buffers[1], 1, MPI_INT, 1, 0, 1, MPI_INT, win, &requests[1]);
    }
    MPI_Ibcast(&buffers[2], 1, MPI_INT, 1, comm, &requests[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (right && setjmp(back) == 0)
        MPI_Waitall(REQUESTS, requests, statuses);
    for (int i = 0; right && i < REQUESTS; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; rank == 0 && i < REQUESTS; i++)
        MPI_Get(&buffers[i], 1, MPI_INT, 1, i, 1, MPI_INT, win); /* FINDS C4 here */
    MPI_Win_flush_all(win);
    if (!right)
        MPI_Waitall(REQUESTS, requests, statuses);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static MPI_Comm met;
static MPI_Win put_to;

static void put_and_meet(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, put_to);
    MPI_Win_flush(0, put_to);
    MPI_Barrier(met);
}

/* The barrier in the handler of a reduction that has met nobody is the others' next one. */
CASE_APART(C1, order_in_the_handler_of_a_collective_that_fails, 2)
{
    int sum = 0;
    put_to = ints_window(4);
    met = comm_handled(MPI_COMM_WORLD, put_and_meet);
    MPI_Win_lock_all(0, put_to);
    if (rank == 0 && right && calls_back())
        MPI_Allreduce(&size, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, met);
    else if (rank == 0 && right)
        put_and_meet(&met, &sum);
    else if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, put_to); /* FINDS C1 here */
    else if (right)
        MPI_Barrier(met);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, put_to); /* FINDS C1 here */
    MPI_Win_unlock_all(put_to);
    MPI_Win_free(&put_to);
    MPI_Comm_free(&met);
}

CASE(E1, behind_a_windows_handler_that_jumps, 2)
{
    MPI_Win win = ints_window(4);
    win_handled(win, jump_of_win);
    if (right || !calls_back())
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (rank == 1 && !right && setjmp(back) == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS E1 here */
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
    fence_and_free(win);
}

static MPI_Comm jumps;
static MPI_Win freed_in_handler;

static void free_behind_a_jump(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
    if (setjmp(back) == 0)
        MPI_Send(&rank, 1, MPI_INT, 1, 0, jumps); /* there is no such rank */
    MPI_Win_free(&freed_in_handler);
}

/* The handler that jumps is left, the one around it is not. */
CASE_APART(A4, freed_behind_a_jump_inside_its_error_handler, 2)
{
    MPI_Win win = ints_window(4);
    jumps = comm_handled(MPI_COMM_SELF, jump_of_comm);
    win_handled(win, free_behind_a_jump);
    freed_in_handler = win;
    if (!calls_back())
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (right)
        MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    else
        MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win); /* FINDS A4 here */
    if (!calls_back())
        MPI_Win_free(&win);
    MPI_Comm_free(&jumps);
}

enum { MANY = 1 << 18 }; /* more than a host sends before it is asked for */
static int many[MANY];

static void meet_a_wait_that_is_left(MPI_Comm comm)
{
    static int few;
    int pair[] = {1, 2};
    MPI_Request request;
    if (rank == 1)
        MPI_Send(pair, 2, MPI_INT, 0, 0, comm);
    if (rank == 0) {
        MPI_Irecv(&few, 1, MPI_INT, 1, 0, comm, &request);
        if (setjmp(back) == 0)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* The handle of the request that is over is the next one's. */
CASE_APART(C4, buffer_of_a_send_behind_a_wait_that_is_left, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_that_jumps();
    MPI_Win_lock_all(0, win);
    if (calls_back())
        meet_a_wait_that_is_left(comm);
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(many, MANY, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Get(many, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
        if (!right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 1)
        MPI_Recv(many, MANY, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

/* A communicator that is made by a wait that fails with another request; where it was given to is gone when the handle of its
 * request is another's. */
static MPI_Comm made_by_a_wait_that_is_left(MPI_Comm comm)
{
    static MPI_Request requests[2];
    static MPI_Status statuses[2];
    static int few;
    int pair[] = {1, 2}, none;
    MPI_Comm *given = mmap(NULL, sizeof *given, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rank == 0)
        MPI_Irecv(&few, 1, MPI_INT, 1, 0, comm, &requests[1]);
    if (rank == 1)
        MPI_Send(pair, 2, MPI_INT, 0, 0, comm);
    MPI_Comm_idup(comm, given, &requests[0]);
    for (int i = 0; rank == 0 && i < 300; i++, usleep(1000)) /* so that both are over */
        MPI_Iprobe(1, 99, MPI_COMM_WORLD, &none, MPI_STATUS_IGNORE);
    if (rank == 0 && setjmp(back) == 0)
        MPI_Waitall(2, requests, statuses);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Comm made = *given;
    munmap(given, sizeof *given);
    return made;
}

CASE_APART(E1, behind_a_communicator_whose_wait_is_left, 2)
{
    enum { SENDS = 3 };
    int got;
    MPI_Request requests[SENDS];
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_that_jumps(), made = comm;
    if (calls_back())
        made = made_by_a_wait_that_is_left(comm);
    for (int i = 0; i < SENDS && rank == 0; i++)
        MPI_Isend(many, MANY, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < SENDS && rank == 0; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < SENDS && rank == 1; i++)
        MPI_Recv(many, MANY, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(made);
    if (right)
        MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    if (right)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    if (made != comm)
        MPI_Comm_free(&made);
    MPI_Comm_free(&comm);
}

/* --- functions that return, but have others completed, or jump themselves --- */

static struct {
    MPI_Request requests[2];
    int few, later, first, last;
    bool jumps, starts;
} waited;

static void complete_the_other(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Wait(&waited.requests[1], MPI_STATUS_IGNORE);
    if (waited.starts) {
        MPI_Irecv(&waited.first, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &waited.requests[0]);
        MPI_Irecv(&waited.last, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &waited.requests[1]);
    }
    if (waited.jumps)
        longjmp(back, 1);
}

static void wait_and_put(MPI_Comm comm, MPI_Win win)
{
    int index;
    MPI_Irecv(&waited.few, 1, MPI_INT, 1, 0, comm, &waited.requests[0]);
    MPI_Irecv(&waited.later, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &waited.requests[1]);
    if (setjmp(back) == 0)
        MPI_Waitany(2, waited.requests, &index, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
    for (int i = 0; i < 2 && waited.starts; i++)
        MPI_Wait(&waited.requests[i], MPI_STATUS_IGNORE);
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Get(&waited.later, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Get(&waited.first, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Get(&waited.last, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
}

static void put_and_send(MPI_Comm comm, MPI_Win win)
{
    int pair[] = {1, 2};
    MPI_Send(pair, 2, MPI_INT, 0, 0, comm);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!waited.starts) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
    }
    MPI_Send(pair, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (waited.starts) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        for (int i = 0; i < 2; i++)
            MPI_Send(pair, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
}

/* The error handler of a wait for any waits for the other request, and may start new ones in the places of both; then it returns, or
 * jumps. */
CASE_APART(E1, requests_that_a_waits_handler_completes, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled_everywhere(complete_the_other);
    MPI_Win_lock_all(0, win);
    for (int way = 0; way < 4 && calls_back(); way++) {
        waited.jumps = way % 2 != 0;
        waited.starts = way >= 2;
        if (rank == 0)
            wait_and_put(comm, win);
        if (rank == 1)
            put_and_send(comm, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    if (!right)
        MPI_Get(&waited.later, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static struct {
    MPI_Request persistent;
    int few, later;
    bool both; /* the wait is for both requests, of which the persistent one is under way */
} used;

static void use_the_persistent_one(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    if (used.persistent == MPI_REQUEST_NULL) /* Open MPI has made an end of it */
        MPI_Recv_init(&used.later, 1, MPI_INT, 1, 2, *comm, &used.persistent);
    if (!used.both)
        MPI_Start(&used.persistent);
    MPI_Wait(&used.persistent, MPI_STATUS_IGNORE);
}

static void wait_for_the_persistent_one(MPI_Comm comm, MPI_Win win)
{
    MPI_Status statuses[2];
    int done, indices[2];
    MPI_Recv_init(&used.later, 1, MPI_INT, 1, 2, comm, &used.persistent);
    MPI_Start(&used.persistent);
    if (used.both) {
        MPI_Request requests[2];
        MPI_Irecv(&used.few, 1, MPI_INT, 1, 0, comm, &requests[0]);
        requests[1] = used.persistent;
        MPI_Waitsome(2, requests, &done, indices, statuses);
    } else {
        MPI_Wait(&used.persistent, MPI_STATUS_IGNORE);
    }
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Get(&used.later, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    if (used.persistent != MPI_REQUEST_NULL)
        MPI_Request_free(&used.persistent);
}

/* The error handler of a wait starts the persistent request anew whose wait has failed, or waits for one that is under way. */
CASE_APART(E1, persistent_requests_that_a_waits_handler_uses, 2)
{
    int pair[] = {1, 2};
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled_everywhere(use_the_persistent_one);
    MPI_Win_lock_all(0, win);
    for (int way = 0; way < 2 && calls_back(); way++) {
        used.both = way != 0;
        if (rank == 0)
            wait_for_the_persistent_one(comm, win);
        if (rank == 1) {
            MPI_Send(pair, 2, MPI_INT, 0, used.both ? 0 : 2, comm);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
            MPI_Win_flush(0, win);
            MPI_Send(pair, 1, MPI_INT, 0, 2, comm);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    if (!right)
        MPI_Get(&used.later, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static int leave_the_copying(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    bool *has_left = in;
    (void)comm, (void)keyval, (void)extra, (void)out;
    *flag = 0;
    if (*has_left)
        return MPI_SUCCESS;
    *has_left = true;
    longjmp(back, 1);
}

/* Before others are met: the call is made again, and all that orders has to be taken to order more. */
CASE_APART(C1, order_behind_a_copy_function_that_jumps, 2)
{
    static bool has_left;
    int keyval;
    MPI_Win win = ints_window(4);
    MPI_Comm comm, copy;
    has_left = rank != 0 || !right || !calls_back();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(leave_the_copying, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &has_left);
    MPI_Comm_free_keyval(&keyval);
    MPI_Win_lock_all(0, win);
    (void)setjmp(back);
    MPI_Comm_dup(comm, &copy);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_flush_all(win);
    if (right)
        MPI_Barrier(comm);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
}

static int leave_the_asking(void *extra, MPI_Status *status)
{
    bool *has_left = extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    if (*has_left)
        return MPI_SUCCESS;
    *has_left = true;
    longjmp(back, 1);
}

/* What the wait around it was given is waited for again. */
CASE_APART(E1, requests_beside_a_query_function_that_jumps, 2)
{
    static bool has_left;
    static int got;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    has_left = !calls_back();
    if (rank == 0) {
        MPI_Request requests[2];
        int index;
        MPI_Irecv(&got, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Grequest_start(leave_the_asking, free_nothing, cancel_nothing, &has_left, &requests[1]);
        MPI_Grequest_complete(requests[1]);
        if (setjmp(back) == 0)
            MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Get(&got, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    }
    if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    if (!right)
        MPI_Get(&got, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    MPI_Win_free(&win);
}
