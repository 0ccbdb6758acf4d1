/* The order that a fetching accumulate acquires: everything done before by the ranks that have
 * written the word. */
#include "offenders.h"


enum { MANY = 300 };

/* The last of many elements read at once permits a write to the first. */
CASE(C1, put_after_a_fetch_of_many, 2)
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
            MPI_Get_accumulate(NULL, 0, MPI_INT, values, MANY, MPI_INT, 1, 0, MANY, MPI_INT,
                               MPI_NO_OP, win);
            MPI_Win_flush(1, win);
        }
        MPI_Put(&rank, 1, MPI_INT, 1, MANY, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* An accumulate that adds nothing leaves no record of its rank. The store to the flag, which the
 * checker does not watch, signals that the rank was there. */
CASE(C1, put_after_a_sum_of_nothing_and_shared_memory, 2)
{
    int one = 1, old, *memory, *flag, unit;
    MPI_Aint len_bytes;
    MPI_Win flags, win = ints_window(2);
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                            &flags);
    *memory = 0;
    MPI_Win_shared_query(flags, 1, &len_bytes, &unit, &flag);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(1, win);
        MPI_Accumulate(&one, right, MPI_INT, 1, 0, right, MPI_INT, MPI_SUM, win);
        MPI_Win_flush(1, win);
        __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    }
    if (rank == 1) {
        await(flag, 1);
        MPI_Fetch_and_op(&one, &old, MPI_INT, 1, 0, MPI_SUM, win);
        MPI_Win_flush(1, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&flags);
    MPI_Win_free(&win);
}
