/* Random traffic: each message carries its sender's tick, and the receiver must know that tick,
 * whatever call receives. Also with threads that send and receive concurrently. The clock gives
 * the seed, which is printed. */
#include "order.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../mpi/host_limits.h"

enum { TAGS = 3, BATCH = 12, THREADS = 3, ROUNDS = 150, THREAD_MESSAGES = 400 };

static uint64_t seed;

static unsigned chance(uint64_t *state, unsigned n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (unsigned)(*state >> 20) % n;
}

static void begin(uint64_t *common, uint64_t *own)
{
    if (rank == 0) {
        seed = (uint64_t)time(NULL) * 1000003;
        const char *given = getenv("ORDER_SEED");
        if (given != NULL)
            seed = strtoull(given, NULL, 0);
        printf("seed %llu\n", (unsigned long long)seed);
    }
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    *common = seed + 1;
    *own = (seed + 7) * (uint64_t)(2 * rank + 3);
}

static void expect_order(const MPI_Status *status, uint64_t tick)
{
    EXPECT(tick != 0 && tick_known(status->MPI_SOURCE) >= tick);
}

/* --- posted receives that complete in any order --- */

static void post_some(uint64_t *own, const int *expected, MPI_Request *requests, uint64_t *ticks)
{
    int count = 0, left[RANKS_MOST * TAGS];
    memcpy(left, expected, sizeof left);
    /* Named receives first, as many as surely arrive: wildcards then cannot consume their messages.
     * Or all with wildcards. */
    bool wild = chance(own, 2) == 0;
    for (int source = 0; source < size; source++)
        for (int tag = 0; tag < TAGS; tag++)
            for (int i = 0; i < left[source * TAGS + tag]; i++) {
                int from = wild ? MPI_ANY_SOURCE : source;
                MPI_Irecv(&ticks[count], 1, MPI_UINT64_T, from, wild ? MPI_ANY_TAG : tag,
                          MPI_COMM_WORLD, &requests[count]);
                count++;
            }
}

static void end_some(uint64_t *own, MPI_Request *requests, uint64_t *ticks, int count)
{
    MPI_Status status, statuses[RANKS_MOST * BATCH];
    int index, found, indices[RANKS_MOST * BATCH];
    for (int done = 0; done < count;) {
        switch (chance(own, 3)) {
        case 0:
            index = (int)chance(own, (unsigned)count);
            if (requests[index] == MPI_REQUEST_NULL)
                continue;
            MPI_Wait(&requests[index], &status);
            expect_order(&status, ticks[index]);
            done++;
            break;
        case 1:
            MPI_Waitany(count, requests, &index, &status);
            expect_order(&status, ticks[index]);
            done++;
            break;
        default:
            MPI_Waitsome(count, requests, &found, indices, statuses);
            for (int i = 0; i < found; i++)
                expect_order(&statuses[i], ticks[indices[i]]);
            done += found;
        }
    }
}

static void receives_of_all_kinds_know_their_message(void)
{
    uint64_t common, own;
    begin(&common, &own);
    for (int round = 0; round < ROUNDS; round++) {
        int plan[RANKS_MOST][RANKS_MOST * TAGS] = {{0}}; /* destination, source and tag */
        int total = 0;
        MPI_Request requests[RANKS_MOST * BATCH], sends[RANKS_MOST * BATCH];
        uint64_t ticks[RANKS_MOST * BATCH] = {0}, given[RANKS_MOST * BATCH];
        for (int i = 0; i < BATCH; i++) {
            int from = (int)chance(&common, (unsigned)size),
                to = (int)chance(&common, (unsigned)size);
            plan[to][from * TAGS + (int)chance(&common, TAGS)]++;
        }
        for (int i = 0; i < size * TAGS; i++)
            total += plan[rank][i];
        bool early = chance(&own, 2) == 0;
        if (early)
            post_some(&own, plan[rank], requests, ticks);
        int sent = 0;
        for (int to = 0; to < size; to++)
            for (int tag = 0; tag < TAGS; tag++)
                for (int i = 0; i < plan[to][rank * TAGS + tag]; i++) {
                    given[sent] = tick_now();
                    MPI_Isend(&given[sent], 1, MPI_UINT64_T, to, tag, MPI_COMM_WORLD, &sends[sent]);
                    sent++;
                }
        if (!early)
            post_some(&own, plan[rank], requests, ticks);
        end_some(&own, requests, ticks, total);
        for (int i = 0; i < sent; i++)
            MPI_Wait(&sends[i], MPI_STATUS_IGNORE);
        meet(); /* wildcards of a round match its messages only */
    }
}

/* Enough outstanding tags to grow their table; each receive still finds its message. */
static void many_tags_are_distinguished(void)
{
    enum { MANY = 400 };
    uint64_t tick = 0;
    for (int tag = 0; tag < MANY && rank == 0; tag++) {
        mark(tag % MARKS);
        tick = tick_now();
        MPI_Send(&tick, 1, MPI_UINT64_T, 1, tag, MPI_COMM_WORLD);
    }
    meet();
    for (int tag = 0; tag < MANY && rank == 1; tag++) {
        MPI_Recv(&tick, 1, MPI_UINT64_T, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(tick_known(0) >= tick);
        EXPECT(tag + 1 == MANY || !knows(0, (MANY - 1) % MARKS));
    }
    EXPECT(unknown_calls() == 0);
}

/* --- threads --- */

static void *send_many(void *nothing)
{
    (void)nothing;
    for (int i = 0; i < THREAD_MESSAGES; i++) {
        uint64_t tick = tick_now();
        MPI_Send(&tick, 1, MPI_UINT64_T, (rank + 1) % size, 0, MPI_COMM_WORLD);
    }
    return NULL;
}

static void *receive_many(void *which)
{
    int from = *(int *)which == 0 ? MPI_ANY_SOURCE : (rank + size - 1) % size;
    for (int i = 0; i < THREAD_MESSAGES; i++) {
        MPI_Status status;
        uint64_t tick = 0;
        if (*(int *)which == 1 && i % 2) {
            MPI_Message message;
            MPI_Mprobe(from, 0, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv(&tick, 1, MPI_UINT64_T, &message, MPI_STATUS_IGNORE);
        } else if (i % 3 == 0) {
            MPI_Request request;
            MPI_Irecv(&tick, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, &status);
        } else {
            MPI_Recv(&tick, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, &status);
        }
        expect_order(&status, tick);
    }
    return NULL;
}

static void threads_that_send_and_receive_at_once_know_their_messages(void)
{
    pthread_t senders[THREADS], receivers[THREADS];
    int numbers[THREADS], provided;
    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE || host_loses_messages_of_threads())
        return;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&receivers[i], NULL, receive_many, &numbers[i]);
        pthread_create(&senders[i], NULL, send_many, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(receivers[i], NULL);
        pthread_join(senders[i], NULL);
    }
}

static const struct order_case cases[] = {
    CASE(receives_of_all_kinds_know_their_message, 2),
    CASE(many_tags_are_distinguished, 2),
    CASE(threads_that_send_and_receive_at_once_know_their_messages, 2),
};

int main(int argc, char **argv)
{
    return order_main(argc, argv, cases, (int)(sizeof cases / sizeof cases[0]), UINT64_C(16) << 20);
}
