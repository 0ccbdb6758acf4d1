/* A task queue: a master hands out tasks, one at a time, and each worker returns a result for it.
 *
 * The master has a counter of notifications for each worker (include/oriel/ext.h), and waits for
 * any of them: the place in the list is the worker that has finished. Its result is then in the
 * master's window, in the word of that worker. A worker has one counter, for its next task.
 *
 * Without Oriel a notification is a flush and an empty message, which takes longer.
 * Run: mpiexec -n 4 oriel run ./task_queue */
#include <mpi.h>
#include <oriel/ext.h>
#include <stdio.h>

enum { TASKS = 1000, NUMBERS = 200, PRIMES = 17984 }; /* primes below TASKS * NUMBERS */
enum { MASTER = 0, WORKERS = 255, NEW = 0, END = -1 };

static MPI_Win win;
static int rank, ranks;
static int *words; /* a worker's task; at the master a result for each rank */

static void put_notify(int value, int target, int word, int counter)
{
    if (MPIX_Query_oriel()) {
        MPIX_Put_notify(&value, 1, MPI_INT, target, word, 1, MPI_INT, counter, win);
        MPI_Win_flush_local(target, win);
        return;
    }
    MPI_Request request;
    MPI_Put(&value, 1, MPI_INT, target, word, 1, MPI_INT, win);
    MPI_Win_flush(target, win);
    MPI_Isend(NULL, 0, MPI_BYTE, target, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
}

/* Waits for a notification of any of the counters; returns its place in the list. */
static int notify_wait_any(int count, const int *counters)
{
    int place;
    MPI_Status status;
    if (MPIX_Query_oriel()) {
        MPIX_Win_notify_wait_any(win, count, counters, &place);
        return place;
    }
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    MPI_Win_sync(win);
    return rank == MASTER ? status.MPI_SOURCE - 1 : 0;
}

/* Counts the primes among a task's numbers. Greater numbers take longer. */
static int primes_count(int task)
{
    int count = 0;
    for (int n = task * NUMBERS, d; n < (task + 1) * NUMBERS; n++) {
        for (d = 2; d * d <= n && n % d != 0; d++)
            ;
        count += n > 1 && d * d > n;
    }
    return count;
}

/* Returns the sum of the results. Worker w is rank w + 1. */
static int tasks_hand_out(void)
{
    int counters[WORKERS], next = 0, primes = 0;
    for (int w = 0; w < ranks - 1; w++) {
        counters[w] = w;
        put_notify(next++, w + 1, 0, NEW);
    }
    for (int done = 0; done < TASKS; done++) {
        const int worker = notify_wait_any(ranks - 1, counters);
        primes += words[worker];
        put_notify(next < TASKS ? next++ : END, worker + 1, 0, NEW);
    }
    return primes;
}

static void tasks_do(void)
{
    static const int new[] = {NEW};
    while (notify_wait_any(1, new) == 0 && words[0] != END)
        put_notify(primes_count(words[0]), MASTER, rank - 1, rank - 1);
}

int main(int argc, char **argv)
{
    int primes = PRIMES;
    char counters[16];
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2 || ranks > WORKERS + 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(counters, sizeof counters, "%d", ranks);
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", counters);
    /* MPICH 4.0 needs multiples of 16 bytes */
    MPI_Win_allocate((ranks + 3) / 4 * 4 * (MPI_Aint)sizeof(int), sizeof(int), info, MPI_COMM_WORLD,
                     &words, &win);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, win);
    if (rank == MASTER)
        primes = tasks_hand_out();
    else
        tasks_do();
    MPI_Win_unlock_all(win);
    if (rank == MASTER)
        printf("%s: %d primes by %d workers\n", primes == PRIMES ? "right" : "WRONG", primes,
               ranks - 1);
    MPI_Win_free(&win);
    MPI_Finalize();
    return primes != PRIMES;
}
