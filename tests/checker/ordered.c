/* The extensions that order and complete operations, and that wait for memory. */
#include "offenders.h"

#include <oriel/ext.h>

CASE(C1, put_after_a_put_without_order, 2)
{
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        if (right)
            MPIX_Win_order(1, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The flag is behind an order point, and the data before it. The twin takes the flag back while the
 * put that set it is not flushed yet. */
CASE(C1, put_without_a_wait_for_the_flag, 2)
{
    const int one = 1;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
        MPIX_Win_order(1, win);
        MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        delay();
        MPI_Win_flush(1, win);
    }
    if (rank == 1) {
        if (right) {
            MPIX_Win_wait_until(win, 0, MPI_INT, MPIX_CMP_EQ, &one);
            MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        }
        MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The same by polling. */
CASE(C1, put_without_a_test_of_the_flag, 2)
{
    int one = 1, flag = 0;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
        MPIX_Win_flush_list(1, &one, win);
        MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Win_flush(1, win);
    }
    if (rank == 1) {
        while (right && !flag)
            MPIX_Win_test_until(win, 0, MPI_INT, MPIX_CMP_EQ, &one, &flag);
        MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, put_after_a_list_of_other_ranks, 2)
{
    const int list[] = {0, 1};
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPIX_Win_flush_list(right ? 2 : 1, list, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, put_after_a_flush_of_another_window, 2)
{
    MPI_Win win = ints_window(2), other = ints_window(2);
    MPI_Win_lock_all(0, win);
    MPI_Win_lock_all(0, other);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPIX_Win_flush_windows(1, right ? &win : &other);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(other);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&other);
    MPI_Win_free(&win);
}

CASE(C1, put_before_the_end_of_a_flush, 2)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPIX_Win_iflush(1, win, &request);
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (right) {
            MPIX_Win_iflush_all(win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
