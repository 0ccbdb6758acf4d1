/* Hangs in one way, for observation from outside, until the test ends it.  argv[1] selects the way:
 *
 *     post       rank 0 starts an access epoch to the last rank, which never posts
 *     self       rank 0 starts an access epoch to itself, which it never posts
 *     complete   rank 0 posts to the last rank, which never completes
 *     notify     all ranks except the last wait for a notification
 *     lock       rank 0 holds the lock of the last rank and sleeps; all others request it
 *     lock_all   rank 0 holds an exclusive lock and sleeps; all others request lock_all
 *     fence      all ranks except the last are in a fence of "halo"
 *     free       all ranks except the last free the window
 *     create     all ranks except the last create a second window; first: the first one
 *     cycle      each rank holds its own lock and requests the next rank's
 *     mixed      rank 0 holds a lock and is in a fence of another window; the last rank requests
 *                that lock before it enters the fence
 *
 * argv[2] is a name for "halo".  Sleeping ranks are outside MPI.  Rank 0 prints "ready" before the
 * hang. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../include/oriel/ext.h"

static int rank, n, last;

static MPI_Win make(const char *name)
{
    MPI_Win win;
    MPI_Info info;
    void *base;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &base, &win); /* WAITS create first */
    MPI_Info_free(&info);
    if (name != NULL)
        MPI_Win_set_name(win, name);
    return win;
}

static void sleep_for_good(void)
{
    for (;;)
        sleep(1000);
}

static void post(MPI_Win win, int to)
{
    MPI_Group world, target;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &to, &target);
    if (rank == 0)
        MPI_Win_start(target, 0, win); /* WAITS post self */
    sleep_for_good();
}

static void complete(MPI_Win win)
{
    MPI_Group world, other;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int peer = rank == 0 ? last : 0;
    MPI_Group_incl(world, 1, &peer, &other);
    if (rank == 0) {
        MPI_Win_post(other, 0, win);
        MPI_Win_wait(win); /* WAITS complete */
    } else if (rank == last) {
        MPI_Win_start(other, 0, win);
    }
    sleep_for_good();
}

static void lock(MPI_Win win, int all)
{
    if (rank == 0)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        sleep_for_good();
    if (all)
        MPI_Win_lock_all(0, win); /* WAITS lock_all */
    else
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win); /* WAITS lock */
}

static void cycle(MPI_Win win)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % n, 0, win); /* WAITS cycle */
}

static void mixed(MPI_Win win)
{
    MPI_Win other = make("rows");
    if (rank == 0)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == last)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win); /* WAITS mixed */
    MPI_Win_fence(0, other);                      /* WAITS mixed */
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    const char *mode = argc > 1 ? argv[1] : "";
    last = n - 1;
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    if (strcmp(mode, "first") == 0 && rank == last)
        sleep_for_good();
    MPI_Win win = make(argc > 2 ? argv[2] : "halo");
    if (strcmp(mode, "post") == 0)
        post(win, last);
    else if (strcmp(mode, "self") == 0)
        post(win, 0);
    else if (strcmp(mode, "complete") == 0)
        complete(win);
    else if (strncmp(mode, "lock", 4) == 0)
        lock(win, mode[4] != '\0');
    else if (strcmp(mode, "cycle") == 0)
        cycle(win);
    else if (strcmp(mode, "mixed") == 0)
        mixed(win);
    else if (rank == last)
        sleep_for_good();
    else if (strcmp(mode, "notify") == 0)
        MPIX_Win_notify_wait(win, 0, 1); /* WAITS notify */
    else if (strcmp(mode, "fence") == 0)
        MPI_Win_fence(0, win); /* WAITS fence */
    else if (strcmp(mode, "free") == 0)
        MPI_Win_free(&win); /* WAITS free */
    else
        make(NULL);
    fprintf(stderr, "hang: %s did not hang\n", mode);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
