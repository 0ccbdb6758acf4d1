/* src/transport/ucx/no_ucx.c: built without UCX, there is no path to other nodes, and callers get
 * the reason. */
#include "base/status.h"
#include "transport/ucx/devices.h"
#include "transport/ucx/net.h"

#include <string.h>

#include "cmocka_all.h"

static void expect_refusal(enum oriel_status status)
{
    assert_int_equal(status, ORIEL_E_OTHER);
    assert_string_equal(oriel_fail_message(), "built without UCX");
    (void)oriel_fail(ORIEL_E_OTHER, "before");
}

static void starting_is_refused_with_the_reason(void **state)
{
    (void)state;
    char text[100];
    expect_refusal(oriel_net_start(NULL, NULL, NULL));
    expect_refusal(oriel_net_describe(text, sizeof text));
    assert_false(oriel_net_is_started());
}

static void no_process_is_reached(void **state)
{
    (void)state;
    const struct oriel_identity who = {.pid = 1};
    struct oriel_net_peer *peer;
    size_t len_bytes = 1;
    assert_string_equal(oriel_net_address(&len_bytes), "");
    assert_int_equal(len_bytes, 0);
    assert_null(oriel_net_find(&who));
    expect_refusal(oriel_net_open(&who, "", 0, &peer));
    expect_refusal(oriel_net_check(NULL));
    expect_refusal(oriel_net_tell(NULL, NULL));
    expect_refusal(oriel_net_tell_later(NULL, NULL));
    expect_refusal(oriel_net_ask(NULL, NULL, NULL));
    expect_refusal(oriel_net_ask_later(NULL, NULL, NULL));
    expect_refusal(oriel_net_await(NULL, NULL));
}

static void no_devices_exist(void **state)
{
    (void)state;
    size_t len_bytes = 1;
    assert_false(oriel_net_has_devices());
    assert_null(oriel_net_expose(&len_bytes, sizeof len_bytes));
    assert_string_equal(oriel_net_exposed_key(NULL, &len_bytes), "");
    assert_int_equal(len_bytes, 0);
    oriel_net_unexpose(NULL);
    assert_null(oriel_net_key_open(NULL, "", 0));
    oriel_net_key_close(NULL);
    expect_refusal(oriel_net_put(NULL, 0, &len_bytes, sizeof len_bytes));
    expect_refusal(oriel_net_get(NULL, 0, sizeof len_bytes, NULL));
    expect_refusal(oriel_net_request_arrival(NULL, NULL));
}

/* Waits and finalisation call these without a check. */
static void waits_make_no_progress(void **state)
{
    (void)state;
    oriel_net_help_begin(ORIEL_NET_WAITS);
    oriel_net_help();
    oriel_net_help_end();
    oriel_net_serve_until(NULL, NULL);
    struct oriel_event event = {1, 0};
    assert_int_equal(oriel_net_await_word(&event.value, &event.sleepers, 1, NULL), ORIEL_OK);
    oriel_net_progress();
    oriel_net_answer(NULL, NULL);
    oriel_net_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starting_is_refused_with_the_reason),
        cmocka_unit_test(no_process_is_reached),
        cmocka_unit_test(no_devices_exist),
        cmocka_unit_test(waits_make_no_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
