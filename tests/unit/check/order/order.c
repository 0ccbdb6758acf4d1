/* Order between processes: a process that acquires a release knows all that the releaser had
 * completed, and nothing that it completed later. More is acquired only on request. Each process is
 * a rank; steps of the team decide the order. */
#include "check/order/order.h"

#include <string.h>

#include "check_team.h"
#include "check/report/finding.h"

#define MIB (UINT64_C(1) << 20)

/* The name of the statistic that the checker counts. */
static char counted[96];

void oriel_finding_count(const char *what)
{
    snprintf(counted, sizeof counted, "%s", what);
}

static struct oriel_key key_of(uint64_t number)
{
    return (struct oriel_key){{ORIEL_ORDER_MESSAGE, 1, number, 0}};
}

static oriel_tick known_of(int rank)
{
    oriel_tick clock[TEAM_MOST];
    oriel_order_clock(clock);
    return clock[rank];
}

static void start(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    EXPECT(oriel_order_rank() == rank);
    team_barrier();
}

/* --- release and acquire --- */

static void release_then_acquire(int rank)
{
    struct oriel_key key = key_of(0);
    start(rank);
    if (rank == 0) {
        atomic_store(&team->words[0], oriel_order_now()); /* an access completes */
        oriel_order_give(&key, 1);
        atomic_store(&team->words[1], oriel_order_now()); /* another one does */
        team_step(1);
    } else {
        team_await(1);
        EXPECT(known_of(0) == 0);
        EXPECT(oriel_order_take(&key));
        EXPECT(known_of(0) >= atomic_load(&team->words[0]));
        EXPECT(known_of(0) < atomic_load(&team->words[1]));
        EXPECT(!oriel_order_take(&key)); /* it had one acquirer */
    }
    team_barrier();
    oriel_order_stop();
}

static void acquirer_knows_completed_events_and_no_more(void **state)
{
    (void)state;
    team_run(2, 64 * MIB, 0, release_then_acquire);
}

/* 0 releases to 1, which releases to 2, and so on: the last knows all. */
static void pass_on(int rank)
{
    struct oriel_key from = key_of((uint64_t)rank), to = key_of((uint64_t)rank + 1);
    start(rank);
    atomic_store(&team->words[rank], oriel_order_now());
    if (rank > 0) {
        team_await((uint32_t)rank);
        EXPECT(oriel_order_take(&from));
    }
    for (int i = 0; i < rank; i++)
        EXPECT(known_of(i) >= atomic_load(&team->words[i]));
    oriel_order_give(&to, 0);
    for (int i = rank + 1; i < team->n; i++)
        EXPECT(known_of(i) == 0);
    team_step((uint32_t)rank + 1);
    team_barrier();
    EXPECT(oriel_order_peek(&to)); /* acquirers 0: it stays */
    team_barrier();
    oriel_order_forget(&to);
    EXPECT(!oriel_order_peek(&to));
}

static void order_is_passed_on(void **state)
{
    (void)state;
    team_run(5, 64 * MIB, 0, pass_on);
}

/* A shared entry, which each rank leaves at any time: some before others have arrived. */
static void synchronise_by_a_key(int rank)
{
    enum { ROUNDS = 3000 };
    start(rank);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct oriel_key key = {{ORIEL_ORDER_COLLECTIVE, 1, i, 0}};
        bool late = i % 3 == 0; /* without waiting for the others */
        atomic_store(&team->words[rank], oriel_order_now());
        oriel_order_give(&key, team->n);
        if (!late)
            team_barrier();
        oriel_order_end(&key, team->n, true);
        for (int other = 0; other < team->n && !late; other++)
            EXPECT(known_of(other) >= atomic_load(&team->words[other]));
        team_barrier();
        EXPECT(!oriel_order_peek(&key));
        team_barrier();
    }
}

static void entry_of_all_ends_with_the_last(void **state)
{
    (void)state;
    team_run(3, 64 * MIB, 0, synchronise_by_a_key);
}

static void end_first(int rank)
{
    struct oriel_key key = key_of(3);
    start(rank);
    if (rank == 1) {
        oriel_order_end(&key, 2, true);
        team_step(1);
    } else {
        team_await(1);
        oriel_order_give(&key, 2);
        oriel_order_end(&key, 2, false);
        EXPECT(!oriel_order_peek(&key));
    }
}

static void one_may_be_done_before_anything_is_given(void **state)
{
    (void)state;
    team_run(2, 64 * MIB, 0, end_first);
}

static void release_twice(int rank)
{
    struct oriel_key key = key_of(0), none = key_of(9);
    start(rank);
    if (rank == 0) {
        oriel_order_give_again(&none);
        EXPECT(!oriel_order_peek(&none));
        oriel_order_give(&key, 1);
        atomic_store(&team->words[0], oriel_order_now());
        oriel_order_give_again(&key);
        team_step(1);
    } else {
        team_await(1);
        EXPECT(oriel_order_take(&key));
        EXPECT(known_of(0) >= atomic_load(&team->words[0]));
    }
    team_barrier();
}

static void later_releases_join(void **state)
{
    (void)state;
    team_run(2, 64 * MIB, 0, release_twice);
}

/* --- more than was released --- */

static void acquire_all_of_one(int rank)
{
    start(rank);
    if (rank == 0) {
        atomic_store(&team->words[0], oriel_order_now());
        team_step(1);
        team_await(2);
        atomic_store(&team->words[1], oriel_order_now());
        team_step(3);
    } else {
        team_await(1);
        EXPECT(oriel_order_is_here(0) && !oriel_order_is_here(2) && !oriel_order_is_here(-1));
        EXPECT(oriel_order_take_rank(0) && !oriel_order_take_rank(7));
        EXPECT(known_of(0) == atomic_load(&team->words[0]));
        team_step(2);
        team_await(3);
        EXPECT(known_of(0) <
               atomic_load(&team->words[1])); /* its later completions are not known */
    }
    team_barrier();
}

static void all_of_a_rank_is_acquired_up_to_now(void **state)
{
    (void)state;
    team_run(2, 64 * MIB, 0, acquire_all_of_one);
}

static void call_without_model(int rank)
{
    start(rank);
    if (rank < 2) {
        atomic_store(&team->words[rank], oriel_order_now());
        oriel_order_unknown_begin("MPI_File_write");
        EXPECT(strstr(counted, "MPI_File_write") != NULL);
        team_barrier();
    } else {
        team_barrier();
        oriel_order_unknown_begin(NULL);
        oriel_order_unknown_end();
        for (int i = 0; i < 2; i++)
            EXPECT(known_of(i) >= atomic_load(&team->words[i]));
    }
    team_barrier();
    if (rank < 2)
        EXPECT(oriel_order_now() > atomic_load(&team->words[rank]));
    team_barrier();
}

static void unknown_calls_are_ordered_after_everything(void **state)
{
    (void)state;
    team_run(3, 64 * MIB, 0, call_without_model);
}

static void doubt(int rank)
{
    start(rank);
    EXPECT(!oriel_order_is_doubtful());
    team_barrier();
    if (rank == 1)
        oriel_order_set_doubtful();
    team_barrier();
    EXPECT(oriel_order_is_doubtful());
}

static void doubt_of_one_is_everybodys(void **state)
{
    (void)state;
    team_run(2, 64 * MIB, 0, doubt);
}

/* --- clock snapshots --- */

static void stamp(int rank)
{
    struct oriel_key key = key_of((uint64_t)rank);
    start(rank);
    oriel_shm_offset first = oriel_order_snapshot(), again = oriel_order_snapshot();
    EXPECT(first != 0 && first == again);
    EXPECT(oriel_order_snapshot_clock(first)[rank] == oriel_order_now());
    oriel_order_snapshot_release(again);
    oriel_order_give(&key, 1);
    oriel_shm_offset later = oriel_order_snapshot();
    EXPECT(later != first);
    EXPECT(oriel_order_snapshot_clock(later)[rank] == oriel_order_snapshot_clock(first)[rank] + 1);
    team_barrier();
    struct oriel_key other = key_of((uint64_t)(rank + 1) % 2);
    EXPECT(oriel_order_take(&other));
    oriel_shm_offset last = oriel_order_snapshot();
    EXPECT(oriel_order_snapshot_clock(later)[(rank + 1) % 2] == 0);
    EXPECT(oriel_order_snapshot_clock(last)[(rank + 1) % 2] != 0);
    team_barrier();
    oriel_order_take_rank(
        (rank + 1) %
        2); /* increments the other's number: its next snapshot includes what it completes now */
    team_barrier();
    oriel_tick complete = oriel_order_now();
    oriel_shm_offset now = oriel_order_snapshot();
    EXPECT(oriel_order_snapshot_clock(now)[rank] >= complete &&
           complete > oriel_order_snapshot_clock(last)[rank]);
    oriel_order_snapshot_release(first);
    oriel_order_snapshot_release(later);
    oriel_order_snapshot_release(last);
    oriel_order_snapshot_release(now);
    team_barrier();
    oriel_order_stop();
}

static void snapshots_never_change(void **state)
{
    (void)state;
    team_run(2, 64 * MIB, 0, stamp);
}

/* A released snapshot's memory is reused: a million of them fit. */
static void stamp_a_million(int rank)
{
    start(rank);
    for (uint64_t i = 0; i < 1000000; i++) {
        struct oriel_key key = key_of(0);
        oriel_shm_offset moment = oriel_order_snapshot();
        EXPECT(moment != 0);
        oriel_order_give(&key, 0);
        oriel_order_snapshot_release(moment);
    }
    EXPECT(oriel_shm_refused() == 0);
}

static void snapshots_do_not_accumulate(void **state)
{
    (void)state;
    team_run(1, 8 * MIB, 0, stamp_a_million);
}

/* --- the floor --- */

/* Other ranks know less of rank 0. */
static void lower_first(oriel_tick *out)
{
    out[0]--;
}

static void look_at_the_floor(int rank)
{
    oriel_tick floor[TEAM_MOST];
    const struct oriel_order_remote elsewhere = {.floor = lower_first};
    struct oriel_key key = {{ORIEL_ORDER_COLLECTIVE, 1, 0, 0}};
    start(rank);
    oriel_order_floor(floor);
    for (int i = 0; i < team->n; i++)
        EXPECT(floor[i] == 0);
    team_barrier();
    oriel_tick complete = oriel_order_now();
    atomic_store(&team->words[rank], complete);
    oriel_order_give(&key, team->n);
    team_barrier();
    if (rank > 0)
        oriel_order_end(&key, team->n, true);
    team_barrier();
    oriel_order_floor(floor);
    EXPECT(floor[0] == atomic_load(&team->words[0])); /* all know of 0; 0 knows of none */
    for (int i = 1; i < team->n; i++)
        EXPECT(floor[i] == 0);
    oriel_order_remote_set(&elsewhere);
    oriel_order_floor(floor);
    EXPECT(floor[0] == atomic_load(&team->words[0]) - 1);
    oriel_order_remote_set(NULL);
    team_barrier();
    if (rank == 0)
        oriel_order_stop();
    team_barrier();
    if (rank > 0) {
        oriel_order_floor(floor);
        for (int i = 1; i < team->n; i++)
            EXPECT(floor[i] == atomic_load(&team->words[i]));
    }
    team_barrier();
    oriel_order_stop();
    memset(floor, 0xff, sizeof floor);
    oriel_order_floor(floor); /* of none */
    for (int i = 0; i < team->n; i++)
        EXPECT(floor[i] == 0);
}

static void floor_is_known_to_all(void **state)
{
    (void)state;
    team_run(3, 64 * MIB, 0, look_at_the_floor);
}

/* --- ends --- */

static void die_after_release(int rank)
{
    struct oriel_key key = key_of(0);
    start(rank);
    if (rank == 0) {
        oriel_order_give(&key, 1);
        team_step(1);
        team_die();
    }
    team_await(1);
    EXPECT(oriel_order_take(&key) && known_of(0) == 1);
    oriel_order_unknown_end();
}

static void the_release_of_a_dead_process_is_acquired(void **state)
{
    (void)state;
    team_run(2, 64 * MIB, 1, die_after_release);
}

/* If a snapshot cannot be stored, the clocks themselves are acquired: more than was released, never
 * less. */
static void order_in_a_full_memory(int rank)
{
    start(rank);
    while (rank == 0 && (oriel_shm_allocate(16) != 0 || oriel_shm_allocate(4096) != 0))
        continue;
    team_barrier();
    for (uint64_t i = 0; i < 100; i++) {
        struct oriel_key key = key_of(i);
        atomic_store(&team->words[rank], oriel_order_now());
        if (rank == 0)
            oriel_order_give(&key, 1);
        team_barrier();
        if (rank == 1) {
            oriel_order_take(&key);
            EXPECT(known_of(0) >= atomic_load(&team->words[0]));
        }
        key = key_of(1000 + i);
        oriel_order_give(&key, 2);
        team_barrier();
        oriel_order_end(&key, 2, true);
        EXPECT(known_of(1 - rank) >= atomic_load(&team->words[1 - rank]));
        team_barrier();
        oriel_order_snapshot_release(oriel_order_snapshot());
    }
    EXPECT(oriel_shm_refused() > 2);
    EXPECT(oriel_order_snapshot_clock(0) == NULL);
}

static void full_memory_orders_more_not_less(void **state)
{
    (void)state;
    team_run(2, 8 * MIB, 0, order_in_a_full_memory);
}

static void not_started(void **state)
{
    (void)state;
    struct oriel_key key = key_of(0);
    oriel_order_give(&key, 1);
    assert_false(oriel_order_take(&key));
    assert_int_equal(oriel_order_snapshot(), 0);
    assert_int_equal(oriel_order_now(), ORIEL_TICK_PENDING);
    oriel_order_unknown_begin("nothing");
    oriel_order_unknown_end();
    oriel_order_stop();
}

/* Keys from other nodes may have any contents. */
static void home_of_a_key_is_a_node_or_none(void **state)
{
    static const struct {
        uint32_t home;
        int node;
    } keys[] = {{0, -1},         {1, 0}, {7, 6}, {INT_MAX, INT_MAX - 1}, {UINT32_C(1) << 31, -1},
                {UINT32_MAX, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct oriel_key bare = key_of(i), key = bare, there;
        key.words[0] |= (uint64_t)keys[i].home << ORIEL_ORDER_HOME_SHIFT;
        assert_int_equal(oriel_order_key_home(&key, &there), keys[i].node);
        assert_memory_equal(&there, &bare, sizeof there);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(home_of_a_key_is_a_node_or_none),
        cmocka_unit_test(not_started),
        cmocka_unit_test(acquirer_knows_completed_events_and_no_more),
        cmocka_unit_test(order_is_passed_on),
        cmocka_unit_test(entry_of_all_ends_with_the_last),
        cmocka_unit_test(one_may_be_done_before_anything_is_given),
        cmocka_unit_test(later_releases_join),
        cmocka_unit_test(all_of_a_rank_is_acquired_up_to_now),
        cmocka_unit_test(unknown_calls_are_ordered_after_everything),
        cmocka_unit_test(doubt_of_one_is_everybodys),
        cmocka_unit_test(snapshots_never_change),
        cmocka_unit_test(snapshots_do_not_accumulate),
        cmocka_unit_test(floor_is_known_to_all),
        cmocka_unit_test(the_release_of_a_dead_process_is_acquired),
        cmocka_unit_test(full_memory_orders_more_not_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
