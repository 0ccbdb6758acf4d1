/* Epochs of one process: opened, used, closed and mixed. */
#include "offenders.h"

CASE(E1, put_before_any_epoch, 2)
{
    MPI_Win win = ints_window(4);
    if (right)
        MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS E1 here, saying 'bytes 8 to 11' */
    fence_and_free(win);
}

#ifdef __SANITIZE_ADDRESS__
enum { KEEPS_FREED_MEMORY = 1 };
#else
enum { KEEPS_FREED_MEMORY = 0 };
#endif

static int errors;

static void count_error(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
    errors++;
}

/* The checker reports to the program's own handler and releases it after its last use. Otherwise
 * the host could not reuse the handle. The case shows this where freed memory is reallocated
 * immediately. */
CASE(E1, put_under_handlers_of_its_own, 2)
{
    enum { ROUNDS = 100 };
    MPI_Errhandler handlers[ROUNDS];
    int reused = 0;
    MPI_Win win = ints_window(4);
    errors = 0;
    for (int i = 0; i < ROUNDS && rank == 0; i++) {
        MPI_Win_create_errhandler(count_error, &handlers[i]);
        for (int before = 0; before < i; before++)
            reused += handlers[before] == handlers[i];
        MPI_Win_set_errhandler(win, handlers[i]);
        MPI_Errhandler handler = handlers[i];
        MPI_Errhandler_free(&handler);
        if (right)
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E1 here */
        if (right)
            MPI_Win_unlock(1, win);
    }
    if (rank == 0 && (errors != (right ? 0 : ROUNDS) || (reused == 0 && !KEEPS_FREED_MEMORY)))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Win_free(&win);
}

CASE(E1, get_after_the_unlock, 2)
{
    int got = 0;
    MPI_Win win = ints_window(4);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    delay();
    MPI_Win_unlock(0, win);
    MPI_Get(&got, 1, MPI_INT, right ? MPI_PROC_NULL : 0, 0, 1, MPI_INT, win); /* FINDS E1 here */
    MPI_Win_free(&win);
}

CASE(E2, put_to_another_rank_than_the_locked_one, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, right ? 1 : 0, 0, win);
        delay();
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E2 here */
        MPI_Win_unlock(right ? 1 : 0, win);
    }
    MPI_Win_free(&win);
}

CASE(E2, put_to_a_rank_that_was_not_started, 3)
{
    MPI_Win win = ints_window(4);
    if (rank == 1) {
        MPI_Win_post(group_of(0), 0, win);
        MPI_Win_wait(win);
    }
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win);
        delay();
        MPI_Put(&rank, 1, MPI_INT, right ? 1 : 2, 0, 1, MPI_INT, win); /* FINDS E2 here */
        MPI_Win_complete(win);
    }
    MPI_Win_free(&win);
}

CASE(E3, locked_twice, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        delay();
        MPI_Win_lock(MPI_LOCK_SHARED, right ? 0 : 1, 0, win); /* FINDS E3 here */
        MPI_Win_unlock(1, win);
        MPI_Win_unlock(right ? 0 : 1, win);
    }
    MPI_Win_free(&win);
}

CASE(E4, unlock_of_another_rank, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        if (right)
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        delay();
        MPI_Win_unlock(0, win); /* FINDS E4 here */
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

/* Rank 0 opens and closes an access epoch with one operation on rank 1, once per exposure by rank
 * 1. */
static void exposed(int times, MPI_Win win)
{
    for (int i = 0; i < times && rank == 1; i++) {
        MPI_Win_post(group_of(0), 0, win);
        delay();
        MPI_Win_wait(win);
    }
}

CASE(E5, lock_inside_a_start, 2)
{
    MPI_Win win = ints_window(4);
    exposed(1, win);
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win);
        if (right)
            MPI_Win_complete(win);
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win); /* FINDS E5 here */
        right ? MPI_Win_unlock(1, win) : MPI_Win_complete(win);
    }
    MPI_Win_free(&win);
}

/* The reported fence does not count as a fence. The following fences are the first, second and
 * third on all ranks. */
CASE(E5, fence_inside_an_exposure, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_post(group_of(1), 0, win);
        if (right)
            MPI_Win_wait(win);
        else
            MPI_Win_fence(MPI_MODE_NOPUT, win); /* FINDS E5 here, saying 'MPI_Win_post' */
        if (!right)
            MPI_Win_wait(win);
    }
    if (rank == 1) {
        MPI_Win_start(group_of(0), 0, win);
        delay();
        MPI_Win_complete(win);
    }
    MPI_Win_fence(0, win);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
    fence_and_free(win);
}

CASE(E6, started_twice, 2)
{
    MPI_Win win = ints_window(4);
    exposed(right ? 2 : 1, win);
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win);
        delay();
        if (right)
            MPI_Win_complete(win);
        MPI_Win_start(group_of(1), 0, win); /* FINDS E6 here */
        if (!right)
            MPI_Win_complete(win);
        MPI_Win_complete(win);
    }
    MPI_Win_free(&win);
}

CASE(E7, completed_without_a_start, 2)
{
    MPI_Win win = ints_window(4);
    if (right)
        MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
    MPI_Win_complete(win); /* FINDS E7 here */
    MPI_Win_free(&win);
}

CASE(E8, posted_twice, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_post(group_of(1), 0, win);
        delay();
        if (right)
            MPI_Win_wait(win);
        MPI_Win_post(group_of(1), 0, win); /* FINDS E8 here */
        if (!right)
            MPI_Win_wait(win);
        MPI_Win_wait(win);
    }
    for (int i = 0; i < (right ? 2 : 1) && rank == 1; i++) {
        MPI_Win_start(group_of(0), 0, win);
        MPI_Win_complete(win);
    }
    MPI_Win_free(&win);
}

CASE(E9, waited_without_a_post, 2)
{
    MPI_Win win = ints_window(4);
    if (right)
        MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
    MPI_Win_wait(win); /* FINDS E9 here */
    MPI_Win_free(&win);
}

/* A rank that tests until nothing is left to wait for continues. */
CASE(E9, tested_without_a_post, 2)
{
    int done = 0;
    MPI_Win win = ints_window(4);
    if (right)
        MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
    while (!done)
        MPI_Win_test(win, &done); /* FINDS E9 here */
    MPI_Win_free(&win);
}

CASE(E9, tested_after_the_end, 2)
{
    int done = 0;
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_post(group_of(1), 0, win);
        while (!done)
            MPI_Win_test(win, &done);
        if (!right)
            MPI_Win_wait(win); /* FINDS E9 here */
    }
    if (rank == 1) {
        MPI_Win_start(group_of(0), 0, win);
        delay();
        MPI_Win_complete(win);
    }
    MPI_Win_free(&win);
}

CASE(E11, flush_between_fences, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(right ? MPI_MODE_NOSUCCEED : 0, win);
    if (rank == 0 && right)
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Win_flush(1, win); /* FINDS E11 here */
    }
    if (rank == 0 && right)
        MPI_Win_unlock(1, win);
    fence_and_free(win);
}

CASE(E12, freed_while_locked, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    delay();
    if (rank == 0 && right)
        MPI_Win_unlock(1, win);
    MPI_Win_free(&win); /* FINDS E12 here */
}

CASE(E16, request_between_fences, 2)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win win = ints_window(4);
    right ? MPI_Win_lock_all(0, win) : MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Rput(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS E16 here */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    right ? MPI_Win_unlock_all(win) : MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
}
