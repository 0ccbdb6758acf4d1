/* The hash table of handles: it returns the stored values, readers need no lock, and turnover does
 * not grow memory. Each test owns its table. A value is a pointer that is never dereferenced. */
#include "base/hash_table.h"

#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "cmocka_all.h"

enum { MANY = 20000, ROUNDS = 300000, STANDING = 16, ABSENT = 64 };

static void *value_of(uint64_t key)
{
    return (void *)(uintptr_t)(key * 8 + 8);
}

static void holds_many_keys(void **state)
{
    (void)state;
    struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
    assert_null(oriel_hash_table_find(&table, 1));
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t key = i * 4096;
        assert_null(oriel_hash_table_find(&table, key));
        assert_true(oriel_hash_table_set(&table, key, value_of(key)));
    }
    for (uint64_t i = 0; i < MANY; i++)
        assert_ptr_equal(oriel_hash_table_find(&table, i * 4096), value_of(i * 4096));
    assert_null(oriel_hash_table_find(&table, 4095));
    assert_null(oriel_hash_table_find(&table, MANY * 4096));
    oriel_hash_table_close(&table);
    assert_null(oriel_hash_table_find(&table, 0));
}

static void set_replaces_and_remove_needs_the_value(void **state)
{
    (void)state;
    struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
    assert_false(oriel_hash_table_remove(&table, 5, value_of(1)));
    assert_true(oriel_hash_table_set(&table, 5, value_of(1)));
    assert_true(oriel_hash_table_set(&table, 5, value_of(2)));
    assert_ptr_equal(oriel_hash_table_find(&table, 5), value_of(2));
    assert_false(oriel_hash_table_remove(&table, 5, value_of(1)));
    assert_false(oriel_hash_table_remove(&table, 6, value_of(2)));
    assert_true(oriel_hash_table_remove(&table, 5, value_of(2)));
    assert_false(oriel_hash_table_remove(&table, 5, value_of(2)));
    assert_false(oriel_hash_table_remove(&table, 5, NULL));
    assert_null(oriel_hash_table_find(&table, 5));
    assert_true(oriel_hash_table_set(&table, 5, value_of(3)));
    assert_ptr_equal(oriel_hash_table_find(&table, 5), value_of(3));
    oriel_hash_table_close(&table);
}

/* Compared with a plain array; removals leave gaps within probe sequences. */
static void random_changes_agree_with_an_array(void **state)
{
    (void)state;
    enum { KEYS = 500 };
    static void *model[KEYS];
    struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
    uint64_t random = 88172645463325252u;
    memset(model, 0, sizeof model);
    for (int round = 0; round < 200000; round++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t key = random % KEYS;
        if ((random >> 32) % 3 != 0) {
            void *value = value_of(random >> 40);
            assert_true(oriel_hash_table_set(&table, key, value));
            model[key] = value;
        } else {
            assert_int_equal(oriel_hash_table_remove(&table, key, model[key]), model[key] != NULL);
            model[key] = NULL;
        }
        uint64_t other = (random >> 20) % KEYS;
        assert_ptr_equal(oriel_hash_table_find(&table, other), model[other]);
    }
    oriel_hash_table_close(&table);
}

struct tally {
    int count;
    uintptr_t sum;
};

static void add_up(void *value, void *context)
{
    struct tally *tally = context;
    tally->count++;
    tally->sum += (uintptr_t)value;
}

static void visit_sees_each_value_once(void **state)
{
    (void)state;
    struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
    struct tally tally = {0};
    oriel_hash_table_visit(&table, add_up, &tally);
    assert_int_equal(tally.count, 0);
    uintptr_t expected = 0;
    for (uint64_t key = 0; key < 100; key++)
        assert_true(oriel_hash_table_set(&table, key, value_of(key)));
    for (uint64_t key = 0; key < 100; key += 2)
        assert_true(oriel_hash_table_remove(&table, key, value_of(key)));
    for (uint64_t key = 1; key < 100; key += 2)
        expected += (uintptr_t)value_of(key);
    oriel_hash_table_visit(&table, add_up, &tally);
    assert_int_equal(tally.count, 50);
    assert_int_equal(tally.sum, expected);
    oriel_hash_table_close(&table);
}

/* Turnover while `standing` other keys stay. Returns the growth of the table from a tenth of the
 * turnover to its end. */
static size_t growth_bytes(uint64_t standing)
{
    struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
    size_t early_bytes = 0;
    for (uint64_t key = 0; key < standing; key++)
        assert_true(oriel_hash_table_set(&table, ~key - 1, value_of(key)));
    for (uint64_t key = 0; key < ROUNDS; key++) {
        assert_true(oriel_hash_table_set(&table, key * 64, value_of(key)));
        assert_true(oriel_hash_table_remove(&table, key * 64, value_of(key)));
        if (key == ROUNDS / 10)
            early_bytes = mallinfo2().uordblks;
    }
    for (uint64_t key = 0; key < standing; key++)
        assert_ptr_equal(oriel_hash_table_find(&table, ~key - 1), value_of(key));
    size_t late_bytes = mallinfo2().uordblks;
    oriel_hash_table_close(&table);
    return late_bytes > early_bytes ? late_bytes - early_bytes : 0;
}

static void turnover_does_not_grow_an_empty_table(void **state)
{
    (void)state;
    assert_int_equal(growth_bytes(0), 0);
}

static void turnover_among_permanent_keys_does_not_grow_the_table(void **state)
{
    (void)state;
    assert_in_range(growth_bytes(STANDING), 0, 4096);
}

/* Shared by the threads of the next test. */
struct traffic {
    struct oriel_hash_table table;
    _Atomic bool done;
    _Atomic uint64_t wrong_standing;
    _Atomic uint64_t wrong_absent;
    _Atomic uint64_t wrong_changing;
};

static void *read_all(void *argument)
{
    struct traffic *traffic = argument;
    for (uint64_t i = 0; !atomic_load(&traffic->done); i++) {
        uint64_t standing = 1000 + i % STANDING;
        if (oriel_hash_table_find(&traffic->table, standing) != value_of(standing))
            atomic_fetch_add(&traffic->wrong_standing, 1);
        if (oriel_hash_table_find(&traffic->table, 5000 + i % ABSENT) != NULL)
            atomic_fetch_add(&traffic->wrong_absent, 1);
        void *changing = oriel_hash_table_find(&traffic->table, 7);
        if (changing != NULL && changing != value_of(1) && changing != value_of(2))
            atomic_fetch_add(&traffic->wrong_changing, 1);
    }
    return NULL;
}

static void readers_see_the_old_or_the_new_value(void **state)
{
    (void)state;
    static struct traffic traffic = {.table = ORIEL_HASH_TABLE_INIT};
    pthread_t readers[2];
    for (uint64_t i = 0; i < STANDING; i++)
        assert_true(oriel_hash_table_set(&traffic.table, 1000 + i, value_of(1000 + i)));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_all, &traffic), 0);
    for (uint64_t i = 0; i < 2 * ROUNDS; i++) {
        oriel_hash_table_set(&traffic.table, 7, value_of(1 + i % 2));
        oriel_hash_table_set(&traffic.table, 100000 + i % 997, value_of(i));
        oriel_hash_table_remove(&traffic.table, 100000 + i % 997, value_of(i));
        if (i % 5 == 0)
            oriel_hash_table_remove(&traffic.table, 7, value_of(1 + i % 2));
        if (i % 4096 == 0)
            sched_yield();
    }
    atomic_store(&traffic.done, true);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    oriel_hash_table_close(&traffic.table);
    assert_int_equal(traffic.wrong_standing, 0);
    assert_int_equal(traffic.wrong_absent, 0);
    assert_int_equal(traffic.wrong_changing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_many_keys),
        cmocka_unit_test(set_replaces_and_remove_needs_the_value),
        cmocka_unit_test(random_changes_agree_with_an_array),
        cmocka_unit_test(visit_sees_each_value_once),
        cmocka_unit_test(turnover_does_not_grow_an_empty_table),
        cmocka_unit_test(turnover_among_permanent_keys_does_not_grow_the_table),
        cmocka_unit_test(readers_see_the_old_or_the_new_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
