/* src/window/handle.c: a handle means the window to which it was assigned last. This holds while
 * the previous window is still being freed, and in a thread that has used the previous window. Run
 * by the test rows. */
#include "window/handle.h"

#include <errno.h>

#include "cmocka_all.h"

static int host;
static const MPI_Win handle = &host;

static void handle_given_out_again_means_the_new_window(void **state)
{
    struct oriel_window first = {.n = 2};
    struct oriel_window second = {.n = 3};
    (void)state;
    assert_int_equal(oriel_handle_add(handle, &first), ORIEL_OK);
    assert_ptr_equal(oriel_handle_find(handle), &first); /* cached by this thread */
    assert_int_equal(oriel_handle_add(handle, &second), ORIEL_OK);
    assert_ptr_equal(oriel_handle_find(handle), &second);
    assert_int_equal(oriel_tls_cache.ranks, 3);
    oriel_handle_remove(handle, &first);
    assert_ptr_equal(oriel_handle_find(handle), &second);
    assert_int_equal(oriel_handle_count(), 1);
    oriel_handle_remove(handle, &second);
    assert_null(oriel_handle_find(handle));
    assert_int_equal(oriel_handle_count(), 0);
}

static void handle_given_out_again_by_the_host_is_the_hosts(void **state)
{
    struct oriel_window first = {.n = 2};
    (void)state;
    assert_int_equal(oriel_handle_add(handle, &first), ORIEL_OK);
    assert_ptr_equal(oriel_handle_find(handle), &first);
    assert_int_equal(oriel_handle_add_forwarded(handle), ORIEL_OK);
    assert_null(oriel_handle_find(handle));
    assert_true(oriel_handle_is_forwarded(handle));
    oriel_handle_remove(handle, &first);
    assert_true(oriel_handle_is_forwarded(handle));
    oriel_handle_remove(handle, oriel_handle_forwarded(handle));
    assert_false(oriel_handle_is_forwarded(handle));
}

static int refusals;

int __wrap_pthread_atfork(void (*before)(void), void (*after)(void), void (*in_child)(void));
int __wrap_pthread_atfork(void (*before)(void), void (*after)(void), void (*in_child)(void))
{
    assert_null(before);
    assert_null(after);
    assert_non_null(in_child);
    return refusals-- > 0 ? ENOMEM : 0;
}

/* Without a handler a child would treat its parent's windows as its own. */
static void refused_fork_handler_is_reported_and_tried_again(void **state)
{
    (void)state;
    refusals = 1;
    assert_int_equal(oriel_handle_watch_fork(), ORIEL_E_NO_MEM);
    assert_int_equal(oriel_handle_watch_fork(), ORIEL_OK);
    assert_int_equal(oriel_handle_watch_fork(), ORIEL_OK);
    assert_int_equal(refusals, -1); /* one handler is enough */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_fork_handler_is_reported_and_tried_again),
        cmocka_unit_test(handle_given_out_again_means_the_new_window),
        cmocka_unit_test(handle_given_out_again_by_the_host_is_the_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
