/* What completes an operation, and what only seems to: rank 0 puts, and does something that is not enough; rank 1 hears of it and
 * reads. */
#include "offenders.h"

static void read_after_news(MPI_Win win)
{
    int got = 0;
    if (rank == 0)
        tell(1);
    if (rank == 1) {
        hear(0);
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
