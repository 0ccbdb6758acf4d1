/* Functions that only MPI-4 hosts provide: counts of MPI_Count, both halves of an exchange with one
 * request, persistent collectives. The test looks them up at run time, and one program serves all
 * hosts. A host without them skips the test. */
#include "order.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static uint64_t word[4], room[4];

static void *function(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static void large_counts_order(void)
{
    int (*send)(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm) = function("MPI_Send_c");
    int (*receive)(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status *) =
        function("MPI_Recv_c");
    int (*post)(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) =
        function("MPI_Irecv_c");
    int (*start)(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) =
        function("MPI_Isend_c");
    int (*sum)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm) =
        function("MPI_Allreduce_c");
    MPI_Request request;
    mark(0);
    if (rank == 0) {
        send(word, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD);
        mark(1);
        start(word, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        receive(room, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_KNOWS(0, 0);
        EXPECT_MISSES(0, 1);
        post(room, 1, MPI_UINT64_T, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT_KNOWS(0, 1);
    }
    mark(2);
    sum(word, room, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 2);
    EXPECT(unknown_calls() == 0);
}

static void both_halves_with_one_request_order(void)
{
    int (*both)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int,
                MPI_Comm, MPI_Request *) = function("MPI_Isendrecv");
    int (*replace)(void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request *) =
        function("MPI_Isendrecv_replace");
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request request;
    mark(0);
    both(word, 1, MPI_UINT64_T, next, 0, room, 1, MPI_UINT64_T, before, 0, MPI_COMM_WORLD,
         &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_KNOWS(before, 0);
    meet();
    mark(1);
    EXPECT_MISSES(before, 1);
    meet();
    replace(word, 1, MPI_UINT64_T, next, 0, before, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_KNOWS(before, 1);
    meet();
    mark(2);
    both(word, 1, MPI_UINT64_T, next, 0, room, 1, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG,
         MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_KNOWS(before, 2);
    EXPECT(unknown_calls() == 0);
}

static void persistent_collectives_order_all(void)
{
    int (*barrier)(MPI_Comm, MPI_Info, MPI_Request *) = function("MPI_Barrier_init");
    MPI_Request request;
    if (barrier == NULL || barrier(MPI_COMM_WORLD, MPI_INFO_NULL, &request) != MPI_SUCCESS)
        return;
    for (int i = 0; i < 3; i++) {
        mark(i);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int other = 0; other < size; other++)
            EXPECT_KNOWS(other, i);
        meet();
    }
    EXPECT(unknown_calls() == 3);
    MPI_Request_free(&request);
}

static const struct order_case cases[] = {
    CASE(large_counts_order, 2),
    CASE(both_halves_with_one_request_order, 2),
    CASE(persistent_collectives_order_all, 2),
};

int main(int argc, char **argv)
{
    if (function("MPI_Send_c") == NULL || function("MPI_Isendrecv") == NULL) {
        printf("skipped: the host has no functions with counts of MPI_Count\n");
        return 77;
    }
    return order_main(argc, argv, cases, (int)(sizeof cases / sizeof cases[0]), UINT64_C(4) << 20);
}
