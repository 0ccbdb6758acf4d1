/* Notified access: the call that takes a notification orders what follows after the operation. */
#include "offenders.h"

#include <oriel/ext.h>

#include <unistd.h>

/* With two counters of notifications per rank. */
static MPI_Win notified_window(int count)
{
    return hinted_window(count, "oriel_notifications", "2");
}

CASE(C1, get_before_the_notification, 2)
{
    int got;
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0)
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win); /* FINDS C1 here */
    if (rank == 1 && right)
        MPIX_Win_notify_wait(win, 0, 1);
    if (rank == 1)
        MPI_Get(&got, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here, saying 'MPIX_Win_notify_wait on rank 1' */
    if (rank == 1 && !right)
        MPIX_Win_notify_wait(win, 0, 1);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Operations before the notified one are ordered with it. A later one is not. */
CASE(C1, put_after_the_notified_one, 2)
{
    int got[4];
    MPI_Win win = notified_window(8);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win);
        if (right)
            MPI_Put(&rank, 1, MPI_INT, 1, 4, 1, MPI_INT, win); /* the same, before it */
        MPIX_Accumulate_notify(&rank, 1, MPI_INT, 1, 3, 1, MPI_INT, MPI_SUM, 1, win);
        if (!right)
            MPI_Put(&rank, 1, MPI_INT, 1, 4, 1, MPI_INT, win); /* FINDS C1 here */
    }
    delay();
    if (rank == 1) {
        MPIX_Win_notify_wait(win, 1, 1);
        MPI_Get(got, 2, MPI_INT, 1, 2, 2, MPI_INT, win);
        MPI_Get(got + 2, 1, MPI_INT, 1, 4, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* One of two notifications of one origin is the first. Threads could notify in another order. */
CASE_WITHOUT_THREADS(C1, one_of_two_notifications_is_taken, 2)
{
    int got[3];
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, 0, win);
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, 0, win); /* FINDS C1 here */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && !right) {
        MPIX_Win_notify_wait(win, 0, 1);
        MPI_Get(got + 2, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    }
    if (rank == 1 && right)
        MPIX_Win_notify_wait(win, 0, 2);
    if (rank == 1)
        MPI_Get(got, 2, MPI_INT, 1, 0, 2, MPI_INT, win); /* FINDS C1 here */
    MPI_Barrier(MPI_COMM_WORLD); /* no flush before */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A message without a flush orders nothing; and a target that has taken orders others. */
CASE(C1, message_before_the_notification_is_taken, 2)
{
    int got;
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win); /* FINDS C1 here */
        if (!right)
            notify(1);
    }
    if (rank == 1) {
        if (right)
            MPIX_Win_notify_wait(win, 0, 1);
        else
            await_notice(0);
        notify(size - 1);
    }
    if (rank == size - 1) {
        await_notice(1);
        MPI_Get(&got, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Barrier(MPI_COMM_WORLD); /* no flush before */
    if (rank == 1 && !right)
        MPIX_Win_notify_wait(win, 0, 1);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* What the origin has flushed by the time of the read does not matter: the message was before the
 * flush. Another put is taken after its flush. */
CASE(C1, message_before_the_flush_of_a_notified_put, 2)
{
    int got[2];
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 3, 1, MPI_INT, 1, win);
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win); /* FINDS C1 here */
        if (!right)
            notify(1);
        MPI_Win_flush(1, win);
        if (right)
            notify(1);
    }
    if (rank == 1) {
        usleep(20000); /* the flush is over */
        MPIX_Win_notify_wait(win, 1, 1);
        MPI_Get(&got[0], 1, MPI_INT, 1, 3, 1, MPI_INT, win);
        await_notice(0);
        MPI_Get(&got[1], 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here, saying 'MPIX_Win_notify_wait on rank 1' */
        MPIX_Win_notify_wait(win, 0, 1);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A flush completes a notified put, too. Here it follows an operation that is flushed each time. */
CASE(C1, notified_put_after_the_last_flush, 2)
{
    enum { TIMES = 6 };
    int got;
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        if (right && i == TIMES / 2)
            MPIX_Put_notify(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win); /* the same, before */
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Win_flush(1, win);
    }
    if (rank == 0 && !right)
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win); /* FINDS C1 here */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Get(&got, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Barrier(MPI_COMM_WORLD); /* no flush before */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Two ranks in turns. The first never flushes: it writes the same bytes again after the other has
 * answered. */
CASE(C1, turns_without_a_flush, 2)
{
    int got[20], value = rank;
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 20; i++) {
        if (rank == 0) {
            MPIX_Put_notify(&value, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win); /* FINDS C1 here */
            if (right || i > 0)
                MPIX_Win_notify_wait(win, 0, 1);
        }
        if (rank == 1) {
            MPIX_Win_notify_wait(win, 0, 1);
            MPI_Get(&got[i], 1, MPI_INT, 1, 2, 1, MPI_INT, win);
            MPI_Win_flush(1, win);
            MPIX_Accumulate_notify(&value, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, 0, win);
        }
    }
    if (rank == 0 && !right)
        MPIX_Win_notify_wait(win, 0, 1);
    MPI_Barrier(MPI_COMM_WORLD); /* no flush before */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* All ranks notify rank 0, several times; each round is taken whole. A rank that is ahead has
 * notified twice: with threads, either may be the one that was taken. */
CASE_WITHOUT_THREADS(C1, rounds_of_notifications_of_all_ranks, 2)
{
    enum { ROUNDS = 40 };
    int got[64], own = rank;
    MPI_Win win = notified_window(64);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank > 0 && rank < 32) {
            MPIX_Put_notify(&own, 1, MPI_INT, 0, rank, 1, MPI_INT, 0, win); /* FINDS C1 here */
            MPI_Win_flush(0, win);
            MPIX_Win_notify_wait(win, 1, 1);
        }
        if (rank == 0) {
            const bool waits = right || round < ROUNDS - 1;
            for (int i = 1; i < size && i < 32 && waits; i++)
                MPIX_Win_notify_wait(win, 0, 1);
            MPI_Get(got, 32, MPI_INT, 0, 0, 32, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(0, win);
            for (int i = 1; i < size && i < 32; i++)
                MPIX_Put_notify(&own, 0, MPI_INT, i, 0, 0, MPI_INT, 1, win);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A get has read what it reads when its notification is taken. */
CASE(C1, put_before_the_get_has_notified, 2)
{
    int got, flag = 0;
    static const int numbers[] = {1, 0};
    int index;
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0)
        MPIX_Get_notify(&got, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win); /* FINDS C1 here */
    if (rank == 1 && right)
        MPIX_Win_notify_wait_any(win, 2, numbers, &index);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
    while (rank == 1 && !right && !flag)
        MPIX_Win_notify_test(win, 0, 1, &flag);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A start notifies as the call does. */
CASE(C1, put_before_the_started_get_has_notified, 2)
{
    int got;
    MPI_Request request;
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0) {
        MPIX_Get_notify_init(&got, 1, MPI_INT, 1, 2, 1, MPI_INT, 0, win, &request);
        MPI_Start(&request); /* FINDS C1 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        MPIX_Accumulate_notify_init(&rank, 1, MPI_INT, 1, 3, 1, MPI_INT, MPI_SUM, 0, win, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        MPIX_Put_notify_init(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, 0, win, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    if (rank == 1 && right) {
        MPIX_Win_notify_wait(win, 0, 3);
        MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win);
    }
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
    if (rank == 1 && !right)
        MPIX_Win_notify_wait(win, 0, 3);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The origin's buffer is in use until a flush, as that of a put. */
CASE(C4, buffer_of_a_notified_put, 2)
{
    int values[2] = {1, 2};
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_notify(values, 1, MPI_INT, 1, 0, 1, MPI_INT, 0, win); /* FINDS C4 here */
        if (right)
            MPI_Win_flush_local(1, win);
        MPI_Get(values, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C4 here */
    }
    if (rank == 1)
        MPIX_Win_notify_wait(win, 0, 1);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A counter that the target does not have: the call fails, and others are not mistaken for it. */
CASE(C1, a_call_that_fails_does_not_notify, 2)
{
    int got[2];
    MPI_Win win = notified_window(4);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, 2, win);
        MPI_Win_flush(1, win); /* of another node, it is this call that fails */
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, 0, win);
        MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
        if (right)
            MPIX_Put_notify(NULL, 0, MPI_INT, 1, 0, 0, MPI_INT, 0, win);
        MPI_Win_flush(1, win);
    }
    if (rank == 1) {
        MPIX_Win_notify_wait(win, 0, right ? 2 : 1);
        MPI_Get(&got[0], 1, MPI_INT, 1, 1, 1, MPI_INT, win);
        MPI_Get(&got[1], 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(E1, notified_put_without_an_epoch, 2)
{
    MPI_Win win = notified_window(4);
    if (right)
        MPI_Win_fence(0, win);
    if (rank == 0)
        MPIX_Put_notify(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, 0, win); /* FINDS E1 here */
    fence_and_free(win);
}

CASE_ALONE(D1, notification_that_no_rank_sends, 2)
{
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 1 && right)
        MPIX_Put_notify(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, 0, win);
    if (rank == 0)
        MPIX_Win_notify_wait(win, 0, 1); /* FINDS D1 here, saying 'waits for a notification of any rank, such as 1' */
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD); /* FINDS D1 here */
    MPI_Win_free(&win);
}

/* A rank that computes for a while is no reason to end the job. */
CASE_ALONE(D1, request_of_a_notification_that_no_rank_sends, 2)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 1 && right) {
        sleep(4);
        MPIX_Put_notify(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, 0, win);
    }
    if (rank == 0) {
        MPIX_Win_notify_init(win, 0, 1, &requests[0]);
        MPI_Irecv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &requests[1]);
        MPI_Start(&requests[0]);
        MPI_Waitall(2, requests, statuses); /* FINDS D1 here, saying 'let rank 1 notify before' */
        MPI_Request_free(&requests[0]);
    }
    if (rank == 1)
        notify(0);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD); /* FINDS D1 here */
    MPI_Win_free(&win);
}

CASE_ALONE(D1, notifications_that_are_awaited_before_they_are_sent, 2)
{
    int next = (rank + 1) % size;
    MPI_Win win = notified_window(4);
    MPI_Win_lock_all(0, win);
    if (right)
        MPIX_Put_notify(&rank, 1, MPI_INT, next, 0, 1, MPI_INT, 0, win);
    MPIX_Win_notify_wait(win, 0, 1); /* FINDS D1 here */
    if (!right)
        MPIX_Put_notify(&rank, 1, MPI_INT, next, 0, 1, MPI_INT, 0, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
