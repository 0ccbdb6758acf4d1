/* Buffers of requests in a program whose threads use requests at the same time. Hosts use one
 * handle for all requests that are complete at once, and hand out freed handles again. Not
 * instrumented: a finding rests on the operation under way, not on the order of threads. */
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../mpi/host_limits.h"

enum { COUNT = 4, SENT = 9, OTHER, BACK, ANSWER }; /* ints of a message, and tags */

/* --- a wait of another thread that lasts --- */

static atomic_bool waits;

/* The other thread of rank 0 waits for a send, which is complete at once, and for an answer. */
static void *wait_for_both(void *unused)
{
    int other = 1, answer;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Isend(&other, 1, MPI_INT, 1, OTHER, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&answer, 1, MPI_INT, 1, ANSWER, MPI_COMM_WORLD, &requests[1]);
    atomic_store(&waits, true);
    MPI_Waitall(2, requests, statuses);
    return unused;
}

static int *sent;
static MPI_Request request;
static pthread_t waiting;

/* Rank 0: returns while the other thread waits, and a send of this one is under way. */
static void send_beside_the_wait(void)
{
    static const struct timespec soon = {.tv_nsec = 10 * 1000 * 1000};
    sent = calloc(COUNT, sizeof *sent);
    MPI_Isend(sent, COUNT, MPI_INT, 1, SENT, MPI_COMM_WORLD, &request); /* FINDS C4 L1 L3 here */
    atomic_store(&waits, false);
    pthread_create(&waiting, NULL, wait_for_both, NULL);
    while (!atomic_load(&waits))
        sched_yield();
    nanosleep(&soon, NULL);
}

static void wait_end(void)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    notify(1);
    pthread_join(waiting, NULL);
}

/* Rank 1. */
static void answer_both(void)
{
    int values[COUNT];
    MPI_Recv(values, COUNT, MPI_INT, 0, SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(values, COUNT, MPI_INT, 0, BACK, MPI_COMM_WORLD);
    MPI_Recv(values, 1, MPI_INT, 0, OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    await_notice(0);
    MPI_Send(values, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD);
}

CASE(L3, free_of_a_buffer_while_another_thread_waits, 2)
{
    int back[COUNT];
    if (rank == 0) {
        send_beside_the_wait();
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        free(sent); /* FINDS L3 here */
        MPI_Recv(back, COUNT, MPI_INT, 1, BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wait_end();
    } else if (rank == 1) {
        answer_both();
    }
}

CASE(C4, receive_into_a_buffer_while_another_thread_waits, 2)
{
    if (rank == 0) {
        send_beside_the_wait();
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(sent, COUNT, MPI_INT, 1, BACK, MPI_COMM_WORLD, /* FINDS C4 here */
                 MPI_STATUS_IGNORE);
        wait_end();
        free(sent);
    } else if (rank == 1) {
        answer_both();
    }
}

CASE(L1, memset_of_a_buffer_while_another_thread_waits, 2)
{
    int back[COUNT];
    volatile size_t len_bytes = COUNT * sizeof(int); /* else the compiler stores instead */
    if (rank == 0) {
        send_beside_the_wait();
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        memset(sent, 0, len_bytes); /* FINDS L1 here */
        MPI_Recv(back, COUNT, MPI_INT, 1, BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wait_end();
        free(sent);
    } else if (rank == 1) {
        answer_both();
    }
}

/* --- waits of several threads, over and over --- */

enum { SENDERS = 3, ROUNDS = 200 };

static bool is_right;

static void *send_and_free(void *tag);

CASE(L3, free_of_buffers_that_threads_send, 2)
{
    static const int tags[SENDERS] = {SENT, OTHER, BACK}; /* messages of one tag have an order */
    pthread_t threads[SENDERS];
    int values[COUNT], count = host_loses_messages_of_threads() ? 1 : SENDERS;
    is_right = right;
    for (int i = 0; i < count && rank == 0; i++)
        pthread_create(&threads[i], NULL, send_and_free, (void *)&tags[i]);
    for (int i = 0; i < count && rank == 0; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count * ROUNDS && rank == 1; i++)
        MPI_Recv(values, COUNT, MPI_INT, 0, tags[i / ROUNDS], MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void *send_and_free(void *tag)
{
    int own = *(const int *)tag;
    for (int i = 0; i < ROUNDS; i++) {
        bool early = !is_right && i == ROUNDS / 2;
        MPI_Request mine;
        int *values = calloc(COUNT, sizeof *values);
        MPI_Isend(values, COUNT, MPI_INT, 1, own, MPI_COMM_WORLD, &mine); /* FINDS L3 here */
        if (!early)
            MPI_Wait(&mine, MPI_STATUS_IGNORE);
        free(values); /* FINDS L3 here */
        if (early)
            MPI_Wait(&mine, MPI_STATUS_IGNORE);
    }
    return NULL;
}
