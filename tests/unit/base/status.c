/* The last failure's message: formatted, cut to its length, one for each thread. */
#include "base/status.h"

#include <pthread.h>
#include <string.h>

#include "cmocka_all.h"

static void *fail_in_thread(void *argument)
{
    char *before = argument;
    strcpy(before, oriel_fail_message());
    oriel_fail(ORIEL_E_RANGE, "another thread's");
    return NULL;
}

static void message_is_formatted_and_the_status_returned(void **state)
{
    (void)state;
    assert_int_equal(oriel_fail(ORIEL_E_PEER, "rank %d of %s", 3, "four"), ORIEL_E_PEER);
    assert_string_equal(oriel_fail_message(), "rank 3 of four");
    assert_int_equal(oriel_fail(ORIEL_E_SIZE, "newer"), ORIEL_E_SIZE);
    assert_string_equal(oriel_fail_message(), "newer");
}

static void long_message_is_cut_at_511_bytes(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    oriel_fail(ORIEL_E_OTHER, "%s", text);
    assert_int_equal(strlen(oriel_fail_message()), 511);
    assert_memory_equal(oriel_fail_message(), text, 511);
}

static void message_belongs_to_its_thread(void **state)
{
    (void)state;
    char before[512] = "untouched";
    pthread_t other;
    oriel_fail(ORIEL_E_OTHER, "mine");
    assert_int_equal(pthread_create(&other, NULL, fail_in_thread, before), 0);
    pthread_join(other, NULL);
    assert_string_equal(before, "");
    assert_string_equal(oriel_fail_message(), "mine");
}

static void statuses_are_distinct_and_success_is_zero(void **state)
{
    (void)state;
    static const enum oriel_status all[] = {
#define STATUS(name, mpi_class) ORIEL_E_##name,
#include "base/status.def"
#undef STATUS
    };
    assert_int_equal(ORIEL_OK, 0);
    assert_int_equal(ORIEL_STATUS_COUNT, sizeof all / sizeof all[0] + 1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_int_equal(all[i], i + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_is_formatted_and_the_status_returned),
        cmocka_unit_test(long_message_is_cut_at_511_bytes),
        cmocka_unit_test(message_belongs_to_its_thread),
        cmocka_unit_test(statuses_are_distinct_and_success_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
