/* src/base/tls_cache.c: cached entries of a thread end with their generation; only a fence clears
 * the flush mark. The library sees the same words; here the sign of a word shows the mark. Run by
 * the test rows. */
#include "base/tls_cache.h"
#include "base/wait.h"

#include <pthread.h>

#include "cmocka_all.h"

static unsigned turns_given;

static void count_turn(void)
{
    turns_given++;
}

static int is_marked(void)
{
    return (int32_t)oriel_tls_cache.turns < 0;
}

static void mark_is_cleared_by_the_next_flush(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3 * ORIEL_TLS_CACHE_TURNS;
         i++) { /* at every count, including the last before the host's turn */
        oriel_tls_cache_mark();
        assert_true(is_marked());
        oriel_tls_cache_flush();
        assert_false(is_marked());
    }
}

static void mark_stays_where_nothing_fences(void **state)
{
    (void)state;
    for (unsigned start = 0; start < 3; start++) {
        oriel_tls_cache.turns = start;
        oriel_tls_cache_mark();
        for (unsigned i = 0; i < 3 * ORIEL_TLS_CACHE_TURNS; i++) {
            oriel_tls_cache_count_turn();
            assert_true(is_marked());
        }
        oriel_tls_cache_flush();
        assert_false(is_marked());
    }
}

static void mark_is_cleared_by_a_fence(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3 * ORIEL_TLS_CACHE_TURNS; i++) {
        oriel_tls_cache_mark();
        oriel_tls_cache_fenced();
        assert_false(is_marked());
    }
}

static void operations_preserve_the_mark_of_others(void **state)
{
    (void)state;
    oriel_tls_cache_mark();
    oriel_tls_cache_set_window(oriel_tls_cache_begin(), 1, NULL, 0);
    assert_true(is_marked());
    oriel_tls_cache_invalidate();
    oriel_tls_cache_set_type(oriel_tls_cache_begin(), 2, NULL, 8);
    assert_true(is_marked());
    oriel_tls_cache_flush();
}

/* With any mixture of calls and stores, the host gets its turns equally often. */
static void host_gets_its_turn(void **state)
{
    (void)state;
    oriel_wait_set_progress(count_turn);
    for (int kind = 0; kind < 6; kind++) {
        turns_given = 0;
        for (unsigned i = 0; i < 10 * (ORIEL_TLS_CACHE_TURNS + 1); i++) {
            if (kind % 2 == 1)
                oriel_tls_cache_mark();
            if (kind / 2 == 0)
                oriel_tls_cache_flush();
            else if (kind / 2 == 1)
                oriel_tls_cache_count_turn();
            else
                oriel_tls_cache_fenced();
        }
        assert_in_range(turns_given, 9, 11);
    }
    oriel_wait_set_progress(NULL);
}

static void *look(void *out)
{
    *(bool *)out = oriel_tls_cache_is_valid() || is_marked();
    return NULL;
}

static void entries_and_marks_are_the_threads_own(void **state)
{
    bool others = true;
    pthread_t thread;
    (void)state;
    oriel_tls_cache_set_window(oriel_tls_cache_begin(), 1, NULL, 0);
    oriel_tls_cache_mark();
    assert_true(oriel_tls_cache_is_valid());
    assert_int_equal(pthread_create(&thread, NULL, look, &others), 0);
    pthread_join(thread, NULL);
    assert_false(others);
    oriel_tls_cache_flush();
}

static void entry_of_another_generation_ends_with_its_neighbour(void **state)
{
    (void)state;
    int window;
    uint64_t before = oriel_tls_cache_begin();
    oriel_tls_cache_set_window(before, 1, &window, 0);
    oriel_tls_cache_set_type(before, 2, NULL, 8);
    assert_true(oriel_tls_cache_is_valid());
    assert_int_equal(oriel_tls_cache.window_key, 1);
    oriel_tls_cache_invalidate();
    assert_false(oriel_tls_cache_is_valid());
    oriel_tls_cache_set_type(oriel_tls_cache_begin(), 3, NULL, 4);
    assert_true(oriel_tls_cache_is_valid());
    assert_int_equal(oriel_tls_cache.window_key, ORIEL_TLS_CACHE_NO_KEY);
    oriel_tls_cache_set_window(before, 1, &window,
                               0); /* looked up before the free: cached, but invalid */
    assert_false(oriel_tls_cache_is_valid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mark_is_cleared_by_the_next_flush),
        cmocka_unit_test(mark_stays_where_nothing_fences),
        cmocka_unit_test(mark_is_cleared_by_a_fence),
        cmocka_unit_test(operations_preserve_the_mark_of_others),
        cmocka_unit_test(host_gets_its_turn),
        cmocka_unit_test(entries_and_marks_are_the_threads_own),
        cmocka_unit_test(entry_of_another_generation_ends_with_its_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
