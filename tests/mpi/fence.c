/* Fence epochs: data put, got or stored before a fence is complete and visible after it, on every
 * rank. Fences of one window order all ranks; assertions change nothing that a right program can
 * see. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static void every_round_sees_the_puts_of_that_round(enum window_kind kind)
{
    struct window window =
        window_make(kind, (MPI_Aint)sizeof(int) * world_size, sizeof(int), MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    const int *received = (const int *)window.base;
    MPI_Win_fence(0, window.win);
    for (int round = 1; round <= scaled_rounds(300); round++) {
        random_pause(&random, 200);
        for (int target = 0; target < world_size; target++)
            MPI_Put(&round, 1, MPI_INT, target, world_rank, 1, MPI_INT, window.win);
        MPI_Win_fence(0, window.win);
        for (int origin = 0; origin < world_size; origin++)
            CHECK_EQUAL(received[origin], round);
        random_pause(&random, 200);
        MPI_Win_fence(0, window.win);
    }
    window_free(&window);
}

static void gets_see_local_stores_made_before_the_fence(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    for (int round = 1; round <= scaled_rounds(300); round++) {
        int64_t *seen = calloc((size_t)world_size, sizeof *seen);
        random_pause(&random, 200);
        ((int64_t *)window.base)[round % 8] = 100 * round + world_rank;
        MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
        for (int target = 0; target < world_size; target++)
            MPI_Get(&seen[target], 1, MPI_INT64_T, target, round % 8, 1, MPI_INT64_T, window.win);
        MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, window.win);
        for (int target = 0; target < world_size; target++)
            CHECK_EQUAL(seen[target], 100 * round + target);
        free(seen);
    }
    window_free(&window);
}

static void accumulates_of_all_ranks_are_in_after_the_fence(enum window_kind kind)
{
    struct window window = window_make(kind, 80, 8, MPI_COMM_WORLD);
    int64_t one = 1;
    for (int round = 1; round <= 20; round++) {
        MPI_Win_fence(0, window.win);
        for (int i = 0; i < 100; i++)
            MPI_Accumulate(&one, 1, MPI_INT64_T, i % world_size, 4, 1, MPI_INT64_T, MPI_SUM,
                           window.win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        int64_t each = 100 / world_size + (world_rank < 100 % world_size);
        CHECK_EQUAL(((int64_t *)window.base)[4], round * each * world_size);
    }
    window_free(&window);
}

static void fences_without_operations_leave_the_window_free(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    MPI_Group world, everyone;
    char mark = (char)(world_rank + 1), seen = 0;
    int target = (world_rank + 1) % world_size;
    MPI_Win_fence(0, window.win);
    MPI_Win_fence(0, window.win);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    MPI_Put(&mark, 1, MPI_CHAR, target, 3, 1, MPI_CHAR, window.win);
    MPI_Win_unlock(target, window.win);
    MPI_Win_fence(0, window.win);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    everyone = world;
    MPI_Win_post(everyone, 0, window.win);
    MPI_Win_start(everyone, 0, window.win);
    MPI_Get(&seen, 1, MPI_CHAR, target, 3, 1, MPI_CHAR, window.win);
    MPI_Win_complete(window.win);
    MPI_Win_wait(window.win);
    CHECK_EQUAL(seen, mark);
    MPI_Win_fence(0, window.win);
    MPI_Win_lock_all(0, window.win);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Group_free(&world);
    window_free(&window);
}

static void a_lock_epoch_and_fences_alternate(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    for (int64_t round = 1; round <= scaled_rounds(60); round++) {
        int64_t by_lock = round * 10 + world_rank, by_fence = -by_lock;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        MPI_Put(&by_lock, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(target, window.win);
        MPI_Win_fence(0, window.win);
        CHECK_EQUAL(((int64_t *)window.base)[0], round * 10 + origin);
        MPI_Put(&by_fence, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, window.win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        CHECK_EQUAL(((int64_t *)window.base)[1], -(round * 10 + origin));
        barrier(MPI_COMM_WORLD);
    }
    window_free(&window);
}

static void fences_of_several_windows_are_independent(enum window_kind kind)
{
    struct window one = window_make(kind, 64, 4, MPI_COMM_WORLD),
                  two = window_make(kind, 64, 4, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    MPI_Win_fence(0, one.win);
    for (int round = 1; round <= scaled_rounds(100); round++) {
        int first = 1000 * round + world_rank, second = -first;
        MPI_Put(&first, 1, MPI_INT, target, 1, 1, MPI_INT, one.win);
        MPI_Win_fence(0, two.win);
        random_pause(&random, 100);
        MPI_Put(&second, 1, MPI_INT, target, 1, 1, MPI_INT, two.win);
        MPI_Win_fence(0, one.win);
        CHECK_EQUAL(((int *)one.base)[1], 1000 * round + origin);
        MPI_Win_fence(0, two.win);
        CHECK_EQUAL(((int *)two.base)[1], -(1000 * round + origin));
        MPI_Win_fence(0, one.win);
    }
    window_free(&two);
    window_free(&one);
}

/* One rank works with one target in each round. Two words alternate: the next round's put may
 * precede this round's check. */
static void fences_order_ranks_that_do_nothing(enum window_kind kind)
{
    struct window window =
        window_make(kind, 2 * (MPI_Aint)sizeof(int64_t), sizeof(int64_t), MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank), shared = random_start(12345);
    const int64_t *words = (const int64_t *)window.base;
    MPI_Win_fence(0, window.win);
    for (int64_t round = 1; round <= scaled_rounds(300); round++) {
        int origin = (int)random_below(&shared, (uint64_t)world_size);
        int target = (int)random_below(&shared, (uint64_t)world_size);
        random_pause(&random, 300);
        if (origin == world_rank)
            MPI_Put(&round, 1, MPI_INT64_T, target, round % 2, 1, MPI_INT64_T, window.win);
        MPI_Win_fence(0, window.win);
        if (target == world_rank)
            CHECK_EQUAL(words[round % 2], round);
    }
    MPI_Win_fence(0, window.win);
    window_free(&window);
}

static void fences_work_on_part_of_the_ranks(enum window_kind kind)
{
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &part);
    int rank, size;
    MPI_Comm_rank(part, &rank);
    MPI_Comm_size(part, &size);
    struct window window = window_make(kind, 4 * size, 4, part);
    int rounds = scaled_rounds(world_rank % 2 ? 40 : 90);
    MPI_Win_fence(0, window.win);
    for (int round = 1; round <= rounds; round++) {
        for (int target = 0; target < size; target++)
            MPI_Put(&round, 1, MPI_INT, target, rank, 1, MPI_INT, window.win);
        MPI_Win_fence(0, window.win);
        for (int origin = 0; origin < size; origin++)
            CHECK_EQUAL(((int *)window.base)[origin], round);
        MPI_Win_fence(0, window.win);
    }
    window_free(&window);
    MPI_Comm_free(&part);
}

static const struct test_case cases[] = {
    CASE(every_round_sees_the_puts_of_that_round, KINDS_ALL, 1),
    CASE(gets_see_local_stores_made_before_the_fence, KINDS_ALL, 1),
    CASE(accumulates_of_all_ranks_are_in_after_the_fence, KINDS_ALL, 1),
    CASE(fences_without_operations_leave_the_window_free, KINDS_BOTH, 1),
    CASE(a_lock_epoch_and_fences_alternate, KINDS_BOTH, 1),
    CASE(fences_of_several_windows_are_independent, KINDS_BOTH, 1),
    CASE(fences_order_ranks_that_do_nothing, KINDS_BOTH, 1),
    CASE(fences_work_on_part_of_the_ranks, KINDS_BOTH, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
