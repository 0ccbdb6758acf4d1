/* Epochs that another kind of synchronisation, or the end of the window, closes instead of the
 * program. The program then continues as if it had closed them itself. The checker reports the
 * error only once. */
#include "offenders.h"

CASE(E5, fence_inside_a_lock_all, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        if (right)
            MPI_Win_unlock_all(win);
    }
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win); /* FINDS E5 here */
    if (rank == 0 && !right)
        MPI_Win_unlock_all(win);
    fence_and_free(win);
}

CASE(E5, fence_inside_a_start, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        if (right)
            MPI_Win_complete(win);
    } else if (rank == 1) {
        MPI_Win_post(group_of(0), 0, win);
        if (right)
            MPI_Win_wait(win);
        else
            for (int ended = 0; !ended;)
                MPI_Win_test(win, &ended);
    }
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win); /* FINDS E5 here */
    if (rank == 0 && !right)
        MPI_Win_complete(win);
    fence_and_free(win);
}

CASE(E12, freed_inside_a_lock_all, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        if (right)
            MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win); /* FINDS E12 here */
}

/* The other rank has completed, or will. The exposure ends with the window. */
CASE(E12, freed_inside_a_post, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Win_complete(win);
    } else if (rank == 1) {
        MPI_Win_post(group_of(0), 0, win);
        if (right)
            MPI_Win_wait(win);
    }
    MPI_Win_free(&win); /* FINDS E12 here */
}

CASE(A4, locks_of_a_rank_after_the_last, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        int target = right ? size - 1 : size;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win); /* FINDS A4 here */
        MPI_Win_flush(target, win);
        MPI_Win_flush_local(target, win);
        MPI_Win_unlock(target, win);
    }
    MPI_Win_free(&win);
}

CASE(A8, lock_all_with_an_assertion_of_no_kind, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(right ? 0 : 1 << 24, win); /* FINDS A8 here, saying 'assertion' */
    if (right) {
        MPI_Win_flush_local_all(win);
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
}
