/* Errors at the end of a program. Each case needs a job of its own and ends that job itself. */
#include "offenders.h"

#include <stdlib.h>

/* The job ends here with everything that the case left open. */
static void end(void)
{
    MPI_Finalize(); /* FINDS E13 E14 here */
    exit(0);
}

CASE_APART(E13, window_left_at_the_end, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win); /* nothing is open */
    if (right)
        MPI_Win_free(&win);
    end();
}

CASE_APART(E14, lock_left_at_the_end, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    if (right) {
        MPI_Win_unlock(0, win);
        MPI_Win_free(&win);
    }
    end();
}
