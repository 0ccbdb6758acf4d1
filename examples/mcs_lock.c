/* The lock of Mellor-Crummey and Scott: a queue of ranks, in which each rank polls its own memory.
 *
 * TAIL, at HOME, is the last rank of the queue. Each rank has two words: NEXT, the rank that
 * follows it, or NOBODY; and BLOCKED, which is 1 until the predecessor releases the lock.
 *
 *     acquire:  NEXT = NOBODY, BLOCKED = 1;  swap TAIL to me;  if there was a predecessor,
 *               store me into its NEXT and wait until my BLOCKED is 0
 *     release:  if TAIL is still me, swap it to NOBODY;  otherwise wait for my NEXT and store 0
 *               into its BLOCKED
 *
 * Waiting costs no messages, and a release one: with many ranks it is faster than ticket_lock.c. By
 * MPI's default, concurrent accumulates on a location are of one kind, or MPI_NO_OP. So only
 * compare-and-swap changes TAIL, and only MPI_REPLACE the others. Run: mpiexec -n 4 ./mcs_lock */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>

enum { ROUNDS = 100, HOME = 0, NOBODY = -1 };
enum { TAIL, NEXT, BLOCKED, VALUE, WORDS }; /* VALUE, at HOME, is what the lock protects */
static MPI_Win win;
static int rank, ranks;

static int word_load(int target, MPI_Aint word)
{
    int value;
    MPI_Fetch_and_op(NULL, &value, MPI_INT, target, word, MPI_NO_OP, win);
    MPI_Win_flush(target, win);
    return value;
}

static void word_store(int value, int target, MPI_Aint word)
{
    MPI_Accumulate(&value, 1, MPI_INT, target, word, 1, MPI_INT, MPI_REPLACE, win);
    MPI_Win_flush(target, win);
}

/* Returns the previous value: `expected` if it has changed to `desired`. */
static int tail_swap(int expected, int desired)
{
    int found;
    MPI_Compare_and_swap(&desired, &expected, &found, MPI_INT, HOME, TAIL, win);
    MPI_Win_flush(HOME, win);
    return found;
}

static void lock_acquire(void)
{
    int before = NOBODY, found;
    word_store(NOBODY, rank, NEXT);
    word_store(1, rank, BLOCKED);
    while ((found = tail_swap(before, rank)) != before)
        before = found;
    if (before == NOBODY)
        return;
    word_store(rank, before, NEXT);
    while (word_load(rank, BLOCKED))
        sched_yield(); /* the holder may need this processor */
}

static void lock_release(void)
{
    int next;
    MPI_Win_flush_all(win); /* first complete the operations of the critical section */
    if (word_load(rank, NEXT) == NOBODY && tail_swap(rank, NOBODY) == rank)
        return;
    while ((next = word_load(rank, NEXT)) == NOBODY)
        sched_yield(); /* the successor has swapped TAIL, but not stored itself yet */
    word_store(0, next, BLOCKED);
}

int main(int argc, char **argv)
{
    int *words, value;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(WORDS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
    MPI_Win_lock_all(0, win);
    words[TAIL] = NOBODY;
    words[VALUE] = 0;
    MPI_Win_sync(win); /* for the separate memory model: copies my stores to the public window */
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        lock_acquire();
        MPI_Get(&value, 1, MPI_INT, HOME, VALUE, 1, MPI_INT, win);
        MPI_Win_flush(HOME, win);
        value++;
        MPI_Put(&value, 1, MPI_INT, HOME, VALUE, 1, MPI_INT, win);
        lock_release();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Get(&value, 1, MPI_INT, HOME, VALUE, 1, MPI_INT, win);
    MPI_Win_unlock_all(win); /* completes the get */
    const char *verdict = value == ROUNDS * ranks ? "right" : "WRONG";
    if (rank == 0)
        printf("%s: %d of %d\n", verdict, value, ROUNDS * ranks);
    MPI_Win_free(&win);
    MPI_Finalize();
    return value != ROUNDS * ranks;
}
