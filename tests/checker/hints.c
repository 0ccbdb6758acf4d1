/* Promises by info keys and assertions, broken and kept. */
#include "offenders.h"

#include <string.h>

/* A window with a promise that its ranks agree in one respect. */
static void promised(const char *key, int ints, int unit)
{
    static int memory[16];
    MPI_Win win;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, "true");
    memset(memory, 0, sizeof memory);
    MPI_Win_create(memory, ints * (MPI_Aint)sizeof(int), unit, info, MPI_COMM_WORLD, &win); /* FINDS H1 H2 here */
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

CASE(H1, sizes_that_differ, 2)
{
    promised("same_size", rank == 1 && !right ? 4 : 8, rank == 1 ? 1 : 4);
}

CASE(H2, units_that_differ, 2)
{
    promised("same_disp_unit", rank == 1 ? 4 : 8, rank == 0 && !right ? 1 : 4);
}

CASE(H3, another_operator_than_promised, 2)
{
    int one = 1, old = 0;
    MPI_Win win = hinted_window(4, "accumulate_ops", "same_op");
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0)
        MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, right ? MPI_SUM : MPI_NO_OP, win); /* FINDS H3 here */
    else
        MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_SUM, win); /* FINDS H3 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(H4, lock_of_a_window_without_locks, 2)
{
    MPI_Win win = hinted_window(4, "no_locks", right ? "false" : "true");
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win); /* FINDS H4 here */
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

CASE(H5, unchecked_lock_of_a_locked_target, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        if (!right)
            notify(1);
        delay();
        MPI_Win_unlock(1, win);
        if (right)
            notify(1);
    }
    if (rank == 1) {
        await_notice(0);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, MPI_MODE_NOCHECK, win); /* FINDS H5 here */
        delay();
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

CASE(H6, unchecked_start_before_the_post, 2)
{
    MPI_Win win = ints_window(4);
    delay();
    if (rank == 1) {
        MPI_Win_post(group_of(0), MPI_MODE_NOCHECK, win);
        if (right)
            notify(0);
        MPI_Win_wait(win);
    }
    if (rank == 0) {
        if (right)
            await_notice(1);
        MPI_Win_start(group_of(1), MPI_MODE_NOCHECK, win); /* FINDS H6 here */
        MPI_Win_complete(win);
    }
    MPI_Win_free(&win);
}

CASE(H7, put_into_a_window_without_puts, 2)
{
    int got = 0;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(MPI_MODE_NOPUT, win);
    delay();
    if (rank == 0 && right)
        MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    else if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS H7 here */
    fence_and_free(win);
}

CASE(H9, fence_that_something_precedes, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    delay();
    MPI_Win_fence(right ? 0 : MPI_MODE_NOPRECEDE, win); /* FINDS H9 here */
    fence_and_free(win);
}

CASE(H10, put_after_the_last_fence, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(right ? 0 : MPI_MODE_NOSUCCEED, win);
    delay();
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS H10 here */
    fence_and_free(win);
}
