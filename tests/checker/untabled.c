/* Error handlers in functions without unwind tables (CMakeLists.txt sets the options). A stack walk
 * ends at the first such function. The checker must still know which handlers run and which a jump
 * has left. */
#include "offenders.h"

#include <setjmp.h>
#include <unistd.h>

static jmp_buf inside, outside;
static MPI_Comm inner;

static void ask(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static void jump_inside(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(inside, 1);
}

/* The handler runs on while the other rank puts. */
static void run_on(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    usleep(1000000);
    ask();
}

/* After a handler left by a jump, the checker assumes more order than exists. It must not do so
 * while a handler runs. */
CASE_APART(C1, order_in_a_handler_without_tables, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled(MPI_COMM_SELF, run_on);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        usleep(500000);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(0, win);
    }
    if (rank == 0 && calls_back())
        MPI_Send(&rank, 1, MPI_INT, 1, 0, comm); /* there is no such rank */
    if (right)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static MPI_Win freed;

static void free_behind_a_jump(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
    if (setjmp(inside) == 0)
        MPI_Send(&rank, 1, MPI_INT, 1, 0, inner); /* there is no such rank */
    MPI_Win_free(&freed);
}

/* The jump leaves the inner handler, not the outer one. The outer call still reads the window. */
CASE_APART(A4, freed_in_handlers_without_tables, 2)
{
    MPI_Win win = ints_window(4);
    inner = comm_handled(MPI_COMM_SELF, jump_inside);
    win_handled(win, free_behind_a_jump);
    if (!calls_back())
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    freed = win;
    if (right)
        MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    else
        MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win); /* FINDS A4 here */
    if (!calls_back())
        MPI_Win_free(&win);
    MPI_Comm_free(&inner);
}

static void jump_outside(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    if (setjmp(inside) == 0)
        MPI_Send(&rank, 1, MPI_INT, 1, 0, inner); /* there is no such rank */
    ask();
    longjmp(outside, 1);
}

/* The failed call no longer needs its buffer, and the checker knows this once the handler is
 * left. */
CASE_APART(C4, buffer_behind_handlers_without_tables, 2)
{
    static int buffer;
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled(MPI_COMM_SELF, jump_outside);
    MPI_Request request = MPI_REQUEST_NULL;
    inner = comm_handled(MPI_COMM_SELF, jump_inside);
    MPI_Win_lock_all(0, win);
    if (rank == 1 && !right)
        MPI_Irecv(&buffer, 1, MPI_INT, 0, 0, comm, &request);
    if (rank == 1 && right && calls_back() && setjmp(outside) == 0)
        MPI_Isend(&buffer, 1, MPI_INT, 1, 0, comm, &request); /* there is no such rank */
    if (rank == 1)
        MPI_Get(&buffer, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C4 here */
    MPI_Win_unlock_all(win);
    if (rank == 1 && !right) {
        MPI_Send(&rank, 1, MPI_INT, 0, 0, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_free(&win);
    MPI_Comm_free(&inner);
    MPI_Comm_free(&comm);
}
