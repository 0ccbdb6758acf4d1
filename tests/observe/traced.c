/* A program with a known trace: each rank puts ROUNDS times to the next one in a fence epoch, for
 * which the last rank is late. It then gets ROUNDS times from rank 0 under a lock.  The argument
 * selects how it ends, and additional actions. */
#include <mpi.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../mpi/file_size_limit.h"
#include "../mpi/skip_finalize.h"

enum { ROUNDS = 20, LATE_MS = 20, CHILD_PUTS = 2 };

static int rank, ranks;

static void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void put_in_fences(MPI_Win win)
{
    int64_t value = rank;
    MPI_Win_fence(0, win);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % ranks, 0, 1, MPI_INT64_T, win);
        if (rank == ranks - 1)
            sleep_ms(LATE_MS);
        MPI_Win_fence(0, win); /* WAITS for the last */
    }
}

static void get_under_lock(MPI_Win win)
{
    int64_t values[4];
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    for (int i = 0; i < ROUNDS; i++)
        MPI_Get(values, 4, MPI_INT64_T, 0, 0, 4, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
}

/* The actions of the program's children are not in the trace. */
static void fork_and_put(MPI_Win win)
{
    int64_t value = 0;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < CHILD_PUTS; i++)
            MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
        sleep_ms(200);
        execlp("sh", "sh", "-c",
               "ls -l /proc/self/fd | grep -c 'rank-.*[.]oriel' && exit 1; exit 0", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
        printf("rank %d: a child ended with %x\n", rank, (unsigned)status);
}

static void *accumulate_some(void *win)
{
    int64_t one = 1;
    for (int i = 0; i < ROUNDS; i++)
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, *(MPI_Win *)win);
    return NULL;
}

static void use_threads(MPI_Win win)
{
    pthread_t threads[2];
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, accumulate_some, &win);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(win);
}

/* More than fits on the disk. */
static void flood(MPI_Win win)
{
    int64_t value = rank;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    for (int i = 0; i < 100000; i++)
        MPI_Put(&value, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(rank, win);
}

/* Rank 0 waits for two posts: first long for that of rank 1, then for some milliseconds for that of
 * rank 2. */
static void post_late(MPI_Win win)
{
    MPI_Group all;
    MPI_Group some;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, rank == 0 ? 2 : 1, rank == 0 ? (int[]){1, 2} : (int[]){0}, &some);
    if (rank == 0) {
        MPI_Win_start(some, 0, win);
        MPI_Win_complete(win);
    } else if (rank <= 2) {
        sleep_ms(rank == 1 ? 300 : 310);
        MPI_Win_post(some, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "plain";
    int provided;
    int64_t *memory;
    MPI_Win win;
    MPI_Init_thread(&argc, &argv,
                    strcmp(what, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    limit_file_bytes();
    MPI_Win_set_name(win, "ring");
    put_in_fences(win);
    get_under_lock(win);
    if (strcmp(what, "posts") == 0)
        post_late(win);
    if (strcmp(what, "fork") == 0)
        fork_and_put(win);
    if (strcmp(what, "threads") == 0)
        use_threads(win);
    if (strcmp(what, "flood") == 0)
        flood(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(what, "kill") == 0) {
        sleep_ms(1000); /* ten times the maximum delay of events */
        printf("rank %d is there\n", rank);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == ranks - 1)
            raise(SIGKILL);
        sleep_ms(60000);
    }
    MPI_Win_free(&win);
    printf("rank %d is done\n", rank);
    if (getenv("TEST_NO_FINALIZE") != NULL)
        sleep_ms(1000); /* events not yet written would be lost */
    leave_without_finalize(0);
    MPI_Finalize();
    return 0;
}
