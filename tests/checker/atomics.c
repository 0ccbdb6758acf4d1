/* Extensions of the atomic operations: each element of a list, the 16 bytes of a swap, and requests
 * are accesses like those of MPI. Pairs of a struct datatype are one datatype. */
#include "offenders.h"

#include "../../include/oriel/ext.h"

#include <stdint.h>

CASE(A1, list_beyond_the_end, 2)
{
    const int ones[3] = {1, 1, 1};
    const MPI_Aint disps[3] = {3, 0, right ? 3 : 4};
    int old[3];
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPIX_Fetch_and_op_list(ones, old, 3, MPI_INT, 1, disps, MPI_SUM, win); /* FINDS A1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C2, put_concurrent_with_a_list, 2)
{
    const int ones[3] = {1, 1, 1};
    const MPI_Aint disps[3] = {3, 1, 3};
    int old[3];
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0)
        MPI_Put(ones, 1, MPI_INT, 1, right ? 2 : 1, 1, MPI_INT, win); /* FINDS C2 here */
    else
        MPIX_Fetch_and_op_list(ones, old, 3, MPI_INT, 1, disps, MPI_SUM, win); /* FINDS C2 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Accumulates on parts of the 16 bytes are atomic with the swap, whatever their datatype. */
CASE(C2, put_concurrent_with_a_swap_of_16_bytes, 2)
{
    const int32_t next[4] = {1, 2, 3, 4}, known[4] = {0, 0, 0, 0};
    int32_t old[4];
    MPI_Win win = ints_window(8);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank != 0)
        MPIX_Compare_and_swap_128(next, known, old, 0, 4, win); /* FINDS C2 here */
    else if (right)
        MPI_Accumulate(next, 2, MPI_INT32_T, 0, 6, 2, MPI_INT32_T, MPI_SUM, win);
    else
        MPI_Put(next, 1, MPI_INT, 0, 7, 1, MPI_INT, win); /* FINDS C2 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A swap of 16 bytes guards the words after it. */
CASE(C1, put_without_a_swap_of_16_bytes, 2)
{
    const int32_t taken[4] = {1, 1, 1, 1}, unused[4] = {0, 0, 0, 0};
    int32_t old[4] = {1};
    int count = 0;
    MPI_Win win = ints_window(8);
    MPI_Win_lock_all(0, win);
    while (right && old[0] != 0) {
        MPIX_Compare_and_swap_128(taken, unused, old, 0, 0, win);
        MPI_Win_flush(0, win);
    }
    delay();
    MPI_Put(&count, 1, MPI_INT, 0, 4, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_flush(0, win);
    if (right) {
        MPIX_Compare_and_swap_128(unused, taken, old, 0, 0, win);
        MPI_Win_flush(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(E16, request_of_a_fetch_in_a_fence_epoch, 2)
{
    const int one = 1;
    int old;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win win = ints_window(4);
    if (right)
        MPI_Win_lock_all(0, win);
    else
        MPI_Win_fence(0, win);
    if (rank == 0) {
        MPIX_Rfetch_and_op(&one, &old, MPI_INT, 1, 0, MPI_SUM, win, &request); /* FINDS E16 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (right)
        MPI_Win_unlock_all(win);
    else
        MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

CASE(C4, result_used_before_its_request_is_complete, 2)
{
    const int one = 1, zero = 0;
    int old = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPIX_Rcompare_and_swap(&one, &zero, &old, MPI_INT, 1, 0, win, &request); /* FINDS C4 here */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Put(&old, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C4 here */
        if (!right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(A5, pair_with_an_unsigned_index, 2)
{
    struct {
        double value;
        int64_t at;
    } pair = {1, rank}, old;
    const int lengths[2] = {1, 1};
    const MPI_Aint disps[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_DOUBLE, right ? MPI_INT64_T : MPI_UINT64_T}, type, same;
    MPI_Win win = ints_window(8);
    MPI_Type_create_struct(2, lengths, disps, types, &type);
    MPI_Type_commit(&type);
    MPI_Type_dup(type, &same);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Get_accumulate(&pair, 1, type, &old, 1, same, 1, 0, 1, type, /* FINDS A5 here */
                           MPI_MINLOC, win);
    if (rank == 0 && right) {
        MPI_Win_flush(1, win);
        MPI_Get_accumulate(NULL, 0, MPI_INT, &old, 1, same, 1, 0, 1, type, MPI_NO_OP, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Type_free(&same);
    MPI_Type_free(&type);
    MPI_Win_free(&win);
}
