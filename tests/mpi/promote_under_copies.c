/* Window A reaches memory by copies of the kernel, since the memory could not be promoted when A
 * was made. Meanwhile windows B over the same memory are made and freed, which promote it and make
 * it private again. No access through A may be lost while the pages move. Ranks 0 and 1 are the
 * targets and make the windows B, the others write. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TOO_EXPENSIVE "has used too much of the run time"

enum { TARGETS = 2, PART_BYTES = 256 << 10, WORDS = PART_BYTES / 8, MOST_S = 10 };

static size_t memory_bytes(void)
{
    return PAGE + (size_t)(world_size - TARGETS) * PART_BYTES;
}

/* Memory that children must not inherit is not promoted; once the window exists, it becomes
 * ordinary memory. */
static char *memory_make(MPI_Win *a)
{
    size_t len_bytes = memory_bytes();
    char *memory = pages_map(len_bytes);
    madvise(memory, len_bytes, MADV_DONTFORK);
    *a = window_over(memory, len_bytes);
    check_copied(*a, "inherited");
    madvise(memory, len_bytes, MADV_DOFORK);
    return memory;
}

/* The targets continue until all others have reached the barrier. Oriel may cache the refusal for a
 * while. Returns true if nothing moved because earlier promotion had cost too much, which may
 * happen on a busy node. */
static bool move_all_the_time(MPI_Comm targets, char *memory)
{
    MPI_Request others;
    int done = 0;
    int all = 0;
    int promoted = 0;
    int rounds = 0;
    double begin = seconds_now();
    char reason[1000] = "";
    MPI_Ibarrier(MPI_COMM_WORLD, &others);
    while (!all) {
        MPI_Win b;
        MPI_Win_create(memory, (MPI_Aint)memory_bytes(), 1, MPI_INFO_NULL, targets, &b);
        window_watch(b);
        struct memory_path path = memory_path_read(b);
        promoted += strstr(path.list, "promoted") != NULL;
        rounds++;
        if (!path.is_known || promoted == 0)
            snprintf(reason, sizeof reason, "%s", path.reason);
        MPI_Win_free(&b);
        if (!done)
            MPI_Test(&others, &done, MPI_STATUS_IGNORE);
        int enough = done && (promoted > 0 || promotion_here() == PROMOTION_NONE ||
                              seconds_now() - begin > MOST_S);
        MPI_Allreduce(&enough, &all, 1, MPI_INT, MPI_MIN, targets);
    }
    bool spared = promoted == 0 && !promotes_always() && strstr(reason, TOO_EXPENSIVE) != NULL;
    CHECK(promoted > 0 || spared || promotion_here() == PROMOTION_NONE,
          "never shared in place, in %d windows: %s", rounds, reason);
    return spared;
}

static int rounds_of_writers(void)
{
    return 300;
}

static void written_check(const int64_t *got, const int64_t *wanted, int count, int target)
{
    for (int i = 0; i < count; i++)
        if (!CHECK(got[i] == wanted[i], "word %d of %d at rank %d is %lld, not %lld", i, count,
                   target, (long long)got[i], (long long)wanted[i]))
            return;
}

/* Puts of all lengths into the own part of both targets, checked after each flush. */
static void put_and_look(MPI_Win a, struct random *random, MPI_Datatype every_other)
{
    static int64_t out[WORDS];
    static int64_t in[WORDS];
    MPI_Aint part = PAGE + (MPI_Aint)(world_rank - TARGETS) * PART_BYTES;
    for (int round = 0; round < rounds_of_writers() && !harness_failed(); round++) {
        static const int counts[] = {1, 512, 5120, WORDS};
        int target = (int)random_below(random, TARGETS);
        int count = counts[random_below(random, COUNT_OF(counts))];
        int64_t first = (int64_t)random_next(random);
        for (int i = 0; i < count; i++)
            out[i] = (int64_t)((uint64_t)first + (uint64_t)i);
        MPI_Put(out, count, MPI_INT64_T, target, part, count, MPI_INT64_T, a);
        MPI_Win_flush(target, a);
        MPI_Get(in, count, MPI_INT64_T, target, part, count, MPI_INT64_T, a);
        MPI_Win_flush(target, a);
        written_check(in, out, count, target);
        for (int i = 0; i < WORDS / 2; i++)
            out[i] = -first - i;
        MPI_Put(out, WORDS / 2, MPI_INT64_T, target, part, 1, every_other, a);
        MPI_Win_flush(target, a);
        MPI_Get(in, WORDS / 2, MPI_INT64_T, target, part, 1, every_other, a);
        MPI_Win_flush(target, a);
        written_check(in, out, WORDS / 2, target);
    }
}

/* Makes the windows, lets the targets move their memory while the others write, and cleans up. */
static void run(void (*write)(MPI_Win a, struct random *random, MPI_Datatype every_other),
                void (*look)(const char *memory))
{
    MPI_Win a;
    MPI_Comm targets;
    MPI_Datatype every_other;
    struct random random = random_start((uint64_t)world_rank);
    char *memory = memory_make(&a);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < TARGETS ? 0 : MPI_UNDEFINED, 0, &targets);
    MPI_Type_vector(WORDS / 2, 1, 2, MPI_INT64_T, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Win_lock_all(0, a);
    barrier(MPI_COMM_WORLD);
    int spared = 0;
    if (world_rank < TARGETS) {
        spared = move_all_the_time(targets, memory);
    } else {
        MPI_Request others;
        write(a, &random, every_other);
        MPI_Ibarrier(MPI_COMM_WORLD, &others);
        MPI_Wait(&others, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(a);
    barrier(MPI_COMM_WORLD);
    if (world_rank < TARGETS)
        look(memory);
    MPI_Allreduce(MPI_IN_PLACE, &spared, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (spared)
        harness_skip("sharing in place " TOO_EXPENSIVE " before");
    MPI_Type_free(&every_other);
    if (targets != MPI_COMM_NULL)
        MPI_Comm_free(&targets);
    MPI_Win_free(&a);
} /* the memory is not freed, so the next one has another address */

static void look_at_nothing(const char *memory)
{
    (void)memory;
}

static void puts_into_memory_that_moves_are_not_lost(enum window_kind kind)
{
    (void)kind;
    run(put_and_look, look_at_nothing);
}

/* --- sums --- */

enum { COUNTERS = 4 };

/* All writers add to the same words. */
static void add_all_the_time(MPI_Win a, struct random *random, MPI_Datatype every_other)
{
    static const int64_t ones[COUNTERS] = {1, 1, 1, 1};
    (void)every_other;
    for (int round = 0; round < 4 * rounds_of_writers(); round++) {
        int64_t before[COUNTERS];
        int target = round % TARGETS;
        if (random_below(random, 2) == 0) {
            MPI_Accumulate(ones, COUNTERS, MPI_INT64_T, target, 0, COUNTERS, MPI_INT64_T, MPI_SUM,
                           a);
        } else {
            for (int i = 0; i < COUNTERS; i++)
                MPI_Fetch_and_op(ones, &before[i], MPI_INT64_T, target, (MPI_Aint)i * 8, MPI_SUM,
                                 a);
        }
        MPI_Win_flush(target, a);
    }
}

static void look_at_sums(const char *memory)
{
    const int64_t *sums = (const int64_t *)memory;
    for (int i = 0; i < COUNTERS; i++)
        CHECK_EQUAL(sums[i], (long long)(world_size - TARGETS) * 4 * rounds_of_writers() / TARGETS);
}

static void sums_in_memory_that_moves_are_exact(enum window_kind kind)
{
    (void)kind;
    run(add_all_the_time, look_at_sums);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(puts_into_memory_that_moves_are_not_lost, KIND_ANY, TARGETS + 1),
        CASE(sums_in_memory_that_moves_are_exact, KIND_ANY, TARGETS + 1),
    };
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
