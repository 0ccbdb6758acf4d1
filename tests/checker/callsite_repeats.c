/* The same operations from the same call sites in a loop, which the checker handles on faster paths
 * than the first. It must still find the error in the last operation. */
#include "offenders.h"
#include "../mpi/one_node.h"

enum { TIMES = 5, LAST = TIMES - 1, TURNS = 300, LOOP = 16, ENDS = 2 * LOOP };

static void pass_on(int *flag, int value, int answer)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
    await(flag, answer);
}

CASE(C1, repeated_puts_conflict_at_the_end, 2)
{
    MPI_Win win = ints_window(4 * TIMES);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank < 2; i++) {
        int at = i == LAST && !right ? 0 : 1 + 2 * TIMES * rank + i;
        MPI_Put(&rank, 1, MPI_INT, size - 1, at, 1, MPI_INT, win); /* FINDS C1 here, saying 'bytes 0 to 3' */
        delay();
        MPI_Win_flush(size - 1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The data ends inside the target's item. */
CASE(C1, repeated_puts_of_less_than_an_item, 2)
{
    MPI_Datatype pair;
    MPI_Win win = ints_window(4);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Put(&i, 1, MPI_INT, 1, i < LAST ? 2 : 0, 1, pair, win); /* FINDS C1 here, saying 'bytes 0 to 3' */
        MPI_Win_flush(1, win);
    }
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 1, right ? 1 : 0, 1, MPI_INT, win); /* FINDS C1 here, saying 'bytes 0 to 3' */
    MPI_Win_unlock_all(win);
    MPI_Type_free(&pair);
    MPI_Win_free(&win);
}

CASE(C1, repeated_puts_without_a_flush_in_the_end, 2)
{
    MPI_Win win = ints_window(4);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Put(&i, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
        if (i < LAST || right)
            MPI_Win_flush(1, win);
        if (i == LAST)
            MPI_Put(&rank, 1, MPI_INT, 1, 2, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

/* The operations up to then are ordered, and equal to the last ones. */
CASE(C1, repeated_gets_of_memory_put_before, 2)
{
    int got;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 2 * TIMES; i++) {
        bool ordered = i < 2 * TIMES - 1 || right;
        if (rank == 0) {
            MPI_Put(&i, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
            MPI_Send(&i, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        }
        if (rank == 1 && ordered)
            MPI_Recv(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) {
            MPI_Get(&got, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
        }
        if (rank == 1 && !ordered)
            MPI_Recv(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Repeated gets of one location no longer meet other accesses, until a put arrives there. */
CASE(C1, repeated_gets_of_one_offset_conflict_with_a_put, 2)
{
    int got;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i <= TURNS; i++) {
        if (rank == 0) {
            MPI_Get(&got, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
        }
        if (i != TURNS && i % 120 != 119)
            continue;
        if (i != TURNS || right)
            MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            MPI_Put(&i, 1, MPI_INT, 1, 1, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A loop that returns to the location of its puts completes them with each flush. Each window ends
 * differently. */
CASE(C1, repeated_loops_of_puts_conflict_at_the_end, 2)
{
    MPI_Win wins[ENDS];
    for (int more = 0; more < ENDS; more++) {
        MPI_Win win = wins[more] = ints_window(LOOP);
        MPI_Win_lock_all(0, win);
        for (int i = 0; i <= LOOP + more && rank == 0; i++) {
            MPI_Put(&i, 1, MPI_INT, 1, i % LOOP, 1, MPI_INT, win); /* FINDS C1 here */
            if (i < LOOP + more || right)
                MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < LOOP && rank == 1; i++) {
            MPI_Put(&i, 1, MPI_INT, 1, i, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
        }
        MPI_Win_unlock_all(win);
    }
    for (int more = 0; more < ENDS; more++)
        MPI_Win_free(&wins[more]);
}

/* The same with accumulates to shared locations, concurrent with a put over all of the memory. */
CASE(C2, repeated_fetches_of_all_conflict_with_a_long_put, 2)
{
    static int many[1024];
    int one = 1, old;
    MPI_Win win = ints_window(1024);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TURNS; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_INT, 1, 5, MPI_SUM, win); /* FINDS C2 here */
        MPI_Win_flush(1, win);
    }
    if (right)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Put(many, 1024, MPI_INT, 1, 0, 1024, MPI_INT, win); /* FINDS C2 here */
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C2, repeated_fetches_during_a_put, 2)
{
    int one = 1, old;
    MPI_Win win = ints_window(TIMES + 1);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_INT, 1, i, MPI_SUM, win); /* FINDS C2 here */
        MPI_Win_flush(1, win);
    }
    for (int i = 0; i < TIMES && rank == 1; i++) {
        MPI_Put(&one, 1, MPI_INT, 1, i < LAST || right ? TIMES : i, 1, MPI_INT, win); /* FINDS C2 here */
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(H3, repeated_fetches_before_a_promise, 2)
{
    int one = 1, old;
    MPI_Info info;
    MPI_Win win = ints_window(2 * TIMES);
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ops", right ? "same_op_no_op" : "same_op");
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES; i++) {
        int at = i == LAST ? 0 : 1 + 2 * i + rank;
        if (i == LAST)
            MPI_Win_set_info(win, info);
        if (rank == 0)
            MPI_Fetch_and_op(&one, &old, MPI_INT, 1, at, MPI_NO_OP, win); /* FINDS H3 here */
        else if (rank == 1)
            MPI_Fetch_and_op(&one, &old, MPI_INT, 1, at, MPI_SUM, win); /* FINDS H3 here */
        delay();
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

CASE(C4, repeated_gets_into_one_buffer, 2)
{
    int got[TIMES] = {0};
    MPI_Win win = ints_window(2 * TIMES);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Get(&got[i < LAST ? i : 0], 1, MPI_INT, 1, 2 * i, 1, MPI_INT, win); /* FINDS C4 here */
        if (i == LAST - 1 && right)
            MPI_Win_flush_local(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Each buffer is larger than the data that arrives, and the next get uses the rest. */
CASE(C4, repeated_gets_into_room_for_more, 2)
{
    int got[TIMES + 1] = {0};
    MPI_Win win = ints_window(2 * TIMES);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++)
        MPI_Get(&got[i < LAST || right ? i : i - 1], 2, MPI_INT, 1, 2 * i, 1, MPI_INT, win); /* FINDS C4 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C4, repeated_fetches_into_room_for_more, 2)
{
    int one = 1, got[TIMES + 1] = {0};
    MPI_Win win = ints_window(2 * TIMES);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++)
        MPI_Get_accumulate(&one, 1, MPI_INT, &got[i < LAST || right ? i : i - 1], /* FINDS C4 here */
                           2, MPI_INT, 1, 2 * i, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C4, repeated_fetches_into_an_operand, 2)
{
    int value = 1, old;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Fetch_and_op(&value, i < LAST || right ? &old : &value, MPI_INT, 1, 0, MPI_SUM, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C4, repeated_swaps_that_compare_with_their_result, 2)
{
    int one = 1, zero = 0, old = 0;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Compare_and_swap(&one, i < LAST || right ? &zero : &old, &old, MPI_INT, 1, 0, win); /* FINDS C4 here */
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, repeated_swaps_that_compare_with_memory_of_the_window, 2)
{
    int one = 1, zero = 0, old, found, *base;
    MPI_Win win = ints_window(3);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Compare_and_swap(&one, i < LAST ? &zero : &base[1], &old, MPI_INT, 1, 0, win); /* FINDS C1 here */
        MPI_Win_flush(1, win);
    }
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 0, right ? 2 : 1, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C4, repeated_puts_of_a_received_buffer, 2)
{
    int value = 1;
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES; i++) {
        if (rank == 0)
            MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C4 here */
        if (rank == 0 && (i < LAST || right))
            MPI_Win_flush(1, win);
        if (rank == 0)
            MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS C4 here */
        if (rank == 1)
            MPI_Send(&i, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(E1, repeated_puts_after_the_last_unlock, 2)
{
    MPI_Win win = ints_window(2);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        bool locks = i < LAST || right;
        if (locks)
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E1 here */
        if (locks)
            MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}

CASE(E19, repeated_flushes_of_another_in_the_end, 2)
{
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES; i++) {
        if (rank == 0) {
            MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E19 here */
            MPI_Win_flush(i < LAST || right ? 1 : 0, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS E19 here */
            MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(A1, repeated_puts_over_the_end, 2)
{
    MPI_Win win = ints_window(TIMES - 1);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Put(&i, 1, MPI_INT, 1, i == LAST && right ? 0 : i, 1, MPI_INT, win); /* FINDS A1 here */
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(A3, repeated_gets_before_the_beginning, 2)
{
    int got;
    MPI_Win win = ints_window(TIMES);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Get(&got, 1, MPI_INT, 1, LAST - 1 - (i == LAST && right ? 0 : i), 1, MPI_INT, win); /* FINDS A3 here */
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(A4, repeated_puts_to_one_rank_too_many, 2)
{
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Put(&i, 1, MPI_INT, i < LAST || right ? size - 1 : size, 0, 1, MPI_INT, win); /* FINDS A4 here */
        MPI_Win_flush(size - 1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* A flush of one window does not complete outstanding operations of another. */
CASE(C1, repeated_puts_flushed_in_another_window, 2)
{
    MPI_Win win = ints_window(2), other = ints_window(2);
    MPI_Win_lock_all(0, win);
    MPI_Win_lock_all(0, other);
    for (int i = 0; i < TIMES; i++) {
        if (rank == 0) {
            MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, i < LAST || right ? win : other);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(other);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&other);
    MPI_Win_free(&win);
}

/* A message between the operation and its flush does not order the operation. */
CASE(C1, repeated_puts_before_the_message_that_precedes_their_flush, 2)
{
    MPI_Win win = ints_window(2);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES; i++) {
        if (rank == 0) {
            MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
            if (i < LAST || right)
                MPI_Win_flush(1, win);
            notify(1);
            MPI_Win_flush(1, win);
        }
        if (rank == 1) {
            await_notice(0);
            MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The second rank knows the first rank's two elements and covers one of them. The third rank must
 * still meet the other. */
CASE(C1, repeated_puts_covered_in_part, 3)
{
    int both[2] = {1, 2};
    MPI_Win win = ints_window(3);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES; i++) {
        if (rank == 0) {
            MPI_Put(both, 2, MPI_INT, 1, 0, 2, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
            notify(1);
        }
        if (rank == 1) {
            await_notice(0);
            MPI_Put(&rank, 1, MPI_INT, 1, 1, 1, MPI_INT, win);
            MPI_Win_flush(1, win);
        }
        if (i < LAST || right)
            MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 2) {
            delay();
            MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* All ranks count in one word under a lock of their own in word 0. The holder of the lock knows the
 * accesses of all earlier holders. */
CASE(C1, repeated_puts_under_a_lock_of_words, 2)
{
    int one = 1, zero = 0, old;
    MPI_Win win = ints_window(32);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TURNS && rank < 2; i++) {
        bool locks = i < TURNS - 1 || right;
        for (old = 1; locks && old != 0;) {
            MPI_Compare_and_swap(&one, &zero, &old, MPI_INT, 0, 0, win);
            MPI_Win_flush(0, win);
            sched_yield();
        }
        MPI_Put(&i, 1, MPI_INT, 0, 16, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(0, win);
        if (locks) {
            MPI_Fetch_and_op(&zero, &old, MPI_INT, 0, 0, MPI_REPLACE, win);
            MPI_Win_flush(0, win);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Rank 1's MPI_Win_sync acquires the state of rank 0 from before the flush. The completion by the
 * flush must have a tick of its own. Only uninstrumented memory signals when rank 1 may go on: any
 * other call of rank 0 would leave the fastest path. */
CASE(C1, repeated_puts_flushed_after_a_read_through_shared_memory, 2)
{
    int *memory, *flag, unit;
    MPI_Aint len_bytes;
    MPI_Comm together = one_node_comm(MPI_COMM_WORLD);
    MPI_Win flags, win = ints_window(2);
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, together, &memory, &flags);
    *memory = 0;
    MPI_Win_shared_query(flags, 1, &len_bytes, &unit, &flag);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES && rank == 0; i++) {
        MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        if (i == LAST && !right)
            pass_on(flag, 1, 2);
        MPI_Win_flush(1, win);
    }
    if (rank == 0)
        pass_on(flag, 3, 4);
    if (rank == 1) {
        await(flag, right ? 3 : 1);
        MPI_Win_sync(win);
        if (!right)
            pass_on(flag, 2, 3);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS C1 here */
        __atomic_store_n(flag, 4, __ATOMIC_RELEASE);
    }
    MPI_Win_unlock_all(win);
    MPI_Comm_free(&together);
    MPI_Win_free(&flags);
    MPI_Win_free(&win);
}
