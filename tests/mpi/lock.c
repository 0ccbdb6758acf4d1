/* Passive target epochs: mutual exclusion, visibility after an unlock, locks on several targets and
 * on the own rank. A counter that is read and written in two steps under an exclusive lock loses no
 * update; shared holders meet inside. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static void exclusive_locks_make_critical_sections(enum window_kind kind)
{
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    int rounds = scaled_rounds(400);
    for (int i = 0; i < rounds; i++) {
        int target = i % world_size;
        int64_t counter = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        MPI_Get(&counter, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, window.win);
        MPI_Win_flush(target, window.win);
        counter++;
        random_pause(&random, 50);
        MPI_Put(&counter, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(target, window.win);
    }
    barrier(MPI_COMM_WORLD);
    int64_t turns = rounds / world_size + (world_rank < rounds % world_size), counter;
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    counter = ((int64_t *)window.base)[1];
    MPI_Win_unlock(world_rank, window.win);
    CHECK_EQUAL(counter, turns * world_size);
    window_free(&window);
}

/* Two words are equal except while an exclusive holder works. */
static void words_change(MPI_Win win, int target, struct random *random)
{
    int64_t words[2];
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Get(words, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    CHECK_EQUAL(words[0], words[1]);
    words[0]++;
    MPI_Put(&words[0], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    random_pause(random, 60);
    MPI_Put(&words[0], 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win);
    MPI_Win_unlock(target, win);
}

static void words_look(MPI_Win win, int target, struct random *random)
{
    int64_t first, second;
    MPI_Get(&first, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    random_pause(random, 60);
    MPI_Get(&second, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    CHECK_EQUAL(first, second);
}

/* Exclusive lockers, shared lockers and holders of lock_all from all ranks, on all targets. */
static void exclusive_shared_and_lock_all_mix(enum window_kind kind)
{
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    int64_t *changes = calloc((size_t)world_size, sizeof *changes),
            *all = calloc((size_t)world_size, sizeof *all);
    for (int i = 0; i < scaled_rounds(500); i++) {
        int target =
            random_below(&random, 3) ? 0 : (int)random_below(&random, (uint64_t)world_size);
        switch (random_below(&random, 3)) {
        case 0:
            words_change(window.win, target, &random);
            changes[target]++;
            break;
        case 1:
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
            words_look(window.win, target, &random);
            MPI_Win_unlock(target, window.win);
            break;
        default:
            MPI_Win_lock_all(0, window.win);
            words_look(window.win, target, &random);
            words_look(window.win, (int)random_below(&random, (uint64_t)world_size), &random);
            MPI_Win_unlock_all(window.win);
            break;
        }
        random_pause(&random, 60);
    }
    MPI_Allreduce(changes, all, world_size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    CHECK_EQUAL(((int64_t *)window.base)[0], all[world_rank]);
    CHECK_EQUAL(((int64_t *)window.base)[1], all[world_rank]);
    MPI_Win_unlock(world_rank, window.win);
    free(changes);
    free(all);
    window_free(&window);
}

/* No rank leaves before all are inside. */
static void shared_holders_are_inside_together(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    for (int round = 0; round < 10; round++) {
        if ((round + world_rank) % 3 == 0)
            MPI_Win_lock_all(0, window.win);
        else
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
        barrier(MPI_COMM_WORLD);
        if ((round + world_rank) % 3 == 0)
            MPI_Win_unlock_all(window.win);
        else
            MPI_Win_unlock(0, window.win);
    }
    window_free(&window);
}

static void several_targets_are_locked_at_once(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    int rounds = scaled_rounds(100);
    int64_t one = 1;
    for (int round = 0; round < rounds; round++) {
        /* Exclusive locks in the same order on all ranks: no cycle of waiting ranks. */
        int kind_of_lock = random_below(&random, 2) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
        for (int target = 0; target < world_size; target++)
            MPI_Win_lock(kind_of_lock, target, 0, window.win);
        for (int target = 0; target < world_size; target++)
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, window.win);
        random_pause(&random, 50);
        for (int i = 0; i < world_size; i++)
            MPI_Win_unlock((i + round) % world_size, window.win);
    }
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    CHECK_EQUAL(*(int64_t *)window.base, (int64_t)rounds * world_size);
    MPI_Win_unlock(world_rank, window.win);
    window_free(&window);
}

static void a_lock_on_oneself_protects_local_loads_and_stores(enum window_kind kind)
{
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    volatile int64_t *words = (volatile int64_t *)window.base;
    int right = (world_rank + 1) % world_size, rounds = scaled_rounds(200);
    for (int i = 0; i < rounds; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
        CHECK_EQUAL(words[0], words[1]);
        words[0] = words[0] + 1;
        random_pause(&random, 30);
        words[1] = words[1] + 1;
        MPI_Win_unlock(world_rank, window.win);
        words_change(window.win, right, &random);
    }
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
    CHECK_EQUAL(words[0], 2 * rounds);
    MPI_Win_unlock(world_rank, window.win);
    window_free(&window);
}

static void locks_with_nocheck_work(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    int64_t value = 50 + world_rank;
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    for (int round = 0; round < 10; round++) {
        MPI_Win_lock(round % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, right, MPI_MODE_NOCHECK,
                     window.win);
        MPI_Put(&value, 1, MPI_INT64_T, right, 1, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(right, window.win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, window.win);
        CHECK_EQUAL(((int64_t *)window.base)[1], 50 + left);
        MPI_Win_unlock_all(window.win);
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
    MPI_Win_unlock(0, window.win);
    window_free(&window);
}

static bool host_is_alone(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return strstr(version, "windows by Oriel") == NULL;
}

enum { TRUSTED_SHARED, TRUSTED_EXCLUSIVE, TRUSTED_ALL, TRUSTED_KINDS };

static void open_trusted(int what, MPI_Win win)
{
    if (what == TRUSTED_ALL)
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    else
        MPI_Win_lock(what == TRUSTED_SHARED ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0,
                     MPI_MODE_NOCHECK, win);
}

/* Rank 0 waits in its epoch for the results of the others' exclusive locks. MPI_MODE_NOCHECK
 * promises that no rank wants one. Some programs hold lock_all with it for the whole life of the
 * window, and in both hosts other locks ignore it. */
static void a_lock_with_nocheck_blocks_no_other_rank(enum window_kind kind)
{
    if (host_is_alone()) {
        harness_skip("MPI leaves it to the library");
        return;
    }
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    const int64_t one = 1;
    for (int what = 0; what < TRUSTED_KINDS; what++) {
        int64_t seen = 0;
        if (world_rank == 0)
            open_trusted(what, window.win);
        barrier(MPI_COMM_WORLD);
        if (world_rank != 0) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
            MPI_Accumulate(&one, 1, MPI_INT64_T, 0, what, 1, MPI_INT64_T, MPI_SUM, window.win);
            MPI_Win_unlock(0, window.win);
        } else {
            for (double end = seconds_now() + 20; seen < world_size - 1 && seconds_now() < end;) {
                MPI_Fetch_and_op(NULL, &seen, MPI_INT64_T, 0, what, MPI_NO_OP, window.win);
                MPI_Win_flush(0, window.win);
            }
            CHECK_EQUAL(seen, world_size - 1);
            CHECK_OK(what == TRUSTED_ALL ? MPI_Win_unlock_all(window.win)
                                         : MPI_Win_unlock(0, window.win));
        }
        barrier(MPI_COMM_WORLD);
    }
    window_free(&window);
}

static void proc_null_may_be_locked_and_flushed(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, window.win));
    CHECK_OK(MPI_Put(&world_rank, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window.win));
    CHECK_OK(MPI_Win_flush(MPI_PROC_NULL, window.win));
    CHECK_OK(MPI_Win_flush_local(MPI_PROC_NULL, window.win));
    CHECK_OK(MPI_Win_unlock(MPI_PROC_NULL, window.win));
    window_free(&window);
}

/* Readers lock and unlock all the time until the writer has held the lock. */
static void an_exclusive_locker_gets_in_among_sharers(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int64_t done = 1, seen = 0;
    if (world_rank == 0) {
        sleep_us(5000);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
        MPI_Put(&done, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(0, window.win);
    } else {
        while (!seen) {
            if (world_rank % 2)
                MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
            else
                MPI_Win_lock_all(0, window.win);
            MPI_Get(&seen, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win);
            if (world_rank % 2)
                MPI_Win_unlock(0, window.win);
            else
                MPI_Win_unlock_all(window.win);
        }
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Inside: counts, and takes time, so the ranks outside wait nearly always. Returns whether the
 * total is reached. */
static bool use_turn(MPI_Win win, bool *started, int64_t *turns, int64_t wanted)
{
    const int64_t one = 1;
    int64_t starts, total = 0;
    if (!*started)
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_flush(0, win);
    *started = true;
    MPI_Fetch_and_op(NULL, &starts, MPI_INT64_T, 0, 0, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    for (double end = seconds_now() + 50e-6; seconds_now() < end;)
        continue;
    if (starts == world_size) { /* no rank has been alone since */
        MPI_Fetch_and_op(&one, &total, MPI_INT64_T, 0, 1, MPI_SUM, win);
        ++*turns;
    }
    MPI_Win_flush(0, win);
    return total >= wanted;
}

/* Every rank requests the lock again as soon as it has released it, until the given number of
 * turns. Counts each rank's turns. */
static void share_turns(enum window_kind kind, int lock_type, int64_t wanted, int64_t *least,
                        int64_t *most)
{
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    int64_t turns = 0;
    bool started = false, done = false;
    while (!done) {
        MPI_Win_lock(lock_type, 0, 0, window.win);
        done = use_turn(window.win, &started, &turns, wanted);
        MPI_Win_unlock(0, window.win);
    }
    MPI_Allreduce(&turns, least, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&turns, most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    window_free(&window);
}

/* A rank whose processor is busy for a while gets no turns meanwhile: one of several tries must be
 * even. */
static void expect_even_shares(enum window_kind kind, int lock_type)
{
    enum { TRIES = 5 };
    if (host_is_alone()) {
        harness_skip("MPI does not ask for it, and neither host does it");
        return;
    }
    int64_t least = 0, most = 1, wanted = 200 * (int64_t)world_size;
    bool even = false;
    for (int tries = 0; tries < TRIES && !even; tries++) {
        share_turns(kind, lock_type, wanted, &least, &most);
        /* With internode ranks, a rank on the target's node locks again before a message has made
         * its round trip. */
        even = ranks_share_memory() ? most <= 2 * least : least > 0;
    }
    CHECK(even, "of %lld turns one rank got %lld, another %lld", (long long)wanted, (long long)most,
          (long long)least);
}

static void exclusive_locks_are_shared_out_evenly(enum window_kind kind)
{
    expect_even_shares(kind, MPI_LOCK_EXCLUSIVE);
}

static void exclusive_and_shared_locks_are_shared_out_evenly(enum window_kind kind)
{
    expect_even_shares(kind, world_rank % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE);
}

static void locks_of_different_windows_are_independent(enum window_kind kind)
{
    struct window one = window_make(kind, 8, 8, MPI_COMM_WORLD),
                  two = window_make(kind, 8, 8, MPI_COMM_WORLD);
    MPI_Win locked = world_rank % 2 ? one.win : two.win;
    if (world_rank < 2)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
    barrier(MPI_COMM_WORLD);
    if (world_rank < 2)
        MPI_Win_unlock(0, locked);
    window_free(&one);
    window_free(&two);
}

/* The lock on rank 0 is held for long; meanwhile others work with other targets. */
static void a_lock_blocks_only_its_target(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int64_t value = 9, seen = 0;
    if (world_rank == 0)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
    barrier(MPI_COMM_WORLD);
    if (world_rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window.win);
        MPI_Put(&value, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_flush(1, window.win);
        MPI_Get(&seen, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(1, window.win);
        CHECK_EQUAL(seen, 9);
    }
    barrier(MPI_COMM_WORLD);
    if (world_rank == 0)
        MPI_Win_unlock(0, window.win);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(exclusive_locks_make_critical_sections, KINDS_ALL, 1),
    CASE(exclusive_shared_and_lock_all_mix, KINDS_ALL, 1),
    CASE(shared_holders_are_inside_together, KINDS_BOTH, 1),
    CASE(several_targets_are_locked_at_once, KINDS_BOTH, 1),
    CASE(a_lock_on_oneself_protects_local_loads_and_stores, KINDS_ALL, 1),
    CASE(locks_with_nocheck_work, KINDS_BOTH, 1),
    CASE(a_lock_with_nocheck_blocks_no_other_rank, KINDS_BOTH, 2),
    CASE(proc_null_may_be_locked_and_flushed, KINDS_BOTH, 1),
    CASE(an_exclusive_locker_gets_in_among_sharers, KINDS_BOTH, 2),
    CASE(exclusive_locks_are_shared_out_evenly, KINDS_BOTH, 2),
    CASE(exclusive_and_shared_locks_are_shared_out_evenly, KINDS_BOTH, 2),
    CASE(locks_of_different_windows_are_independent, KINDS_BOTH, 2),
    CASE(a_lock_blocks_only_its_target, KINDS_BOTH, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
