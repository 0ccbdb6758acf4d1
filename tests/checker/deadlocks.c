/* Jobs that deadlock. The checker ends them. */
#include "offenders.h"

#include <oriel/ext.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

CASE_ALONE(D1, locks_in_opposite_orders, 2)
{
    MPI_Win win = ints_window(4);
    int first = right ? 0 : rank;
    if (rank < 2) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, first, 0, win);
        if (!right)
            MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - first, 0, win); /* FINDS D1 here, saying 'window locks_in_opposite_orders' */
        delay();
        MPI_Win_unlock(1 - first, win);
        MPI_Win_unlock(first, win);
    } else if (!right) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
}

CASE_ALONE(D1, start_without_any_post, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win); /* FINDS D1 here, saying 'let rank 1 call MPI_Win_post before' */
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Win_complete(win);
        notify(1);
    } else if (rank == 1) {
        if (right) {
            MPI_Win_post(group_of(0), 0, win);
            MPI_Win_wait(win);
        }
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here */
    }
    MPI_Win_free(&win);
}

CASE_ALONE(D1, start_whose_target_is_in_a_barrier, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 1 && right)
        MPI_Win_post(group_of(0), 0, win);
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win); /* FINDS D1 here, saying 'window start_whose_target_is_in_a_barrier' */
        MPI_Win_complete(win);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* FINDS D1 here */
    if (rank == 1 && right)
        MPI_Win_wait(win);
    MPI_Win_free(&win);
}

CASE_ALONE(D1, two_that_receive_first, 2)
{
    if (rank < 2) {
        if (right && rank == 0)
            notify(1);
        MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here */
        if (!right || rank == 1)
            notify(1 - rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE_ALONE(D1, fence_that_one_rank_misses, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0 && !right)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here */
    MPI_Win_fence(0, win); /* FINDS D1 here, saying 'let rank 0 call MPI_Win_fence before' */
    if (rank == 1)
        notify(0);
    if (rank == 0 && right)
        await_notice(1);
    fence_and_free(win);
}

CASE_ALONE(D1, message_of_a_finished_rank, 2)
{
    if (rank == 1 && right)
        notify(0);
    if (rank == 1 && !right) {
        delay();
        MPI_Finalize();
        exit(0);
    }
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here, saying 'let rank 1 send before' */
}

CASE_ALONE(D1, collectives_in_opposite_orders, 2)
{
    int value = 0;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    delay();
    if (rank == 0 && !right) {
        MPI_Barrier(other); /* FINDS D1 here */
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* FINDS D1 here */
        MPI_Barrier(other);
    }
    MPI_Comm_free(&other);
}

CASE_ALONE(D1, sends_without_buffers, 2)
{
    int next = (rank + 1) % size;
    int before = (rank + size - 1) % size;
    MPI_Request request;
    if (right) {
        MPI_Irecv(NULL, 0, MPI_BYTE, before, 7, MPI_COMM_WORLD, &request);
        MPI_Ssend(NULL, 0, MPI_BYTE, next, 7, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Ssend(NULL, 0, MPI_BYTE, next, 7, MPI_COMM_WORLD); /* FINDS D1 here, saying 'receive before MPI_Ssend at' */
        await_notice(before);
    }
}

CASE_ALONE(D1, requests_that_wait_for_each_other, 2)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int peer = rank ^ 1;
    if (peer >= size)
        return;
    MPI_Irecv(NULL, 0, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &requests[0]);
    if (right) {
        MPI_Isend(NULL, 0, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        return;
    }
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* FINDS D1 here, saying 'send before MPI_Wait at' */
    notify(peer);
}

CASE_ALONE(D1, receives_from_any_source_without_a_send, 2)
{
    if (right)
        /* hosts buffer empty messages */
        MPI_Send(NULL, 0, MPI_BYTE, (rank + 1) % size, 7, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here, saying 'any rank' */
}

CASE_ALONE(D1, value_that_no_rank_writes, 2)
{
    const int value = 1;
    MPI_Win win = ints_window(2);
    if (rank == 1 && right) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        MPI_Win_unlock(0, win);
    }
    if (rank == 0)
        MPIX_Win_wait_until(win, 1, MPI_INT, MPIX_CMP_EQ, &value); /* FINDS D1 here, saying 'let rank 1 write the value before' */
    MPI_Barrier(MPI_COMM_WORLD); /* FINDS D1 here */
    MPI_Win_free(&win);
}

static void *value_store(void *at)
{
    sleep(4);
    __atomic_store_n((int *)at, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* A thread without MPI stores it, while all ranks wait. */
CASE_ALONE(D1, value_that_no_thread_stores, 2)
{
    const int value = 1;
    pthread_t thread;
    int *memory, has_base;
    MPI_Win win = ints_window(2);
    MPI_Win_get_attr(win, MPI_WIN_BASE, (void *)&memory, &has_base);
    if (rank == 0 && right)
        pthread_create(&thread, NULL, value_store, memory + 1);
    if (rank == 0)
        MPIX_Win_wait_until(win, 1, MPI_INT, MPIX_CMP_EQ, &value); /* FINDS D1 here, saying 'let rank 1 write the value before' */
    if (rank == 0 && right)
        pthread_join(thread, NULL);
    MPI_Barrier(MPI_COMM_WORLD); /* FINDS D1 here */
    MPI_Win_free(&win);
}
