/* A program over ARMCI. Its Debian build (ARMCI-MPI) creates windows for all its allocations, with
 * lock_all from their creation on and a flush after each operation. Each case computes the expected
 * memory and compares all of it. `oriel check` must find nothing in it. */
#include "cases.h"

#include "../../mpi/skip_finalize.h"

#include <armci.h>
#include <complex.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 12,
    COLUMNS = 20,
    LAYERS = 3,
    WORDS = LAYERS * ROWS * COLUMNS,
    ROUNDS = 100,
    SEGMENTS = 40
};

static int right, left;

/* Memory on every rank, zeroed by its owner. */
static void **allocate(size_t bytes)
{
    void **bases = malloc((size_t)ranks * sizeof *bases);
    ARMCI_Malloc(bases, (armci_size_t)bytes);
    if (bytes > 0) {
        ARMCI_Access_begin(bases[rank]);
        memset(bases[rank], 0, bytes);
        ARMCI_Access_end(bases[rank]);
    }
    ARMCI_Barrier();
    return bases;
}

static void release(void **bases)
{
    ARMCI_Barrier();
    ARMCI_Free(bases[rank]);
    free(bases);
}

static double value_at(int owner, int index)
{
    return owner * 10000.0 + index + 0.5;
}

static void put_and_get_around_the_ring(void)
{
    void **bases = allocate(WORDS * sizeof(double));
    double *mine = ARMCI_Malloc_local(WORDS * sizeof(double));
    for (int i = 0; i < WORDS; i++)
        mine[i] = value_at(rank, i);
    ARMCI_Put(mine, bases[right], WORDS * (int)sizeof(double), right);
    ARMCI_Fence(right);
    ARMCI_Barrier();
    double *own = bases[rank];
    ARMCI_Access_begin(own);
    for (int i = 0; i < WORDS; i++)
        CHECK(own[i] == value_at(left, i), "put: %d is %g", i, own[i]);
    ARMCI_Access_end(own);
    ARMCI_Get((double *)bases[left] + 7, mine, 11 * (int)sizeof(double), left);
    for (int i = 0; i < 11; i++)
        CHECK(mine[i] == value_at((left + ranks - 1) % ranks, i + 7), "get: %d is %g", i, mine[i]);
    ARMCI_Barrier();
    ARMCI_PutValueLong(rank + 77L, (long *)bases[right] + 1, right);
    ARMCI_PutValueFloat((float)rank + 0.25f, (float *)bases[right], right);
    ARMCI_AllFence();
    ARMCI_Barrier();
    for (int peer = 0; peer < ranks; peer++) {
        int from = (peer + ranks - 1) % ranks;
        CHECK(ARMCI_GetValueLong((long *)bases[peer] + 1, peer) == from + 77L, "a long of %d",
              peer);
        CHECK(ARMCI_GetValueFloat((float *)bases[peer], peer) == (float)from + 0.25f,
              "a float of %d", peer);
    }
    ARMCI_Free_local(mine);
    release(bases);
}

/* A box of bytes of rows and layers: the same strides on both sides, different offsets. */
static void boxes_with_strides(void)
{
    void **bases = allocate(WORDS * sizeof(double));
    double *from = malloc(WORDS * sizeof(double)), *back = malloc(WORDS * sizeof(double));
    int strides[] = {COLUMNS * (int)sizeof(double), ROWS * COLUMNS * (int)sizeof(double)};
    int counts[] = {5 * (int)sizeof(double), 7, 2};
    for (int i = 0; i < WORDS; i++) {
        from[i] = value_at(rank, i);
        back[i] = -1;
    }
    int source = 2 * COLUMNS + 3, offset = ROWS * COLUMNS + COLUMNS + 9;
    ARMCI_PutS(from + source, strides, (double *)bases[right] + offset, strides, counts, 2, right);
    ARMCI_Fence(right);
    double twice = 2;
    ARMCI_AccS(ARMCI_ACC_DBL, &twice, from + source, strides, (double *)bases[right] + offset,
               strides, counts, 2, right);
    ARMCI_Fence(right);
    ARMCI_GetS((double *)bases[right] + offset, strides, back + source, strides, counts, 2, right);
    ARMCI_Barrier();
    double *own = bases[rank], *wanted = calloc(WORDS, sizeof(double)),
           *returned = malloc(WORDS * sizeof(double));
    for (int i = 0; i < WORDS; i++)
        returned[i] = -1;
    for (int layer = 0; layer < 2; layer++)
        for (int row = 0; row < 7; row++)
            for (int column = 0; column < 5; column++) {
                int at = (layer * ROWS + row) * COLUMNS + column;
                wanted[offset + at] = 3 * value_at(left, source + at);
                returned[source + at] = 3 * value_at(rank, source + at);
            }
    ARMCI_Access_begin(own);
    for (int i = 0; i < WORDS; i++) {
        CHECK(own[i] == wanted[i], "strided: %d is %g, not %g", i, own[i], wanted[i]);
        CHECK(back[i] == returned[i], "strided back: %d is %g, not %g", i, back[i], returned[i]);
    }
    ARMCI_Access_end(own);
    free(from);
    free(back);
    free(wanted);
    free(returned);
    release(bases);
}

static void vectors_of_segments(void)
{
    void **bases = allocate(WORDS * sizeof(double));
    double *from = malloc(WORDS * sizeof(double)), *back = calloc(WORDS, sizeof(double));
    void *sources[SEGMENTS], *destinations[SEGMENTS], *returns[SEGMENTS];
    for (int i = 0; i < WORDS; i++)
        from[i] = value_at(rank, i);
    for (int i = 0; i < SEGMENTS; i++) {
        int at = (i * 7 % SEGMENTS) * 5;
        sources[i] = from + 3 * i;
        destinations[i] = (double *)bases[right] + at;
        returns[i] = back + 3 * i;
    }
    armci_giov_t out = {sources, destinations, 3 * (int)sizeof(double), SEGMENTS};
    armci_giov_t in = {destinations, returns, 3 * (int)sizeof(double), SEGMENTS};
    double half = 0.5;
    ARMCI_PutV(&out, 1, right);
    ARMCI_Fence(right);
    ARMCI_AccV(ARMCI_ACC_DBL, &half, &out, 1, right);
    ARMCI_Fence(right);
    ARMCI_GetV(&in, 1, right);
    ARMCI_Barrier();
    double *own = bases[rank];
    ARMCI_Access_begin(own);
    for (int i = 0; i < SEGMENTS; i++)
        for (int k = 0; k < 3; k++) {
            int at = (i * 7 % SEGMENTS) * 5 + k;
            CHECK(own[at] == 1.5 * value_at(left, 3 * i + k), "vector: %d is %g", at, own[at]);
            CHECK(back[3 * i + k] == 1.5 * value_at(rank, 3 * i + k), "vector back: %d", 3 * i + k);
        }
    ARMCI_Access_end(own);
    free(from);
    free(back);
    release(bases);
}

/* All ranks accumulate to all, in every type, each with its own scale. */
static void accumulates_combine(void)
{
    struct sums {
        int i[4];
        long l[4];
        float f[4];
        double d[4];
        float complex c[4];
        double complex z[4];
    };
    void **bases = allocate(sizeof(struct sums));
    struct sums own;
    for (int k = 0; k < 4; k++) {
        own.i[k] = k + rank;
        own.l[k] = k + rank;
        own.f[k] = (float)(k + rank);
        own.d[k] = k + rank;
        own.c[k] = (float)k + (float)rank * I;
        own.z[k] = k + rank * I;
    }
    int i2 = 2;
    long l3 = 3;
    float f2 = 2;
    double d4 = 4;
    float complex ci = I;
    double complex zi = 2 * I;
    for (int round = 0; round < 20; round++)
        for (int peer = 0; peer < ranks; peer++) {
            struct sums *far = bases[peer];
            ARMCI_Acc(ARMCI_ACC_INT, &i2, own.i, far->i, sizeof own.i, peer);
            ARMCI_Acc(ARMCI_ACC_LNG, &l3, own.l, far->l, sizeof own.l, peer);
            ARMCI_Acc(ARMCI_ACC_FLT, &f2, own.f, far->f, sizeof own.f, peer);
            ARMCI_Acc(ARMCI_ACC_DBL, &d4, own.d, far->d, sizeof own.d, peer);
            ARMCI_Acc(ARMCI_ACC_CPL, &ci, own.c, far->c, sizeof own.c, peer);
            ARMCI_Acc(ARMCI_ACC_DCP, &zi, own.z, far->z, sizeof own.z, peer);
        }
    ARMCI_Barrier();
    struct sums *mine = bases[rank];
    int of_ranks = ranks * (ranks - 1) / 2;
    ARMCI_Access_begin(mine);
    for (int k = 0; k < 4; k++) {
        int sum = 20 * (k * ranks + of_ranks);
        CHECK(mine->i[k] == 2 * sum, "int %d", mine->i[k]);
        CHECK(mine->l[k] == 3L * sum, "long %ld", mine->l[k]);
        CHECK(mine->f[k] == (float)(2 * sum), "float %g", mine->f[k]);
        CHECK(mine->d[k] == 4.0 * sum, "double %g", mine->d[k]);
        CHECK(mine->c[k] == (float)(-20 * of_ranks) + (float)(20 * k * ranks) * I, "complex %g %g",
              crealf(mine->c[k]), cimagf(mine->c[k]));
        CHECK(mine->z[k] == -40.0 * of_ranks + 40.0 * k * ranks * I, "double complex %g %g",
              creal(mine->z[k]), cimag(mine->z[k]));
    }
    ARMCI_Access_end(mine);
    release(bases);
}

/* Tickets: each is drawn exactly once. A swapped value is always one that some rank wrote. */
static void counters_return_each_ticket_once(void)
{
    void **bases = allocate(4 * sizeof(long));
    char *drawn = calloc((size_t)ranks * ROUNDS, 1), *by_all = malloc((size_t)ranks * ROUNDS);
    int *counter = bases[0];
    for (int i = 0; i < ROUNDS; i++) {
        int ticket = -1;
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &ticket, counter, 1, 0);
        CHECK(ticket >= 0 && ticket < ranks * ROUNDS, "ticket %d", ticket);
        if (ticket >= 0 && ticket < ranks * ROUNDS)
            drawn[ticket]++;
        long last = -1;
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &last, (long *)bases[ranks - 1] + 1, 3, ranks - 1);
        CHECK(last >= 0 && last % 3 == 0, "long %ld", last);
    }
    MPI_Allreduce(drawn, by_all, ranks * ROUNDS, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < ranks * ROUNDS; i++)
        CHECK(by_all[i] == 1, "ticket %d was drawn %d times", i, by_all[i]);
    CHECK(ARMCI_GetValueLong((long *)bases[ranks - 1] + 1, ranks - 1) == 3L * ranks * ROUNDS,
          "the last long");
    long token = rank + 1, sum = 0, in_memory;
    for (int i = 0; i < ROUNDS; i++)
        ARMCI_Rmw(ARMCI_SWAP_LONG, &token, (long *)bases[0] + 2, 0, 0);
    MPI_Allreduce(&token, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    in_memory = ARMCI_GetValueLong((long *)bases[0] + 2, 0);
    CHECK(sum + in_memory == ranks * (ranks + 1L) / 2, "swapped: %ld and %ld", sum, in_memory);
    free(drawn);
    free(by_all);
    release(bases);
}

static void mutexes_exclude(void)
{
    void **bases = allocate(2 * sizeof(long));
    ARMCI_Create_mutexes(2);
    for (int i = 0; i < ROUNDS / 4; i++)
        for (int mutex = 0; mutex < 2; mutex++) {
            int owner = (mutex * (ranks - 1) + i) % ranks;
            long *word = (long *)bases[owner] + mutex;
            ARMCI_Lock(mutex, owner);
            long seen = ARMCI_GetValueLong(word, owner);
            ARMCI_PutValueLong(seen + 1, word, owner);
            ARMCI_Fence(owner);
            ARMCI_Unlock(mutex, owner);
        }
    ARMCI_Barrier();
    long sum = 0, all = 0, *mine = bases[rank];
    ARMCI_Access_begin(mine);
    sum = mine[0] + mine[1];
    ARMCI_Access_end(mine);
    MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == 2L * (ROUNDS / 4) * ranks, "%ld times", all);
    ARMCI_Destroy_mutexes();
    release(bases);
}

static void nonblocking_transfers_end_with_their_wait(void)
{
    void **bases = allocate((size_t)ranks * ROUNDS * sizeof(long));
    long *out = malloc(ROUNDS * sizeof(long)), *in = calloc((size_t)ranks * ROUNDS, sizeof(long));
    armci_hdl_t *handles = malloc((size_t)ranks * ROUNDS * sizeof *handles);
    for (int i = 0; i < ROUNDS; i++)
        out[i] = rank * 1000L + i;
    for (int peer = 0; peer < ranks; peer++)
        for (int i = 0; i < ROUNDS; i++) {
            ARMCI_INIT_HANDLE(&handles[peer * ROUNDS + i]);
            ARMCI_NbPut(&out[i], (long *)bases[peer] + rank * ROUNDS + i, sizeof(long), peer,
                        &handles[peer * ROUNDS + i]);
        }
    for (int i = 0; i < ranks * ROUNDS; i++)
        ARMCI_Wait(&handles[i]);
    ARMCI_Barrier();
    for (int peer = 0; peer < ranks; peer++) {
        ARMCI_INIT_HANDLE(&handles[peer]);
        ARMCI_NbGet((long *)bases[right] + peer * ROUNDS, in + peer * ROUNDS,
                    ROUNDS * (int)sizeof(long), right, &handles[peer]);
    }
    ARMCI_WaitAll();
    for (int i = 0; i < ranks * ROUNDS; i++)
        CHECK(in[i] == i / ROUNDS * 1000L + i % ROUNDS, "%d is %ld", i, in[i]);
    free(out);
    free(in);
    free(handles);
    release(bases);
}

/* Even and odd ranks have separate memory, of different sizes. */
static void groups_have_memory_of_their_own(void)
{
    int members = 0, *list = malloc((size_t)ranks * sizeof *list), mine = -1;
    for (int i = rank % 2; i < ranks; i += 2) {
        if (i == rank)
            mine = members;
        list[members++] = i;
    }
    ARMCI_Group group;
    ARMCI_Group_create(members, list, &group);
    int as = -1, of = -1;
    ARMCI_Group_rank(&group, &as);
    ARMCI_Group_size(&group, &of);
    CHECK(as == mine && of == members, "rank %d of %d, not %d of %d", as, of, mine, members);
    void **bases = malloc((size_t)members * sizeof *bases);
    size_t bytes = mine == members - 1 && members > 1 ? 0 : 256 * sizeof(int);
    ARMCI_Malloc_group(bases, (armci_size_t)bytes, &group);
    for (int i = 0; i < members; i++) {
        int peer = list[i];
        if (i == members - 1 && members > 1)
            continue;
        ARMCI_PutValueInt(rank + 5, (int *)bases[i] + rank, peer);
        ARMCI_Fence(peer);
        CHECK(ARMCI_GetValueInt((int *)bases[i] + rank, peer) == rank + 5, "group member %d", i);
    }
    armci_msg_group_barrier(&group);
    ARMCI_Free_group(bases[mine], &group);
    ARMCI_Group_free(&group);
    free(bases);
    free(list);
    ARMCI_Barrier();
}

static void memory_is_allocated_and_freed_repeatedly(void)
{
    void **live[8] = {NULL};
    for (int i = 0; i < 40; i++) {
        int slot = i * 5 % 8;
        if (live[slot])
            release(live[slot]);
        live[slot] = allocate(rank == i % ranks && ranks > 1 ? 0 : (size_t)(64 << i % 12));
        int peer = (i + 1) % ranks; /* a rank with memory */
        ARMCI_PutValueInt(rank, (int *)live[slot][peer] + rank % 16, peer);
        ARMCI_Fence(peer);
    }
    for (int i = 0; i < 8; i++)
        if (live[i])
            release(live[i]);
}

static const struct array_case cases[] = {
    CASE(put_and_get_around_the_ring),
    CASE(boxes_with_strides),
    CASE(vectors_of_segments),
    CASE(accumulates_combine),
    CASE(counters_return_each_ticket_once),
    CASE(mutexes_exclude),
    CASE(nonblocking_transfers_end_with_their_wait),
    CASE(groups_have_memory_of_their_own),
    CASE(memory_is_allocated_and_freed_repeatedly),
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    ARMCI_Init();
    int me = armci_msg_me(), all = armci_msg_nproc();
    right = (me + 1) % all;
    left = (me + all - 1) % all;
    int status = cases_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
    ARMCI_Finalize();
    leave_without_finalize(status);
    MPI_Finalize();
    return status;
}
