/* The state of a window's epochs: which calls are valid after which, the findings for invalid ones,
 * and which later calls are their echoes. Each test has a window of four ranks. */
#include "check/window/epoch_rules.h"

#include <string.h>

#include "cmocka_all.h"

enum { RANKS = 4 };

static struct oriel_epochs epochs;
static struct oriel_finding finding;

static int open_window(void **state)
{
    (void)state;
    return oriel_epochs_open(&epochs, RANKS) == ORIEL_OK ? 0 : 1;
}

static int close_window(void **state)
{
    (void)state;
    oriel_epochs_close(&epochs);
    return 0;
}

/* Sites distinguish openings by their address. */
static struct oriel_site at(uint64_t address)
{
    return (struct oriel_site){.address = address, .call = 1};
}

static enum oriel_verdict fence(uint64_t address)
{
    struct oriel_site site = at(address);
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_fence(&epochs, false, false, &site, &finding);
}

static enum oriel_verdict lock(int32_t target)
{
    struct oriel_site site = at(100 + (uint64_t)target);
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_lock(&epochs, target, false, false, &site, &finding);
}

static enum oriel_verdict unlock(int32_t target)
{
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_unlock(&epochs, target, &finding);
}

static enum oriel_verdict lock_all(void)
{
    struct oriel_site site = at(200);
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_lock_all(&epochs, &site, &finding);
}

static enum oriel_verdict unlock_all(void)
{
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_unlock_all(&epochs, &finding);
}

static enum oriel_verdict start(int32_t target)
{
    struct oriel_site site = at(300);
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_start(&epochs, &target, 1, &site, &finding);
}

static enum oriel_verdict complete(void)
{
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_complete(&epochs, &finding);
}

static enum oriel_verdict post(int32_t origin)
{
    struct oriel_site site = at(400);
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_post(&epochs, &origin, 1, &site, &finding);
}

static enum oriel_verdict wait_for_all(void)
{
    finding = ORIEL_FINDING_NONE;
    enum oriel_verdict verdict = oriel_epochs_wait(&epochs, &finding);
    if (verdict == ORIEL_VERDICT_RIGHT)
        oriel_epochs_waited(&epochs);
    return verdict;
}

static enum oriel_verdict operate(int32_t target)
{
    finding = ORIEL_FINDING_NONE;
    enum oriel_verdict verdict = oriel_epochs_operation(&epochs, target, false, &finding);
    if (verdict == ORIEL_VERDICT_RIGHT)
        oriel_epochs_operated(&epochs, target);
    return verdict;
}

static enum oriel_verdict operate_with_request(int32_t target)
{
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_operation(&epochs, target, true, &finding);
}

static enum oriel_verdict flush(int32_t target)
{
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_flush(&epochs, target, &finding);
}

static enum oriel_verdict end(bool finalising)
{
    finding = ORIEL_FINDING_NONE;
    return oriel_epochs_end(&epochs, finalising, &finding);
}

#define RIGHT(call) assert_int_equal(call, ORIEL_VERDICT_RIGHT)
#define ECHO(call)  assert_int_equal(call, ORIEL_VERDICT_ECHO)

/* The call violates that rule, because of the opening at that address (0: none). */
#define WRONG(call, name, opened)                                                                  \
    do {                                                                                           \
        assert_int_equal(call, ORIEL_VERDICT_WRONG);                                               \
        assert_int_equal(finding.rule, ORIEL_RULE_##name);                                         \
        assert_int_equal(finding.opening.address, (uint64_t)(opened));                             \
    } while (0)

static void operation_needs_an_epoch(void **state)
{
    (void)state;
    WRONG(operate(1), OUTSIDE_EPOCH, 0);
    assert_non_null(strstr(finding.help, "MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win)"));
    RIGHT(fence(1));
    RIGHT(operate(1));
}

static void operation_needs_an_epoch_that_covers_its_target(void **state)
{
    (void)state;
    RIGHT(lock(1));
    RIGHT(operate(1));
    WRONG(operate(2), WRONG_TARGET, 101);
    RIGHT(unlock(1));
    WRONG(operate(1), OUTSIDE_EPOCH, 0);
    RIGHT(start(2));
    RIGHT(operate(2));
    WRONG(operate(1), WRONG_TARGET, 300);
    RIGHT(complete());
    WRONG(operate(2), OUTSIDE_EPOCH, 0);
}

static void operation_after_the_last_fence_breaks_its_promise(void **state)
{
    (void)state;
    struct oriel_site site = at(7);
    RIGHT(oriel_epochs_fence(&epochs, false, true, &site, &finding));
    WRONG(operate(1), NOSUCCEED, 7);
    RIGHT(end(false));
}

static void fence_that_ends_operations_breaks_noprecede(void **state)
{
    (void)state;
    struct oriel_site site = at(8);
    RIGHT(fence(7));
    RIGHT(oriel_epochs_fence(&epochs, true, false, &site, &finding));
    RIGHT(operate(0));
    WRONG(oriel_epochs_fence(&epochs, true, false, &site, &finding), NOPRECEDE, 8);
    RIGHT(oriel_epochs_fence(&epochs, true, false, &site, &finding));
}

static void fence_without_operations_permits_other_epochs(void **state)
{
    (void)state;
    RIGHT(fence(1));
    RIGHT(lock(2));
    RIGHT(unlock(2));
    WRONG(operate(2), OUTSIDE_EPOCH, 0);
    RIGHT(fence(2));
    RIGHT(start(1));
    RIGHT(complete());
    RIGHT(fence(3));
    RIGHT(operate(1));
    WRONG(lock(2), MIXED_EPOCHS, 3);
    ECHO(unlock(2));
}

static void fence_inside_other_epochs_is_wrong(void **state)
{
    (void)state;
    RIGHT(lock(3));
    WRONG(fence(1), MIXED_EPOCHS, 103);
    RIGHT(unlock(3));
    RIGHT(lock_all());
    WRONG(fence(1), MIXED_EPOCHS, 200);
    RIGHT(unlock_all());
    RIGHT(post(0));
    WRONG(fence(1), MIXED_EPOCHS, 400);
}

static void locks_do_not_nest(void **state)
{
    (void)state;
    RIGHT(lock(1));
    RIGHT(lock(2));
    WRONG(lock(1), LOCK_TWICE, 101);
    RIGHT(operate(1));
    ECHO(unlock(1));
    RIGHT(operate(1));
    RIGHT(unlock(1));
    WRONG(unlock(1), UNLOCK_WITHOUT_LOCK, 0);
    WRONG(lock_all(), LOCK_TWICE, 102);
    ECHO(unlock_all());
    RIGHT(unlock(2));
    RIGHT(lock_all());
    WRONG(lock(1), LOCK_TWICE, 200);
    WRONG(lock_all(), LOCK_TWICE, 200);
}

static void unlock_ends_its_own_kind_of_lock(void **state)
{
    (void)state;
    RIGHT(lock_all());
    WRONG(unlock(1), UNLOCK_WITHOUT_LOCK, 200);
    RIGHT(unlock_all());
    RIGHT(lock(1));
    WRONG(unlock_all(), UNLOCK_WITHOUT_LOCK, 101);
    WRONG(unlock(2), UNLOCK_WITHOUT_LOCK, 0);
    RIGHT(unlock(1));
    WRONG(unlock_all(), UNLOCK_WITHOUT_LOCK, 0);
}

static void lock_all_inside_other_epochs_is_wrong(void **state)
{
    (void)state;
    RIGHT(start(1));
    WRONG(lock_all(), MIXED_EPOCHS, 300);
    ECHO(unlock_all());
}

static void starts_and_posts_do_not_nest(void **state)
{
    (void)state;
    RIGHT(start(1));
    WRONG(start(2), START_TWICE, 300);
    ECHO(complete());
    RIGHT(complete());
    WRONG(complete(), COMPLETE_WITHOUT_START, 0);
    RIGHT(post(1));
    WRONG(post(2), POST_TWICE, 400);
    ECHO(wait_for_all());
    RIGHT(wait_for_all());
    WRONG(wait_for_all(), WAIT_WITHOUT_POST, 0);
}

static void post_in_an_open_fence_epoch_is_reported_and_opens(void **state)
{
    (void)state;
    RIGHT(fence(6));
    RIGHT(post(1));
    RIGHT(wait_for_all());
    RIGHT(operate(1));
    WRONG(post(1), MIXED_EPOCHS, 6);
    RIGHT(wait_for_all());
}

static void start_and_lock_exclude_each_other(void **state)
{
    (void)state;
    RIGHT(start(1));
    WRONG(lock(1), MIXED_EPOCHS, 300);
    ECHO(unlock(1));
    RIGHT(complete());
    RIGHT(lock(1));
    WRONG(start(1), MIXED_EPOCHS, 101);
    ECHO(complete());
    RIGHT(unlock(1));
}

static void start_and_post_may_both_be_open(void **state)
{
    (void)state;
    RIGHT(post(1));
    RIGHT(start(1));
    RIGHT(operate(1));
    RIGHT(complete());
    RIGHT(wait_for_all());
    RIGHT(end(false));
}

static void operations_after_a_refused_lock_are_its_echoes(void **state)
{
    (void)state;
    RIGHT(fence(1));
    RIGHT(operate(0));
    WRONG(lock(2), MIXED_EPOCHS, 1);
    RIGHT(fence(2));
    ECHO(unlock(2));
    RIGHT(operate(0));
}

static void flush_needs_a_lock(void **state)
{
    (void)state;
    WRONG(flush(1), FLUSH_OUTSIDE_EPOCH, 0);
    WRONG(flush(-1), FLUSH_OUTSIDE_EPOCH, 0);
    RIGHT(fence(5));
    WRONG(flush(1), FLUSH_OUTSIDE_EPOCH, 5);
    RIGHT(lock(1));
    RIGHT(flush(1));
    RIGHT(flush(-1));
    WRONG(flush(2), FLUSH_OUTSIDE_EPOCH, 101);
    RIGHT(unlock(1));
    RIGHT(lock_all());
    RIGHT(flush(3));
}

static void requests_need_a_lock(void **state)
{
    (void)state;
    RIGHT(fence(5));
    WRONG(operate_with_request(1), REQUEST_IN_ACTIVE_EPOCH, 5);
    RIGHT(fence(6));
    RIGHT(lock(1));
    RIGHT(operate_with_request(1));
}

static void window_ends_with_its_epochs(void **state)
{
    (void)state;
    RIGHT(end(false));
    RIGHT(fence(1));
    RIGHT(end(false));
    RIGHT(operate(1));
    WRONG(end(false), FREE_IN_EPOCH, 1);
    WRONG(end(true), FINALIZE_IN_EPOCH, 1);
    RIGHT(fence(2));
    RIGHT(lock(1));
    WRONG(end(false), FREE_IN_EPOCH, 101);
    RIGHT(unlock(1));
    RIGHT(post(1));
    WRONG(end(false), FREE_IN_EPOCH, 400);
    RIGHT(wait_for_all());
    RIGHT(end(true));
}

/* The call after it failed, and the program tries again. */
static void call_that_failed_has_begun_no_epoch(void **state)
{
    (void)state;
    assert_int_equal(fence(1), ORIEL_VERDICT_RIGHT);
    assert_int_equal(lock(2), ORIEL_VERDICT_RIGHT);
    oriel_epochs_lock_failed(&epochs, 2, true);
    assert_true(epochs.fence.open);
    assert_int_equal(lock_all(), ORIEL_VERDICT_RIGHT);
    oriel_epochs_lock_failed(&epochs, -1, false);
    assert_false(epochs.fence.open);
    assert_int_equal(start(1), ORIEL_VERDICT_RIGHT);
    oriel_epochs_start_failed(&epochs, false);
    assert_int_equal(start(1), ORIEL_VERDICT_RIGHT);
    assert_int_equal(complete(), ORIEL_VERDICT_RIGHT);
    assert_int_equal(lock(2), ORIEL_VERDICT_RIGHT);
    assert_int_equal(unlock(2), ORIEL_VERDICT_RIGHT);
    const struct oriel_epochs before = epochs;
    assert_int_equal(
        oriel_epochs_fence(&epochs, false, true, &(struct oriel_site){.address = 9}, &finding),
        ORIEL_VERDICT_RIGHT);
    oriel_epochs_fence_failed(&epochs, &before);
    assert_true(epochs.fences == before.fences && epochs.fence.open == before.fence.open);
    assert_true(epochs.used == before.used && epochs.no_succeed == before.no_succeed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_window, close_window)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(call_that_failed_has_begun_no_epoch),
        TEST(operation_needs_an_epoch),
        TEST(operation_needs_an_epoch_that_covers_its_target),
        TEST(operation_after_the_last_fence_breaks_its_promise),
        TEST(fence_that_ends_operations_breaks_noprecede),
        TEST(fence_without_operations_permits_other_epochs),
        TEST(fence_inside_other_epochs_is_wrong),
        TEST(locks_do_not_nest),
        TEST(unlock_ends_its_own_kind_of_lock),
        TEST(lock_all_inside_other_epochs_is_wrong),
        TEST(starts_and_posts_do_not_nest),
        TEST(post_in_an_open_fence_epoch_is_reported_and_opens),
        TEST(start_and_lock_exclude_each_other),
        TEST(start_and_post_may_both_be_open),
        TEST(operations_after_a_refused_lock_are_its_echoes),
        TEST(flush_needs_a_lock),
        TEST(requests_need_a_lock),
        TEST(window_ends_with_its_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
