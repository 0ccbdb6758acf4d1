/* Persistent collectives, partitioned messages and communicators from groups, which MPI-4 hosts
 * provide and the checker does not model. Each has the effect of its request, and orders.  The test
 * looks them up at run time, and one program serves all hosts. A host without them skips the test.
 */
#include "order.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const int root = 0;
static int out[RANKS_MOST], in[RANKS_MOST], broadcast;
static MPI_Datatype types[RANKS_MOST];

static void *function(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

/* --- expected data: rank r sends 100 r + 1, 100 r + 2 and so on, by the number of the receiver
 * --- */

enum outcome {
    NOTHING,
    GATHERED,
    TURNED,
    SUM,
    SUM_TO_HERE,
    SUM_BEFORE,
    SCATTERED_SUM,
    SCATTERED,
    BROADCAST,
    FROM_NEIGHBOURS
};

static int sent(int from, int to)
{
    return 100 * from + to + 1;
}

static int sum_of(int first, int end, int to)
{
    int sum = 0;
    for (int i = first; i < end; i++)
        sum += sent(i, to);
    return sum;
}

static bool has_arrived(enum outcome outcome)
{
    int before = (rank + size - 1) % size, next = (rank + 1) % size;
    switch (outcome) {
    case NOTHING: return true;
    case GATHERED: /* MPICH 4.0 copies a rank's own part when it creates the request */
    case TURNED:
        for (int i = 0; i < size; i++)
            if (i != rank && in[i] != sent(i, outcome == TURNED ? rank : 0))
                return false;
        return true;
    case SUM: return in[0] == sum_of(0, size, 0);
    case SUM_TO_HERE: return in[0] == sum_of(0, rank + 1, 0);
    case SUM_BEFORE: return rank == 0 || in[0] == sum_of(0, rank, 0);
    case SCATTERED_SUM: return in[0] == sum_of(0, size, rank);
    case SCATTERED: return in[0] == sent(root, rank);
    case BROADCAST: return broadcast == 77;
    default: /* if both messages have one source, the host chooses between them */
        return in[0] / 100 == before && in[1] / 100 == next;
    }
}

/* Runs the request once. With three ranks, MPICH 4.0 alone fails when some of these requests start
 * again. */
static void run(const char *name, MPI_Request *request, enum outcome outcome, bool here)
{
    memset(in, -1, sizeof in);
    broadcast = rank == root ? 77 : -1;
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (here && !has_arrived(outcome))
        complain(name, 0, "the received data");
    meet();
    MPI_Request_free(request);
}

#define RUN(name, parameters, arguments, outcome, here)                                            \
    do {                                                                                           \
        int(*make) parameters = function("MPI_" name);                                             \
        MPI_Request request;                                                                       \
        if (make == NULL || make arguments != MPI_SUCCESS)                                         \
            complain(name, 0, "it was not made");                                                  \
        else                                                                                       \
            run("MPI_" name, &request, outcome, here);                                             \
    } while (0)

#define END      MPI_Comm, MPI_Info, MPI_Request *
#define IN_WORLD MPI_COMM_WORLD, MPI_INFO_NULL, &request
#define IN_RING  ring, MPI_INFO_NULL, &request
#define ONE_OUT  out, 1, MPI_INT
#define ONE_IN   in, 1, MPI_INT
#define V_OUT    out, ones, displs, MPI_INT
#define V_IN     in, ones, displs, MPI_INT
#define W_OUT    out, ones, bytes, types
#define W_IN     in, ones, bytes, types
#define PLAIN(C) const void *, C, MPI_Datatype
#define ROOM(C)  void *, C, MPI_Datatype
#define V(C, D)  const C *, const D *, MPI_Datatype
#define W(C, D)  const C *, const D *, const MPI_Datatype *

/* All collectives, for counts and displacements of these types. */
#define COLLECTIVES(suffix, C, D)                                                                  \
    static void collectives##suffix(MPI_Comm ring)                                                 \
    {                                                                                              \
        C ones[RANKS_MOST];                                                                        \
        D displs[RANKS_MOST], bytes[RANKS_MOST];                                                   \
        MPI_Aint distances[RANKS_MOST];                                                            \
        bool is_root = rank == root;                                                               \
        for (int i = 0; i < RANKS_MOST; i++) {                                                     \
            ones[i] = 1;                                                                           \
            displs[i] = (D)i;                                                                      \
            distances[i] = i * (MPI_Aint)sizeof(int);                                              \
            bytes[i] = (D)distances[i];                                                            \
        }                                                                                          \
        RUN("Allgather_init" #suffix, (PLAIN(C), ROOM(C), END), (ONE_OUT, ONE_IN, IN_WORLD),       \
            GATHERED, true);                                                                       \
        RUN("Allgatherv_init" #suffix, (PLAIN(C), void *, V(C, D), END),                           \
            (ONE_OUT, V_IN, IN_WORLD), GATHERED, true);                                            \
        RUN("Allreduce_init" #suffix, (const void *, ROOM(C), MPI_Op, END),                        \
            (out, ONE_IN, MPI_SUM, IN_WORLD), SUM, true);                                          \
        RUN("Alltoall_init" #suffix, (PLAIN(C), ROOM(C), END), (ONE_OUT, ONE_IN, IN_WORLD),        \
            TURNED, true);                                                                         \
        RUN("Alltoallv_init" #suffix, (const void *, V(C, D), void *, V(C, D), END),               \
            (V_OUT, V_IN, IN_WORLD), TURNED, true);                                                \
        RUN("Alltoallw_init" #suffix, (const void *, W(C, D), void *, W(C, D), END),               \
            (W_OUT, W_IN, IN_WORLD), TURNED, true);                                                \
        RUN("Bcast_init" #suffix, (ROOM(C), int, END), (&broadcast, 1, MPI_INT, root, IN_WORLD),   \
            BROADCAST, true);                                                                      \
        RUN("Exscan_init" #suffix, (const void *, ROOM(C), MPI_Op, END),                           \
            (out, ONE_IN, MPI_SUM, IN_WORLD), SUM_BEFORE, true);                                   \
        RUN("Gather_init" #suffix, (PLAIN(C), ROOM(C), int, END),                                  \
            (ONE_OUT, ONE_IN, root, IN_WORLD), GATHERED, is_root);                                 \
        RUN("Gatherv_init" #suffix, (PLAIN(C), void *, V(C, D), int, END),                         \
            (ONE_OUT, V_IN, root, IN_WORLD), GATHERED, is_root);                                   \
        RUN("Neighbor_allgather_init" #suffix, (PLAIN(C), ROOM(C), END),                           \
            (ONE_OUT, ONE_IN, IN_RING), FROM_NEIGHBOURS, true);                                    \
        RUN("Neighbor_allgatherv_init" #suffix, (PLAIN(C), void *, V(C, D), END),                  \
            (ONE_OUT, V_IN, IN_RING), FROM_NEIGHBOURS, true);                                      \
        RUN("Neighbor_alltoall_init" #suffix, (PLAIN(C), ROOM(C), END),                            \
            (ONE_OUT, ONE_IN, IN_RING), FROM_NEIGHBOURS, true);                                    \
        RUN("Neighbor_alltoallv_init" #suffix, (const void *, V(C, D), void *, V(C, D), END),      \
            (V_OUT, V_IN, IN_RING), FROM_NEIGHBOURS, true);                                        \
        RUN("Neighbor_alltoallw_init" #suffix,                                                     \
            (const void *, W(C, MPI_Aint), void *, W(C, MPI_Aint), END),                           \
            (out, ones, distances, types, in, ones, distances, types, IN_RING), FROM_NEIGHBOURS,   \
            true);                                                                                 \
        RUN("Reduce_init" #suffix, (const void *, ROOM(C), MPI_Op, int, END),                      \
            (out, ONE_IN, MPI_SUM, root, IN_WORLD), SUM, is_root);                                 \
        RUN("Reduce_scatter_block_init" #suffix, (const void *, ROOM(C), MPI_Op, END),             \
            (out, ONE_IN, MPI_SUM, IN_WORLD), SCATTERED_SUM, true);                                \
        RUN("Reduce_scatter_init" #suffix,                                                         \
            (const void *, void *, const C *, MPI_Datatype, MPI_Op, END),                          \
            (out, in, ones, MPI_INT, MPI_SUM, IN_WORLD), SCATTERED_SUM, true);                     \
        RUN("Scan_init" #suffix, (const void *, ROOM(C), MPI_Op, END),                             \
            (out, ONE_IN, MPI_SUM, IN_WORLD), SUM_TO_HERE, true);                                  \
        RUN("Scatter_init" #suffix, (PLAIN(C), ROOM(C), int, END),                                 \
            (ONE_OUT, ONE_IN, root, IN_WORLD), SCATTERED, true);                                   \
        RUN("Scatterv_init" #suffix, (const void *, V(C, D), ROOM(C), int, END),                   \
            (V_OUT, ONE_IN, root, IN_WORLD), SCATTERED, true);                                     \
    }
COLLECTIVES(, int, int)
COLLECTIVES(_c, MPI_Count, MPI_Aint)

static void each_has_its_effect(void)
{
    int dims[1] = {size}, on[1] = {1};
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, on, 0, &ring);
    for (int i = 0; i < RANKS_MOST; i++) {
        out[i] = sent(rank, i);
        types[i] = MPI_INT;
    }
    RUN("Barrier_init", (END), (IN_WORLD), NOTHING, true);
    collectives(ring);
    collectives_c(ring);
    MPI_Comm_free(&ring);
}

/* --- partitioned messages --- */

enum { PARTS = 6 };

static void messages_in_parts_order(void)
{
    int (*send)(const void *, int, MPI_Count, MPI_Datatype, int, int, END) =
        function("MPI_Psend_init");
    int (*receive)(void *, int, MPI_Count, MPI_Datatype, int, int, END) =
        function("MPI_Precv_init");
    int (*ready)(int, MPI_Request) = function("MPI_Pready");
    int (*range)(int, int, MPI_Request) = function("MPI_Pready_range");
    int (*list)(int, int *, MPI_Request) = function("MPI_Pready_list");
    int (*arrived)(MPI_Request, int, int *) = function("MPI_Parrived");
    int last[2] = {PARTS - 2, PARTS - 1}, flag = 0;
    MPI_Request request;
    if (rank == 0)
        send(out, PARTS, 1, MPI_INT, 1, 0, IN_WORLD);
    else if (rank == 1)
        receive(in, PARTS, 1, MPI_INT, 0, 0, IN_WORLD);
    for (int turn = 0; turn < 2 && rank < 2; turn++) {
        for (int i = 0; i < PARTS && rank == 0; i++)
            out[i] = sent(turn, i);
        MPI_Start(&request);
        mark(turn);
        if (rank == 0) {
            ready(0, request);
            range(1, PARTS - 3, request);
            list(2, last, request);
        } else {
            do
                EXPECT(arrived(request, PARTS - 1, &flag) == MPI_SUCCESS);
            while (!flag);
            EXPECT_KNOWS(0, turn);
            EXPECT(in[PARTS - 1] == sent(turn, PARTS - 1));
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < PARTS && rank == 1; i++)
            EXPECT(in[i] == sent(turn, i));
    }
    if (rank < 2)
        MPI_Request_free(&request);
}

/* --- communicators --- */

static void communicators_without_a_parent_order_all(void)
{
    int (*whole)(MPI_Group, const char *, MPI_Info, MPI_Errhandler, MPI_Comm *) =
        function("MPI_Comm_create_from_group");
    int (*halves)(MPI_Group, int, MPI_Group, int, const char *, MPI_Info, MPI_Errhandler,
                  MPI_Comm *) = function("MPI_Intercomm_create_from_groups");
    int ranges[2][1][3] = {{{0, size / 2 - 1, 1}}, {{size / 2, size - 1, 1}}},
        half = rank >= size / 2, there = 0;
    MPI_Group world, groups[2];
    MPI_Comm comm, inter;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; i < 2; i++)
        MPI_Group_range_incl(world, 1, ranges[i], &groups[i]);
    meet();
    mark(0);
    EXPECT(whole(world, "oriel.order", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm) == MPI_SUCCESS);
    MPI_Barrier(comm);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 0);
    EXPECT(halves(groups[half], 0, groups[1 - half], 0, "oriel.halves", MPI_INFO_NULL,
                  MPI_ERRORS_ARE_FATAL, &inter) == MPI_SUCCESS);
    MPI_Comm_remote_size(inter, &there);
    EXPECT(there == (half ? size / 2 : size - size / 2));
    EXPECT(unknown_calls() == 3);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&comm);
    MPI_Group_free(&groups[0]);
    MPI_Group_free(&groups[1]);
    MPI_Group_free(&world);
}

static void copies_with_hints_carry_order(void)
{
    int (*copy)(MPI_Comm, MPI_Info, MPI_Comm *, MPI_Request *) =
        function("MPI_Comm_idup_with_info");
    MPI_Comm comm;
    MPI_Request request;
    EXPECT(copy(MPI_COMM_WORLD, MPI_INFO_NULL, &comm, &request) == MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    meet();
    mark(0);
    MPI_Barrier(comm);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 0);
    EXPECT(unknown_calls() == 0);
    MPI_Comm_free(&comm);
}

static const struct order_case cases[] = {
    CASE(each_has_its_effect, 2),
    CASE(messages_in_parts_order, 2),
    CASE(communicators_without_a_parent_order_all, 2),
    CASE(copies_with_hints_carry_order, 2),
};

int main(int argc, char **argv)
{
    if (function("MPI_Bcast_init_c") == NULL || function("MPI_Psend_init") == NULL) {
        printf("skipped: the host has no persistent collectives\n");
        return 77;
    }
    return order_main(argc, argv, cases, (int)(sizeof cases / sizeof cases[0]), UINT64_C(4) << 20);
}
