/* Windows and their processes: groups, communicators of every construction, ranks that differ from
 * those of MPI_COMM_WORLD. A rank of a window names the process that had it in the communicator at
 * creation, even after the communicator is freed. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <string.h>

/* Every rank writes its world rank into its own word of every target; each must find the processes
 * that the group names. */
static void addresses_check(MPI_Win win, const int64_t *words, const char *what)
{
    MPI_Group group, world;
    int rank, size;
    CHECK_OK(MPI_Win_get_group(win, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_rank(group, &rank);
    MPI_Group_size(group, &size);
    MPI_Win_fence(0, win);
    for (int target = 0; target < size; target++) {
        int world_target = -1;
        MPI_Group_translate_ranks(group, 1, &target, world, &world_target);
        int64_t value = 1000 * world_rank + world_target;
        MPI_Put(&value, 1, MPI_INT64_T, target, rank, 1, MPI_INT64_T, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    for (int origin = 0; origin < size; origin++) {
        int world_origin = -1;
        MPI_Group_translate_ranks(group, 1, &origin, world, &world_origin);
        CHECK(words[origin] == 1000 * world_origin + world_rank, "%s: rank %d's word is %lld", what,
              origin, (long long)words[origin]);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&group);
}

static void window_on_comm_check(enum window_kind kind, MPI_Comm comm, const char *what)
{
    int size;
    MPI_Comm_size(comm, &size);
    struct window window = window_make(kind, (MPI_Aint)8 * size, 8, comm);
    addresses_check(window.win, (const int64_t *)window.base, what);
    window_free(&window);
}

static void ranks_follow_the_communicators_order(enum window_kind kind)
{
    const int keys[] = {-world_rank, (world_rank * 7 + 3) % (2 * world_size + 1), world_rank / 2,
                        0};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, keys[i], &comm);
        window_on_comm_check(kind, comm, "all ranks by key");
        MPI_Comm_free(&comm);
        MPI_Comm_split(MPI_COMM_WORLD, world_rank % 3 == 0, keys[i], &comm);
        window_on_comm_check(kind, comm, "some ranks by key");
        MPI_Comm_free(&comm);
    }
}

/* Pairs (0,1), (1,2), ...: every process is in two of them, with another rank in each. */
static void overlapping_communicators_have_windows_at_once(enum window_kind kind)
{
    struct window windows[2];
    bool has[2] = {false, false};
    for (int first = 0; first + 1 < world_size; first++) {
        MPI_Comm pair;
        bool member = world_rank == first || world_rank == first + 1;
        MPI_Comm_split(MPI_COMM_WORLD, member ? 1 : MPI_UNDEFINED, -world_rank, &pair);
        if (!member)
            continue;
        windows[world_rank == first] = window_make(kind, 16, 8, pair);
        has[world_rank == first] = true;
        MPI_Comm_free(&pair);
    }
    for (int i = 0; i < 2; i++)
        if (has[i])
            addresses_check(windows[i].win, (const int64_t *)windows[i].base, "pair");
    for (int i = 0; i < 2; i++)
        if (has[i])
            window_free(&windows[i]);
}

/* The windows of duplicates are as separate as those of unrelated communicators, in any order of
 * freeing. */
static void duplicates_and_windows_are_freed_in_any_order(enum window_kind kind)
{
    enum { COPIES = 4 };
    static const int order[COPIES] = {2, 0, 3, 1};
    MPI_Comm comms[COPIES];
    struct window windows[COPIES];
    for (int i = 0; i < COPIES; i++) {
        MPI_Comm_dup(i ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
        windows[i] = window_make(kind, (MPI_Aint)8 * world_size, 8, comms[i]);
    }
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[3]);
    for (int i = 0; i < COPIES; i++) {
        addresses_check(windows[order[i]].win, (const int64_t *)windows[order[i]].base,
                        "duplicate");
        window_free(&windows[order[i]]);
    }
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[2]);
}

static void topologies_and_merged_halves_carry_windows(enum window_kind kind)
{
    MPI_Comm ring, half, between, merged;
    int periods = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &periods, 1, &ring);
    window_on_comm_check(kind, ring, "ring");
    MPI_Comm_free(&ring);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 0, &between);
    MPI_Intercomm_merge(between, world_rank % 2 == 0, &merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    window_on_comm_check(kind, merged, "merged halves");
    MPI_Comm_free(&merged);
}

static void shared_memory_communicators_carry_windows(enum window_kind kind)
{
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -world_rank, MPI_INFO_NULL, &node);
    window_on_comm_check(kind, node, "node");
    MPI_Comm_free(&node);
}

/* Other ranks do unrelated work meanwhile: a window on MPI_COMM_SELF involves one process alone. */
static void a_window_on_self_needs_no_other_rank(enum window_kind kind)
{
    MPI_Group group;
    int size = 0;
    for (int round = 0; round < 1 + world_rank % 3; round++) {
        struct window window = window_make(kind, 64, 8, MPI_COMM_SELF);
        int64_t *words = (int64_t *)window.base, one = 1, old = -1, wanted = 1, other = 5;
        int done = 0;
        CHECK_OK(MPI_Win_get_group(window.win, &group));
        MPI_Group_size(group, &size);
        CHECK_EQUAL(size, 1);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, window.win);
        MPI_Win_flush(0, window.win);
        MPI_Compare_and_swap(&other, &wanted, &old, MPI_INT64_T, 0, 1, window.win);
        MPI_Win_unlock(0, window.win);
        CHECK(old == 1 && words[1] == 5, "compare_and_swap saw %lld and left %lld", (long long)old,
              (long long)words[1]);
        MPI_Win_post(group, 0, window.win);
        MPI_Win_start(group, 0, window.win);
        MPI_Put(&other, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, window.win);
        MPI_Win_complete(window.win);
        while (!done && !harness_failed())
            CHECK_OK(MPI_Win_test(window.win, &done));
        CHECK_EQUAL(words[2], 5);
        MPI_Win_fence(0, window.win);
        MPI_Get(&old, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, window.win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        CHECK_EQUAL(old, 5);
        MPI_Group_free(&group);
        window_free(&window);
    }
}

static void the_group_outlives_the_window(enum window_kind kind)
{
    MPI_Comm comm;
    MPI_Group before, group, again;
    int same = MPI_UNEQUAL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
    struct window window = window_make(kind, 8, 1, comm);
    MPI_Comm_group(comm, &before);
    MPI_Comm_free(&comm);
    for (int i = 0; i < 100; i++) {
        CHECK_OK(MPI_Win_get_group(window.win, &again));
        CHECK_OK(MPI_Group_free(&again));
    }
    CHECK_OK(MPI_Win_get_group(window.win, &group));
    window_free(&window);
    MPI_Group_compare(before, group, &same);
    CHECK_EQUAL(same, MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&before);
}

/* The refusal affects the intercommunicator alone: the communicators that it joins still support
 * windows. */
static void a_refused_intercommunicator_does_no_harm(enum window_kind kind)
{
    MPI_Comm half, between;
    MPI_Win win = MPI_WIN_NULL;
    char *base = NULL, memory[8];
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD,
                         world_rank % 2 ? (world_size - 1) / 2 * 2 : (world_size - 2) / 2 * 2 + 1,
                         0, &between);
    MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
    if (kind == KIND_ALLOCATE)
        CHECK_CLASS(MPI_ERR_COMM, MPI_Win_allocate(8, 1, MPI_INFO_NULL, between, &base, &win));
    else if (kind == KIND_SHARED)
        CHECK_CLASS(MPI_ERR_COMM,
                    MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, between, &base, &win));
    else
        CHECK_CLASS(MPI_ERR_COMM, MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, between, &win));
    window_on_comm_check(kind, half, "half");
    window_on_comm_check(kind, MPI_COMM_WORLD, "world");
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

static const struct test_case cases[] = {
    CASE(ranks_follow_the_communicators_order, KINDS_ALL, 1),
    CASE(overlapping_communicators_have_windows_at_once, KINDS_ALL, 2),
    CASE(duplicates_and_windows_are_freed_in_any_order, KINDS_ALL, 1),
    CASE(topologies_and_merged_halves_carry_windows, KINDS_ALL, 2),
    CASE(shared_memory_communicators_carry_windows, KINDS_ALL, 1),
    CASE(a_window_on_self_needs_no_other_rank, KINDS_ALL, 1),
    CASE(the_group_outlives_the_window, KINDS_ALL, 1),
    CASE(a_refused_intercommunicator_does_no_harm, KINDS_ALL, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
