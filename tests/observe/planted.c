/* Programs that are slow for one reason each, and the same without it: planted SCENARIO bad|good.
 * test_verdict.py compares the verdict. */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../include/oriel/ext.h"

enum {
    STEPS = 10,
    NAP_US = 20000,
    STOP_US = 200000,
    LARGE = 1 << 20,
    OFTEN = 4000000,
    LOOPS = 400
};

static int rank, ranks;

static MPI_Win window_make(long **base, MPI_Aint len_bytes)
{
    MPI_Win win;
    MPI_Win_allocate(len_bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win); /* MADE */
    MPI_Win_set_name(win, "planted");
    return win;
}

/* The last rank has more work than the others; or all have the same. */
static void late(bool is_bad)
{
    long *base;
    MPI_Win win = window_make(&base, 64);
    MPI_Barrier(MPI_COMM_WORLD); /* no rank is late for the first fence */
    MPI_Win_fence(0, win);
    for (int i = 0; i < STEPS; i++) {
        if (rank == ranks - 1 || !is_bad)
            usleep(NAP_US);
        MPI_Win_fence(0, win); /* WAITS late */
    }
    MPI_Win_free(&win);
}

/* The last rank notifies the first, after more work than that has; or both have the same. */
static void notified(bool is_bad)
{
    MPI_Win win;
    MPI_Info info;
    long *base;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    MPI_Win_allocate(64, 8, info, MPI_COMM_WORLD, &base, &win);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < STEPS; i++) {
        if (rank == ranks - 1 || !is_bad)
            usleep(NAP_US);
        if (rank == ranks - 1)
            MPIX_Put_notify(&base[1], 1, MPI_LONG, 0, 0, 1, MPI_LONG, 0, win);
        if (rank == 0)
            MPIX_Win_notify_wait(win, 0, 1); /* WAITS notified */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* All ranks need one lock, exclusive or shared. */
static void locks(bool is_bad)
{
    long *base;
    MPI_Win win = window_make(&base, 64);
    for (int i = 0; i < STEPS; i++) {
        MPI_Win_lock(is_bad ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win); /* WAITS locks */
        usleep(NAP_US);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

/* Large puts to a stack, or to memory of MPI_Win_allocate. */
static void slow(bool is_bad)
{
    char on_stack[LARGE];
    static char from[LARGE];
    long *base;
    MPI_Win win;
    memset(on_stack, 0, sizeof on_stack);
    if (is_bad)
        MPI_Win_create(on_stack, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    else
        MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 50 * STEPS; i++)
        MPI_Put(from, LARGE, MPI_CHAR, (rank + 1) % ranks, 0, LARGE, MPI_CHAR, win); /* PUTS slow */
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

/* One element at a time, or many. */
static void tiny(bool is_bad)
{
    enum { ELEMENTS = 1000 };
    static long from[ELEMENTS];
    const int count = is_bad ? 1 : ELEMENTS;
    long *base;
    MPI_Win win = window_make(&base, sizeof from);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < OFTEN / count; i++)
        MPI_Put(from, count, MPI_LONG, (rank + 1) % ranks, 0, count, MPI_LONG, win); /* PUTS tiny */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A window for each step, or for all. */
static void loop(bool is_bad)
{
    long *base;
    long one = 1;
    MPI_Win win = MPI_WIN_NULL;
    for (int i = 0; i < LOOPS; i++) {
        if (win == MPI_WIN_NULL)
            win = window_make(&base, 64);
        MPI_Win_fence(0, win);
        MPI_Put(&one, 1, MPI_LONG, (rank + 1) % ranks, 0, 1, MPI_LONG, win);
        MPI_Win_fence(0, win);
        if (is_bad || i == LOOPS - 1)
            MPI_Win_free(&win);
    }
}

/* A flush for each put, or for all. */
static void flush(bool is_bad)
{
    long *base;
    long one = 1;
    MPI_Win win = window_make(&base, 64);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < OFTEN; i++) {
        MPI_Put(&one, 1, MPI_LONG, (rank + 1) % ranks, 0, 1, MPI_LONG, win);
        if (is_bad || i == OFTEN - 1)
            MPI_Win_flush((rank + 1) % ranks, win); /* FLUSHES */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Stops this process and its agent. */
static void stop_briefly(void)
{
    pid_t process = getpid();
    if (fork() == 0) {
        kill(process, SIGSTOP);
        usleep(STOP_US);
        kill(process, SIGCONT);
        _exit(0);
    }
    wait(NULL);
}

/* Rank 1 answers gets late, because it is stopped; or at once. */
static void busy(bool is_bad)
{
    long in;
    long *on_heap = calloc(512, sizeof *on_heap);
    MPI_Win win;
    MPI_Win_create(on_heap, 512 * sizeof *on_heap, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && is_bad)
        stop_briefly();
    if (rank == 0) {
        usleep(NAP_US); /* rank 1 is stopped now */
        for (int i = 0; i < STEPS; i++)
            MPI_Get(&in, 1, MPI_LONG, 1, i, 1, MPI_LONG, win); /* GETS busy */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(on_heap);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(bool is_bad);
    } scenarios[] = {{"late", late}, {"locks", locks}, {"slow", slow}, {"tiny", tiny},
                     {"loop", loop}, {"flush", flush}, {"busy", busy}, {"notified", notified}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; argc > 2 && i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(scenarios[i].name, argv[1]) == 0)
            scenarios[i].run(strcmp(argv[2], "bad") == 0);
    MPI_Finalize();
    return 0;
}
