/* All ranks compete for the same resource on rank 0: the number of times that each of them gets it.
 * Prints a line for each pattern: its name, operations per second of all ranks, and the least and
 * the most of one rank. A plain MPI program; run by bench/contention: `mpiexec -n N contention
 * PATTERN MILLISECONDS`. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DOUBLES = 64, MOST_RANKS = 1024, MOST_PER_LOOK = 16 };
static const double margin_s = 0.3, late_part = 0.1, look_s = 20e-6;

static int64_t *memory; /* rank 0's window, from the counter on */
static double operand[DOUBLES];
static MPI_Win win;
static int rank, ranks;

/* If two ranks hold the lock at once, part of the sum is lost. */
static void lock_exclusive(void)
{
    int64_t value = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    value++;
    MPI_Put(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
}

static void lock_shared(void)
{
    int64_t value;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
}

static void hot_word(void)
{
    const int64_t one = 1;
    int64_t before;
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
}

static void bulk(void)
{
    MPI_Accumulate(operand, DOUBLES, MPI_DOUBLE, 0, 2, DOUBLES, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(0, win);
}

static const struct {
    const char *name;
    void (*once)(void);
    int in_epoch;
} patterns[] = {
    {"lock-exclusive", lock_exclusive, 0},
    {"lock-shared", lock_shared, 0},
    {"hot-word", hot_word, 1},
    {"bulk-accumulate", bulk, 1},
};

/* The node's clock, the same in all its processes. */
static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_until(double moment_s)
{
    struct timespec moment = {.tv_sec = (time_t)moment_s};
    moment.tv_nsec = (long)((moment_s - (double)moment.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) != 0)
        continue;
}

/* Counts operations for some seconds, from a time after the barrier of all ranks. No rank is alone
 * at the beginning or at the end, so the shares are of the contended time. */
static int64_t operations_count(void (*once)(void), double seconds, double *late_s_out)
{
    int64_t done = 0;
    double start_s, now_s, before_s;
    int chunk = 1;

    MPI_Barrier(MPI_COMM_WORLD);
    start_s = clock_s() + margin_s;
    MPI_Bcast(&start_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    sleep_until(start_s);
    now_s = clock_s();
    *late_s_out = now_s - start_s;
    while (now_s < start_s + seconds) {
        before_s = now_s;
        for (int i = 0; i < chunk; i++)
            once();
        done += chunk;
        now_s = clock_s();
        chunk = now_s - before_s > look_s ? (chunk + 1) / 2
                : chunk < MOST_PER_LOOK   ? chunk * 2
                                          : chunk;
    }
    return done;
}

/* The expected contents of rank 0's memory after all operations. */
static int is_right(const char *name, int64_t all)
{
    double sum;
    memcpy(&sum, memory + 2, sizeof sum);
    return strcmp(name, "hot-word") == 0          ? memory[0] == all
           : strcmp(name, "bulk-accumulate") == 0 ? sum == (double)all
           : strcmp(name, "lock-exclusive") == 0  ? memory[1] == all
                                                  : memory[1] == 0;
}

static void run(unsigned pattern, double seconds)
{
    int64_t *base;
    int64_t shares[MOST_RANKS];
    MPI_Win_allocate((2 + DOUBLES) * (MPI_Aint)sizeof *base, sizeof *base, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &base, &win);
    memset(base, 0, (2 + DOUBLES) * sizeof *base);
    memory = base;
    MPI_Barrier(MPI_COMM_WORLD);
    if (patterns[pattern].in_epoch)
        MPI_Win_lock_all(0, win);
    double late_s;
    int64_t done = operations_count(patterns[pattern].once, seconds, &late_s);
    if (patterns[pattern].in_epoch)
        MPI_Win_unlock_all(win);
    if (late_s > seconds * late_part)
        fprintf(stderr, "contention: rank %d began %.3f s late: no figures of a fair start\n", rank,
                late_s);
    MPI_Gather(&done, 1, MPI_INT64_T, shares, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int64_t all = 0, least = INT64_MAX, most = 0;
        for (int i = 0; i < ranks; i++) {
            all += shares[i];
            least = shares[i] < least ? shares[i] : least;
            most = shares[i] > most ? shares[i] : most;
        }
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        int right = is_right(patterns[pattern].name, all);
        MPI_Win_unlock(0, win);
        if (right)
            printf("%s %.0f %lld %lld\n", patterns[pattern].name, (double)all / seconds,
                   (long long)least, (long long)most);
        else
            printf("%s WRONG\n", patterns[pattern].name);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, found = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_library_version(library, &length);
    for (int i = 0; i < DOUBLES; i++)
        operand[i] = 1.0;
    for (unsigned i = 0;
         argc == 3 && ranks <= MOST_RANKS && i < sizeof patterns / sizeof patterns[0]; i++) {
        if (strcmp(argv[1], "all") != 0 && strcmp(argv[1], patterns[i].name) != 0)
            continue;
        found = 1;
        run(i, atof(argv[2]) / 1000);
    }
    if (!found && rank == 0)
        fprintf(stderr,
                "contention: usage: contention PATTERN|all MILLISECONDS, with at most %d ranks\n",
                MOST_RANKS);
    MPI_Finalize();
    return found ? 0 : 2;
}
