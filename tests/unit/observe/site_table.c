/* The table of call sites: sites are found again, no call is lost when the table is full, and
 * threads that add sites at the same time agree. */
#include "observe/stats/site_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

enum { MANY = 1000, THREADS = 4, ROUNDS = 200 };

#define PUT   ((enum oriel_trace_kind)(ORIEL_TRACE_OPERATION + ORIEL_COUNTS_put))
#define FENCE ((enum oriel_trace_kind)(ORIEL_TRACE_CALL + ORIEL_CALL_OF_fence))

static struct oriel_site_table *table_make(void)
{
    struct oriel_site_table *table = aligned_alloc(64, sizeof *table);
    assert_non_null(table);
    return memset(table, 0, sizeof *table);
}

/* Addresses of a program's calls have no pattern. */
static uint64_t address_of(unsigned i)
{
    return UINT64_C(0x7f0000000000) + ((i * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
}

static struct oriel_counted_site *count_call(struct oriel_site_table *table, uint64_t key,
                                             uint16_t place, enum oriel_trace_kind kind)
{
    struct oriel_counted_site *site = oriel_site_table_find(table, key);
    site = site != NULL ? site : oriel_site_table_add(table, key, place, kind);
    atomic_fetch_add(&site->count, 1);
    return site;
}

static void a_site_is_found_again(void **state)
{
    (void)state;
    struct oriel_site_table *table = table_make();
    uint64_t key = oriel_site_key(address_of(1), PUT);
    assert_null(oriel_site_table_find(table, key));
    struct oriel_counted_site *site = oriel_site_table_add(table, key, 7, PUT);
    assert_ptr_equal(oriel_site_table_find(table, key), site);
    assert_ptr_equal(oriel_site_table_add(table, key, 7, PUT), site);
    assert_int_equal(site->place, 7);
    assert_int_equal(site->kind, PUT);
    free(table);
}

/* A call through a pointer: one address, several functions. */
static void kinds_at_one_address_are_apart(void **state)
{
    (void)state;
    struct oriel_site_table *table = table_make();
    struct oriel_counted_site *put = count_call(table, oriel_site_key(address_of(1), PUT), 1, PUT);
    struct oriel_counted_site *fence =
        count_call(table, oriel_site_key(address_of(1), FENCE), 1, FENCE);
    assert_ptr_not_equal(put, fence);
    assert_int_equal(put->kind, PUT);
    assert_int_equal(fence->kind, FENCE);
    free(table);
}

static uint64_t kind_sum(const struct oriel_counted_site *rows, uint32_t count,
                         enum oriel_trace_kind kind)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += rows[i].kind == kind ? rows[i].count : 0;
    return sum;
}

static void a_full_table_loses_no_call(void **state)
{
    (void)state;
    struct oriel_site_table *table = table_make();
    struct oriel_counted_site rows[ORIEL_SITE_ROWS];
    uint64_t others = 0;
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < MANY; i++) {
            enum oriel_trace_kind kind = i % 3 == 0 ? PUT : FENCE;
            uint64_t key = oriel_site_key(address_of(i), kind);
            others += count_call(table, key, (uint16_t)(i % 500 + 1), kind)->place == 0;
        }
    uint32_t count = oriel_site_table_copy(table, rows);
    assert_true(count > ORIEL_SITES / 2 && count <= ORIEL_SITE_SLOTS + 2);
    assert_int_equal(kind_sum(rows, count, PUT), 3 * ((MANY + 2) / 3));
    assert_int_equal(kind_sum(rows, count, FENCE), 3 * (MANY - (MANY + 2) / 3));
    assert_int_equal(rows[count - 2].place, 0);
    assert_int_equal(rows[count - 1].place, 0);
    assert_int_equal(rows[count - 2].count + rows[count - 1].count, others);
    free(table);
}

static void an_unknown_place_is_one_of_the_others(void **state)
{
    (void)state;
    struct oriel_site_table *table = table_make();
    struct oriel_counted_site rows[ORIEL_SITE_ROWS];
    count_call(table, oriel_site_key(address_of(1), FENCE), 0, FENCE);
    assert_int_equal(oriel_site_table_copy(table, rows), 1);
    assert_int_equal(rows[0].place, 0);
    assert_int_equal(rows[0].kind, FENCE);
    free(table);
}

static void *count_all(void *table)
{
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < MANY; i++)
            count_call(table, oriel_site_key(address_of(i), PUT), (uint16_t)(i % 500 + 1), PUT);
    return NULL;
}

static void threads_agree_on_slots(void **state)
{
    (void)state;
    struct oriel_site_table *table = table_make();
    struct oriel_counted_site rows[ORIEL_SITE_ROWS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_all, table), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    uint32_t count = oriel_site_table_copy(table, rows);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].count % (THREADS * ROUNDS), 0);
        for (uint32_t j = 0; j < i && rows[i].key != 0; j++)
            assert_true(rows[i].key != rows[j].key);
    }
    assert_int_equal(kind_sum(rows, count, PUT), THREADS * ROUNDS * MANY);
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_is_found_again),
        cmocka_unit_test(kinds_at_one_address_are_apart),
        cmocka_unit_test(a_full_table_loses_no_call),
        cmocka_unit_test(an_unknown_place_is_one_of_the_others),
        cmocka_unit_test(threads_agree_on_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
