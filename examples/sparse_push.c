/* A sparse push: in each round every rank pushes items to a random set of ranks, which do not know
 * from whom.
 *
 * A receiver must know when all items of the round are there. Their number comes by a reduction of
 * what the ranks are going to send, 4 bytes for each rank. Each push notifies its target
 * (include/oriel/ext.h), and a rank waits for as many notifications as it expects. No rank flushes
 * or waits for an acknowledgement, and there is no barrier.
 *
 * The reduction also protects the items: no rank pushes for the next round before all have entered
 * its reduction, when they have used the items of this one.
 *
 * Without Oriel a notification is a flush and an empty message, which takes longer.
 * Run: mpiexec -n 4 oriel run ./sparse_push */
#include <mpi.h>
#include <oriel/ext.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 100, ARRIVED = 0 };

static MPI_Win win;

static void push(long item, int target, int place)
{
    if (MPIX_Query_oriel()) {
        MPIX_Put_notify(&item, 1, MPI_LONG, target, place, 1, MPI_LONG, ARRIVED, win);
        MPI_Win_flush_local(target, win);
        return;
    }
    MPI_Request request;
    MPI_Put(&item, 1, MPI_LONG, target, place, 1, MPI_LONG, win);
    MPI_Win_flush(target, win);
    MPI_Isend(NULL, 0, MPI_BYTE, target, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
}

static void arrivals_await(int count)
{
    if (MPIX_Query_oriel()) {
        if (count > 0)
            MPIX_Win_notify_wait(win, ARRIVED, count);
        return;
    }
    for (int i = 0; i < count; i++)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_sync(win);
}

int main(int argc, char **argv)
{
    int rank, ranks, expected;
    long *items, sums[2] = {0, 0}, wrong = 0; /* of all that was sent, and received */
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *chosen = malloc((size_t)ranks * sizeof *chosen);
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    /* a place for each origin; MPICH 4.0 needs multiples of 16 bytes */
    MPI_Win_allocate((ranks + 1) / 2 * 2 * (MPI_Aint)sizeof *items, sizeof *items, info,
                     MPI_COMM_WORLD, &items, &win);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, win);
    for (int origin = 0; origin < ranks; origin++)
        items[origin] = 0;
    MPI_Win_sync(win);
    srand((unsigned)rank + 1);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int target = 0; target < ranks; target++)
            chosen[target] = rand() % 3 == 0;
        MPI_Reduce_scatter_block(chosen, &expected, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int target = 0; target < ranks; target++)
            if (chosen[target]) {
                const long item = (long)round << 32 | rand() % 1000;
                push(item, target, rank);
                sums[0] += item;
            }
        arrivals_await(expected);
        for (int origin = 0; origin < ranks; origin++)
            if (items[origin] >> 32 == round) {
                sums[1] += items[origin];
                expected--;
            }
        wrong += expected != 0;
    }
    MPI_Win_unlock_all(win);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong += sums[0] != sums[1];
    if (rank == 0)
        printf("%s: %ld faults in %d rounds on %d ranks\n", wrong ? "WRONG" : "right", wrong,
               ROUNDS, ranks);
    free(chosen);
    MPI_Win_free(&win);
    MPI_Finalize();
    return wrong != 0;
}
