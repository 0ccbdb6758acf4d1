/* Errors of synchronisation: a call at the wrong time is MPI_ERR_RMA_SYNC, and the open epoch
 * continues unharmed. Wrong assertions, lock types and groups have their own classes. A plain MPI
 * program, run by the test rows. */
#include "errors.h"

static int64_t word = 1, result_word;

static void operations_fail(int target, MPI_Win win)
{
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Put(&word, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC,
                MPI_Get(&result_word, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC,
                MPI_Accumulate(&word, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC,
                MPI_Get_accumulate(&word, 1, MPI_INT64_T, &result_word, 1, MPI_INT64_T, target, 0,
                                   1, MPI_INT64_T, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC,
                MPI_Fetch_and_op(&word, &result_word, MPI_INT64_T, target, 0, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC,
                MPI_Compare_and_swap(&word, &word, &result_word, MPI_INT64_T, target, 0, win));
}

static void flushes_fail(int target, MPI_Win win)
{
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush(target, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local(target, win));
}

static void all_flushes_fail(int target, MPI_Win win)
{
    flushes_fail(target, win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local_all(win));
}

static void outside_an_epoch_nothing_is_allowed(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    int done;
    operations_fail(guarded_target(), window.win);
    operations_fail(world_rank, window.win);
    all_flushes_fail(guarded_target(), window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(guarded_target(), window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_complete(window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_wait(window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_test(window.win, &done));
    CHECK_OK(MPI_Win_sync(window.win));
    guarded_free(&window);
}

static void a_lock_opens_only_its_target(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    int other = (world_rank + 1) % world_size;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win));
    operations_fail(other, window.win);
    flushes_fail(other, window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(other, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(window.win));
    CHECK_OK(MPI_Win_flush(world_rank, window.win));
    CHECK_OK(MPI_Win_flush_all(window.win));
    CHECK_OK(MPI_Win_flush_local_all(window.win));
    CHECK_OK(MPI_Win_unlock(world_rank, window.win));
    operations_fail(world_rank, window.win);
    guarded_free(&window);
}

static void locks_do_not_nest(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    int target = guarded_target();
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_OK(MPI_Win_unlock(target, window.win));
    CHECK_OK(MPI_Win_lock_all(0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(target, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_OK(MPI_Win_flush(target, window.win));
    CHECK_OK(MPI_Win_unlock_all(window.win));
    guarded_free(&window);
}

/* All ranks make the same mistake, since a fence is collective. */
static void a_fence_inside_another_epoch_is_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    CHECK_OK(MPI_Win_lock_all(0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, window.win));
    CHECK_OK(MPI_Win_unlock_all(window.win));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, window.win));
    CHECK_OK(MPI_Win_unlock(world_rank, window.win));
    CHECK_OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, window.win));
    CHECK_OK(MPI_Win_complete(window.win));
    CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, window.win));
    CHECK_OK(MPI_Win_wait(window.win));
    CHECK_OK(MPI_Win_fence(0, window.win));
    guarded_free(&window);
}

static MPI_Group group_of_rank(int rank)
{
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &rank, &group);
    MPI_Group_free(&world);
    return group;
}

static void start_opens_only_its_group(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Group self = group_of_rank(world_rank);
    int64_t seen = 0;
    CHECK_OK(MPI_Win_post(self, 0, window.win));
    CHECK_OK(MPI_Win_start(self, 0, window.win));
    if (world_size > 1)
        operations_fail(guarded_target(), window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_start(self, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, window.win));
    all_flushes_fail(world_rank, window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_post(self, 0, window.win));
    CHECK_OK(MPI_Get(&seen, 1, MPI_INT64_T, world_rank, 0, 1, MPI_INT64_T, window.win));
    CHECK_OK(MPI_Win_complete(window.win));
    CHECK_EQUAL((unsigned char)seen, GUARD_BYTE);
    operations_fail(world_rank, window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_complete(window.win));
    CHECK_OK(MPI_Win_wait(window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_wait(window.win));
    MPI_Group_free(&self);
    guarded_free(&window);
}

static void a_fence_epoch_allows_no_flush_and_ends_with_nosucceed(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    int64_t seen = 0;
    CHECK_OK(MPI_Win_fence(0, window.win));
    CHECK_OK(MPI_Get(&seen, 1, MPI_INT64_T, guarded_target(), 0, 1, MPI_INT64_T, window.win));
    all_flushes_fail(guarded_target(), window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, guarded_target(), 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    CHECK_EQUAL((unsigned char)seen, GUARD_BYTE);
    operations_fail(guarded_target(), window.win);
    guarded_free(&window);
}

static void assertions_that_do_not_exist_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    const int wrong = 1 << 28;
    CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_fence(wrong, window.win));
    CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_start(MPI_GROUP_EMPTY, wrong, window.win));
    CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_post(MPI_GROUP_EMPTY, wrong, window.win));
    CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, guarded_target(), wrong, window.win));
    CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_lock_all(wrong, window.win));
    guarded_free(&window);
}

static void lock_types_and_groups_that_do_not_exist_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    CHECK_CLASS(MPI_ERR_LOCKTYPE, MPI_Win_lock(4711, guarded_target(), 0, window.win));
    CHECK_CLASS(MPI_ERR_GROUP, MPI_Win_post(MPI_GROUP_NULL, 0, window.win));
    CHECK_CLASS(MPI_ERR_GROUP, MPI_Win_start(MPI_GROUP_NULL, 0, window.win));
    guarded_free(&window);
}

/* The group contains a process that is not in the window. */
static void groups_beyond_the_window_are_refused(enum window_kind kind)
{
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    struct window window = window_make(kind, 64, 1, half);
    MPI_Group stranger = group_of_rank(world_rank % 2 ? 0 : 1);
    int class = MPI_SUCCESS;
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Win_post(stranger, 0, window.win), &class);
    CHECK(class == MPI_ERR_GROUP || class == MPI_ERR_RANK, "post returns class %d", class);
    MPI_Error_class(MPI_Win_start(stranger, 0, window.win), &class);
    CHECK(class == MPI_ERR_GROUP || class == MPI_ERR_RANK, "start returns class %d", class);
    CHECK_OK(MPI_Win_lock_all(0, window.win));
    CHECK_OK(MPI_Win_unlock_all(window.win));
    MPI_Group_free(&stranger);
    window_free(&window);
    MPI_Comm_free(&half);
}

static const struct test_case cases[] = {
    CASE(outside_an_epoch_nothing_is_allowed, KINDS_ALL, 1),
    CASE(a_lock_opens_only_its_target, KINDS_BOTH, 2),
    CASE(locks_do_not_nest, KINDS_BOTH, 1),
    CASE(a_fence_inside_another_epoch_is_refused, KINDS_BOTH, 1),
    CASE(start_opens_only_its_group, KINDS_BOTH, 1),
    CASE(a_fence_epoch_allows_no_flush_and_ends_with_nosucceed, KINDS_BOTH, 1),
    CASE(assertions_that_do_not_exist_are_refused, KINDS_BOTH, 1),
    CASE(lock_types_and_groups_that_do_not_exist_are_refused, KINDS_BOTH, 1),
    CASE(groups_beyond_the_window_are_refused, KINDS_BOTH, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
