/* A process dies by SIGKILL while the others wait for it: one scenario for each launch, chosen by name.
 * The victim is rank 1; every survivor writes what it got into a file of its own and leaves without MPI_Finalize.
 * A plain MPI program, started by faults.py: faults SCENARIO allocate|create FOLDER. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VICTIM = 1, ELEMENTS = 1 << 17 };

static int world_rank;
static MPI_Win win;
static MPI_Group victim_group;
static double *bulk;

struct scenario {
    const char *name;
    void (*prepare)(void);  /* the victim, before all know that it is ready */
    void (*last_act)(void); /* the victim, before it kills itself */
    int (*wait)(void);      /* a survivor, until it gets an error */
    bool may_succeed;       /* an error is allowed and not demanded; no wait may last */
};

static double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void nothing(void) {}
static void hold_exclusive(void) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win); }
static void hold_shared(void) { MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win); }
static void hold_all(void) { MPI_Win_lock_all(0, win); }
static void free_window(void) { MPI_Win_free(&win); }
static void post_to_survivors(void)
{
    MPI_Group world, survivors;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, (int[]){ VICTIM }, &survivors);
    MPI_Win_post(survivors, 0, win);
}

static int wait_fence(void) { return MPI_Win_fence(0, win); }
static int wait_exclusive(void) { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win); }
static int wait_shared(void) { return MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win); }
static int wait_free(void) { return MPI_Win_free(&win); }

static int wait_fence_twice(void)
{
    int code = MPI_Win_fence(0, win);
    return code == MPI_SUCCESS ? code : MPI_Win_fence(0, win);
}

static int wait_creation(void)
{
    MPI_Win another;
    void *base;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &another);
}

/* No window tells any more who the others are. */
static int wait_creation_without_windows(void)
{
    int code = MPI_Win_free(&win);
    return code == MPI_SUCCESS ? wait_creation() : code;
}

static MPI_Comm fresh; /* has had no window */

/* Whether a local array of this rank stays as it is while a host goes on with what it had been asked to do. */
static bool local_memory_stays(double seconds)
{
    volatile unsigned char local[60000];
    bool whole = true;
    int flag;
    for (size_t i = 0; i < sizeof local; i++)
        local[i] = 0xab;
    for (double end = seconds_now() + seconds; seconds_now() < end; usleep(1000))
        MPI_Iprobe(2, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < sizeof local; i++)
        whole = whole && local[i] == 0xab;
    return whole;
}

/* The last survivor comes late, when the first has given up: the host then ends the collective that it was left with. */
static int wait_creation_late(void)
{
    MPI_Win another;
    void *base;
    MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN);
    if (world_rank == 2)
        usleep(1500000);
    int code = MPI_Win_allocate(64, 1, MPI_INFO_NULL, fresh, &base, &another);
    return world_rank == 0 && !local_memory_stays(2.5) ? MPI_SUCCESS : code;
}

/* lock_all may return before it has each target; the operation needs it. */
static int wait_lock_all(void)
{
    double value = 1;
    int code = MPI_Win_lock_all(0, win);
    if (code == MPI_SUCCESS)
        code = MPI_Put(&value, 1, MPI_DOUBLE, 0, world_rank, 1, MPI_DOUBLE, win);
    return code != MPI_SUCCESS ? code : MPI_Win_flush(0, win);
}

/* start may return before the post is there; complete needs it. */
static int wait_start(void)
{
    int code = MPI_Win_start(victim_group, 0, win);
    return code != MPI_SUCCESS ? code : MPI_Win_complete(win);
}

static int wait_wait(void)
{
    int code = MPI_Win_post(victim_group, 0, win);
    return code != MPI_SUCCESS ? code : MPI_Win_wait(win);
}

static int wait_test(void)
{
    int done = 0, code = MPI_Win_post(victim_group, 0, win);
    while (code == MPI_SUCCESS && !done) {
        code = MPI_Win_test(win, &done);
        usleep(100);
    }
    return code;
}

/* The victim posted and died in its exposure epoch: the survivors' access may end well or not, but it ends. */
static int use_posted(void)
{
    double value = 1;
    int code = MPI_Win_start(victim_group, 0, win);
    if (code == MPI_SUCCESS)
        code = MPI_Put(&value, 1, MPI_DOUBLE, VICTIM, 0, 1, MPI_DOUBLE, win);
    int end = MPI_Win_complete(win);
    return code != MPI_SUCCESS ? code : end;
}

static int accumulate_once(void)
{
    int code = MPI_Accumulate(bulk, ELEMENTS, MPI_DOUBLE, 0, 0, ELEMENTS, MPI_DOUBLE, MPI_SUM, win);
    return code != MPI_SUCCESS ? code : MPI_Win_flush(0, win);
}

static void *kill_soon(void *delay_us)
{
    usleep(*(useconds_t *)delay_us);
    raise(SIGKILL);
    return NULL;
}

/* Dies at some moment of a long row of bulk accumulates, most of them under the target's accumulate lock. */
static void accumulate_until_dead(void)
{
    pthread_t thread;
    useconds_t delay_us = 5000 + (useconds_t)(seconds_now() * 1e9) % 20000;
    MPI_Win_lock_all(0, win);
    pthread_create(&thread, NULL, kill_soon, &delay_us);
    for (;;)
        accumulate_once();
}

static int accumulate_for_a_while(void)
{
    double end = seconds_now() + 0.5;
    int code = MPI_Win_lock_all(0, win);
    while (code == MPI_SUCCESS && seconds_now() < end)
        code = accumulate_once();
    return code;
}

static const struct scenario scenarios[] = {
    { "fence", nothing, nothing, wait_fence, false },
    { "exclusive-held", hold_exclusive, nothing, wait_exclusive, false },
    { "exclusive-held-shared-wanted", hold_exclusive, nothing, wait_shared, false },
    { "exclusive-held-all-wanted", hold_exclusive, nothing, wait_lock_all, false },
    { "shared-held", hold_shared, nothing, wait_exclusive, false },
    { "all-held", hold_all, nothing, wait_exclusive, false },
    { "start", nothing, nothing, wait_start, false },
    { "posted", post_to_survivors, nothing, use_posted, true },
    { "wait", nothing, nothing, wait_wait, false },
    { "test", nothing, nothing, wait_test, false },
    { "free", nothing, nothing, wait_free, false },
    { "fence-twice", nothing, nothing, wait_fence_twice, false },
    { "creation", nothing, nothing, wait_creation, false },
    { "creation-again", nothing, free_window, wait_creation_without_windows, false },
    { "creation-late", nothing, nothing, wait_creation_late, false },
    { "accumulate", nothing, accumulate_until_dead, accumulate_for_a_while, true },
};

static void window_make(bool allocate)
{
    MPI_Aint size_bytes = (MPI_Aint)(ELEMENTS * sizeof(double));
    MPI_Group world;
    double *base;
    if (allocate) {
        MPI_Win_allocate(size_bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    } else {
        base = calloc(ELEMENTS, sizeof(double));
        MPI_Win_create(base, size_bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    memset(base, 0, (size_t)size_bytes);
    bulk = calloc(ELEMENTS, sizeof(double));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, (int[]){ VICTIM }, &victim_group);
}

/* The library's own words where it has them, else the error's text. */
static void describe(int code, char text[MPI_MAX_ERROR_STRING])
{
    const char *(*last_error)(void);
    void *address = dlsym(RTLD_DEFAULT, "oriel_last_error");
    int length = 0;
    memcpy(&last_error, &address, sizeof address);
    if (address && code != MPI_SUCCESS)
        snprintf(text, MPI_MAX_ERROR_STRING, "%s", last_error());
    else
        MPI_Error_string(code, text, &length);
}

static void report(const char *folder, const struct scenario *scenario, int code, double seconds)
{
    char path[4096], unfinished[4096], text[MPI_MAX_ERROR_STRING] = "";
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    describe(code, text);
    snprintf(path, sizeof path, "%s/rank.%d", folder, world_rank);
    snprintf(unfinished, sizeof unfinished, "%s/unfinished.%d", folder, world_rank);
    FILE *file = fopen(unfinished, "w");
    fprintf(file, "%s %.3f %s\n", class != MPI_SUCCESS ? "error" : scenario->may_succeed ? "allowed" : "success", seconds,
            text);
    fclose(file);
    rename(unfinished, path);
}

static bool reported(const char *folder, int rank)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/rank.%d", folder, rank);
    return access(path, F_OK) == 0;
}

/* Until both survivors have written their reports, or have had more than enough time. */
static void await_reports(const char *folder)
{
    double end = seconds_now() + 10;
    while (seconds_now() < end && !(reported(folder, 0) && reported(folder, 2)))
        usleep(5000);
}

/* MPICH's launcher kills all when the connection of one process closes without a farewell, whatever it was told about cleaning
 * up.  A copy of the victim, made before MPI starts, keeps the victim's connection open until the survivors are through. */
static void connection_keep_open(const char *folder)
{
    const char *rank = getenv("PMI_RANK");
    if (!getenv("PMI_FD") || !rank || atoi(rank) != VICTIM || fork() != 0)
        return;
    await_reports(folder);
    _exit(0);
}

int main(int argc, char **argv)
{
    const struct scenario *scenario = NULL;
    for (size_t i = 0; argc == 4 && i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0)
            scenario = &scenarios[i];
    if (!scenario) {
        fprintf(stderr, "usage: faults SCENARIO allocate|create FOLDER\n");
        return 2;
    }
    signal(SIGUSR1, SIG_IGN);
    connection_keep_open(argv[3]);
    MPI_Init(&argc, &argv);
    signal(SIGUSR1, SIG_IGN); /* MPICH's launcher tells survivors of the death by this signal */
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    window_make(strcmp(argv[2], "allocate") == 0);
    if (world_rank == VICTIM)
        scenario->prepare();
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(20000);
    if (world_rank == VICTIM) {
        scenario->last_act();
        raise(SIGKILL);
    }
    double begin = seconds_now();
    int code = scenario->wait();
    report(argv[3], scenario, code, seconds_now() - begin);
    await_reports(argv[3]);
    _exit(0);
}
