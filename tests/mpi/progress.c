/* Progress without the target: operations complete while the target computes and makes no MPI call
 * at all. The target leaves its loop only when it sees the last value in its own memory; a generous
 * limit distinguishes a hang from slowness. A target that does wait in MPI may execute operations
 * itself: none is lost or executed twice. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <sched.h>
#include <string.h>

static const double bound_seconds =
    20; /* the first contact in an emulated guest may take more than five */

/* Computes until the word has the value: plain loads, no MPI call. Yields, since ranks may
 * outnumber cores. */
static void compute_until(const int64_t *word, int64_t value)
{
    double end = seconds_now() + bound_seconds;
    while (load_word(word) != value) {
        if (!CHECK(seconds_now() < end, "the word is %lld after %.0f s, not %lld",
                   (long long)load_word(word), bound_seconds, (long long)value))
            return;
        sched_yield();
    }
}

enum { WORDS = 64, LAST = WORDS - 1 };

/* Runs the origin's part on rank 0 while rank 1 computes; the origin ends with a put into the last
 * word. */
static void with_a_busy_target(enum window_kind kind, void (*origin)(MPI_Win win, int64_t round))
{
    struct window window = window_make(kind, WORDS * 8, 8, MPI_COMM_WORLD);
    for (int64_t round = 1; round <= 20; round++) {
        int mine = harness_failed(), failed = 0;
        MPI_Allreduce(&mine, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (failed)
            break;
        if (world_rank == 0)
            origin(window.win, round);
        else if (world_rank == 1)
            compute_until((int64_t *)window.base + LAST, round);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void put_last(MPI_Win win, int64_t round)
{
    MPI_Put(&round, 1, MPI_INT64_T, 1, LAST, 1, MPI_INT64_T, win);
    MPI_Win_flush(1, win);
}

static void put_under_lock_all(MPI_Win win, int64_t round)
{
    MPI_Win_lock_all(0, win);
    put_last(win, round);
    MPI_Win_unlock_all(win);
}

static void a_flushed_put_reaches_a_busy_target(enum window_kind kind)
{
    with_a_busy_target(kind, put_under_lock_all);
}

static void lock_and_unlock(MPI_Win win, int64_t round)
{
    for (int64_t i = 0; i < 10; i++) {
        MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Put(&i, 1, MPI_INT64_T, 1, i, 1, MPI_INT64_T, win);
        MPI_Win_unlock(1, win);
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Put(&round, 1, MPI_INT64_T, 1, LAST, 1, MPI_INT64_T, win);
    MPI_Win_unlock(1, win);
}

static void locks_need_no_help_from_a_busy_target(enum window_kind kind)
{
    with_a_busy_target(kind, lock_and_unlock);
}

static void get_and_change(MPI_Win win, int64_t round)
{
    int64_t one = 1, old = -1, next, seen = -1, bulk[20], ones[20];
    double half = 0.5;
    for (int i = 0; i < 20; i++)
        ones[i] = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    MPI_Get(&seen, 1, MPI_INT64_T, 1, LAST, 1, MPI_INT64_T, win);
    MPI_Win_flush(1, win);
    CHECK_EQUAL(seen, round - 1);
    MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, 0, MPI_SUM, win);
    MPI_Win_flush(1, win);
    CHECK_EQUAL(old, 2 * (round - 1));
    old++;
    next = old + 1;
    MPI_Compare_and_swap(&next, &old, &seen, MPI_INT64_T, 1, 0, win);
    MPI_Win_flush(1, win);
    CHECK_EQUAL(seen, old);
    MPI_Accumulate(&half, 1, MPI_DOUBLE, 1, 1, 1, MPI_DOUBLE, MPI_SUM, win);
    MPI_Get_accumulate(ones, 20, MPI_INT64_T, bulk, 20, MPI_INT64_T, 1, 10, 20, MPI_INT64_T,
                       MPI_SUM, win);
    MPI_Win_flush(1, win);
    CHECK_EQUAL(bulk[19], round - 1);
    put_last(win, round);
    MPI_Win_unlock(1, win);
}

static void gets_and_atomics_need_no_help_from_a_busy_target(enum window_kind kind)
{
    with_a_busy_target(kind, get_and_change);
}

/* The target posted before it computes; complete must deliver the data without its help. */
static void complete_needs_no_help_from_a_busy_target(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    MPI_Group world, peer;
    int other = 1 - world_rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int64_t round = 1; round <= 20 && world_rank < 2; round++) {
        MPI_Group_incl(world, 1, &other, &peer);
        if (world_rank == 0) {
            MPI_Win_start(peer, 0, window.win);
            MPI_Put(&round, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
            MPI_Win_complete(window.win);
        } else {
            MPI_Win_post(peer, 0, window.win);
            compute_until((int64_t *)window.base, round);
            MPI_Win_wait(window.win);
        }
        MPI_Group_free(&peer);
    }
    MPI_Group_free(&world);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void polling_with_win_sync_sees_remote_updates(enum window_kind kind)
{
    struct window window = window_make(kind, 128, 8, MPI_COMM_WORLD);
    double end = seconds_now() + bound_seconds;
    int64_t sum = 0;
    MPI_Win_lock_all(0, window.win);
    for (int64_t round = 1; round <= scaled_rounds(500); round++) {
        int64_t data[2] = {round, -round};
        if (world_rank == 0) {
            MPI_Put(data, 2, MPI_INT64_T, 1, 2, 2, MPI_INT64_T, window.win);
            MPI_Win_flush(1, window.win);
            MPI_Accumulate(&round, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_REPLACE, window.win);
            MPI_Win_flush(1, window.win);
            do {
                MPI_Fetch_and_op(NULL, &sum, MPI_INT64_T, 0, 1, MPI_NO_OP, window.win);
                MPI_Win_flush(0, window.win);
                sched_yield();
            } while (sum != round &&
                     CHECK(seconds_now() < end, "no answer after %.0f s", bound_seconds));
        } else if (world_rank == 1) {
            const volatile int64_t *words = (const volatile int64_t *)window.base;
            while (words[0] != round &&
                   CHECK(seconds_now() < end, "no update after %.0f s", bound_seconds)) {
                MPI_Win_sync(window.win);
                sched_yield();
            }
            CHECK(words[2] == round && words[3] == -round,
                  "the data is not there when its flag is");
            MPI_Accumulate(&round, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_REPLACE, window.win);
            MPI_Win_flush(0, window.win);
        }
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* --- targets that wait --- */

enum { SIDE = 1 << 18, CALLS = 400 };

/* Words of rank 0: two that all increment, then an area of each rank, at a page's end. */
static MPI_Aint area_of(int rank)
{
    return 1024 + (MPI_Aint)rank * 1024 - 24;
}

/* One increment per call: each fetches a different number, and the rank's puts are visible. */
static void increment_and_put(MPI_Win win, struct random *random, int calls)
{
    const int64_t one = 1;
    int64_t last = -1, old, seen, next;
    int64_t data[40], back[40];
    for (int call = 0; call < calls; call++) {
        MPI_Aint len = 1 + (MPI_Aint)random_below(random, 40);
        for (int i = 0; i < 40; i++)
            data[i] = (int64_t)random_next(random);
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
        MPI_Put(data, (int)len, MPI_INT64_T, 0, area_of(world_rank), (int)len, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        CHECK(old > last, "%lld after %lld", (long long)old, (long long)last);
        last = old;
        MPI_Get(back, (int)len, MPI_INT64_T, 0, area_of(world_rank), (int)len, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        CHECK(memcmp(back, data, (size_t)len * sizeof *data) == 0,
              "call %d: a get does not return the put data", call);
        for (seen = 0, old = -1; seen != old;) {
            old = seen;
            next = old + 1;
            MPI_Compare_and_swap(&next, &old, &seen, MPI_INT64_T, 0, 1, win);
            MPI_Win_flush(0, win);
        }
        if (random_below(random, 8) == 0)
            random_pause(random, 100);
    }
}

/* Rank 0 waits for messages of the others and computes now and then. */
static void wait_in_the_host(struct random *random)
{
    for (int left = world_size - 1; left > 0;) {
        int token;
        MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        left -= token;
        random_pause(random, 300);
    }
}

static void operations_on_a_target_that_waits(enum window_kind kind, bool in_the_host)
{
    struct window window = window_make(kind, SIDE, 8, MPI_COMM_WORLD);
    struct window other = window_make(KIND_ALLOCATE, 8, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    const int rounds = 8, calls = scaled_rounds(CALLS) / rounds + 1;
    if (world_rank == 0)
        memset(window.base, 0, SIDE);
    MPI_Win_fence(0, other.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    if (world_rank == 0 && in_the_host)
        wait_in_the_host(&random);
    for (int round = 0; round < rounds; round++) {
        int token = round == rounds - 1;
        if (world_rank != 0)
            increment_and_put(window.win, &random, calls);
        else
            random_pause(&random, 300);
        if (!in_the_host)
            MPI_Win_fence(0, other.win);
        else if (world_rank != 0)
            MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        const int64_t all = (int64_t)calls * rounds * (world_size - 1);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
        CHECK_EQUAL(((int64_t *)window.base)[0], all);
        CHECK_EQUAL(((int64_t *)window.base)[1], all);
        MPI_Win_unlock(0, window.win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, other.win);
    window_free(&other);
    window_free(&window);
}

static void a_target_that_waits_in_the_host_loses_nothing(enum window_kind kind)
{
    operations_on_a_target_that_waits(kind, true);
}

static void a_target_that_waits_in_a_fence_loses_nothing(enum window_kind kind)
{
    operations_on_a_target_that_waits(kind, false);
}

static const struct test_case cases[] = {
    CASE(a_flushed_put_reaches_a_busy_target, KINDS_ALL, 2),
    CASE(locks_need_no_help_from_a_busy_target, KINDS_ALL, 2),
    CASE(gets_and_atomics_need_no_help_from_a_busy_target, KINDS_ALL, 2),
    CASE(complete_needs_no_help_from_a_busy_target, KINDS_ALL, 2),
    CASE(polling_with_win_sync_sees_remote_updates, KINDS_ALL, 2),
    CASE(a_target_that_waits_in_the_host_loses_nothing, KINDS_ALL, 2),
    CASE(a_target_that_waits_in_a_fence_loses_nothing, KINDS_ALL, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
