/* Work stealing: ranks without work take it from others, and no rank coordinates them.
 *
 * Tasks are numbers. A rank's open tasks are an interval [first, end), in one word of its window
 * that only compare-and-swap changes, with 16 bits for either end:
 *
 *     the owner takes its first task:  [first, end) -> [first + 1, end)
 *     a thief takes the upper half:    [first, end) -> [first, middle), and stores [middle, end)
 *                                      as its own interval, which is empty at that time
 *
 * A swap fails if another rank was faster. One that succeeds is right whatever happened since the
 * load, because the word is the whole state. The victim takes no part, but some MPIs complete
 * operations on a target only while it calls MPI. Run: mpiexec -n 4 ./work_stealing */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>

enum { TASKS = 1000, NUMBERS = 200, PRIMES = 17984 }; /* primes below TASKS * NUMBERS */
/* FINISHED, at rank 0, counts the tasks of all ranks. MPICH 4.0 needs multiples of 16 bytes. */
enum { OPEN, FINISHED, WORDS = 4 };
static MPI_Win win;
static int rank, ranks;

static int open_load(int target)
{
    int found;
    MPI_Fetch_and_op(NULL, &found, MPI_INT, target, OPEN, MPI_NO_OP, win);
    MPI_Win_flush(target, win);
    return found;
}

/* Returns 1 if the interval was as expected, and has changed. */
static int open_swap(int target, int expected, int desired)
{
    int found;
    MPI_Compare_and_swap(&desired, &expected, &found, MPI_INT, target, OPEN, win);
    MPI_Win_flush(target, win);
    return found == expected;
}

/* Returns 0 if this rank has no open task. */
static int task_take(int *task)
{
    int before = open_load(rank);
    while (before >> 16 < (before & 0xffff) && !open_swap(rank, before, before + (1 << 16)))
        before = open_load(rank);
    *task = before >> 16;
    return before >> 16 < (before & 0xffff);
}

static int tasks_steal(int victim)
{
    const int mine = open_load(rank), before = open_load(victim);
    const int first = before >> 16, end = before & 0xffff, middle = (first + end) / 2;
    return first < end && open_swap(victim, before, first << 16 | middle) &&
           open_swap(rank, mine, middle << 16 | end); /* no thief changes an empty interval */
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

int main(int argc, char **argv)
{
    int *words, task, fresh = 0, finished = 0, sum[2] = {0, 0}; /* primes, steals */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(WORDS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
    MPI_Win_lock_all(0, win); /* an epoch for the whole program; it excludes no other rank */
    words[OPEN] = rank == 0 ? TASKS : 0; /* at the start rank 0 has [0, TASKS) */
    words[FINISHED] = 0;
    MPI_Win_sync(win); /* for the separate memory model: copies my stores to the public window */
    MPI_Barrier(MPI_COMM_WORLD);
    for (int victim = rank; finished < TASKS; victim = (victim + 1) % ranks) {
        if (victim != rank)
            sum[1] += tasks_steal(victim);
        for (fresh = 0; task_take(&task); fresh++)
            sum[0] += primes_count(task);
        /* Adds this rank's tasks since the last time, which may be none, and reads the sum. */
        MPI_Fetch_and_op(&fresh, &finished, MPI_INT, 0, FINISHED, MPI_SUM, win);
        MPI_Win_flush(0, win);
        finished += fresh;
        sched_yield(); /* ranks with work may need this processor */
    }
    MPI_Win_unlock_all(win);
    MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d primes, %d steals\n", sum[0] == PRIMES ? "right" : "WRONG", sum[0], sum[1]);
    MPI_Win_free(&win);
    MPI_Finalize();
    return sum[0] != PRIMES;
}
