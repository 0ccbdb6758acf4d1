/* Window memory as the in-place buffer of a collective, or as the buffer of a message that is sent
 * and replaced. The call reads the memory before the others' data arrives. It conflicts with a
 * concurrent put that nothing orders before the call. */
#include "offenders.h"

enum { OWN = 1 }; /* rank 1's part of one int per rank */

enum which {
    REDUCE,
    ALLREDUCE,
    SCAN,
    EXSCAN,
    SCATTER,
    SCATTER_BLOCK,
    GATHER,
    GATHERV,
    EXCHANGE,
    EXCHANGEV,
    EXCHANGEW
};

static void call(enum which which, int *memory)
{
    enum { MOST = 64 };
    int ones[MOST], displs[MOST], bytes[MOST];
    MPI_Datatype types[MOST];
    const void *in_place = MPI_IN_PLACE;
    for (int i = 0; i < size && i < MOST; i++) {
        ones[i] = 1;
        displs[i] = i;
        bytes[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    switch (which) {
    case REDUCE:
        MPI_Reduce(rank == 1 ? in_place : memory, memory, size, MPI_INT, MPI_SUM, 1,
                   MPI_COMM_WORLD);
        break;
    case ALLREDUCE:
        MPI_Allreduce(in_place, memory, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case SCAN:
        MPI_Scan(in_place, memory, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case EXSCAN:
        MPI_Exscan(in_place, memory, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case SCATTER:
        MPI_Reduce_scatter(in_place, memory, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case SCATTER_BLOCK:
        MPI_Reduce_scatter_block(in_place, memory, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case GATHER:
        MPI_Allgather(in_place, 0, MPI_DATATYPE_NULL, memory, 1, MPI_INT, MPI_COMM_WORLD);
        break;
    case GATHERV:
        MPI_Allgatherv(in_place, 0, MPI_DATATYPE_NULL, memory, ones, displs, MPI_INT,
                       MPI_COMM_WORLD);
        break;
    case EXCHANGE:
        MPI_Alltoall(in_place, 0, MPI_DATATYPE_NULL, memory, 1, MPI_INT, MPI_COMM_WORLD);
        break;
    case EXCHANGEV:
        MPI_Alltoallv(in_place, NULL, NULL, MPI_DATATYPE_NULL, memory, ones, displs, MPI_INT,
                      MPI_COMM_WORLD);
        break;
    case EXCHANGEW:
        MPI_Alltoallw(in_place, NULL, NULL, NULL, memory, ones, bytes, types, MPI_COMM_WORLD);
        break;
    }
}

/* All ranks use private memory, except rank 1, which uses window memory. */
static void put_beside(enum which which, bool right)
{
    int *base, found, memory[64] = {0};
    MPI_Win win = ints_window(64);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, OWN, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(1, win);
    }
    if (right)
        MPI_Barrier(MPI_COMM_WORLD);
    delay();
    call(which, rank == 1 ? base : memory);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, put_during_a_reduce_in_place, 2) { put_beside(REDUCE, right); }
CASE(C1, put_during_an_allreduce_in_place, 2) { put_beside(ALLREDUCE, right); }
CASE(C1, put_during_a_scan_in_place, 2) { put_beside(SCAN, right); }
CASE(C1, put_during_an_exscan_in_place, 2) { put_beside(EXSCAN, right); }
CASE(C1, put_during_a_reduce_scatter_in_place, 2) { put_beside(SCATTER, right); }
CASE(C1, put_during_a_reduce_scatter_block_in_place, 2) { put_beside(SCATTER_BLOCK, right); }
CASE(C1, put_during_an_allgather_in_place, 2) { put_beside(GATHER, right); }
CASE(C1, put_during_an_allgatherv_in_place, 2) { put_beside(GATHERV, right); }
CASE(C1, put_during_an_alltoall_in_place, 2) { put_beside(EXCHANGE, right); }
CASE(C1, put_during_an_alltoallv_in_place, 2) { put_beside(EXCHANGEV, right); }
CASE(C1, put_during_an_alltoallw_in_place, 2) { put_beside(EXCHANGEW, right); }

#if MPI_VERSION >= 4
/* A buffer that is sent and replaced by one call does not conflict with itself. A concurrent get
 * into it does. */
CASE(C4, get_into_the_buffer_of_a_sendrecv_replace, 2)
{
    int value = rank, partner = rank == 0 ? 1 : 0;
    MPI_Request request;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank < 2) {
        MPI_Isendrecv_replace(&value, 1, MPI_INT, partner, 3, partner, 3, MPI_COMM_WORLD, &request); /* FINDS C4 here */
        delay();
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 0) {
            MPI_Get(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
            MPI_Win_flush(1, win);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
#endif
