/* What who fetches with an accumulate may go on with: what was done before by whoever has written there. */
#include "offenders.h"

enum { MANY = 300 };

/* The last of many elements that are read at once says that the first may be written. */
CASE(C1, put_behind_a_fetch_of_many, 2)
{
    int one = 1, values[MANY] = {0};
    MPI_Win win = ints_window(MANY + 1);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, MANY, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(1, win);
        MPI_Accumulate(&one, 1, MPI_INT, 1, MANY - 1, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_flush(1, win);
    }
    if (rank == 1) {
        while (right && values[MANY - 1] == 0) {
            MPI_Get_accumulate(NULL, 0, MPI_INT, values, MANY, MPI_INT, 1, 0, MANY, MPI_INT, MPI_NO_OP, win);
            MPI_Win_flush(1, win);
        }
        MPI_Put(&rank, 1, MPI_INT, 1, MANY, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
