/* Operations on the same bytes, without and with the necessary synchronisation between them. */
#include "offenders.h"

CASE(C1, two_puts_in_one_fence_epoch, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    delay();
    if (rank < 2)
        MPI_Put(&rank, 1, MPI_INT, 0, right ? rank : 0, 1, MPI_INT, win); /* FINDS C1 here */
    delay();
    fence_and_free(win);
}

/* The target range is longer than the origin data. The put does not write the rest. */
CASE(C1, put_of_less_than_the_target_names, 2)
{
    int values[2] = {1, 2};
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Put(values, 2, MPI_INT, 1, 0, 4, MPI_INT, win); /* FINDS C1 here, saying 'bytes 4 to 7' */
    if (rank == 1)
        MPI_Put(values, 2, MPI_INT, 1, right ? 2 : 1, 2, MPI_INT, win); /* FINDS C1 here, saying 'bytes 4 to 7' */
    delay();
    fence_and_free(win);
}

/* The data ends inside an item. Its elements are contiguous or have gaps. */
CASE(C1, put_of_less_than_an_item, 2)
{
    int value = 1;
    MPI_Datatype adjacent, apart;
    MPI_Win win = ints_window(16);
    MPI_Type_contiguous(2, MPI_INT, &adjacent);
    MPI_Type_vector(4, 1, 2, MPI_INT, &apart);
    MPI_Type_commit(&adjacent);
    MPI_Type_commit(&apart);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0) {
        MPI_Put(&value, 1, MPI_INT, 1, 0, 1, adjacent, win); /* FINDS C1 here, saying 'bytes 0 to 3' */
        MPI_Put(&value, 1, MPI_INT, 1, 4, 1, apart, win);
    }
    if (rank == 1) {
        MPI_Put(&value, 1, MPI_INT, 1, right ? 1 : 0, 1, MPI_INT, win); /* FINDS C1 here, saying 'bytes 0 to 3' */
        MPI_Put(&value, 1, MPI_INT, 1, 6, 1, MPI_INT, win);
        MPI_Put(&value, 1, MPI_INT, 1, 10, 1, MPI_INT, win);
    }
    delay();
    MPI_Type_free(&adjacent);
    MPI_Type_free(&apart);
    fence_and_free(win);
}

/* The origin data covers one pair and the value of the second. The pairs have padding. */
CASE(C1, put_of_less_than_two_pairs, 2)
{
    struct pair {
        double value;
        int index;
    } pairs[2] = {{1, 2}, {3, 4}};
    int values[3] = {0};
    MPI_Aint displs[3] = {0, offsetof(struct pair, index), sizeof(struct pair)};
    MPI_Datatype parts[3] = {MPI_DOUBLE, MPI_INT, MPI_DOUBLE}, begun;
    MPI_Win win = ints_window(16);
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, displs, parts, &begun);
    MPI_Type_commit(&begun);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Put(pairs, 1, begun, 1, 0, 2, MPI_DOUBLE_INT, win); /* FINDS C1 here */
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 1, 3, 1, MPI_INT, win);
        MPI_Put(values, right ? 1 : 3, MPI_INT, 1, right ? 6 : 5, right ? 1 : 3, MPI_INT, win); /* FINDS C1 here */
    }
    delay();
    MPI_Type_free(&begun);
    fence_and_free(win);
}

CASE(C1, put_and_get_in_one_fence_epoch, 2)
{
    int got[2];
    MPI_Win win = ints_window(4);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, size - 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
    if (right)
        MPI_Win_fence(0, win);
    if (rank == 1)
        MPI_Get(got, 2, MPI_INT, size - 1, 0, 2, MPI_INT, win); /* FINDS C1 here */
    delay();
    fence_and_free(win);
}

/* Window memory serves as an origin buffer. Other ranks may access it after the epoch. */
CASE(C1, put_from_the_window_in_one_fence_epoch, 2)
{
    int *base, found;
    MPI_Win win = ints_window(64);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Put(base + 8, 20, MPI_INT, 1, 0, 20, MPI_INT, win); /* FINDS C1 here */
    if (right)
        MPI_Win_fence(0, win);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 0, 9, 1, MPI_INT, win); /* FINDS C1 here */
    delay();
    fence_and_free(win);
}

CASE(C1, get_into_the_window_in_one_fence_epoch, 2)
{
    int *base, found, got[20];
    MPI_Win win = ints_window(64);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
    MPI_Win_fence(0, win);
    delay();
    if (rank == 0)
        MPI_Get(base + 8, 20, MPI_INT, 1, 40, 20, MPI_INT, win); /* FINDS C1 here */
    if (right)
        MPI_Win_fence(0, win);
    if (rank == 1)
        MPI_Get(got, 20, MPI_INT, 0, 8, 20, MPI_INT, win); /* FINDS C1 here */
    delay();
    fence_and_free(win);
}

/* Attaching and detaching memory must neither end nor prolong the accesses to the window's other
 * memory. */
CASE(C1, put_from_a_dynamic_window_during_a_detach, 2)
{
    static int memory[64], other[4];
    MPI_Aint address;
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    named(win);
    MPI_Win_attach(win, memory, sizeof memory);
    MPI_Get_address(memory, &address);
    MPI_Aint addresses[2] = {address, address};
    MPI_Bcast(&addresses[0], 1, MPI_AINT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&addresses[1], 1, MPI_AINT, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(memory + 8, 20, MPI_INT, 1, addresses[1], 20, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_attach(win, other, sizeof other);
        MPI_Win_detach(win, other);
        if (right)
            MPI_Win_flush(1, win);
        notify(1);
    }
    delay();
    if (rank == 1) {
        await_notice(0);
        MPI_Put(&rank, 1, MPI_INT, 0, addresses[0] + (MPI_Aint)(9 * sizeof(int)), 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}

/* A rank's origin buffers and its own loads and stores in the memory of two windows count in both
 * windows. The checker does not compare operations of one window with operations of the other. */
CASE(C1, put_from_memory_of_two_windows, 2)
{
    static int memory[64];
    MPI_Win first, second;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &first);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &second);
    named(second);
    MPI_Win_lock_all(0, first);
    MPI_Win_lock_all(0, second);
    if (rank == 0) {
        MPI_Put(memory + 8, 20, MPI_INT, 1, 40, 20, MPI_INT, first); /* FINDS C1 here */
        if (right)
            MPI_Win_flush(1, first);
        notify(1);
    }
    delay();
    if (rank == 1) {
        await_notice(0);
        MPI_Put(&rank, 1, MPI_INT, 0, 9, 1, MPI_INT, second); /* FINDS C1 here */
        if (right)
            MPI_Put(&rank, 1, MPI_INT, 0, 10, 1, MPI_INT, first);
    }
    MPI_Win_unlock_all(second);
    MPI_Win_unlock_all(first);
    MPI_Barrier(MPI_COMM_WORLD);
    memory[9] = rank;
    MPI_Win_free(&second);
    MPI_Win_free(&first);
}

CASE(C1, two_puts_of_one_origin_without_a_flush, 2)
{
    int first = 1, second = 2;
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Put(&first, 1, MPI_INT, 1, 3, 1, MPI_INT, win); /* FINDS C1 here */
        delay();
        if (right)
            MPI_Win_flush(1, win);
        MPI_Put(&second, 1, MPI_INT, 1, 3, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

CASE(C1, puts_under_shared_locks, 2)
{
    MPI_Win win = ints_window(4);
    delay();
    MPI_Win_lock(right ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(&rank, 1, MPI_INT, 0, 2, 1, MPI_INT, win); /* FINDS C1 here */
    delay();
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}

CASE(C1, barrier_without_a_flush, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
    delay();
    if (right)
        MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, flush_without_a_message, 2)
{
    int got = 0;
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(1, win);
        if (right)
            notify(1);
    }
    if (rank == 1) {
        if (right)
            await_notice(0);
        MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(1, win);
    }
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A message through a third rank also orders, if it flows in the right direction. */
CASE(C1, message_in_the_wrong_direction, 3)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    delay();
    if (rank == 2 && !right)
        notify(0);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 2, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(2, win);
        right ? notify(2) : await_notice(2);
    }
    if (rank == 2) {
        if (right)
            await_notice(0);
        delay();
        notify(1);
    }
    if (rank == 1) {
        await_notice(2);
        MPI_Put(&rank, 1, MPI_INT, 2, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(2, win);
    }
    delay();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Conflicts are computed by bytes: adjacent columns do not overlap. */
CASE(C1, columns_that_overlap, 2)
{
    static const int values[4] = {1, 2, 3, 4};
    MPI_Win win = ints_window(16);
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Win_fence(0, win);
    delay();
    if (rank < 2)
        MPI_Put(values, 4, MPI_INT, 0, rank * (right ? 1 : 2), 1, column, win); /* FINDS C1 here */
    delay();
    MPI_Type_free(&column);
    fence_and_free(win);
}

CASE(C1, two_origins_of_one_exposure_epoch, 3)
{
    MPI_Win win = ints_window(4);
    for (int origin = 0; origin < (right ? 2 : 1); origin++) {
        if (rank == 2) {
            MPI_Win_post(right ? group_of(origin) : group_of_first(2), 0, win);
            delay();
            MPI_Win_wait(win);
        }
        if (right ? rank == origin : rank < 2) {
            MPI_Win_start(group_of(2), 0, win);
            delay();
            MPI_Put(&rank, 1, MPI_INT, 2, 0, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_complete(win);
        }
    }
    MPI_Win_free(&win);
}

/* In epochs of post and start, the fix is another call. */
CASE(C4, buffer_in_an_epoch_of_start, 2)
{
    int values[2] = {1, 2};
    MPI_Win win = ints_window(4);
    if (rank == 1)
        MPI_Win_post(group_of(0), 0, win);
    if (rank == 0) {
        MPI_Win_start(group_of(1), 0, win);
        MPI_Put(&values[0], 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
        MPI_Get(&values[right ? 1 : 0], 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C4 here, saying 'call MPI_Win_complete(win) between' */
        MPI_Win_complete(win);
    }
    if (rank == 1)
        MPI_Win_wait(win);
    MPI_Win_free(&win);
}

CASE(C1, put_after_a_message_in_an_epoch_of_start, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 1)
        MPI_Win_post(group_of_first(2), 0, win);
    if (rank < 2)
        MPI_Win_start(group_of(1), 0, win);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here, saying 'call MPI_Win_complete(win) on rank 0 after' */
        notify(1);
    }
    if (rank == 1) {
        await_notice(0);
        MPI_Put(&rank, 1, MPI_INT, 1, right ? 1 : 0, 1, MPI_INT, win); /* FINDS C1 here */
    }
    if (rank < 2)
        MPI_Win_complete(win);
    if (rank == 1)
        MPI_Win_wait(win);
    MPI_Win_free(&win);
}
