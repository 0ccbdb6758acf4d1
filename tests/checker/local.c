/* The program's own loads and stores concurrent with operations on the same memory.  Compiled with
 * -fsanitize=thread. */
#include "offenders.h"

#include <string.h>

#include "../../include/oriel/ext.h"

/* The calling rank's part of the window. */
static volatile int *own(MPI_Win win)
{
    int *memory;
    int found;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &memory, &found);
    return memory;
}

CASE(L1, store_concurrent_with_a_put, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS L1 here */
    if (rank == 1)
        own(win)[right ? 3 : 2] = 7; /* FINDS L1 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(L1, load_concurrent_with_a_put, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS L1 here */
        MPI_Win_flush(1, win);
        notify(1);
    }
    if (rank == 1 && right)
        await_notice(0);
    if (rank == 1)
        (void)own(win)[2]; /* FINDS L1 here */
    if (rank == 1 && !right)
        await_notice(0);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(L1, load_before_the_notification, 2)
{
    MPI_Win win = hinted_window(4, "oriel_notifications", "1");
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0)
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win); /* FINDS L1 here */
    if (rank == 1 && right)
        MPIX_Win_notify_wait(win, 0, 1);
    if (rank == 1)
        (void)own(win)[2]; /* FINDS L1 here, saying 'MPIX_Win_notify_wait on rank 1 before' */
    if (rank == 1 && !right)
        MPIX_Win_notify_wait(win, 0, 1);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(L1, store_before_the_fence, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 1 && right)
        own(win)[0] = 7;
    if (right)
        MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Accumulate(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win); /* FINDS L1 here */
    if (rank == 1 && !right)
        own(win)[0] = 7; /* FINDS L1 here */
    fence_and_free(win);
}

CASE(L1, load_before_the_wait, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 1)
        MPI_Win_post(group_of(0), 0, win);
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS L1 here */
        delay();
        MPI_Win_complete(win);
    }
    delay();
    if (rank == 1 && right)
        MPI_Win_wait(win);
    if (rank == 1)
        (void)own(win)[0]; /* FINDS L1 here, saying ' on rank 1 ' */
    if (rank == 1 && !right)
        MPI_Win_wait(win);
    MPI_Win_free(&win);
}

CASE(L1, store_into_the_buffer_of_a_put, 2)
{
    volatile int value = 1;
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Put((const int *)&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS L1 here */
        delay();
        if (right)
            MPI_Win_flush_local(1, win);
        value = 2; /* FINDS L1 here */
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

CASE(L1, load_of_the_buffer_of_an_incomplete_get, 2)
{
    volatile int value = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Rget((int *)&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS L1 here */
        delay();
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        (void)value; /* FINDS L1 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

/* The same memory, stored to by another process that shares it. */
CASE(L1, store_into_shared_memory_concurrent_with_a_get, 2)
{
    int *memory, got = 0, unit;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Win_allocate_shared(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &memory, &win);
    named(win);
    MPI_Win_lock_all(0, win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &memory);
    delay();
    if (rank == 0)
        MPI_Get(&got, 1, MPI_INT, 0, 1, 1, MPI_INT, win); /* FINDS L1 here */
    if (rank == 1)
        ((volatile int *)memory)[right ? 2 : 1] = 7; /* FINDS L1 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

enum { PLACE = 1, FLAG = 2 };

/* A window in rank 0's memory, zeroed. */
static MPI_Win shared_ints(volatile int **memory)
{
    int *own_memory, unit;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Win_allocate_shared(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                            &own_memory, &win);
    memset(own_memory, 0, 4 * sizeof(int));
    MPI_Win_shared_query(win, 0, &bytes, &unit, (void *)memory);
    return named(win);
}

/* A flag accessed by atomic instructions carries order. */
CASE(L1, load_before_the_flag_in_shared_memory, 2)
{
    volatile int *memory;
    MPI_Win win = shared_ints(&memory);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0) {
        MPI_Put(&size, 1, MPI_INT, 0, PLACE, 1, MPI_INT, win); /* FINDS L1 here */
        MPI_Win_flush(0, win);
        __atomic_store_n(&memory[FLAG], 1, __ATOMIC_RELEASE);
    }
    if (rank == 1 && right)
        await(&memory[FLAG], 1);
    if (rank == 1)
        (void)memory[PLACE]; /* FINDS L1 here */
    if (rank == 1 && !right)
        await(&memory[FLAG], 1);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The same where an accumulate of several elements sets the flag. */
CASE(L1, load_before_the_accumulated_flag_in_shared_memory, 2)
{
    static const int ones[] = {1, 1};
    volatile int *memory;
    MPI_Win win = shared_ints(&memory);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0) {
        MPI_Put(&size, 1, MPI_INT, 0, PLACE, 1, MPI_INT, win); /* FINDS L1 here */
        MPI_Win_flush(0, win);
        MPI_Accumulate(ones, 2, MPI_INT, 0, FLAG, 2, MPI_INT, MPI_SUM, win);
    }
    if (rank == 1 && right)
        await(&memory[FLAG], 1);
    if (rank == 1)
        (void)memory[PLACE]; /* FINDS L1 here */
    if (rank == 1 && !right)
        await(&memory[FLAG], 1);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
