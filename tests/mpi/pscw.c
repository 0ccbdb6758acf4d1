/* Post, start, complete, wait, test: matched by peer, in the order of the epochs, at any speed of
 * the ranks. An epoch's data is in the target's memory when wait returns; nothing arrives before
 * the post. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static MPI_Group group_of(int count, const int *ranks)
{
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, ranks, &group);
    MPI_Group_free(&world);
    return group;
}

static void post_to(MPI_Win win, int peer, int assertion)
{
    MPI_Group group = group_of(1, &peer);
    MPI_Win_post(group, assertion, win);
    MPI_Group_free(&group);
}

static void start_to(MPI_Win win, int peer, int assertion)
{
    MPI_Group group = group_of(1, &peer);
    MPI_Win_start(group, assertion, win);
    MPI_Group_free(&group);
}

static void everyone_is_origin_and_target_at_once(enum window_kind kind)
{
    struct window window =
        window_make(kind, (MPI_Aint)sizeof(int) * world_size, sizeof(int), MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    MPI_Group everyone;
    MPI_Comm_group(MPI_COMM_WORLD, &everyone);
    for (int round = 1; round <= scaled_rounds(200); round++) {
        random_pause(&random, 200);
        MPI_Win_post(everyone, 0, window.win);
        MPI_Win_start(everyone, 0, window.win);
        for (int target = 0; target < world_size; target++)
            MPI_Put(&round, 1, MPI_INT, target, world_rank, 1, MPI_INT, window.win);
        MPI_Win_complete(window.win);
        random_pause(&random, 200);
        MPI_Win_wait(window.win);
        for (int origin = 0; origin < world_size; origin++)
            CHECK_EQUAL(((int *)window.base)[origin], round);
    }
    MPI_Group_free(&everyone);
    window_free(&window);
}

/* The target stores until it posts: an earlier put of the origin would be lost. */
static void nothing_arrives_before_the_post(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    volatile int64_t *word = (volatile int64_t *)window.base;
    for (int64_t round = 1; round <= 20; round++) {
        if (world_rank == 0) {
            start_to(window.win, 1, 0);
            MPI_Put(&round, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
            MPI_Win_complete(window.win);
        } else if (world_rank == 1) {
            for (int turn = 0; turn < 5; turn++) {
                *word = -turn;
                sleep_us(500);
                CHECK_EQUAL(*word, -turn);
            }
            post_to(window.win, 0, 0);
            MPI_Win_wait(window.win);
            CHECK_EQUAL(*word, round);
        }
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Rank 2's post arrives first, but rank 0 waits for rank 1's. */
static void start_is_not_satisfied_by_anothers_post(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    volatile int64_t *word = (volatile int64_t *)window.base;
    int64_t value = 77;
    if (world_rank == 2)
        post_to(window.win, 0, 0);
    barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        start_to(window.win, 1, 0);
        MPI_Put(&value, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_complete(window.win);
        start_to(window.win, 2, 0);
        MPI_Put(&value, 1, MPI_INT64_T, 2, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_complete(window.win);
    } else if (world_rank == 1) {
        *word = 5;
        sleep_us(50000);
        CHECK_EQUAL(*word, 5);
        post_to(window.win, 0, 0);
        MPI_Win_wait(window.win);
        CHECK_EQUAL(*word, 77);
    } else if (world_rank == 2) {
        MPI_Win_wait(window.win);
        CHECK_EQUAL(*word, 77);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Rank 0 serves random groups of targets; the others run ahead and post for later epochs. */
static void early_posts_of_later_epochs_are_stored(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    struct random shared = random_start(999), random = random_start((uint64_t)world_rank);
    int *members = calloc((size_t)world_size, sizeof *members);
    for (int64_t round = 1; round <= scaled_rounds(400); round++) {
        int count = 0;
        bool chosen = false;
        for (int rank = 1; rank < world_size; rank++)
            if (random_below(&shared, 2)) {
                members[count++] = rank;
                chosen |= rank == world_rank;
            }
        if (world_rank == 0) {
            MPI_Group group = group_of(count, members);
            MPI_Win_start(group, 0, window.win);
            MPI_Group_free(&group);
            for (int i = 0; i < count; i++)
                MPI_Put(&round, 1, MPI_INT64_T, members[i], 0, 1, MPI_INT64_T, window.win);
            MPI_Win_complete(window.win);
        } else if (chosen) {
            random_pause(&random, 200);
            post_to(window.win, 0, 0);
            MPI_Win_wait(window.win);
            CHECK_EQUAL(*(int64_t *)window.base, round);
        }
    }
    free(members);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* A random directed graph in each round, known to all: each rank posts to its predecessors and
 * starts to its successors. */
static void random_groups_match(enum window_kind kind)
{
    struct window window =
        window_make(kind, (MPI_Aint)sizeof(int) * world_size, sizeof(int), MPI_COMM_WORLD);
    struct random shared = random_start(4242), random = random_start((uint64_t)world_rank);
    int *into = calloc((size_t)world_size, sizeof *into),
        *from = calloc((size_t)world_size, sizeof *from);
    for (int round = 1; round <= scaled_rounds(300); round++) {
        int into_count = 0, from_count = 0;
        for (int origin = 0; origin < world_size; origin++)
            for (int target = 0; target < world_size; target++) {
                bool edge = random_below(&shared, 3) != 0;
                if (edge && origin == world_rank)
                    into[into_count++] = target;
                if (edge && target == world_rank)
                    from[from_count++] = origin;
            }
        MPI_Group targets = group_of(into_count, into), origins = group_of(from_count, from);
        random_pause(&random, 200);
        MPI_Win_post(origins, 0, window.win);
        MPI_Win_start(targets, 0, window.win);
        for (int i = 0; i < into_count; i++)
            MPI_Put(&round, 1, MPI_INT, into[i], world_rank, 1, MPI_INT, window.win);
        MPI_Win_complete(window.win);
        MPI_Win_wait(window.win);
        for (int i = 0; i < from_count; i++)
            CHECK_EQUAL(((int *)window.base)[from[i]], round);
        MPI_Group_free(&targets);
        MPI_Group_free(&origins);
    }
    free(into);
    free(from);
    window_free(&window);
}

/* A host reuses a freed group's handle for the next one. Groups that are not freed appear again
 * meanwhile. */
static void a_new_group_in_the_place_of_a_freed_one(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    MPI_Group myself = group_of(1, &world_rank);
    for (int64_t round = 1; round <= scaled_rounds(100); round++) {
        const int step = (int)round % world_size;
        const int right = (world_rank + step) % world_size,
                  left = (world_rank + world_size - step) % world_size;
        const int64_t value = 1000 * round + world_rank;
        post_to(window.win, left, 0);
        start_to(window.win, right, 0);
        MPI_Put(&value, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_complete(window.win);
        MPI_Win_wait(window.win);
        CHECK_EQUAL(*(int64_t *)window.base, 1000 * round + left);
        for (int64_t again = 0; again < round % 4; again++) {
            MPI_Win_post(myself, 0, window.win);
            MPI_Win_start(myself, 0, window.win);
            MPI_Put(&again, 1, MPI_INT64_T, world_rank, 0, 1, MPI_INT64_T, window.win);
            MPI_Win_complete(window.win);
            MPI_Win_wait(window.win);
            CHECK_EQUAL(*(int64_t *)window.base, again);
        }
    }
    CHECK_OK(MPI_Group_free(&myself));
    CHECK(myself == MPI_GROUP_NULL, "the group is still there");
    window_free(&window);
}

static void empty_groups_are_fine(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int done = 0;
    CHECK_OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_OK(MPI_Win_complete(window.win));
    CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_OK(MPI_Win_wait(window.win));
    CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_OK(MPI_Win_test(window.win, &done));
    CHECK_EQUAL(done, 1);
    MPI_Win_fence(0, window.win);
    window_free(&window);
}

/* Test returns false while the origin holds the epoch open, true once afterwards, and then the
 * epoch is over. */
static void a_successful_test_ends_the_epoch(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    for (int64_t round = 1; round <= 20; round++) {
        int go = 0, done = 1;
        if (world_rank == 0) {
            start_to(window.win, 1, 0);
            MPI_Put(&round, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
            MPI_Recv(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Win_complete(window.win);
        } else if (world_rank == 1) {
            post_to(window.win, 0, 0);
            for (int turn = 0; turn < 3; turn++) {
                CHECK_OK(MPI_Win_test(window.win, &done));
                CHECK_EQUAL(done, 0);
            }
            MPI_Send(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
            for (done = 0; !done; sleep_us(20))
                MPI_Win_test(window.win, &done);
            CHECK_EQUAL(*(int64_t *)window.base, round);
        }
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* An epoch opened with MPI_MODE_NOCHECK counts like any other: wait waits for it, and the next
 * plain epoch still matches. */
static void nocheck_still_advances_matching(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    for (int64_t round = 1; round <= 12; round++) {
        int assertion = round % 3 ? MPI_MODE_NOCHECK : 0;
        if (world_rank == 1)
            post_to(window.win, 0, assertion);
        if (assertion)
            barrier(MPI_COMM_WORLD);
        if (world_rank == 0) {
            start_to(window.win, 1, assertion);
            sleep_us(3000);
            MPI_Put(&round, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
            MPI_Win_complete(window.win);
        } else if (world_rank == 1) {
            MPI_Win_wait(window.win);
            CHECK_EQUAL(*(int64_t *)window.base, round);
        }
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void assertions_about_stores_change_nothing(enum window_kind kind)
{
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    int64_t seen = 0;
    for (int64_t round = 1; round <= 10; round++) {
        if (world_rank == 0) {
            start_to(window.win, 1, 0);
            MPI_Get(&seen, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
            MPI_Win_complete(window.win);
            CHECK_EQUAL(seen, round);
            start_to(window.win, 1, 0);
            MPI_Put(&round, 1, MPI_INT64_T, 1, 1, 1, MPI_INT64_T, window.win);
            MPI_Win_complete(window.win);
        } else if (world_rank == 1) {
            *(int64_t *)window.base = round;
            post_to(window.win, 0, MPI_MODE_NOPUT);
            MPI_Win_wait(window.win);
            post_to(window.win, 0, MPI_MODE_NOSTORE);
            MPI_Win_wait(window.win);
            CHECK_EQUAL(((int64_t *)window.base)[1], round);
        }
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void oneself_may_be_in_the_group(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    for (int64_t round = 1; round <= 10; round++) {
        post_to(window.win, world_rank, 0);
        start_to(window.win, world_rank, 0);
        MPI_Put(&round, 1, MPI_INT64_T, world_rank, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_complete(window.win);
        MPI_Win_wait(window.win);
        CHECK_EQUAL(*(int64_t *)window.base, round);
    }
    window_free(&window);
}

/* The target first receives a message that the origin sends after its complete: complete must not
 * wait for wait. */
static void complete_does_not_wait_for_wait(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    for (int64_t round = 1; round <= scaled_rounds(50); round++) {
        int64_t token = 0;
        if (world_rank == 0) {
            start_to(window.win, 1, 0);
            MPI_Put(&round, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
            MPI_Win_complete(window.win);
            MPI_Send(&round, 1, MPI_INT64_T, 1, 0, MPI_COMM_WORLD);
        } else if (world_rank == 1) {
            post_to(window.win, 0, 0);
            MPI_Recv(&token, 1, MPI_INT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Win_wait(window.win);
            CHECK_EQUAL(*(int64_t *)window.base, round);
        }
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Groups name processes: the ranks of the window's communicator are reversed. */
static void groups_are_translated_to_the_windows_ranks(enum window_kind kind)
{
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    struct window window = window_make(kind, 8, 8, reversed);
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    int64_t value = 10 + world_rank;
    post_to(window.win, left, 0);
    start_to(window.win, right, 0);
    MPI_Put(&value, 1, MPI_INT64_T, world_size - 1 - right, 0, 1, MPI_INT64_T, window.win);
    MPI_Win_complete(window.win);
    MPI_Win_wait(window.win);
    CHECK_EQUAL(*(int64_t *)window.base, 10 + left);
    window_free(&window);
    MPI_Comm_free(&reversed);
}

static const struct test_case cases[] = {
    CASE(everyone_is_origin_and_target_at_once, KINDS_ALL, 1),
    CASE(nothing_arrives_before_the_post, KINDS_BOTH, 2),
    CASE(start_is_not_satisfied_by_anothers_post, KINDS_BOTH, 3),
    CASE(early_posts_of_later_epochs_are_stored, KINDS_BOTH, 2),
    CASE(random_groups_match, KINDS_BOTH, 1),
    CASE(a_new_group_in_the_place_of_a_freed_one, KINDS_BOTH, 1),
    CASE(empty_groups_are_fine, KINDS_BOTH, 1),
    CASE(a_successful_test_ends_the_epoch, KINDS_BOTH, 2),
    CASE(nocheck_still_advances_matching, KINDS_BOTH, 2),
    CASE(assertions_about_stores_change_nothing, KINDS_BOTH, 2),
    CASE(oneself_may_be_in_the_group, KINDS_BOTH, 1),
    CASE(complete_does_not_wait_for_wait, KINDS_BOTH, 2),
    CASE(groups_are_translated_to_the_windows_ranks, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
