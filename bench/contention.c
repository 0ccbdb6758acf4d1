/* All ranks want the same thing of rank 0 for a given time: how often each of them gets it.
 * Prints a line for each pattern: its name, operations per second of all ranks, and the least and the most that one rank got.  A plain
 * MPI program; run by bench/contention: `mpiexec -n N contention PATTERN MILLISECONDS`. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLES = 64, MOST_RANKS = 1024, OPERATIONS_PER_LOOK = 16 };

static int64_t *memory; /* rank 0's window, from the counter on */
static double operand[DOUBLES];
static MPI_Win win;
static int rank, ranks;

static void lock_exclusive(void)
{
    const int64_t value = rank;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
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

/* How often in so many seconds. */
static int64_t count(void (*once)(void), double seconds)
{
    int64_t done = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end; done += OPERATIONS_PER_LOOK)
        for (int i = 0; i < OPERATIONS_PER_LOOK; i++)
            once();
    return done;
}

/* What must be in rank 0's memory when everybody has done all its operations. */
static int is_right(const char *name, int64_t all)
{
    double sum;
    memcpy(&sum, memory + 2, sizeof sum);
    return strcmp(name, "hot-word") == 0          ? memory[0] == all
           : strcmp(name, "bulk-accumulate") == 0 ? sum == (double)all
           : strcmp(name, "lock-exclusive") == 0  ? memory[1] >= 0 && memory[1] < ranks
                                                  : memory[1] == -1;
}

static void run(unsigned pattern, double seconds)
{
    int64_t *base;
    int64_t shares[MOST_RANKS];
    MPI_Win_allocate((2 + DOUBLES) * (MPI_Aint)sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    memset(base, 0, (2 + DOUBLES) * sizeof *base);
    base[1] = -1;
    memory = base;
    MPI_Barrier(MPI_COMM_WORLD);
    if (patterns[pattern].in_epoch)
        MPI_Win_lock_all(0, win);
    int64_t done = count(patterns[pattern].once, seconds);
    if (patterns[pattern].in_epoch)
        MPI_Win_unlock_all(win);
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
            printf("%s %.0f %lld %lld\n", patterns[pattern].name, (double)all / seconds, (long long)least, (long long)most);
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
    for (unsigned i = 0; argc == 3 && ranks <= MOST_RANKS && i < sizeof patterns / sizeof patterns[0]; i++) {
        if (strcmp(argv[1], "all") != 0 && strcmp(argv[1], patterns[i].name) != 0)
            continue;
        found = 1;
        run(i, atof(argv[2]) / 1000);
    }
    if (!found && rank == 0)
        fprintf(stderr, "contention: usage: contention PATTERN|all MILLISECONDS, with at most %d ranks\n", MOST_RANKS);
    MPI_Finalize();
    return found ? 0 : 2;
}
