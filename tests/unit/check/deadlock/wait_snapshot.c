/* The waits that processes publish, and the deadlocks that a snapshot finds: several processes
 * share the checker's memory, and the last one searches. */
#include "check/deadlock/deadlock.h"
#include "check/order/order.h"

#include "check_team.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { SHM_BYTES = 1 << 24, WINDOW = 5, COMM = 6, BARRIER = 1, BCAST = 2 };

/* A deadlock is found at the seventh search unless a rank had no turn, as on a busy node. */
enum { MANY_LOOKS = 12, MOST_LOOKS = 2000 };

static const struct oriel_site site = {.call = 1};

/* Replaces finding.h's function in these tests. */
void oriel_finding_count(const char *what);
void oriel_finding_count(const char *what)
{
    (void)what;
}

static void pause_ms(long ms)
{
    struct timespec some = {.tv_nsec = ms * 1000000};
    nanosleep(&some, NULL);
}

static void enter(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    EXPECT(oriel_wait_records_start(rank, team->n, false) == ORIEL_OK);
    team_barrier();
}

static bool is_looker(int rank)
{
    return rank == team->n - 1;
}

/* Sleeps in the published wait until the searcher has finished. */
static void stay(void)
{
    oriel_wait_begin();
    team_barrier();
    while (atomic_load(&team->step) == 0)
        pause_ms(2);
    oriel_wait_end();
}

/* The ranks in the deadlock, as bits; 0: none at the last one. */
static unsigned look(uint64_t patience_ns, int most)
{
    struct oriel_deadlock finder;
    unsigned found = 0;
    EXPECT(oriel_deadlock_open(&finder, team->n, patience_ns));
    for (int i = 0; i < most && found == 0; i++) {
        pause_ms(5);
        if (oriel_deadlock_find(&finder, 1000 * (uint64_t)(unsigned)(i + 1)) > 0)
            for (int rank = 0; rank < team->n; rank++)
                found |= (unsigned)finder.set[rank] << rank;
    }
    oriel_deadlock_close(&finder);
    atomic_store(&team->step, 1);
    return found;
}

/* The searcher's part. */
static void expect_found(unsigned ranks)
{
    team_barrier();
    EXPECT(look(0, ranks == 0 ? MANY_LOOKS : MOST_LOOKS) == ranks);
}

/* The searcher does its part and returns true. */
static bool looks(int rank, unsigned ranks)
{
    if (is_looker(rank))
        expect_found(ranks);
    return is_looker(rank);
}

static void wait_open(void)
{
    EXPECT(oriel_wait_open(&site, NULL, ORIEL_WAIT_FOR_ALL));
}

/* --- locks --- */

static struct oriel_collective_progress *window(void)
{
    struct oriel_collective_progress *progress =
        oriel_collective_progress_find(WINDOW, true, team->n, NULL);
    EXPECT(progress != NULL);
    return progress;
}

static void locks_cross(int rank, enum oriel_holding how, bool exclusive)
{
    enter(rank);
    struct oriel_collective_progress *progress = window();
    if (!is_looker(rank)) {
        oriel_collective_progress_hold(progress, rank, rank, how);
        wait_open();
        oriel_wait_for_lock(progress, 1 - rank, exclusive);
        stay();
    }
    oriel_collective_progress_leave(progress, WINDOW);
}

static void crossing_exclusive(int rank)
{
    locks_cross(rank, ORIEL_HOLDS_EXCLUSIVE, false);
    if (is_looker(rank))
        expect_found(3);
}

static void crossing_shared(int rank)
{
    locks_cross(rank, ORIEL_HOLDS_SHARED, true);
    if (is_looker(rank))
        expect_found(3);
}

static void sharing(int rank)
{
    locks_cross(rank, ORIEL_HOLDS_SHARED, false);
    if (is_looker(rank))
        expect_found(0);
}

static void locks_held_in_a_cycle_are_found(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, crossing_exclusive);
    team_run(3, SHM_BYTES, 0, crossing_shared);
}

static void shared_locks_hold_up_no_shared_ones(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, sharing);
}

static void compute(void)
{
    team_barrier();
    while (atomic_load(&team->step) == 0)
        pause_ms(2);
}

static void held_by_one_that_computes(int rank)
{
    enter(rank);
    struct oriel_collective_progress *progress = window();
    if (rank == 0) {
        wait_open();
        oriel_wait_for_lock(progress, 0, true);
        stay();
    } else if (rank == 1) {
        oriel_collective_progress_hold(progress, 1, -1, ORIEL_HOLDS_SHARED);
        compute();
    } else {
        expect_found(0);
    }
}

static void holder_that_computes_is_not_stuck(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, held_by_one_that_computes);
}

static void held_by_one_that_has_finished(int rank)
{
    enter(rank);
    struct oriel_collective_progress *progress = window();
    if (rank == 0) {
        wait_open();
        oriel_wait_for_lock(progress, 0, true);
        stay();
    } else if (rank == 1) {
        oriel_collective_progress_hold(progress, 1, -1, ORIEL_HOLDS_SHARED);
        oriel_wait_records_finish(&site);
        compute();
    } else {
        expect_found(1);
    }
}

static void held_by_one_that_dies(int rank)
{
    enter(rank);
    struct oriel_collective_progress *progress = window();
    if (rank == 0) {
        wait_open();
        oriel_wait_for_lock(progress, 0, true);
        stay();
    } else if (rank == 1) {
        oriel_collective_progress_hold(progress, 1, 0, ORIEL_HOLDS_EXCLUSIVE);
        team_barrier();
        team_die();
    } else {
        expect_found(1);
    }
}

static void lock_of_a_finished_rank_is_found(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, held_by_one_that_has_finished);
    team_run(3, SHM_BYTES, 2, held_by_one_that_dies);
}

/* --- keys --- */

static struct oriel_key key_from(int rank)
{
    return (struct oriel_key){{ORIEL_ORDER_POST, WINDOW, (uint64_t)(unsigned)rank, 1}};
}

static void need_key_of(int rank)
{
    struct oriel_key key = key_from(rank);
    oriel_wait_for_key(rank, &key);
}

static void wait_for_key_of(int rank)
{
    wait_open();
    need_key_of(rank);
    stay();
}

static void keys(int rank)
{
    enter(rank);
    if (is_looker(rank))
        expect_found(3);
    else
        wait_for_key_of(1 - rank);
}

static void key_that_was_given(int rank)
{
    struct oriel_key key = key_from(rank);
    enter(rank);
    if (rank == 1)
        oriel_order_give(&key, 1);
    if (is_looker(rank))
        expect_found(0);
    else
        wait_for_key_of(1 - rank);
}

/* One of both is, or has been, in one of the program's functions inside its call. */
static void key_suspended(int rank, bool resumes)
{
    struct oriel_key other = key_from(1 - rank);
    enter(rank);
    if (is_looker(rank)) {
        expect_found(resumes ? 3 : 0);
        return;
    }
    wait_open();
    oriel_wait_for_key(1 - rank, &other);
    oriel_wait_begin();
    struct oriel_wait_suspended *suspended = oriel_wait_suspend();
    EXPECT(suspended != NULL);
    if (rank == 0 && !resumes) {
        struct oriel_key ended = key_from(0);
        wait_open(); /* another call, which returns */
        oriel_wait_for_key(0, &ended);
        oriel_wait_begin();
        oriel_wait_end();
    } else {
        oriel_wait_resume(suspended);
    }
    team_barrier();
    while (atomic_load(&team->step) == 0)
        pause_ms(2);
    oriel_wait_end();
    if (rank == 0 && !resumes)
        oriel_wait_resume(suspended);
}

static void key_inside_a_function(int rank)
{
    key_suspended(rank, false);
}

static void key_after_a_function(int rank)
{
    key_suspended(rank, true);
}

static void waits_inside_the_programs_functions_have_no_site(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, key_inside_a_function);
    team_run(3, SHM_BYTES, 0, key_after_a_function);
}

static void missing_posts_are_found(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, keys);
    team_run(3, SHM_BYTES, 0, key_that_was_given);
}

/* --- collective calls --- */

static void call_and_wait(struct oriel_collective_progress *progress, int rank, uint16_t call)
{
    uint64_t number = oriel_collective_progress_arrive(progress, rank, call);
    wait_open();
    oriel_wait_for_call(progress, -1, number, call, false);
    stay();
}

static struct oriel_collective_progress *pair(void)
{
    struct oriel_collective_progress *progress =
        oriel_collective_progress_find(COMM, false, 2, NULL);
    EXPECT(progress != NULL);
    return progress;
}

static void missed(int rank)
{
    enter(rank);
    if (rank == 0) {
        call_and_wait(pair(), rank, BARRIER);
    } else if (rank == 1) {
        wait_open();
        need_key_of(0);
        stay();
    } else {
        expect_found(3);
    }
}

static void both_arrived(int rank)
{
    enter(rank);
    if (is_looker(rank))
        expect_found(0);
    else
        call_and_wait(pair(), rank, BARRIER);
}

static void arrived_at_other(int rank)
{
    enter(rank);
    if (is_looker(rank))
        expect_found(3);
    else
        call_and_wait(pair(), rank, rank == 0 ? BARRIER : BCAST);
}

static void collective_that_a_waiting_rank_misses_is_found(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, missed);
}

static void collective_at_which_all_have_arrived_continues(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, both_arrived);
}

static void different_collectives_in_one_place_are_found(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, arrived_at_other);
}

/* --- messages --- */

static void from_any(int rank, int members, int sending)
{
    enter(rank);
    struct oriel_collective_progress *progress =
        oriel_collective_progress_find(COMM, false, members, NULL);
    struct oriel_wait_need need = oriel_need_receive(-1, COMM, -1, progress);
    if (is_looker(rank))
        return;
    if (rank == 1)
        oriel_wait_sending(0, sending);
    wait_open();
    if (rank == 0)
        oriel_wait_add(&need);
    else
        need_key_of(0);
    stay();
}

static void any_of_two(int rank)
{
    from_any(rank, 2, 0);
    if (is_looker(rank))
        expect_found(3);
}

static void any_of_three(int rank)
{
    from_any(rank, 3, 0);
    if (is_looker(rank))
        expect_found(0);
}

static void any_with_a_send_under_way(int rank)
{
    from_any(rank, 2, 1);
    if (is_looker(rank))
        expect_found(0);
}

static void receive_from_any_source_is_stuck_when_no_rank_can_send(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, any_of_two);
    team_run(3, SHM_BYTES, 0, any_of_three);
    team_run(3, SHM_BYTES, 0, any_with_a_send_under_way);
}

static void exchange(int rank, int tag)
{
    enter(rank);
    struct oriel_wait_need send = oriel_need_send(1, COMM, 3);
    struct oriel_wait_need receive = oriel_need_receive(0, COMM, tag, NULL);
    if (is_looker(rank))
        return;
    wait_open();
    oriel_wait_add(rank == 0 ? &send : &receive);
    stay();
}

static void matched_message(int rank)
{
    exchange(rank, 3);
    if (is_looker(rank))
        expect_found(0);
}

static void message_of_another_tag(int rank)
{
    exchange(rank, 4);
    if (is_looker(rank))
        expect_found(3);
}

/* Rank 1 needs more than the message, which still arrives. */
static void message_and_more(int rank)
{
    struct oriel_wait_need send = oriel_need_send(1, COMM, 3);
    struct oriel_wait_need receive = oriel_need_receive(0, COMM, -1, NULL);
    enter(rank);
    if (looks(rank, 0))
        return;
    wait_open();
    oriel_wait_add(rank == 0 ? &send : &receive);
    if (rank == 1)
        need_key_of(0);
    stay();
}

static void matching_send_and_receive_are_not_stuck(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, message_and_more);
    team_run(3, SHM_BYTES, 0, matched_message);
    team_run(3, SHM_BYTES, 0, message_of_another_tag);
}

/* --- waits that do not count --- */

static void *wait_once(void *closure)
{
    *(bool *)closure = oriel_wait_open(&site, NULL, ORIEL_WAIT_FOR_ALL);
    return NULL;
}

static void with_a_second_thread(int rank)
{
    pthread_t thread;
    bool noted = true;
    enter(rank);
    if (looks(rank, 0))
        return;
    wait_open();
    need_key_of(1 - rank);
    if (rank == 1) {
        EXPECT(pthread_create(&thread, NULL, wait_once, &noted) == 0);
        pthread_join(thread, NULL);
        EXPECT(!noted);
    }
    stay();
}

static void process_of_which_two_threads_wait_does_not_count(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, with_a_second_thread);
}

static void that_continues(int rank)
{
    enter(rank);
    if (looks(rank, 0))
        return;
    wait_open();
    need_key_of(1 - rank);
    if (rank == 0)
        stay();
    else
        team_barrier();
    while (atomic_load(&team->step) == 0) { /* rank 1: one wait after the other */
        oriel_wait_begin();
        pause_ms(4);
        oriel_wait_end();
        wait_open();
        need_key_of(0);
    }
}

static void waits_that_follow_each_other_are_no_deadlock(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, that_continues);
}

static void patient(int rank)
{
    enter(rank);
    if (is_looker(rank)) {
        team_barrier();
        EXPECT(look(1000000, MANY_LOOKS) == 0);
        return;
    }
    wait_open();
    need_key_of(1 - rank);
    stay();
}

static void wait_that_is_young_is_no_deadlock(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, patient);
}

static void with_too_many_needs(int rank)
{
    enter(rank);
    if (looks(rank, 0))
        return;
    EXPECT(oriel_wait_open(&site, NULL, ORIEL_WAIT_FOR_ANY));
    for (int i = 0; i < 100; i++)
        need_key_of(1 - rank);
    stay();
}

static void wait_for_any_of_more_than_can_be_noted_is_no_deadlock(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, with_too_many_needs);
}

static void nested(int rank)
{
    enter(rank);
    wait_open();
    need_key_of(rank);
    oriel_wait_begin();
    EXPECT(!oriel_wait_open(&site, NULL, ORIEL_WAIT_FOR_ALL));
    oriel_wait_end();
    wait_open();
    oriel_wait_end(); /* without a begin */
    wait_open();
    oriel_wait_end();
}

/* --- needs that any rank fulfils --- */

static void notifications(int rank)
{
    enter(rank);
    if (looks(rank, 3))
        return;
    const struct oriel_wait_need need = oriel_need_notification(pair());
    wait_open();
    oriel_wait_add(&need);
    stay();
}

static void notifications_that_all_members_wait_for_are_found(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, notifications);
}

static void notification_of_one_that_computes(int rank)
{
    enter(rank);
    const struct oriel_wait_need need = oriel_need_notification(pair());
    if (rank == 0) {
        wait_open();
        oriel_wait_add(&need);
        stay();
    } else {
        looks(rank, 0);
    }
}

static void notification_of_a_member_that_computes_is_no_deadlock(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, notification_of_one_that_computes);
}

static void *sleep_through(void *unused)
{
    (void)unused;
    while (atomic_load(&team->step) == 0)
        pause_ms(2);
    return NULL;
}

static void value_wait(int rank, bool has_thread)
{
    static const struct oriel_wait_need need = {.kind = ORIEL_NEED_VALUE};
    pthread_t thread;
    enter(rank);
    if (is_looker(rank)) {
        oriel_wait_records_finish(&site);
        looks(rank, has_thread ? 0 : 3);
        return;
    }
    wait_open();
    if (rank == 0)
        oriel_wait_add(&need);
    else
        need_key_of(0);
    if (rank == 1 && has_thread)
        EXPECT(pthread_create(&thread, NULL, sleep_through, NULL) == 0);
    stay();
    if (rank == 1 && has_thread)
        pthread_join(thread, NULL);
}

static void value(int rank)
{
    value_wait(rank, false);
}

static void value_that_a_thread_may_store(int rank)
{
    value_wait(rank, true);
}

static void value_that_no_rank_writes_is_found(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, value);
}

static void value_that_a_thread_may_store_is_no_deadlock(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, value_that_a_thread_may_store);
}

static void call_inside_a_call_is_not_noted(void **state)
{
    (void)state;
    team_run(1, SHM_BYTES, 0, nested);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_held_in_a_cycle_are_found),
        cmocka_unit_test(shared_locks_hold_up_no_shared_ones),
        cmocka_unit_test(holder_that_computes_is_not_stuck),
        cmocka_unit_test(lock_of_a_finished_rank_is_found),
        cmocka_unit_test(missing_posts_are_found),
        cmocka_unit_test(waits_inside_the_programs_functions_have_no_site),
        cmocka_unit_test(collective_that_a_waiting_rank_misses_is_found),
        cmocka_unit_test(collective_at_which_all_have_arrived_continues),
        cmocka_unit_test(different_collectives_in_one_place_are_found),
        cmocka_unit_test(receive_from_any_source_is_stuck_when_no_rank_can_send),
        cmocka_unit_test(matching_send_and_receive_are_not_stuck),
        cmocka_unit_test(process_of_which_two_threads_wait_does_not_count),
        cmocka_unit_test(waits_that_follow_each_other_are_no_deadlock),
        cmocka_unit_test(wait_that_is_young_is_no_deadlock),
        cmocka_unit_test(wait_for_any_of_more_than_can_be_noted_is_no_deadlock),
        cmocka_unit_test(notifications_that_all_members_wait_for_are_found),
        cmocka_unit_test(notification_of_a_member_that_computes_is_no_deadlock),
        cmocka_unit_test(value_that_no_rank_writes_is_found),
        cmocka_unit_test(value_that_a_thread_may_store_is_no_deadlock),
        cmocka_unit_test(call_inside_a_call_is_not_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
