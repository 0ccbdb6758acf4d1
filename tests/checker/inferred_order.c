/* Order that the checker must derive from locks, words and memory, whichever rank arrives first;
 * and completion that it must derive from requests and local flushes. */
#include "offenders.h"
#include "../mpi/one_node.h"

#include <stdlib.h>

/* MPI_Win_lock_all need not hold a target's lock before the first operation on it. */
CASE(C1, get_under_lock_all_concurrent_with_a_lock, 2)
{
    MPI_Win win = ints_window(4);
    int got;
    for (int i = 0; i < 40; i++) {
        delay();
        if (rank == 0) {
            MPI_Win_lock(right ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, size - 1, 0, win);
            delay();
            MPI_Put(&i, 1, MPI_INT, size - 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_unlock(size - 1, win);
        } else {
            MPI_Win_lock_all(0, win);
            delay();
            MPI_Get(&got, 1, MPI_INT, size - 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_unlock_all(win);
        }
    }
    MPI_Win_free(&win);
}

CASE(C1, puts_under_lock_all_and_another_lock, 2)
{
    MPI_Win win = ints_window(4);
    for (int round = 0; round < 3; round++) {
        delay();
        if (rank == 0) {
            MPI_Win_lock(right ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 1, 0, win);
            MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_unlock(1, win);
        }
        if (rank == 1) {
            MPI_Win_lock_all(0, win);
            MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_unlock_all(win);
        }
    }
    MPI_Win_free(&win);
}

CASE(C1, flag_of_two_elements, 2)
{
    int flags[2] = {1, 1}, got[2] = {0, 0};
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 3, 1, MPI_INT, win); /* FINDS C1 here */
        if (right)
            MPI_Win_flush(1, win);
        delay();
        MPI_Accumulate(flags, 2, MPI_INT, 1, 0, 2, MPI_INT, MPI_REPLACE, win);
        MPI_Win_flush(1, win);
    }
    while (rank == 1 && got[1] == 0) {
        MPI_Get_accumulate(NULL, 0, MPI_INT, got, 2, MPI_INT, 1, 0, 2, MPI_INT, MPI_NO_OP, win);
        MPI_Win_flush(1, win);
    }
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 1, 3, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The fetched value may have arrived only with the completion of the request. */
CASE(C1, flag_fetched_with_a_request, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    for (int round = 1; round <= 20; round++) {
        if (rank == 0) {
            MPI_Put(&rank, 1, MPI_INT, 0, 3, 1, MPI_INT, win); /* FINDS C1 here */
            if (right)
                MPI_Win_flush(0, win);
            delay();
            MPI_Accumulate(&round, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win);
            MPI_Win_flush(0, win);
        }
        for (int got = 0; rank == 1 && got != round;) {
            MPI_Request request;
            MPI_Rget_accumulate(NULL, 0, MPI_INT, &got, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP,
                                win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (rank == 1) {
            MPI_Put(&rank, 1, MPI_INT, 0, 3, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(0, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The flag is an uninstrumented store. Only MPI_Win_sync is visible, and it orders everything
 * completed before. Rank 0 therefore completes nothing before it has the message. */
CASE(C1, flag_in_shared_memory, 2)
{
    int *memory, *flag;
    MPI_Aint len_bytes;
    int unit;
    MPI_Comm together = one_node_comm(MPI_COMM_WORLD);
    MPI_Win win;
    MPI_Win_allocate_shared(16, sizeof(int), MPI_INFO_NULL, together, &memory, &win);
    MPI_Comm_free(&together);
    named(win);
    MPI_Win_shared_query(win, 1, &len_bytes, &unit, &flag);
    MPI_Win_fence(0, win);
    if (rank == 1)
        *memory = 0;
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 3, 1, MPI_INT, win); /* FINDS C1 here */
        if (right)
            MPI_Win_flush(1, win);
        delay();
        MPI_Win_sync(win);
        __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
        await_notice(1);
    }
    while (rank == 1 && __atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0)
        MPI_Win_sync(win);
    if (rank == 1) {
        MPI_Win_sync(win);
        MPI_Put(&rank, 1, MPI_INT, 1, 3, 1, MPI_INT, win); /* FINDS C1 here */
        notify(0);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, get_that_is_not_waited_for, 2)
{
    int got = 0;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rget(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS C1 here */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        notify(1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
        await_notice(0);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, get_that_is_not_flushed, 2)
{
    int got = 0;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        if (right)
            MPI_Win_flush_local(1, win);
        notify(1);
    }
    if (rank == 1) {
        await_notice(0);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Hosts use one shared handle for all requests that are complete at once. */
CASE(C4, result_of_the_last_of_many_requests, 2)
{
    MPI_Win win = ints_window(8);
    if (rank == 0) {
        MPI_Request requests[8];
        MPI_Status statuses[8];
        int values[8] = {0};
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        for (int i = 0; i < 8; i++)
            MPI_Rget(&values[i], 1, MPI_INT, 1, i, 1, MPI_INT, win, &requests[i]); /* FINDS C4 here */
        delay();
        if (right)
            MPI_Waitall(8, requests, statuses);
        MPI_Send(&values[7], 1, MPI_INT, 1, 3, MPI_COMM_WORLD); /* FINDS C4 here */
        MPI_Waitall(8, requests, statuses);
        MPI_Win_unlock(1, win);
    }
    int received;
    if (rank == 1)
        MPI_Recv(&received, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_free(&win);
}

CASE(C4, another_request_than_was_waited_for, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Request requests[2];
        int values[2] = {0};
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Rget(&values[0], 1, MPI_INT, 1, 0, 1, MPI_INT, win, &requests[0]);
        MPI_Rget(&values[1], 1, MPI_INT, 1, 1, 1, MPI_INT, win, &requests[1]); /* FINDS C4 here */
        delay();
        MPI_Wait(&requests[right ? 1 : 0], MPI_STATUS_IGNORE);
        MPI_Send(&values[1], 1, MPI_INT, 1, 3, MPI_COMM_WORLD); /* FINDS C4 here */
        MPI_Wait(&requests[right ? 0 : 1], MPI_STATUS_IGNORE);
        MPI_Win_unlock(1, win);
    }
    int received;
    if (rank == 1)
        MPI_Recv(&received, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_free(&win);
}

CASE(C4, origin_of_a_request_that_is_open, 2)
{
    int value = 1;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rput(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request); /* FINDS C4 here, saying 'or MPI_Win_flush_local' */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Get(&value, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* No operation here is one-sided. */
CASE(C4, receive_into_the_buffer_of_a_send, 2)
{
    int value = rank;
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request); /* FINDS C4 here, saying 'call MPI_Wait for the request' */
        delay();
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS C4 here */
        if (!right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
        MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&rank, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
}

CASE(A2, put_into_a_detached_region, 2)
{
    static int memory[4];
    int value = 1;
    MPI_Aint address;
    MPI_Win win;
    MPI_Get_address(memory, &address);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    named(win);
    MPI_Win_attach(win, memory, sizeof memory);
    if (rank == 1 && !right)
        MPI_Win_detach(win, memory);
    MPI_Bcast(&address, 1, MPI_AINT, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Put(&value, 1, MPI_INT, 1, MPI_Aint_add(address, 12), 1, MPI_INT, win); /* FINDS A2 here */
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}
