/* Producers and a consumer: a queue of fixed length in the consumer's window.
 *
 * Rank 0 consumes what all other ranks produce. The queue is a ring of slots, an item and a turn
 * each. A producer draws a ticket t; its slot is t % SLOTS, and this its round t / SLOTS there:
 *
 *     producer:  wait until turn == 2 * round;      put the item; flush; turn++
 *     consumer:  wait until turn == 2 * round + 1;  load the item;       turn++
 *
 * The flush before turn++ is what makes it right: the item is in the window before the turn shows
 * it. A full queue makes producers wait, an empty one the consumer.
 *
 * The consumer loads items from its window, without MPI_Get. MPI_Win_sync orders these loads after
 * the turn was seen; it serves in both memory models. Turns are read by MPI_Fetch_and_op with
 * MPI_NO_OP, because a plain load while another rank adds is a race.
 * Run: mpiexec -n 4 ./producer_consumer */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 200, SLOTS = 8, CONSUMER = 0 };
enum { TICKET, FIRST_TURN, FIRST_ITEM = FIRST_TURN + SLOTS, WORDS = FIRST_ITEM + SLOTS };

static MPI_Win win;

/* Adds to a word and returns its previous value. MPI_NO_OP adds nothing. */
static long fetch_and_op(MPI_Op op, long operand, MPI_Aint word)
{
    long before;
    MPI_Fetch_and_op(&operand, &before, MPI_LONG, CONSUMER, word, op, win);
    MPI_Win_flush(CONSUMER, win); /* `before` has no value until then */
    return before;
}

static void turn_await(long slot, long turn)
{
    while (fetch_and_op(MPI_NO_OP, 0, FIRST_TURN + slot) != turn)
        sched_yield(); /* the rank whose turn it is may need this processor */
}

static void item_produce(long item)
{
    const long ticket = fetch_and_op(MPI_SUM, 1, TICKET), slot = ticket % SLOTS;
    turn_await(slot, 2 * (ticket / SLOTS));
    MPI_Put(&item, 1, MPI_LONG, CONSUMER, FIRST_ITEM + slot, 1, MPI_LONG, win);
    MPI_Win_flush(CONSUMER, win);
    fetch_and_op(MPI_SUM, 1, FIRST_TURN + slot);
}

static long item_consume(const long *words, long ticket)
{
    const long slot = ticket % SLOTS;
    turn_await(slot, 2 * (ticket / SLOTS) + 1);
    MPI_Win_sync(win); /* the load sees the put */
    const long item = words[FIRST_ITEM + slot];
    MPI_Win_sync(win); /* and is over before the next put */
    fetch_and_op(MPI_SUM, 1, FIRST_TURN + slot);
    return item;
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0;
    long *words;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const MPI_Aint bytes = rank == CONSUMER ? WORDS * (MPI_Aint)sizeof *words : 0;
    MPI_Win_allocate(bytes, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
    MPI_Win_lock_all(0, win); /* an epoch for the whole program; it excludes no other rank */
    memset(words, 0, (size_t)bytes);
    MPI_Win_sync(win); /* for the separate memory model: copies my stores to the public window */
    MPI_Barrier(MPI_COMM_WORLD);

    if (rank == CONSUMER) {
        /* Items of one producer arrive in its order, and those of several in any. */
        long *next; /* of each producer, the number of the item that follows */
        MPI_Alloc_mem(ranks * (MPI_Aint)sizeof *next, MPI_INFO_NULL, &next);
        memset(next, 0, (size_t)ranks * sizeof *next);
        for (long ticket = 0; ticket < (long)ITEMS * (ranks - 1); ticket++) {
            const long item = item_consume(words, ticket), producer = item / ITEMS;
            wrong += producer < 1 || producer >= ranks || next[producer]++ != item % ITEMS;
        }
        MPI_Free_mem(next);
        printf("%s: %d items of %d producers, %d wrong\n", wrong ? "WRONG" : "right",
               ITEMS * (ranks - 1), ranks - 1, wrong);
    } else {
        for (long i = 0; i < ITEMS; i++)
            item_produce((long)rank * ITEMS + i);
    }
    MPI_Bcast(&wrong, 1, MPI_INT, CONSUMER, MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return wrong != 0;
}
