/* Communicators that the checker has not seen, and calls that the host refuses. A communicator
 * created without the checker's knowledge has no model and orders all ranks. A refused call orders
 * nothing and leaves no state that would mislead the next call. */
#include "order.h"

#include <stddef.h>

#include "check/common/reentrancy.h"

static int word, room;
static MPI_Status *volatile no_statuses =
    MPI_STATUSES_IGNORE; /* gcc warns that MPICH's constant is a too short array */

/* --- unseen --- */

static MPI_Comm made_unseen(int which)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group group;
    MPI_Request request;
    oriel_check_running = false;
    if (which == 0) {
        MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &made);
        MPI_Group_free(&group);
    }
    oriel_check_running = true;
    return made;
}

static void message(int variant, MPI_Comm comm)
{
    MPI_Request request;
    MPI_Message matched;
    MPI_Status status;
    int flag = 0;
    if (rank == 0) {
        meet(); /* the receiver finds no message yet */
        if (variant == 0)
            MPI_Ssend(&word, 1, MPI_INT, 1, 0, comm);
        else if (variant == 1)
            MPI_Send(&word, 1, MPI_INT, 1, 0, comm);
        else {
            MPI_Issend(&word, 1, MPI_INT, 1, 0, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        return;
    }
    if (rank == 1) {
        MPI_Improbe(0, 0, comm, &flag, &matched, &status);
        EXPECT(!flag);
    }
    meet();
    if (rank != 1)
        return;
    switch (variant) {
    case 0:
        MPI_Probe(0, 0, comm, &status);
        MPI_Recv(&room, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &matched, &status);
        MPI_Mrecv(&room, 1, MPI_INT, &matched, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Irecv(&room, 1, MPI_INT, 0, 0, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void messages_on_an_unseen_communicator_order(void)
{
    for (int which = 0; which < 2; which++) {
        MPI_Comm comm = made_unseen(which);
        for (int variant = 0; variant < 3; variant++) {
            int before = unknown_calls();
            meet();
            mark(variant);
            message(variant, comm);
            if (rank == 1)
                EXPECT_KNOWS(0, variant);
            EXPECT(rank > 1 || unknown_calls() > before);
            meet();
        }
        MPI_Comm_free(&comm);
    }
}

static void collectives_on_an_unseen_communicator_order(void)
{
    MPI_Comm comm = made_unseen(0), again;
    MPI_Request request;
    MPI_Group group;
    meet();
    mark(0);
    MPI_Barrier(comm);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 0);
    meet();
    mark(1);
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 1);
    MPI_Comm_group(comm, &group);
    MPI_Comm_create_group(comm, group, 3, &again);
    MPI_Group_free(&group);
    MPI_Comm_free(&again);
    MPI_Comm_idup(comm, &again, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&again);
    EXPECT(unknown_calls() > 0);
    MPI_Comm_free(&comm);
}

/* MPI_Comm_disconnect waits for outstanding messages between the members. Its handle is invalid
 * afterwards. */
static void disconnecting_orders_all(void)
{
    for (int unseen = 0; unseen < 2; unseen++) {
        MPI_Comm comm = MPI_COMM_NULL;
        if (unseen)
            comm = made_unseen(0);
        else
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        meet();
        mark(unseen);
        meet();
        MPI_Comm_disconnect(&comm);
        EXPECT(comm == MPI_COMM_NULL);
        for (int i = 0; i < size; i++)
            EXPECT_KNOWS(i, unseen);
    }
}

static void rows_and_columns_carry_order(void)
{
    int dims[2] = {size, 1}, on[2] = {0, 0}, rows[2] = {1, 0};
    MPI_Comm grid, column;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, on, 0, &grid);
    MPI_Cart_sub(grid, rows, &column);
    meet();
    mark(0);
    MPI_Barrier(column);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 0);
    EXPECT(unknown_calls() == 0);
    MPI_Comm_free(&column);
    MPI_Comm_free(&grid);
}

/* --- refused --- */

static MPI_Comm lenient(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return comm;
}

static void strict(MPI_Comm *comm)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(comm);
}

/* One message with an answer. The checker counts each message, and a miscount would match a wrong
 * one. */
static void expect_order(int number, MPI_Comm comm)
{
    meet();
    mark(number);
    if (rank == 0)
        MPI_Send(&word, 1, MPI_INT, 1, 0, comm);
    else if (rank == 1) {
        MPI_Recv(&room, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        EXPECT_KNOWS(0, number);
    }
    meet();
}

static void refused_messages_leave_nothing(void)
{
    MPI_Comm comm = lenient();
    MPI_Request request = MPI_REQUEST_NULL, none = MPI_REQUEST_NULL;
    MPI_Status status;
    int flag, peer = rank == 0 ? 1 : 0;
    for (int turn = 0; turn < 3; turn++) {
        EXPECT(MPI_Isend(&word, -1, MPI_INT, peer, 0, comm, &request) != MPI_SUCCESS);
        EXPECT(MPI_Irecv(&room, -1, MPI_INT, peer, 0, comm, &request) != MPI_SUCCESS);
        EXPECT(MPI_Recv(&room, -1, MPI_INT, peer, 0, comm, &status) != MPI_SUCCESS);
        EXPECT(MPI_Send(&word, -1, MPI_INT, peer, 0, comm) != MPI_SUCCESS);
        EXPECT(MPI_Send_init(&word, -1, MPI_INT, peer, 0, comm, &request) != MPI_SUCCESS);
        EXPECT(MPI_Send(&word, 1, MPI_INT, size, 0, comm) != MPI_SUCCESS);
        EXPECT(MPI_Recv(&room, 1, MPI_INT, size, 0, comm, &status) != MPI_SUCCESS);
        EXPECT(MPI_Probe(size, 0, comm, &status) != MPI_SUCCESS);
        EXPECT(MPI_Iprobe(size, 0, comm, &flag, &status) != MPI_SUCCESS);
        EXPECT(MPI_Request_free(&none) != MPI_SUCCESS);
        expect_order(turn, comm);
    }
    strict(&comm);
}

/* Waits for a receive that is truncated and another. Open MPI with threads never returns from
 * MPI_Waitall if a request has failed before the call. */
static void await_truncated(MPI_Request requests[2])
{
    MPI_Status statuses[2];
#ifdef OPEN_MPI
    EXPECT(MPI_Wait(&requests[0], &statuses[0]) != MPI_SUCCESS);
#else
    EXPECT(MPI_Waitall(2, requests, statuses) == MPI_ERR_IN_STATUS);
#endif
    EXPECT_KNOWS(0, 1);
    EXPECT(requests[1] == MPI_REQUEST_NULL ||
           MPI_Wait(&requests[1], &statuses[1]) == MPI_SUCCESS);
}

/* A truncated receive completes, and orders what the sender did before. */
static void a_message_that_was_cut_orders(void)
{
    MPI_Comm comm = lenient();
    MPI_Request requests[2];
    MPI_Status status;
    int words[4] = {0};
    for (int turn = 0; turn < 2; turn++) {
        meet();
        mark(turn);
        if (rank == 0) {
            MPI_Send(words, 4, MPI_INT, 1, turn, comm);
            MPI_Send(words, 1, MPI_INT, 1, 8, comm);
        } else if (rank == 1 && turn == 0) {
            EXPECT(MPI_Recv(&room, 1, MPI_INT, 0, 0, comm, &status) != MPI_SUCCESS);
            EXPECT_KNOWS(0, 0);
            MPI_Recv(&room, 1, MPI_INT, 0, 8, comm, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Irecv(&room, 1, MPI_INT, 0, 1, comm, &requests[0]);
            MPI_Irecv(&words[0], 1, MPI_INT, 0, 8, comm, &requests[1]);
            await_truncated(requests);
        }
        expect_order(2 + turn, comm);
    }
    strict(&comm);
}

static void refused_collectives_leave_nothing(void)
{
    MPI_Comm comm = lenient(), made = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT(MPI_Ibcast(&word, -1, MPI_INT, 0, comm, &request) != MPI_SUCCESS);
    EXPECT(MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_NULL) != MPI_SUCCESS);
    EXPECT(MPI_Comm_idup(MPI_COMM_NULL, &made, &request) != MPI_SUCCESS);
    EXPECT(MPI_Comm_dup(MPI_COMM_NULL, &made) != MPI_SUCCESS);
    MPI_Comm outside = MPI_COMM_NULL;
    MPI_Comm_split(comm, rank == 0 ? MPI_UNDEFINED : 0, 0, &outside);
    EXPECT((outside == MPI_COMM_NULL) == (rank == 0));
    if (outside != MPI_COMM_NULL)
        MPI_Comm_free(&outside);
    strict(&comm);
}

/* The error goes to the communicator's own handler. That of the other communicators would abort the
 * program. */
static void a_collective_without_a_datatype_is_refused_by_the_host(void)
{
    MPI_Comm comm;
    int counts[RANKS_MOST], displs[RANKS_MOST], words[RANKS_MOST];
    for (int i = 0; i < RANKS_MOST; i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    EXPECT(MPI_Allgatherv(&word, 1, MPI_INT, words, counts, displs, MPI_DATATYPE_NULL, comm) !=
           MPI_SUCCESS);
    expect_order(0, comm);
    MPI_Comm_free(&comm);
}

/* --- many requests --- */

enum { MANY = 40 };

static void many_requests_end_together(void)
{
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    int words[MANY], indices[MANY], next = (rank + 1) % size, before = (rank + size - 1) % size,
                                    got;
    for (int variant = 0; variant < 3; variant++) {
        meet();
        mark(variant);
        for (int i = 0; i < MANY / 2; i++)
            MPI_Irecv(&words[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < MANY / 2; i++)
            MPI_Isend(&word, 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[MANY / 2 + i]);
        if (variant == 0)
            MPI_Waitall(MANY, requests, no_statuses);
        else if (variant == 1)
            MPI_Waitall(MANY, requests, statuses);
        else
            for (int left = MANY; left > 0; left -= got)
                MPI_Waitsome(MANY, requests, &got, indices, no_statuses);
        EXPECT_KNOWS(before, variant);
    }
    EXPECT(unknown_calls() == 0);
}

/* Requests that the checker does not know, among requests that it knows. */
static void unknown_requests_are_waited_for(void)
{
    MPI_Request known, grequests[MANY];
    int mine = rank, next = (rank + 1) % size, before = (rank + size - 1) % size;
    mark(0);
    MPI_Irecv(&room, 1, MPI_INT, before, 0, MPI_COMM_WORLD, &known);
    for (int i = 0; i < MANY; i++)
        grequests[i] = MPI_REQUEST_NULL;
    oriel_check_running = false;
    MPI_Isend(&mine, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &grequests[0]);
    MPI_Irecv(&word, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &grequests[1]);
    oriel_check_running = true;
    MPI_Waitall(MANY, grequests, no_statuses);
    EXPECT(word == rank);
    MPI_Send(&word, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    MPI_Wait(&known, MPI_STATUS_IGNORE);
    EXPECT_KNOWS(before, 0);
}

/* The same for requests: each function completes its requests, including unknown ones. */
static void calls_that_are_not_looked_at_pass(void)
{
    MPI_Request requests[2];
    MPI_Message matched;
    MPI_Status status;
    int mine = rank, got = -1, flag = 0, which = -1;
    for (int variant = 0; variant < 4; variant++) {
        oriel_check_running = false;
        MPI_Isend(&mine, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &requests[1]);
        MPI_Probe(rank, 9, MPI_COMM_WORLD, &status);
        MPI_Irecv(&got, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &requests[0]);
        oriel_check_running = true;
        if (variant == 0)
            MPI_Waitany(1, requests, &which, &status);
        for (flag = variant == 0; !flag;)
            if (variant == 1)
                MPI_Test(&requests[0], &flag, &status);
            else if (variant == 2)
                MPI_Testany(1, requests, &which, &flag, &status);
            else
                MPI_Request_get_status(requests[0], &flag, &status);
        MPI_Waitall(2, requests, no_statuses);
        EXPECT(got == rank);
    }
    oriel_check_running = false;
    MPI_Isend(&mine, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &requests[1]);
    MPI_Mprobe(rank, 9, MPI_COMM_WORLD, &matched, &status);
    MPI_Mrecv(&got, 1, MPI_INT, &matched, &status);
    MPI_Improbe(rank, 9, MPI_COMM_WORLD, &flag, &matched, &status);
    EXPECT(got == rank && !flag);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Recv_init(&got, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(&mine, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &requests[1]);
    oriel_check_running = true;
    got = -1;
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, no_statuses);
    EXPECT(got == rank);
    oriel_check_running = false;
    MPI_Startall(2, requests);
    oriel_check_running = true;
    MPI_Waitall(2, requests, no_statuses);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    EXPECT(unknown_calls() == 0);
}

/* The receiver may wait for a counted message that never arrives. From then on, every message
 * orders everything that its sender did. */
static void a_cancelled_send_is_reported(void)
{
    int mine = rank, got = -1, cancelled = 0;
    EXPECT(!is_in_doubt());
    if (rank == 0) {
        MPI_Request request;
        MPI_Status status;
        MPI_Isend(&mine, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        EXPECT(is_in_doubt());
        MPI_Send(&cancelled, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(&cancelled, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, no_statuses);
        if (!cancelled)
            MPI_Recv(&got, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, no_statuses);
        EXPECT(cancelled || got == 0);
    }
    EXPECT(unknown_calls() == 0);
}

static const struct order_case cases[] = {
    CASE(messages_on_an_unseen_communicator_order, 2),
    CASE(collectives_on_an_unseen_communicator_order, 2),
    CASE(disconnecting_orders_all, 2),
    CASE(rows_and_columns_carry_order, 2),
    CASE(refused_messages_leave_nothing, 2),
    CASE(a_message_that_was_cut_orders, 2),
    CASE(many_requests_end_together, 2),
    CASE(unknown_requests_are_waited_for, 2),
    CASE(calls_that_are_not_looked_at_pass, 2),
    CASE(a_cancelled_send_is_reported,
         2), /* from here on the checker is in doubt: other ranks may not have been refused alike */
    CASE(refused_collectives_leave_nothing, 2),
    CASE(a_collective_without_a_datatype_is_refused_by_the_host, 2),
};

int main(int argc, char **argv)
{
    return order_main(argc, argv, cases, (int)(sizeof cases / sizeof cases[0]), UINT64_C(4) << 20);
}
