/* The checker's point-to-point messages: after a receive, the receiver knows everything that the
 * sender had completed before the send, for all kinds of sends and receives. It knows more only
 * where two matchings were possible. */
#include "order.h"

#include <string.h>

static int word;
static MPI_Status *volatile no_statuses =
    MPI_STATUSES_IGNORE; /* gcc warns that MPICH's constant is a too short array */

static void send_to(int to, int tag)
{
    MPI_Send(&word, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
}

static MPI_Request post_from(int from, int tag)
{
    MPI_Request request;
    static int room[16];
    static int next;
    MPI_Irecv(&room[next++ % 16], 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
    return request;
}

static void receive_from(int from, int tag)
{
    MPI_Status status;
    int room;
    MPI_Recv(&room, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &status);
}

/* --- sends of all kinds --- */

static void start_of(int kind, MPI_Request *request)
{
    switch (kind) {
    case 0: MPI_Isend(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, request); break;
    case 1: MPI_Issend(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, request); break;
    case 2: MPI_Ibsend(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, request); break;
    default: MPI_Irsend(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, request);
    }
}

static void blocking_of(int kind)
{
    int (*const sends[])(const void *, int, MPI_Datatype, int, int,
                         MPI_Comm) = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
    sends[kind](&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
}

static void persistent_of(int kind, MPI_Request *request)
{
    int (*const inits[])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
    inits[kind](&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, request);
}

static void send_once(int kind, int variant)
{
    MPI_Request request;
    if (variant == 0) {
        blocking_of(kind);
    } else if (variant == 1) {
        start_of(kind, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        persistent_of(kind, &request);
        for (int i = 0; i < 3; i++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    }
}

/* Ready sends need the receiver's posts first. */
static void sends_of_all_kinds_order(void)
{
    char room[4096];
    MPI_Buffer_attach(room, sizeof room);
    for (int kind = 0; kind < 4; kind++)
        for (int variant = 0; variant < 3; variant++) {
            int at = 2 * (3 * kind + variant), times = variant == 2 ? 3 : 1;
            MPI_Request requests[3];
            if (rank == 1)
                for (int i = 0; i < times; i++)
                    requests[i] = post_from(0, 5);
            meet();
            if (rank == 0) {
                mark(at);
                send_once(kind, variant);
                mark(at + 1);
            } else if (rank == 1) {
                for (int i = 0; i < times; i++) {
                    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
                    EXPECT_KNOWS(0, at);
                    EXPECT_MISSES(0, at + 1);
                }
            }
            meet();
        }
    int size_bytes;
    void *buffer;
    MPI_Buffer_detach(&buffer, &size_bytes);
    EXPECT(unknown_calls() == 0);
}

static void synchronous_send_is_ordered_by_its_receive(void)
{
    MPI_Request request;
    if (rank == 0) {
        MPI_Ssend(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        EXPECT_KNOWS(1, 0);
        MPI_Issend(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT_KNOWS(1, 1);
        meet();
        EXPECT_MISSES(1, 2);
        send_to(1, 1);
        EXPECT_MISSES(1, 2);
    } else if (rank == 1) {
        mark(0);
        receive_from(0, 0);
        mark(1);
        receive_from(0, 0);
        meet();
        send_to(1, 3);
        receive_from(1, 3);
        mark(2);
        receive_from(0, 1);
    } else {
        meet();
    }
}

static void send_orders_only_earlier_events(void)
{
    if (rank == 0) {
        mark(0);
        send_to(1, 0);
        mark(1);
    } else if (rank == 1) {
        receive_from(0, 0);
        EXPECT_KNOWS(0, 0);
        EXPECT_MISSES(0, 1);
    }
}

static void order_passes_through_ranks(void)
{
    mark(0);
    if (rank > 0)
        receive_from(rank - 1, 0);
    for (int i = 0; i < size; i++)
        EXPECT(knows(i, 0) == (i <= rank));
    if (rank + 1 < size)
        send_to(rank + 1, 0);
}

/* --- receives in any order --- */

static void tags_are_distinguished(void)
{
    if (rank == 0) {
        for (int i = 0; i < 6; i++) {
            mark(i);
            send_to(1, i % 2);
        }
        mark(6);
    } else if (rank == 1) {
        for (int i = 1; i < 6; i += 2) {
            receive_from(0, 1);
            EXPECT_KNOWS(0, i);
            EXPECT_MISSES(0, i + 1);
        }
        receive_from(0, 0);
        receive_from(0, 0);
        receive_from(0, 0);
        EXPECT_MISSES(0, 6);
    }
}

static void requests_may_end_in_any_order(void)
{
    MPI_Request requests[4];
    if (rank == 1)
        for (int i = 0; i < 4; i++)
            requests[i] = post_from(0, 0);
    meet();
    if (rank == 0) {
        for (int i = 0; i < 4; i++) {
            mark(i);
            send_to(1, 0);
        }
        mark(4);
    } else if (rank == 1) {
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        EXPECT_KNOWS(0, 1);
        EXPECT_MISSES(0, 2);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        EXPECT_MISSES(0, 2);
        MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
        EXPECT_KNOWS(0, 3);
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
        EXPECT_MISSES(0, 4);
    }
}

static void end_by(int variant, MPI_Request *requests, int count)
{
    int flag = 0, index, done = 0, indices[8];
    MPI_Status statuses[8];
    switch (variant) {
    case 0: MPI_Waitall(count, requests, no_statuses); break;
    case 1:
        while (!flag)
            MPI_Testall(count, requests, &flag, statuses);
        break;
    case 2:
        for (int i = 0; i < count; i++)
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        break;
    case 3:
        for (int i = 0; i < count; i++)
            for (flag = 0; !flag;)
                MPI_Testany(count, requests, &index, &flag, statuses);
        break;
    case 4:
        for (int i = 0; i < count; i += done)
            MPI_Waitsome(count, requests, &done, indices, no_statuses);
        break;
    case 5:
        for (int i = 0; i < count; i += done)
            MPI_Testsome(count, requests, &done, indices, statuses);
        break;
    case 6:
        for (int i = 0; i < count; i++)
            for (flag = 0; !flag;)
                MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        break;
    default:
        for (int i = 0; i < count; i++)
            for (flag = 0; !flag;)
                MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
    }
}

static void every_completion_acquires(void)
{
    enum { VARIANTS = 8, EACH = 5 };
    for (int variant = 0; variant < VARIANTS; variant++) {
        MPI_Request requests[EACH];
        if (rank == 1) {
            for (int i = 0; i < EACH; i++)
                requests[i] = post_from(0, 0);
            end_by(variant, requests, EACH);
            EXPECT_KNOWS(0, 2 * variant);
            EXPECT_MISSES(0, 2 * variant + 1);
            if (variant == 7)
                MPI_Waitall(EACH, requests, no_statuses);
        } else if (rank == 0) {
            for (int i = 0; i < EACH; i++) {
                if (i == EACH - 1)
                    mark(2 * variant);
                send_to(1, 0);
            }
            mark(2 * variant + 1);
        }
        meet();
    }
}

static void unsuccessful_test_acquires_nothing(void)
{
    MPI_Request request;
    int flag = 0;
    if (rank == 0) {
        mark(0);
        meet();
        send_to(1, 0);
    } else if (rank == 1) {
        request = post_from(0, 0);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        EXPECT(!flag);
        EXPECT_MISSES(0, 0);
        meet();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT_KNOWS(0, 0);
    } else {
        meet();
    }
}

/* --- wildcards --- */

static void wildcard_acquires_from_its_sender(void)
{
    MPI_Status status;
    uint64_t tick;
    if (rank != 0) {
        for (int i = 0; i < 20; i++) {
            tick = tick_now();
            MPI_Send(&tick, 1, MPI_UINT64_T, 0, i % 3, MPI_COMM_WORLD);
        }
        mark(0);
    } else {
        for (int i = 0; i < 20 * (size - 1); i++) {
            MPI_Recv(&tick, 1, MPI_UINT64_T, MPI_ANY_SOURCE, i < 6 * (size - 1) ? 2 : MPI_ANY_TAG,
                     MPI_COMM_WORLD, &status);
            EXPECT(tick_known(status.MPI_SOURCE) >= tick);
        }
        for (int i = 1; i < size; i++)
            EXPECT_MISSES(i, 0);
    }
}

static void wildcard_posted_before_a_named_receive(void)
{
    MPI_Request any, named;
    uint64_t first, second;
    if (rank == 0) {
        MPI_Irecv(&first, 1, MPI_UINT64_T, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &any);
        MPI_Irecv(&second, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD, &named);
        meet();
        MPI_Wait(&named, MPI_STATUS_IGNORE);
        EXPECT(tick_known(1) >= second);
        MPI_Wait(&any, MPI_STATUS_IGNORE);
        EXPECT(tick_known(1) >= first && second > first);
    } else {
        meet();
        for (int i = 0; i < 2 && rank == 1; i++) {
            uint64_t tick = tick_now();
            MPI_Send(&tick, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
        }
    }
}

/* --- probes, both directions, null processes --- */

static void probes_order(void)
{
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int flag = 0, room;
    if (rank == 0) {
        for (int i = 0; i < 4; i++) {
            mark(i);
            send_to(1, 0);
            meet();
        }
    } else if (rank == 1) {
        MPI_Probe(0, 0, MPI_COMM_WORLD, &status);
        EXPECT_KNOWS(0, 0);
        receive_from(0, 0);
        meet();
        while (!flag)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EXPECT_KNOWS(0, 1);
        receive_from(0, 0);
        meet();
        MPI_Mprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &message, &status);
        EXPECT_KNOWS(0, 2);
        MPI_Mrecv(&room, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        meet();
        for (flag = 0; !flag;)
            MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
        EXPECT_KNOWS(0, 3);
        MPI_Imrecv(&room, 1, MPI_INT, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        meet();
    } else {
        for (int i = 0; i < 4; i++)
            meet();
    }
}

static void exchanges_order_in_both_directions(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, in = 0, out = rank;
    for (int i = 0; i < 6; i++) {
        mark(2 * i);
        if (i % 2 == 0)
            MPI_Sendrecv(&out, 1, MPI_INT, next, i, &in, 1, MPI_INT, before, i, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        else
            MPI_Sendrecv_replace(&out, 1, MPI_INT, next, i, before, i, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE);
        EXPECT_KNOWS(before, 2 * i);
        meet();
        mark(2 * i + 1);
        EXPECT_MISSES(before, 2 * i + 1);
        meet();
    }
}

static void proc_null_orders_nothing(void)
{
    MPI_Request requests[2];
    int room;
    mark(0);
    MPI_Send(&word, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(&room, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(&word, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&room, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, no_statuses);
    for (int i = 0; i < size; i++)
        EXPECT(knows(i, 0) == (i == rank));
    EXPECT(unknown_calls() == 0);
}

static void cancelled_receive_leaves_the_next_its_message(void)
{
    MPI_Request cancelled, stays;
    MPI_Status status;
    int flag;
    if (rank == 1) {
        cancelled = post_from(0, 0);
        stays = post_from(0, 0);
        MPI_Cancel(&cancelled);
        MPI_Wait(&cancelled, &status);
        MPI_Test_cancelled(&status, &flag);
        EXPECT(flag);
        meet();
        MPI_Wait(&stays, MPI_STATUS_IGNORE);
        EXPECT_KNOWS(0, 0);
        EXPECT_MISSES(0, 1);
        receive_from(0, 0);
        EXPECT_KNOWS(0, 1);
        EXPECT_MISSES(0, 2);
    } else {
        meet();
        for (int i = 0; i < 2 && rank == 0; i++) {
            mark(i);
            send_to(1, 0);
        }
        mark(2);
    }
}

static void persistent_requests_order_each_start(void)
{
    MPI_Request requests[2];
    int in, out = 0, next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Recv_init(&in, 1, MPI_INT, before, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(&out, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 10; i++) {
        mark(2 * i);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, no_statuses);
        EXPECT_KNOWS(before, 2 * i);
        meet();
        mark(2 * i + 1);
        EXPECT_MISSES(before, 2 * i + 1);
        meet();
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Many small messages leave no entries in the checker's shared memory, which is small. */
static void messages_do_not_pile_up(void)
{
    for (int i = 0; i < 20000; i++) {
        if (rank == 0)
            send_to(1, i % 100);
        else if (rank == 1)
            receive_from(i % 3 ? 0 : MPI_ANY_SOURCE, i % 100);
        if (i % 500 == 0)
            meet();
    }
}

static const struct order_case cases[] = {
    CASE(send_orders_only_earlier_events, 2),
    CASE(sends_of_all_kinds_order, 2),
    CASE(synchronous_send_is_ordered_by_its_receive, 2),
    CASE(order_passes_through_ranks, 2),
    CASE(tags_are_distinguished, 2),
    CASE(requests_may_end_in_any_order, 2),
    CASE(every_completion_acquires, 2),
    CASE(unsuccessful_test_acquires_nothing, 2),
    CASE(wildcard_acquires_from_its_sender, 2),
    CASE(wildcard_posted_before_a_named_receive, 2),
    CASE(probes_order, 2),
    CASE(exchanges_order_in_both_directions, 2),
    CASE(proc_null_orders_nothing, 2),
    CASE(cancelled_receive_leaves_the_next_its_message, 2),
    CASE(persistent_requests_order_each_start, 2),
    CASE(messages_do_not_pile_up, 2),
};

int main(int argc, char **argv)
{
    return order_main(argc, argv, cases, (int)(sizeof cases / sizeof cases[0]), UINT64_C(4) << 20);
}
