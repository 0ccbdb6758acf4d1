/* Calls that all ranks, or two ranks, must make alike: fences, groups of post and start,
 * assertions. Also stores that an assertion excludes. */
#include "offenders.h"

CASE(E10, start_without_post, 2)
{
    MPI_Win win = ints_window(4);
    delay();
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win); /* FINDS E10 here */
        MPI_Win_complete(win);
    }
    if (rank == 1 && right) {
        MPI_Win_post(group_of(0), 0, win);
        MPI_Win_wait(win);
    }
    MPI_Win_free(&win);
}

CASE(E10, post_without_start, 2)
{
    MPI_Win win = ints_window(4);
    delay();
    if (rank == 0) {
        MPI_Win_post(group_of(1), 0, win); /* FINDS E10 here */
        MPI_Win_wait(win);
    }
    if (rank == 1 && right) {
        MPI_Win_start(group_of(0), 0, win);
        MPI_Win_complete(win);
    }
    MPI_Win_free(&win);
}

CASE(E15, fence_of_one_rank, 2)
{
    MPI_Win win = ints_window(4);
    delay();
    if (rank == 0 || right)
        MPI_Win_fence(0, win); /* FINDS E15 here */
    MPI_Win_free(&win);
}

CASE(E5, fence_inside_a_lock, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    if (rank == 0 && right)
        MPI_Win_unlock(1, win);
    delay();
    MPI_Win_fence(0, win); /* FINDS E5 here */
    if (rank == 0 && !right)
        MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}

CASE(E12, freed_without_the_last_fence, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    if (right)
        MPI_Win_fence(0, win);
    MPI_Win_free(&win); /* FINDS E12 here */
}

CASE(A7, fences_with_different_assertions, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    MPI_Win_fence(rank == 0 || right ? MPI_MODE_NOSUCCEED : 0, win); /* FINDS A7 here */
    MPI_Win_free(&win);
}

CASE(A7, keys_of_one_rank_alone, 2)
{
    int memory[4];
    MPI_Win win;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "same_size", rank == 0 || right ? "true" : "false");
    MPI_Win_create(memory, sizeof memory, sizeof(int), info, MPI_COMM_WORLD, &win); /* FINDS A7 here, saying 'same_size' */
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

/* The checker compares nothing else about these windows. */
CASE(A7, windows_of_two_kinds, 2)
{
    int memory[4];
    int *allocated;
    MPI_Win win;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "same_size", rank == 0 || right ? "true" : "false");
    if (rank == 0 || right)
        MPI_Win_create(memory, sizeof memory, sizeof(int), info, MPI_COMM_WORLD, &win); /* FINDS A7 here, saying 'kinds' */
    else
        MPI_Win_allocate(8, 1, info, MPI_COMM_WORLD, &allocated, &win); /* FINDS A7 here, saying 'kinds' */
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

/* The get stores its result at the end of its epoch, and not later. */
CASE(H8, get_before_a_fence_without_stores, 2)
{
    int *base, found;
    MPI_Win win = ints_window(64);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Get(base + 8, 20, MPI_INT, 1, 40, 20, MPI_INT, win); /* FINDS H8 here */
    if (right)
        MPI_Win_fence(0, win);
    delay();
    MPI_Win_fence(MPI_MODE_NOSTORE, win); /* FINDS H8 here */
    fence_and_free(win);
}

CASE(H8, receive_before_a_fence_without_stores, 2)
{
    static int memory[4];
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    named(win);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(&memory[1], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS H8 here */
    delay();
    MPI_Win_fence(right ? 0 : MPI_MODE_NOSTORE, win);
    MPI_Win_fence(MPI_MODE_NOSTORE, win);
    MPI_Win_free(&win);
}
