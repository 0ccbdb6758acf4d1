/* A hash table that is distributed over all ranks, with open addressing: sums by key.
 *
 * A slot is two words, a key and a sum. A key belongs to the first slot, from its hash onwards over
 * the slots of all ranks, that is free or has the key already. Each origin finds it alone:
 *
 *     compare-and-swap the slot's key from FREE to the key; if the slot was free, or had the key,
 *     add to its sum by MPI_SUM; otherwise try the next slot
 *
 * Both are atomic, so any ranks may add to any keys at the same time, and no target takes part. A
 * key never changes again, so the sum needs no lock. Each location has one kind of accumulate, as
 * MPI's default demands. wordcount.c has a table of texts. Run: mpiexec -n 4 ./hash_table */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS = 512, KEYS = 150 }; /* of each rank; FREE is no key */
static const int FREE = 0;

static MPI_Win win;
static int ranks;

/* Slot number `probe` of a key, over all ranks: its rank, and the displacement of its key there. */
static int slot_find(int key, int probe, MPI_Aint *disp)
{
    const unsigned hash = (unsigned)key * 2654435761U >> 8;
    const int number = (int)((hash + (unsigned)probe) % (unsigned)(SLOTS * ranks));
    *disp = 2 * (number / ranks);
    return number % ranks;
}

/* Returns 0 if the table is full. */
static int table_add(int key, int amount)
{
    for (int probe = 0; probe < SLOTS * ranks; probe++) {
        int found;
        MPI_Aint disp;
        const int owner = slot_find(key, probe, &disp);
        MPI_Compare_and_swap(&key, &FREE, &found, MPI_INT, owner, disp, win);
        MPI_Win_flush(owner, win); /* `found` has no value until then */
        if (found != FREE && found != key)
            continue;
        MPI_Accumulate(&amount, 1, MPI_INT, owner, disp + 1, 1, MPI_INT, MPI_SUM, win);
        /* The sum may arrive later, but `amount` is gone when this function returns. */
        MPI_Win_flush_local(owner, win);
        return 1;
    }
    return 0;
}

/* Returns a key's sum, or 0 without the key. No rank may add at the same time: a get is not atomic.
 * A program that reads while others add uses MPI_Fetch_and_op with MPI_NO_OP. */
static int table_read(int key)
{
    for (int probe = 0; probe < SLOTS * ranks; probe++) {
        int slot[2];
        MPI_Aint disp;
        const int owner = slot_find(key, probe, &disp);
        MPI_Get(slot, 2, MPI_INT, owner, disp, 2, MPI_INT, win);
        MPI_Win_flush(owner, win);
        if (slot[0] == key || slot[0] == FREE)
            return slot[0] == key ? slot[1] : 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int rank, wrong = 0;
    int *slots;
    const MPI_Aint bytes = 2 * SLOTS * sizeof *slots;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(bytes, sizeof *slots, MPI_INFO_NULL, MPI_COMM_WORLD, &slots, &win);
    MPI_Win_lock_all(0, win); /* an epoch for the whole program; it excludes no other rank */
    memset(slots, 0, (size_t)bytes);
    MPI_Win_sync(win); /* for the separate memory model: copies my stores to the public window */
    MPI_Barrier(MPI_COMM_WORLD);

    /* Each rank adds to its own keys and to those of the rank above: two ranks for each key. */
    for (int i = 0; i < 2 * KEYS; i++)
        wrong += !table_add(1 + (rank * KEYS + i) % (KEYS * ranks), rank + 1);
    MPI_Win_flush_all(win);      /* completes the sums of this rank */
    MPI_Barrier(MPI_COMM_WORLD); /* and those of all ranks */

    for (int key = 1; key <= KEYS * ranks; key++) {
        const int owner = (key - 1) / KEYS, below = (owner + ranks - 1) % ranks;
        wrong += table_read(key) != owner + below + 2;
    }
    wrong += table_read(KEYS * ranks + 1) != 0; /* a key that no rank has added */
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d keys, %d wrong answers\n", wrong ? "WRONG" : "right", KEYS * ranks, wrong);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return wrong != 0;
}
