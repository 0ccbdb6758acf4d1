/* The checker's communicators: each orders independently, however it was created. An
 * intercommunicator orders all its ranks. */
#include "order.h"

#include <stdlib.h>
#include <string.h>

static MPI_Status *volatile no_statuses =
    MPI_STATUSES_IGNORE; /* gcc warns that MPICH's constant is a too short array */

static MPI_Comm make(int which)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request;
    MPI_Group group;
    int dims[1] = {size}, on[1] = {1}, next = (rank + 1) % size, before = (rank + size - 1) % size,
        one = 1;
    int *index = malloc((size_t)size * sizeof *index),
        *edges = malloc((size_t)size * sizeof *edges);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    for (int i = 0; i < size; i++) {
        index[i] = i + 1;
        edges[i] = (i + 1) % size;
    }
    switch (which) {
    case 0: MPI_Comm_dup(MPI_COMM_WORLD, &made); break;
    case 1: MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made); break;
    case 2:
        MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 3: MPI_Comm_split(MPI_COMM_WORLD, 7, -rank, &made); break;
    case 4:
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
        MPI_Comm_size(made, &one);
        if (one < size) { /* to MPICH 5.0 of Debian, no two ranks share memory */
            MPI_Comm_free(&made);
            MPI_Comm_dup(MPI_COMM_WORLD, &made);
        }
        break;
    case 5: MPI_Comm_create(MPI_COMM_WORLD, group, &made); break;
    case 6: MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &made); break;
    case 7: MPI_Cart_create(MPI_COMM_WORLD, 1, dims, on, 1, &made); break;
    case 8: MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &made); break;
    case 9:
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &one, 1, &next, &one,
                                       MPI_INFO_NULL, 0, &made);
        break;
    default:
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, &one, MPI_INFO_NULL, 0, &made);
    }
    MPI_Group_free(&group);
    free(index);
    free(edges);
    return made;
}

enum { MAKERS = 11 };

/* A message on each communicator, with the tag of later messages on others. */
static void message_on(MPI_Comm comm)
{
    int my, other, word = 0;
    MPI_Request requests[2];
    MPI_Comm_rank(comm, &my);
    other = (my + 1) % size;
    uint64_t tick = tick_now(), theirs = 0;
    MPI_Irecv(&theirs, 1, MPI_UINT64_T, MPI_ANY_SOURCE, 4, comm, &requests[0]);
    MPI_Isend(&tick, 1, MPI_UINT64_T, other, 4, comm, &requests[1]);
    MPI_Waitall(2, requests, no_statuses);
    int from = (my + size - 1) % size, world;
    MPI_Group here, all;
    MPI_Comm_group(comm, &here);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_translate_ranks(here, 1, &from, all, &world);
    EXPECT(tick_known(world) >= theirs && theirs != 0);
    MPI_Group_free(&here);
    MPI_Group_free(&all);
    MPI_Bcast(&word, 1, MPI_INT, 0, comm);
}

static void communicators_of_all_kinds_carry_order(void)
{
    MPI_Comm comms[MAKERS];
    for (int which = 0; which < MAKERS; which++) {
        comms[which] = make(which);
        EXPECT(unknown_calls() == 0);
    }
    for (int which = MAKERS - 1; which >= 0; which--) {
        mark(which);
        message_on(comms[which]);
        MPI_Barrier(comms[which]);
        for (int i = 0; i < size; i++)
            EXPECT_KNOWS(i, which);
        meet();
    }
    for (int which = 0; which < MAKERS; which++)
        MPI_Comm_free(&comms[which]);
    EXPECT(unknown_calls() == 0);
}

/* One message per communicator, with one tag and one pair of ranks. A message sent on one
 * communicator never matches on another. */
static void communicators_are_distinguished(void)
{
    MPI_Comm comms[MAKERS];
    int senders[MAKERS], word = 0;
    for (int which = 0; which < MAKERS; which++)
        comms[which] = make(which);
    meet();
    for (int which = 0; which < MAKERS; which++) {
        MPI_Group world, here;
        int from = 0, to = 1, from_here, to_here;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Comm_group(comms[which], &here);
        MPI_Group_translate_ranks(world, 1, &from, here, &from_here);
        MPI_Group_translate_ranks(world, 1, &to, here, &to_here);
        mark(which);
        if (rank == 0)
            MPI_Send(&word, 1, MPI_INT, to_here, 0, comms[which]);
        senders[which] = from_here;
        MPI_Group_free(&world);
        MPI_Group_free(&here);
    }
    meet();
    for (int which = 0; which < MAKERS; which++) {
        if (rank == 1) {
            MPI_Recv(&word, 1, MPI_INT, senders[which], 0, comms[which], MPI_STATUS_IGNORE);
            EXPECT_KNOWS(0, which);
            EXPECT(which + 1 == MAKERS || !knows(0, which + 1));
        }
    }
    meet();
    for (int which = 0; which < MAKERS; which++)
        MPI_Comm_free(&comms[which]);
}

/* The host reuses handles for communicators with other members. */
static void freed_handles_are_forgotten(void)
{
    for (int i = 0; i < 200; i++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? rank % 2 : 0, i % 3 ? rank : -rank, &comm);
        mark(20);
        MPI_Barrier(comm);
        for (int other = 0; other < size; other++)
            if (i % 2 == 0 || other % 2 == rank % 2)
                EXPECT_KNOWS(other, 20);
        MPI_Comm_free(&comm);
        meet();
    }
    EXPECT(unknown_calls() == 0);
}

static void halves_do_not_order_each_other(void)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    meet();
    mark(0);
    MPI_Barrier(comm);
    for (int i = 0; i < size; i++)
        EXPECT(knows(i, 0) == (i % 2 == rank % 2));
    meet();
    MPI_Comm_free(&comm);
}

static void oneself_is_a_communicator_of_ones_own(void)
{
    int word = 0, room;
    MPI_Request request;
    mark(0);
    MPI_Irecv(&room, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_SELF);
    for (int i = 0; i < size; i++)
        EXPECT(knows(i, 0) == (i == rank));
    EXPECT(unknown_calls() == 0);
}

static void intercommunicators_order_all(void)
{
    MPI_Comm half, inter, merged;
    int word = 0, there;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &inter);
    meet();
    mark(0);
    MPI_Barrier(inter);
    for (int i = 0; i < size; i++)
        EXPECT(knows(i, 0) || i % 2 == rank % 2);
    EXPECT(unknown_calls() >= 2);
    meet();
    MPI_Comm_remote_size(inter, &there);
    int mine = rank / 2;
    mark(1);
    if (rank % 2 == 0 && mine < there)
        MPI_Send(&word, 1, MPI_INT, mine, 0, inter);
    else if (rank % 2 == 1) {
        MPI_Recv(&word, 1, MPI_INT, mine, 0, inter, MPI_STATUS_IGNORE);
        EXPECT_KNOWS(rank - 1, 1);
    }
    meet();
    MPI_Intercomm_merge(inter, rank % 2, &merged);
    int unknown = unknown_calls();
    meet();
    mark(2);
    MPI_Barrier(merged);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 2);
    EXPECT(unknown_calls() == unknown);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static const struct order_case cases[] = {
    CASE(communicators_of_all_kinds_carry_order, 2),
    CASE(communicators_are_distinguished, 2),
    CASE(freed_handles_are_forgotten, 2),
    CASE(halves_do_not_order_each_other, 2),
    CASE(oneself_is_a_communicator_of_ones_own, 2),
    CASE(intercommunicators_order_all, 2),
};

int main(int argc, char **argv)
{
    return order_main(argc, argv, cases, (int)(sizeof cases / sizeof cases[0]), UINT64_C(4) << 20);
}
