/* A ticket lock: mutual exclusion in the order of arrival, of two counters in a window.
 *
 * A rank draws the next ticket and waits until it is served. The release serves the next one:
 *
 *     acquire:  ticket = NEXT++;  wait until SERVED == ticket
 *     release:  complete the operations of the critical section;  SERVED++
 *
 * MPI_Win_lock(MPI_LOCK_EXCLUSIVE) is a lock too, but it grants no order, and it locks one target's
 * memory. This lock protects whatever its users agree on. All waiting ranks poll one word;
 * mcs_lock.c is better for many ranks.
 *
 * The counters are accessed by accumulates only, which are atomic and, by MPI's default, of one
 * kind for each location, or MPI_NO_OP, which reads. Run: mpiexec -n 4 ./ticket_lock */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 100, HOME = 0 };     /* HOME is the rank with the words */
enum { NEXT, SERVED, VALUE, WORDS }; /* the lock protects VALUE */

static MPI_Win win;

/* Adds to a counter and returns its previous value. MPI_NO_OP adds nothing. */
static long fetch_and_op(MPI_Op op, long operand, MPI_Aint word)
{
    long before;
    MPI_Fetch_and_op(&operand, &before, MPI_LONG, HOME, word, op, win);
    MPI_Win_flush(HOME, win); /* `before` has no value until then */
    return before;
}

static void lock_acquire(void)
{
    const long ticket = fetch_and_op(MPI_SUM, 1, NEXT);
    while (fetch_and_op(MPI_NO_OP, 0, SERVED) != ticket)
        sched_yield(); /* the holder may need this processor */
}

static void lock_release(void)
{
    /* First the operations of the critical section. Without a flush a put may still be on its way
     * when the next holder gets the value. */
    MPI_Win_flush(HOME, win);
    fetch_and_op(MPI_SUM, 1, SERVED);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    long *words, value;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const MPI_Aint bytes = rank == HOME ? WORDS * (MPI_Aint)sizeof *words : 0;
    MPI_Win_allocate(bytes, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);

    MPI_Win_lock_all(0, win); /* an epoch for the whole program; it excludes no other rank */
    memset(words, 0, (size_t)bytes);
    MPI_Win_sync(win); /* for the separate memory model: copies my stores to the public window */
    MPI_Barrier(MPI_COMM_WORLD);

    for (int round = 0; round < ROUNDS; round++) {
        lock_acquire();
        /* Get and put are two operations. The lock makes one of them. */
        MPI_Get(&value, 1, MPI_LONG, HOME, VALUE, 1, MPI_LONG, win);
        MPI_Win_flush(HOME, win);
        value++;
        MPI_Put(&value, 1, MPI_LONG, HOME, VALUE, 1, MPI_LONG, win);
        lock_release();
    }

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Get(&value, 1, MPI_LONG, HOME, VALUE, 1, MPI_LONG, win);
    MPI_Win_unlock_all(win); /* completes the get */
    if (rank == 0)
        printf("%s: %ld of %d\n", value == ROUNDS * ranks ? "right" : "WRONG", value,
               ROUNDS * ranks);
    MPI_Win_free(&win);
    MPI_Finalize();
    return value != ROUNDS * ranks;
}
