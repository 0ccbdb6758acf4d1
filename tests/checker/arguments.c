/* Ranges, ranks and datatypes: arguments that do not fit the target's window. */
#include "offenders.h"

CASE(A1, put_beyond_the_end, 2)
{
    int values[4] = {1, 2, 3, 4};
    MPI_Win win = ints_window(8);
    MPI_Win_fence(0, win);
    if (rank == 0) {
        MPI_Put(values, 4, MPI_INT, 1, right ? 4 : 5, 4, MPI_INT, win); /* FINDS A1 here, saying 'at most 4, not 5' */
        MPI_Put(values, 0, MPI_INT, 1, 1000, 0, MPI_INT, win);
    }
    fence_and_free(win);
}

/* The program passed the size in elements instead of bytes. */
CASE(A1, size_in_elements, 2)
{
    int memory[16] = {0}, value = 3;
    MPI_Win win;
    MPI_Win_create(memory, right ? sizeof memory : 16, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    named(win);
    MPI_Win_fence(0, win);
    if (rank == 1)
        MPI_Put(&value, 1, MPI_INT, 0, 12, 1, MPI_INT, win); /* FINDS A1 here, saying 'number of elements' */
    fence_and_free(win);
}

/* One element past the end, the most common error. Nothing suggests that the size is in other
 * units. */
CASE(A1, element_after_the_last, 2)
{
    int value = 3;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 1)
        MPI_Put(&value, 1, MPI_INT, 0, right ? 3 : 4, 1, MPI_INT, win); /* FINDS A1 here, not saying 'number of elements' */
    fence_and_free(win);
}

CASE(A2, put_after_the_end_of_an_attached_region, 2)
{
    int memory[16] = {0}, value = 3;
    MPI_Win win;
    MPI_Aint address;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    named(win);
    MPI_Win_attach(win, memory, (right ? 5 : 4) * (MPI_Aint)sizeof(int));
    MPI_Get_address(&memory[4], &address);
    MPI_Bcast(&address, 1, MPI_AINT, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Put(&value, 1, MPI_INT, 1, address, 1, MPI_INT, win); /* FINDS A2 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(A3, displacement_below_0, 2)
{
    int got = 0;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_INT, 1, right ? 0 : -1, 1, MPI_INT, win); /* FINDS A3 here */
    fence_and_free(win);
}

CASE(A4, rank_after_the_last, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, right ? size - 1 : size, 0, 1, MPI_INT, win); /* FINDS A4 here */
    fence_and_free(win);
}

CASE(A5, datatype_without_a_commit, 2)
{
    int values[2] = {1, 2};
    MPI_Datatype pair;
    MPI_Win win = ints_window(4);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    if (right)
        MPI_Type_commit(&pair);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(values, 1, pair, 1, 0, 1, pair, win); /* FINDS A5 here */
    MPI_Type_free(&pair);
    fence_and_free(win);
}

CASE(A6, more_than_the_target_names, 2)
{
    int values[4] = {1, 2, 3, 4};
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(values, 4, MPI_INT, 1, 0, right ? 4 : 2, MPI_INT, win); /* FINDS A6 here */
    fence_and_free(win);
}

CASE(A8, lock_of_no_kind, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock(right ? MPI_LOCK_EXCLUSIVE : 12345, 1, 0, win); /* FINDS A8 here */
    if (right)
        MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}

/* The displacement in bytes needs more than 64 bits. */
CASE(A1, farther_than_any_memory, 2)
{
    int value = 3;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 1)
        MPI_Put(&value, 1, MPI_INT, 0, right ? 3 : (MPI_Aint)1 << 62, 1, MPI_INT, win); /* FINDS A1 here, saying 'beyond any' */
    fence_and_free(win);
}

CASE(A5, accumulate_of_two_datatypes, 2)
{
    int value = 3;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Accumulate(&value, 1, right ? MPI_INT : MPI_FLOAT, 1, 0, 1, MPI_INT, MPI_SUM, win); /* FINDS A5 here */
    fence_and_free(win);
}

CASE(A5, replace_of_two_datatypes, 2)
{
    int values[2] = {1, 2};
    MPI_Datatype type = right ? MPI_INT : MPI_DOUBLE;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Accumulate(values, right ? 2 : 1, type, 1, 0, 2, MPI_INT, MPI_REPLACE, win); /* FINDS A5 here, saying 'Hosts copy' */
    fence_and_free(win);
}

CASE(A5, result_of_another_datatype, 2)
{
    int value = 1, got = 0;
    MPI_Datatype type = right ? MPI_INT : MPI_FLOAT;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Get_accumulate(&value, 1, MPI_INT, &got, 1, type, 1, 0, 1, MPI_INT, MPI_SUM, win); /* FINDS A5 here, saying 'Hosts copy' */
    fence_and_free(win);
}

CASE(A6, result_without_room, 2)
{
    int values[2] = {1, 2}, got[2] = {0};
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Get_accumulate(values, 2, MPI_INT, got, right ? 2 : 1, MPI_INT, 1, 0, 2, MPI_INT, MPI_SUM, win); /* FINDS A6 here */
    fence_and_free(win);
}

/* The window must contain the whole target range, even where less data arrives. */
CASE(A1, less_than_the_target_names, 2)
{
    int value = 1;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    for (int count = 0; count < 2 && rank == 0; count++)
        MPI_Put(&value, count, MPI_INT, 1, right ? 2 : 3, 2, MPI_INT, win); /* FINDS A1 here, saying 'at most 2, not 3' */
    fence_and_free(win);
}

/* Items of zero bytes occupy nothing, at any displacement. */
CASE(A1, something_where_nothing_may_be, 2)
{
    int value = 1, got = 0;
    MPI_Datatype nothing;
    MPI_Win win = ints_window(4);
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    MPI_Win_fence(0, win);
    if (rank == 0) {
        MPI_Put(&value, 2, nothing, 1, 1000, 2, nothing, win);
        MPI_Get_accumulate(&value, 2, nothing, &got, 2, nothing, 1, 1000, 2, nothing, MPI_SUM, win);
        MPI_Put(&value, 1, MPI_INT, 1, right ? 3 : 1000, 1, MPI_INT, win); /* FINDS A1 here, saying 'at most 3, not 1000' */
    }
    MPI_Type_free(&nothing);
    fence_and_free(win);
}

/* A datatype that begins before its address, and one that no displacement helps. */
CASE(A1, put_before_the_beginning, 2)
{
    const int lengths[] = {1}, places[] = {-2};
    int values[4] = {1, 2, 3, 4};
    MPI_Datatype before;
    MPI_Win win = ints_window(4);
    MPI_Type_indexed(1, lengths, places, MPI_INT, &before);
    MPI_Type_commit(&before);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(values, 1, MPI_INT, 1, right ? 2 : 1, 1, before, win); /* FINDS A1 here, saying 'at least 2, not 1' */
    MPI_Type_free(&before);
    fence_and_free(win);
}

CASE(A1, put_of_more_than_the_window_has, 2)
{
    int values[6] = {1, 2, 3, 4, 5, 6};
    const int count = right ? 4 : 6;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(values, count, MPI_INT, 1, 0, count, MPI_INT, win); /* FINDS A1 here, saying 'access fewer elements' */
    fence_and_free(win);
}

CASE(A8, count_below_0, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(&rank, right ? 1 : -1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS A8 here, saying 'negative' */
    fence_and_free(win);
}

CASE(A8, assertion_of_no_kind, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(right ? 0 : 1 << 24, win); /* FINDS A8 here, saying 'assertion' */
    fence_and_free(win);
}

static void access_the_last(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    (void)in, (void)inout, (void)count, (void)datatype;
}

CASE(A8, operator_of_the_program, 2)
{
    MPI_Op own;
    MPI_Win win = ints_window(4);
    MPI_Op_create(access_the_last, 1, &own);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Accumulate(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, right ? MPI_SUM : own, win); /* FINDS A8 here, saying 'predefined' */
    MPI_Op_free(&own);
    fence_and_free(win);
}

/* All hosts run these calls. The checker reports them nevertheless. */
CASE(A8, sum_of_bytes, 2)
{
    unsigned char value = 3;
    MPI_Datatype type = right ? MPI_UNSIGNED_CHAR : MPI_BYTE;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Accumulate(&value, 1, type, 1, 0, 1, type, MPI_SUM, win); /* FINDS A8 here, saying 'not defined' */
    fence_and_free(win);
}

CASE(A8, bits_of_letters, 2)
{
    char value = 3, got;
    MPI_Win win = ints_window(4);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Fetch_and_op(&value, &got, right ? MPI_BYTE : MPI_CHAR, 1, 0, MPI_BOR, win); /* FINDS A8 here, saying 'not defined' */
    MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}

CASE(A8, swap_of_letters, 2)
{
    char value = 3, expected = 0, got;
    MPI_Win win = ints_window(4);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Compare_and_swap(&value, &expected, &got, right ? MPI_SIGNED_CHAR : MPI_CHAR, 1, 0, win); /* FINDS A8 here */
    MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}

CASE(A8, operator_that_reals_have_not, 2)
{
    float value = 3;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Accumulate(&value, 1, MPI_FLOAT, 1, 0, 1, MPI_FLOAT, right ? MPI_SUM : MPI_BAND, win); /* FINDS A8 here */
    fence_and_free(win);
}
