/* Histories of windows that share memory. One of two unordered accesses reports the conflict,
 * through whichever histories they arrive and in any timing. Accesses through one history are never
 * compared with other bytes of the other. */
#include "check/access/aliased_windows.h"

#include "check_puts.h"

enum {
    PROCESSES = 3,
    ROUNDS = 3000,
    WIDE = 4096,
    PAGES = 64,
    SHIFT = 3 * WIDE + 64,
    SHM_BYTES = 64 << 20
};

/* The byte at an offset of the first is the byte at that offset + SHIFT of the second. */
static oriel_shm_offset both[2];

static void make_both(int rank)
{
    both[0] = shared(rank, oriel_history_make);
    both[1] = shared(rank, oriel_history_make);
    if (rank == 0)
        oriel_history_add_alias((struct oriel_history_bytes){both[0], 0},
                                (struct oriel_history_bytes){both[1], SHIFT},
                                (uint64_t)PAGES * WIDE);
    team_barrier();
}

static void leave_both(int rank)
{
    team_barrier();
    oriel_history_leave(both[0]);
    oriel_history_leave(both[1]);
    team_barrier();
    if (rank == 0) {
        oriel_history_free(both[0]);
        oriel_history_free(both[1]);
    }
}

/* Two of three ranks put to the same bytes, each through its own history. */
static void rounds(int rank, uint64_t (*span)(int rank, int round))
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    make_both(rank);
    for (int round = 0; round < ROUNDS; round++) {
        int idle = round % team->n;
        int which = rank > idle ? (rank - idle) % 2 : (rank + team->n - idle) % 2;
        int64_t at = (int64_t)(round % PAGES) * WIDE + (which == 1 ? SHIFT : 0);
        if (rank == 0)
            atomic_store(&team->words[0], 0);
        team_barrier();
        if (rank != idle)
            atomic_fetch_add(&team->words[0], put(both[which], rank, at, span(rank, round)));
        team_barrier();
        EXPECT(atomic_load(&team->words[0]) >= 1);
        if (rank != idle)
            complete(both[which], rank);
        team_barrier();
        if (rank == idle) {
            oriel_history_forget(both[0], (int64_t)(round % PAGES) * WIDE, WIDE);
            oriel_history_forget(both[1], (int64_t)(round % PAGES) * WIDE + SHIFT, WIDE);
        }
        team_barrier();
    }
    leave_both(rank);
    oriel_order_stop();
}

static uint64_t small_span(int rank, int round)
{
    return (uint64_t)(8 + (rank + round) % 3);
}

static uint64_t mixed_span(int rank, int round)
{
    return (rank + round) % 2 == 0 ? 8 : 2048;
}

static void put_small(int rank)
{
    rounds(rank, small_span);
}

static void put_mixed(int rank)
{
    rounds(rank, mixed_span);
}

static void put_small_again(int rank)
{
    repeats_access = true;
    rounds(rank, small_span);
}

static void small_accesses_conflict(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, put_small);
}

static void small_and_wide_accesses_conflict(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, put_mixed);
}

static void pending_accesses_conflict(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, put_small_again);
}

struct last {
    int count;
    struct oriel_conflict conflict;
};

static void remember(const struct oriel_conflict *conflict, void *closure)
{
    struct last *last = closure;
    last->count++;
    last->conflict = *conflict;
}

static struct last add(oriel_shm_offset history, int rank, enum oriel_access_kind kind,
                       int64_t offset, uint64_t len_bytes)
{
    struct last last = {0};
    struct oriel_access access = access_by(rank, kind);
    struct oriel_access_extent run = {offset, len_bytes, 1, 0};
    oriel_history_add(history, &access, &run, 1, remember, &last);
    return last;
}

/* Accesses of two ranks without any order between them, all added by the first. */
static void use_both(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    make_both(rank);
    if (rank != 0) {
        oriel_order_stop();
        return;
    }
    EXPECT(add(both[0], 0, ORIEL_ACCESS_PUT, 100, 8).count == 0);
    EXPECT(add(both[1], 1, ORIEL_ACCESS_PUT, SHIFT + 108, 8).count == 0);
    EXPECT(add(both[1], 1, ORIEL_ACCESS_PUT, 100, 8).count ==
           0); /* other bytes: the shift counts there */
    struct last last = add(both[1], 1, ORIEL_ACCESS_PUT, SHIFT + 104, 4);
    EXPECT(last.count == 1 && last.conflict.alias && last.conflict.offset == SHIFT + 104 &&
           last.conflict.len_bytes == 4);
    last = add(both[0], 0, ORIEL_ACCESS_PUT, 108, 600); /* long, and back */
    EXPECT(last.count == 1 && last.conflict.alias && last.conflict.offset == 108 &&
           last.conflict.len_bytes == 8);
    /* A load or store is already in all histories of its bytes. */
    EXPECT(add(both[0], 0, ORIEL_ACCESS_STORE, 2000, 8).count == 0);
    EXPECT(add(both[1], 1, ORIEL_ACCESS_PUT, SHIFT + 2000, 8).count == 0);
    EXPECT(add(both[1], 1, ORIEL_ACCESS_STORE, SHIFT + 96, 4).count == 0);
    /* One history is removed; the other behaves as if they had never been aliased. */
    oriel_history_leave(both[0]);
    oriel_history_free(both[0]);
    EXPECT(add(both[1], 1, ORIEL_ACCESS_PUT, SHIFT + 400, 8).count == 0);
    oriel_history_leave(both[1]);
    oriel_history_free(both[1]);
    oriel_order_stop();
}

static void exact_bytes_of_the_other_are_compared(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, use_both);
}

/* A pair that is registered twice is aliased once; of three histories the middle one is removed. */
static void use_three(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    make_both(rank);
    oriel_shm_offset third = shared(rank, oriel_history_make);
    if (rank != 0) {
        oriel_order_stop();
        return;
    }
    const struct oriel_history_bytes first = {both[0], 0}, second = {both[1], SHIFT},
                                     last = {third, 0};
    oriel_history_add_alias(first, second, WIDE);
    EXPECT(add(both[0], 0, ORIEL_ACCESS_PUT, 100, 8).count == 0);
    EXPECT(add(both[1], 1, ORIEL_ACCESS_PUT, SHIFT + 100, 8).count == 1);
    oriel_history_add_alias(first, last, WIDE);
    oriel_history_add_alias(first, second, WIDE);
    EXPECT(add(third, 1, ORIEL_ACCESS_PUT, 200, 8).count == 0);
    oriel_history_leave(both[1]);
    oriel_history_free(both[1]);
    EXPECT(add(both[0], 0, ORIEL_ACCESS_PUT, 200, 8).count == 1);
    oriel_history_leave(both[0]);
    oriel_history_leave(third);
    oriel_history_free(both[0]);
    oriel_history_free(third);
    oriel_order_stop();
}

static void the_middle_one_of_three_is_removed(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, use_three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_bytes_of_the_other_are_compared),
        cmocka_unit_test(the_middle_one_of_three_is_removed),
        cmocka_unit_test(small_accesses_conflict),
        cmocka_unit_test(small_and_wide_accesses_conflict),
        cmocka_unit_test(pending_accesses_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
