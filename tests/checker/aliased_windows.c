/* Two windows over the same memory: operations through one conflict with operations through the
 * other. */
#include "offenders.h"

#include <string.h>

enum { COUNT = 16, SHIFT = 2 };
static int memory[COUNT];
static MPI_Win first, second;

/* The second window begins the given number of ints after the first. */
static void open_two(void)
{
    memset(memory, 0, sizeof memory);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &first);
    MPI_Win_create(memory + SHIFT, sizeof memory - SHIFT * sizeof *memory, sizeof *memory,
                   MPI_INFO_NULL, MPI_COMM_WORLD, &second);
    named(first);
    named(second);
    MPI_Win_lock_all(0, first);
    MPI_Win_lock_all(0, second);
}

static void close_two(void)
{
    MPI_Win_unlock_all(first);
    MPI_Win_unlock_all(second);
    MPI_Win_free(&second);
    MPI_Win_free(&first);
}

/* Rank 0 is done, and the other ranks know it. */
static void order(bool right)
{
    if (right) {
        MPI_Win_flush_all(first);
        MPI_Win_flush_all(second);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    delay();
}

CASE(C1, puts_through_two_windows, 2)
{
    open_two();
    delay();
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, size - 1, 5, 1, MPI_INT, first); /* FINDS C1 here */
    order(right);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, size - 1, 5 - SHIFT, 1, MPI_INT, second); /* FINDS C1 here */
    close_two();
}

/* The second window begins inside the first. The put begins before the second window. */
CASE(C1, a_put_from_before_the_other_windows_beginning, 2)
{
    int values[3] = {0};
    open_two();
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, size - 1, 0, 1, MPI_INT, second); /* FINDS C1 here */
    if (right)
        MPI_Win_flush_all(second);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Put(values, 3, MPI_INT, size - 1, 0, 3, MPI_INT, first); /* FINDS C1 here */
    close_two();
}

/* Every second int: the gaps between them are free. */
CASE(C1, a_vector_through_another_window, 2)
{
    int values[COUNT] = {0};
    MPI_Datatype every_second;
    MPI_Type_vector(6, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    open_two();
    delay();
    if (rank == 1)
        MPI_Put(values, 6, MPI_INT, 0, 0, 1, every_second, second); /* FINDS C1 here */
    delay();
    if (rank == 0)
        MPI_Get(values, 1, MPI_INT, 0, SHIFT + (right ? 3 : 4), 1, MPI_INT, first); /* FINDS C1 here */
    close_two();
    MPI_Type_free(&every_second);
}

CASE(C2, sum_concurrent_with_a_put_through_another_window, 2)
{
    int one = 1;
    open_two();
    delay();
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT, 1, 8, 1, MPI_INT, MPI_SUM, first); /* FINDS C2 here */
    order(right);
    if (rank == 1)
        MPI_Put(&one, 1, MPI_INT, 1, 8 - SHIFT, 1, MPI_INT, second); /* FINDS C2 here */
    close_two();
}

/* The same call in a loop, with a flush each time. Its fast path checks the overlapping window,
 * too. */
CASE(C1, repeated_puts_overlap_another_window, 2)
{
    open_two();
    delay();
    for (int i = 0; i < 100; i++) {
        if (rank == 0)
            MPI_Put(&rank, 1, MPI_INT, size - 1, i % (COUNT - SHIFT) + SHIFT, 1, MPI_INT, first); /* FINDS C1 here */
        MPI_Win_flush(size - 1, first);
    }
    order(right);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, size - 1, 7, 1, MPI_INT, second); /* FINDS C1 here */
    close_two();
}

/* Memory that is attached to a dynamic window and also part of another window. */
CASE(C1, get_of_attached_memory_concurrent_with_a_put, 2)
{
    int got = 0;
    MPI_Aint address;
    MPI_Win dynamic;
    memset(memory, 0, sizeof memory);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &first);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    named(first);
    named(dynamic);
    MPI_Win_attach(dynamic, memory, sizeof memory);
    MPI_Get_address(memory + 3, &address);
    MPI_Bcast(&address, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, first);
    MPI_Win_lock_all(0, dynamic);
    delay();
    if (rank == 1)
        MPI_Get(&got, 1, MPI_INT, 0, address, 1, MPI_INT, dynamic); /* FINDS C1 here */
    delay();
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, right ? 4 : 3, 1, MPI_INT, first); /* FINDS C1 here */
    MPI_Win_unlock_all(first);
    MPI_Win_unlock_all(dynamic);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(dynamic, memory);
    MPI_Win_free(&dynamic);
    MPI_Win_free(&first);
}
