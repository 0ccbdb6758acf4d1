/* Ranks that wait in the host, in each function in which Oriel may serve requests, receive what the
 * function returns. Meanwhile the origin that uses their memory completes its operations. A plain
 * MPI program, run by the test rows. */
#include "../mpi/harness.h"

#include <string.h>

enum { WORDS = 4, ADDS = 30 };

static int sent[WORDS * 8], received[WORDS * 8];

/* The word that rank sends to another rank, or to all. */
static int word_of(int rank, int to, int i)
{
    return rank * 1000 + to * 10 + i;
}

static void check_words(int at, int from, int to)
{
    for (int i = 0; i < WORDS; i++)
        CHECK_EQUAL(received[at + i], word_of(from, to, i));
}

static void in_barrier(void)
{
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void in_bcast(void)
{
    for (int i = 0; i < WORDS; i++)
        received[i] = world_rank == 0 ? word_of(0, 0, i) : -1;
    CHECK_OK(MPI_Bcast(received, WORDS, MPI_INT, 0, MPI_COMM_WORLD));
    check_words(0, 0, 0);
}

static void in_reduce(void)
{
    int mine = world_rank + 1, sum = -1;
    CHECK_OK(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, world_size - 1, MPI_COMM_WORLD));
    CHECK_EQUAL(sum, world_rank == world_size - 1 ? world_size * (world_size + 1) / 2 : -1);
}

static void in_allreduce(void)
{
    int mine = world_rank + 1, most = -1;
    CHECK_OK(MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK_EQUAL(most, world_size);
}

static void in_gather(void)
{
    CHECK_OK(
        MPI_Gather(sent, WORDS, MPI_INT, received, WORDS, MPI_INT, world_size - 1, MPI_COMM_WORLD));
    for (int from = 0; world_rank == world_size - 1 && from < world_size; from++)
        check_words(from * WORDS, from, 0);
}

static void in_scatter(void)
{
    CHECK_OK(MPI_Scatter(sent, WORDS, MPI_INT, received, WORDS, MPI_INT, 0, MPI_COMM_WORLD));
    check_words(0, 0, world_rank);
}

static void in_allgather(void)
{
    CHECK_OK(MPI_Allgather(sent, WORDS, MPI_INT, received, WORDS, MPI_INT, MPI_COMM_WORLD));
    for (int from = 0; from < world_size; from++)
        check_words(from * WORDS, from, 0);
}

static void in_alltoall(void)
{
    CHECK_OK(MPI_Alltoall(sent, WORDS, MPI_INT, received, WORDS, MPI_INT, MPI_COMM_WORLD));
    for (int from = 0; from < world_size; from++)
        check_words(from * WORDS, from, world_rank);
}

static void in_sendrecv(void)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    MPI_Status status;
    CHECK_OK(MPI_Sendrecv(sent, WORDS, MPI_INT, right, 3, received, WORDS, MPI_INT, left, 3,
                          MPI_COMM_WORLD, &status));
    CHECK_EQUAL(status.MPI_SOURCE, left);
    check_words(0, left, 0);
}

/* Rank 0 sends when it is done; each other rank probes, receives and answers. */
static void in_messages(void)
{
    MPI_Status status;
    int count = -1;
    for (int to = 1; world_rank == 0 && to < world_size; to++) {
        CHECK_OK((to % 2 ? MPI_Ssend : MPI_Send)(sent + to * WORDS, WORDS, MPI_INT, to, 4,
                                                 MPI_COMM_WORLD));
        CHECK_OK(MPI_Recv(received, WORDS, MPI_INT, to, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check_words(0, to, 0);
    }
    if (world_rank == 0)
        return;
    CHECK_OK(MPI_Probe(0, 4, MPI_COMM_WORLD, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, WORDS);
    CHECK_OK(MPI_Recv(received, WORDS, MPI_INT, 0, 4, MPI_COMM_WORLD, &status));
    CHECK_EQUAL(status.MPI_TAG, 4);
    check_words(0, 0, world_rank);
    CHECK_OK(MPI_Send(sent, WORDS, MPI_INT, 0, 5, MPI_COMM_WORLD));
}

/* Rank 0 adds to the words of all others while they wait in the function. */
static void served_in(void (*wait)(void))
{
    struct window window = window_make(KIND_ALLOCATE, 64, 8, MPI_COMM_WORLD);
    const int64_t one = 1;
    int64_t old;
    memset(window.base, 0, 64);
    for (int i = 0; i < world_size * WORDS; i++)
        sent[i] = word_of(world_rank, i / WORDS, i % WORDS);
    barrier(MPI_COMM_WORLD);
    for (int64_t round = 0; round < 3; round++) {
        MPI_Win_lock_all(0, window.win);
        for (int i = 0; world_rank == 0 && i < ADDS * (world_size - 1); i++) {
            int to = 1 + i % (world_size - 1);
            MPI_Fetch_and_op(&one, &old, MPI_INT64_T, to, 0, MPI_SUM, window.win);
            MPI_Win_flush(to, window.win);
            CHECK_EQUAL(old, round * ADDS + i / (world_size - 1));
        }
        memset(received, -1, sizeof received);
        wait();
        MPI_Win_unlock_all(window.win);
        barrier(MPI_COMM_WORLD);
    }
    window_free(&window);
}

#define SERVED_IN(name)                                                                            \
    static void ranks_serve_in_##name(enum window_kind kind)                                       \
    {                                                                                              \
        (void)kind;                                                                                \
        served_in(in_##name);                                                                      \
    }
SERVED_IN(barrier)
SERVED_IN(bcast)
SERVED_IN(reduce)
SERVED_IN(allreduce)
SERVED_IN(gather)
SERVED_IN(scatter)
SERVED_IN(allgather)
SERVED_IN(alltoall)
SERVED_IN(sendrecv)
SERVED_IN(messages)

static const struct test_case cases[] = {
    CASE(ranks_serve_in_barrier, KIND_ANY, 2),   CASE(ranks_serve_in_bcast, KIND_ANY, 2),
    CASE(ranks_serve_in_reduce, KIND_ANY, 2),    CASE(ranks_serve_in_allreduce, KIND_ANY, 2),
    CASE(ranks_serve_in_gather, KIND_ANY, 2),    CASE(ranks_serve_in_scatter, KIND_ANY, 2),
    CASE(ranks_serve_in_allgather, KIND_ANY, 2), CASE(ranks_serve_in_alltoall, KIND_ANY, 2),
    CASE(ranks_serve_in_sendrecv, KIND_ANY, 2),  CASE(ranks_serve_in_messages, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
