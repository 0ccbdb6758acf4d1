/* A pipeline: ranks in a chain, each works on blocks that its left neighbour passes on.
 *
 * A rank has two slots for blocks, so that the next block arrives while it works on this one. Two
 * counters of notifications (include/oriel/ext.h) say whose turn a slot is:
 *
 *     FULL, at the receiver:  the left neighbour has put a block
 *     FREE, at the sender:    the right neighbour is done with a block
 *
 * Blocks come in order, so the counters need not say which slot. A notification comes after the
 * data of its put: no rank waits for a flush.
 *
 * Without Oriel a notification is a flush and an empty message, which takes longer.
 * Run: mpiexec -n 4 oriel run ./pipeline */
#include <mpi.h>
#include <oriel/ext.h>
#include <stdio.h>

enum { BLOCKS = 200, NUMBERS = 512, SLOTS = 2, FULL = 0, FREE = 1 };

static MPI_Win win;

static void put_notify(const long *numbers, int count, int target, MPI_Aint disp, int counter)
{
    if (MPIX_Query_oriel()) {
        MPIX_Put_notify(numbers, count, MPI_LONG, target, disp, count, MPI_LONG, counter, win);
        MPI_Win_flush_local(target, win); /* the buffer may change */
        return;
    }
    MPI_Request request;
    MPI_Put(numbers, count, MPI_LONG, target, disp, count, MPI_LONG, win);
    MPI_Win_flush(target, win);
    MPI_Isend(NULL, 0, MPI_BYTE, target, counter, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
}

static void notify_wait(int source, int counter)
{
    if (MPIX_Query_oriel()) {
        MPIX_Win_notify_wait(win, counter, 1);
        return;
    }
    MPI_Recv(NULL, 0, MPI_BYTE, source, counter, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_sync(win);
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0;
    long(*slots)[NUMBERS], block[NUMBERS];
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int left = rank - 1, right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "2");
    MPI_Win_allocate(SLOTS * sizeof *slots, sizeof(long), info, MPI_COMM_WORLD, &slots, &win);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, win);
    for (int b = 0; b < BLOCKS; b++) {
        const int slot = b % SLOTS;
        if (rank > 0)
            notify_wait(left, FULL);
        for (int i = 0; i < NUMBERS; i++)
            block[i] = (rank > 0 ? slots[slot][i] : (long)b * NUMBERS + i) + rank;
        if (rank > 0)
            put_notify(NULL, 0, left, 0, FREE);
        if (right != MPI_PROC_NULL) {
            if (b >= SLOTS)
                notify_wait(right, FREE);
            put_notify(block, NUMBERS, right, (MPI_Aint)slot * NUMBERS, FULL);
        }
        for (int i = 0; i < NUMBERS && right == MPI_PROC_NULL; i++)
            wrong += block[i] != (long)b * NUMBERS + i + (long)rank * (rank + 1) / 2;
    }
    for (int b = 0; b < SLOTS && right != MPI_PROC_NULL; b++)
        notify_wait(right, FREE);
    MPI_Win_unlock_all(win);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d wrong numbers in %d blocks through %d ranks\n", wrong ? "WRONG" : "right",
               wrong, BLOCKS, ranks);
    MPI_Win_free(&win);
    MPI_Finalize();
    return wrong != 0;
}
