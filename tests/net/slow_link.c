/* A random workload checked against a model, for nodes whose links are slow and lose packets. All
 * operations complete with the right data, and no rank is reported dead. Each rank owns a range of
 * each rank's memory and models its contents. All ranks add to the counters, whose sums are checked
 * at the end. A plain MPI program, started by slow_link.py, which degrades a link. */
#include "../mpi/harness.h"

#include <stdlib.h>
#include <string.h>

enum { STRETCH = 1 << 17, COUNTERS = 8, LONGEST = 60000 };

struct work {
    MPI_Win win;
    struct random random;
    unsigned char *model; /* the own ranges at all ranks */
    unsigned char *here;
    int64_t added[64]; /* to the counters of each rank */
};

static MPI_Aint own_stretch(void)
{
    return (MPI_Aint)sizeof(int64_t) * COUNTERS + (MPI_Aint)world_rank * STRETCH;
}

static void choose(struct work *work, int *target, uint64_t *at, uint64_t *length)
{
    *target = (int)random_below(&work->random, (uint64_t)world_size);
    *length = 1 + random_below(&work->random, random_below(&work->random, 4) == 0 ? LONGEST : 64);
    *at = random_below(&work->random, STRETCH - *length);
}

/* Puts that may overlap are in different epochs: within one epoch the model would not know which
 * came last. */
static void put_some(struct work *work)
{
    int target;
    uint64_t at, length;
    choose(work, &target, &at, &length);
    unsigned char *model = work->model + (size_t)target * STRETCH + at;
    for (uint64_t i = 0; i < length; i++)
        model[i] = (unsigned char)random_next(&work->random);
    MPI_Put(model, (int)length, MPI_BYTE, target, own_stretch() + (MPI_Aint)at, (int)length,
            MPI_BYTE, work->win);
    MPI_Win_flush(target, work->win);
}

static void get_some(struct work *work)
{
    int target;
    uint64_t at, length;
    choose(work, &target, &at, &length);
    memset(work->here, 0, length);
    MPI_Get(work->here, (int)length, MPI_BYTE, target, own_stretch() + (MPI_Aint)at, (int)length,
            MPI_BYTE, work->win);
    MPI_Win_flush(target, work->win);
    CHECK(memcmp(work->here, work->model + (size_t)target * STRETCH + at, length) == 0,
          "%d bytes of rank %d's at %d are wrong", (int)length, target, (int)at);
}

static void add_some(struct work *work)
{
    int target = (int)random_below(&work->random, (uint64_t)world_size);
    int64_t values[COUNTERS], before = -1;
    for (int i = 0; i < COUNTERS; i++)
        values[i] = (int64_t)random_below(&work->random, 100);
    for (int i = 0; i < 20; i++)
        MPI_Accumulate(values, COUNTERS, MPI_INT64_T, target, 0, COUNTERS, MPI_INT64_T, MPI_SUM,
                       work->win);
    MPI_Fetch_and_op(values, &before, MPI_INT64_T, target, 0, MPI_SUM, work->win);
    MPI_Win_flush(target, work->win);
    CHECK(before >= 0, "a sum of non-negative values is %lld", (long long)before);
    work->added[target] += 21 * values[0];
}

static void check_sums(struct work *work, const int64_t *counters)
{
    int64_t sums[64];
    MPI_Allreduce(work->added, sums, world_size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(load_word(counters), sums[world_rank]);
}

static void random_work_over_a_bad_link_is_right(enum window_kind kind)
{
    static void (*const kinds[])(struct work *) = {put_some, get_some, add_some};
    struct window window = window_make(
        kind, own_stretch() + (MPI_Aint)(world_size - world_rank) * STRETCH, 1, MPI_COMM_WORLD);
    struct work work = {.win = window.win, .random = random_start((uint64_t)world_rank)};
    work.model = calloc((size_t)world_size, STRETCH);
    work.here = malloc(LONGEST);
    memset(window.base, 0, (size_t)own_stretch() + (size_t)(world_size - world_rank) * STRETCH);
    barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 6; round++) {
        MPI_Win_lock_all(0, window.win);
        for (int i = 0; i < 12; i++)
            kinds[random_below(&work.random, COUNT_OF(kinds))](&work);
        MPI_Win_unlock_all(window.win);
        MPI_Win_fence(0, window.win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    }
    check_sums(&work, (const int64_t *)window.base);
    free(work.model);
    free(work.here);
    window_free(&window);
}

/* All puts are outstanding at once: more than any buffer holds. */
static void many_puts_over_a_bad_link_arrive(enum window_kind kind)
{
    enum { LENGTH = 1 << 18, TIMES = 12 };
    int target = (world_rank + 1) % world_size, from = (world_rank + world_size - 1) % world_size;
    struct window window = window_make(kind, (MPI_Aint)TIMES * LENGTH, 1, MPI_COMM_WORLD);
    char *bytes = malloc((size_t)TIMES * LENGTH); /* in use by the puts until the fence */
    int wrong = 0;
    MPI_Win_fence(0, window.win);
    for (int i = 0; i < TIMES; i++) {
        char *next = bytes + (size_t)i * LENGTH;
        memset(next, world_rank + i, LENGTH);
        MPI_Put(next, LENGTH, MPI_BYTE, target, (MPI_Aint)i * LENGTH, LENGTH, MPI_BYTE, window.win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    for (int i = 0; i < TIMES * LENGTH; i++)
        wrong += window.base[i] != (char)(from + i / LENGTH);
    CHECK_EQUAL(wrong, 0);
    free(bytes);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(random_work_over_a_bad_link_is_right, KINDS_BOTH, 2),
    CASE(many_puts_over_a_bad_link_arrive, KIND_ALLOCATE, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
