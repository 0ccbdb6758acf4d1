/* Accumulates concurrent with each other and with other operations, and reuse of the buffers of
 * outstanding operations. */
#include "offenders.h"

CASE(C2, put_concurrent_with_accumulate, 2)
{
    int one = 1;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 0, right ? 0 : 1, 1, MPI_INT, win); /* FINDS C2 here */
    else
        MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, win); /* FINDS C2 here */
    delay();
    fence_and_free(win);
}

CASE(C2, get_concurrent_with_fetch_and_op, 2)
{
    int one = 1, old = 0;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0 && right)
        MPI_Fetch_and_op(NULL, &old, MPI_INT, 1, 0, MPI_NO_OP, win);
    else if (rank == 0)
        MPI_Get(&old, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C2 here */
    else
        MPI_Fetch_and_op(&one, &old, MPI_INT, 1, 0, MPI_SUM, win); /* FINDS C2 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A lock by compare_and_swap guards the next word. An accumulate releases it. */
static void guarded_count(MPI_Win win)
{
    int zero = 0, one = 1, old = 1, guarded = 0;
    while (old != 0) {
        MPI_Compare_and_swap(&one, &zero, &old, MPI_INT, 0, 0, win);
        MPI_Win_flush(0, win);
    }
    MPI_Get(&guarded, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    guarded++;
    delay();
    MPI_Put(&guarded, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    MPI_Accumulate(&zero, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
}

CASE(C2, put_to_release_a_word_that_is_compared, 2)
{
    int zero = 0, one = 1, old = 1;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (right)
        guarded_count(win);
    else if (rank == 0)
        MPI_Put(&zero, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C2 here */
    else
        MPI_Compare_and_swap(&one, &zero, &old, MPI_INT, 0, 0, win); /* FINDS C2 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C3, sum_concurrent_with_product, 2)
{
    int two = 2;
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Accumulate(&two, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win); /* FINDS C3 here */
    if (right)
        MPI_Win_fence(0, win);
    if (rank > 0)
        MPI_Accumulate(&two, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_PROD, win); /* FINDS C3 here */
    delay();
    fence_and_free(win);
}

CASE(C3, int_concurrent_with_float, 2)
{
    int two = 2;
    float half = 0.5F;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0)
        MPI_Accumulate(&two, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win); /* FINDS C3 here */
    else
        MPI_Accumulate(&half, 1, MPI_FLOAT, 1, right ? 1 : 0, 1, MPI_FLOAT, MPI_SUM, win); /* FINDS C3 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C3, int_before_float_of_one_origin, 2)
{
    int two = 2;
    float half = 0.5F;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Accumulate(&two, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win);          /* FINDS C3 here */
        if (right)
            MPI_Win_flush(1, win);
        MPI_Accumulate(&half, 1, MPI_FLOAT, 1, 0, 1, MPI_FLOAT, MPI_REPLACE, win); /* FINDS C3 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The elements overlap by two bytes. */
CASE(C3, sums_of_elements_that_overlap_in_part, 2)
{
    int two = 2;
    const MPI_Aint at = right ? 4 : 2;
    MPI_Datatype apart;
    MPI_Win win = ints_window(4);
    MPI_Type_create_hindexed_block(1, 1, &at, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0)
        MPI_Accumulate(&two, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win); /* FINDS C3 here */
    else
        MPI_Accumulate(&two, 1, MPI_INT, 1, 0, 1, apart, MPI_SUM, win); /* FINDS C3 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Type_free(&apart);
    MPI_Win_free(&win);
}

/* One call site repeats small accumulates, at displacements of bytes. */
CASE(C3, sums_of_one_origin_that_overlap_in_part, 2)
{
    int two = 2, *memory;
    MPI_Win win;
    MPI_Win_allocate(64 * sizeof two, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    named(win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 8 && rank == 0; i++) {
        MPI_Accumulate(&two, 1, MPI_INT, 1, right ? 4 * (i % 2) : 3 * (i % 2), 1, MPI_INT, MPI_SUM, win); /* FINDS C3 here */
        if (i < 6)
            MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C4, two_gets_into_one_buffer, 2)
{
    int got[2] = {0, 0};
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Get(&got[0], 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
        delay();
        MPI_Get(&got[right ? 1 : 0], 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C4 here, saying 'MPI_Win_flush_local, or' */
        MPI_Win_flush_local(1, win);
        MPI_Get(&got[0], 1, MPI_INT, 1, 2, 1, MPI_INT, win);
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

/* Both buffers are larger than the data that arrives. The rest is free for other use. */
CASE(C4, two_gets_into_room_for_more, 2)
{
    int got[6] = {0};
    MPI_Datatype adjacent;
    MPI_Win win = ints_window(4);
    MPI_Type_contiguous(2, MPI_INT, &adjacent);
    MPI_Type_commit(&adjacent);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Get(&got[0], 2, adjacent, 1, 0, 3, MPI_INT, win); /* FINDS C4 here */
        delay();
        MPI_Get(&got[right ? 3 : 2], 3, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Get(&got[right ? 4 : 5], 1, MPI_INT, 1, 1, 1, MPI_INT, win);
        MPI_Win_unlock(1, win);
    }
    MPI_Type_free(&adjacent);
    MPI_Win_free(&win);
}

/* The swap reads its compare buffer. The checker reports that read with the result; a mere read of
 * the buffer conflicts with the result only. */
CASE(C4, put_of_the_buffers_of_an_outstanding_swap, 2)
{
    int one = 1, old[2] = {0};
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Compare_and_swap(&one, &old[0], &old[right], MPI_INT, 1, 0, win); /* FINDS C4 here */
        MPI_Put(&old[0], 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C4 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C4, receive_into_the_buffer_of_a_put, 2)
{
    int value = rank;
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
        delay();
        if (right)
            MPI_Win_flush_local(1, win);
        MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS C4 here */
        MPI_Win_unlock(1, win);
    }
    if (rank == 1)
        MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    MPI_Win_free(&win);
}
