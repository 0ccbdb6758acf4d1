/* The same correct and complete operations from the same call sites in a loop, until another call
 * changes their state. The last operation is then wrong. */
#include "offenders.h"

enum { TURNS = 10, LAST = TURNS - 1 };

/* Displacements at irregular distances, which the checker cannot compress to a stride. */
static int scattered(int turn)
{
    return turn * turn % 8;
}

CASE(E1, puts_that_continue_after_the_epoch, 2)
{
    MPI_Win win = ints_window(8);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TURNS; i++) {
        bool last = i == LAST;
        if (last && !right)
            MPI_Win_unlock_all(win);
        if (rank == 0)
            MPI_Put(&i, 1, MPI_INT, 1, scattered(i), 1, MPI_INT, win); /* FINDS E1 here */
        if (rank == 0 && !last)
            MPI_Win_flush(1, win);
    }
    if (right)
        MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C4, gets_that_continue_during_a_receive, 2)
{
    int got = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win win = ints_window(8);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TURNS; i++) {
        bool last = i == LAST;
        if (last && rank == 0 && !right)
            MPI_Irecv(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request); /* FINDS C4 here */
        if (rank == 0) {
            MPI_Get(&got, 1, MPI_INT, 1, scattered(i), 1, MPI_INT, win); /* FINDS C4 here */
            MPI_Win_flush(1, win);
        }
        if (last && rank == 0 && right)
            MPI_Irecv(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
    }
    if (rank == 1)
        MPI_Send(&rank, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(H3, fetches_that_continue_after_an_assertion, 2)
{
    int one = 1, old;
    MPI_Info info;
    MPI_Win win = ints_window(16);
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ops", right ? "same_op_no_op" : "same_op");
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TURNS; i++) {
        bool last = i == LAST;
        int at = last ? 15 : scattered(i);
        if (last)
            MPI_Win_set_info(win, info);
        if (rank == 0)
            MPI_Fetch_and_op(&one, &old, MPI_INT, 1, at, MPI_NO_OP, win); /* FINDS H3 here */
        else if (rank == 1 && last)
            MPI_Fetch_and_op(&one, &old, MPI_INT, 1, at, MPI_SUM, win); /* FINDS H3 here */
        delay();
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

/* The put in the other window stays outstanding. */
CASE(C4, gets_that_continue_during_another_ranks_put, 2)
{
    int value = 0;
    MPI_Win win = ints_window(8), other = ints_window(8);
    MPI_Win_lock_all(0, win);
    MPI_Win_lock_all(0, other);
    for (int i = 0; i < TURNS && rank == 0; i++) {
        bool last = i == LAST;
        if (last)
            MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, other); /* FINDS C4 here */
        if (last && right)
            MPI_Win_flush_local(1, other);
        MPI_Get(&value, 1, MPI_INT, 1, scattered(i), 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(other);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&other);
    MPI_Win_free(&win);
}

/* The same with every second int, a layout that the short list of ranges cannot represent. */
CASE(C4, gets_that_continue_during_another_ranks_strided_put, 2)
{
    int values[3] = {0};
    MPI_Datatype every_other;
    MPI_Win win = ints_window(8), other = ints_window(8);
    MPI_Type_vector(2, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Win_lock_all(0, win);
    MPI_Win_lock_all(0, other);
    for (int i = 0; i < TURNS && rank == 0; i++) {
        bool last = i == LAST;
        if (last)
            MPI_Put(values, 1, every_other, 1, 0, 2, MPI_INT, other); /* FINDS C4 here */
        if (last && right)
            MPI_Win_flush_local(1, other);
        MPI_Get(&values[2], 1, MPI_INT, 1, scattered(i), 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(other);
    MPI_Win_unlock_all(win);
    MPI_Type_free(&every_other);
    MPI_Win_free(&other);
    MPI_Win_free(&win);
}

/* A flush completes all earlier operations, not only the last one. This includes operations after a
 * local flush and operations across two cache lines. */
CASE(E18, puts_that_continue_after_a_local_flush, 2)
{
    int value = 1;
    MPI_Win win = ints_window(32);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TURNS; i++) {
        for (int half = 0; half < 2 && rank == 0; half++) {
            MPI_Put(&value, 1, MPI_INT, 1, 8 * half + scattered(i), 1, MPI_INT, win); /* FINDS E18 here */
            if (half == 0 || (i == LAST && !right))
                MPI_Win_flush_local(1, win);
            else
                MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            MPI_Put(&value, 1, MPI_INT, 1, scattered(i), 1, MPI_INT, win); /* FINDS E18 here */
            MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, puts_that_continue_across_two_cache_lines, 2)
{
    int values[2] = {1, 2};
    MPI_Win win = ints_window(64);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TURNS; i++) {
        const int at[] = {32, 15, 40};
        for (int third = 0; third < 3 && rank == 0; third++) {
            MPI_Put(values, 2, MPI_INT, 1, at[third], 2, MPI_INT, win); /* FINDS C1 here */
            if (third != 1 && (i < LAST || right || third == 0))
                MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            MPI_Put(values, 1, MPI_INT, 1, 15, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
