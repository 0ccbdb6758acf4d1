/* Histories of accesses: which conflicts they report, and what they store. The model stores every
 * access to every byte with its completion. Random accesses by ranks that exchange clocks must be
 * reported by both or by neither. Each test has its own history. */
#include "check/access/history.h"

#include "base/valgrind.h"

#include <stdlib.h>
#include <string.h>

#include "check_stubs.h"
#include "random_numbers.h"
#include "cmocka_all.h"

enum { BYTES = 96, ROUNDS = 4000, STEPS = 400, PENDING = 256 };

/* --- the model --- */

struct seen {
    struct oriel_access access;
    uint64_t ticket; /* while it is outstanding */
    bool bytes[BYTES];
};

static struct seen *model;
static int model_count;
static bool buffers; /* only uses by one process are there: they may end without completion */

static void count_out(const struct oriel_access_extent *extents, size_t count, bool *bytes)
{
    memset(bytes, 0, BYTES);
    for (size_t e = 0; e < count; e++)
        for (uint64_t i = 0; i < extents[e].count; i++)
            for (uint64_t k = 0; k < extents[e].len_bytes; k++)
                bytes[extents[e].offset + (int64_t)i * extents[e].stride_bytes + (int64_t)k] = true;
}

static bool model_conflicts(const struct seen *earlier, const struct oriel_access *later,
                            const bool *bytes)
{
    const struct oriel_access *access = &earlier->access;
    if (access->complete != ORIEL_TICK_PENDING &&
        (access->origin == later->origin ||
         access->complete <= clocks[later->origin][access->origin]))
        return false;
    if (!oriel_access_conflicts(access, later))
        return false;
    for (int i = 0; i < BYTES; i++)
        if (earlier->bytes[i] && bytes[i])
            return true;
    return false;
}

struct reported {
    int count;
    bool *bytes;
    const struct oriel_access *later;
};

static void check_reported(const struct oriel_conflict *conflict, void *closure)
{
    struct reported *reported = closure;
    reported->count++;
    assert_int_equal(conflict->later.kind, reported->later->kind);
    assert_int_equal(conflict->later.origin, reported->later->origin);
    assert_int_equal(conflict->later.issued, reported->later->issued);
    assert_int_equal(conflict->later.complete, reported->later->complete);
    assert_int_equal(conflict->later.group, reported->later->group);
    assert_true(conflict->later.site.address == reported->later->site.address);
    assert_true(conflict->len_bytes > 0);
    for (uint64_t i = 0; i < conflict->len_bytes; i++)
        assert_true(reported->bytes[conflict->offset + (int64_t)i]);
    for (int i = 0; i < model_count; i++)
        if (model[i].access.site.address == conflict->earlier.site.address &&
            model[i].bytes[conflict->offset] &&
            model_conflicts(&model[i], reported->later, reported->bytes))
            return;
    fail_msg("a conflict that the model does not have");
}

static size_t draw_extents(struct oriel_access_extent *extents)
{
    size_t count = below(4) == 0 ? 1 + below(3) : 1;
    for (size_t i = 0; i < count; i++) {
        struct oriel_access_extent *extent = &extents[i];
        extent->len_bytes = 1 + below(6);
        extent->count = below(3) == 0 ? 1 + below(5) : 1;
        extent->stride_bytes = (int64_t)below(17) - 2;
        int64_t reach = (int64_t)(extent->count - 1) * extent->stride_bytes;
        int64_t most = BYTES - 6 - (reach > 0 ? reach : 0);
        extent->offset =
            (reach < 0 ? -reach : 0) + (int64_t)below((uint64_t)(most + (reach < 0 ? reach : 0)));
    }
    return count;
}

static struct oriel_access draw_access(void)
{
    static const uint8_t ops[] = {ORIEL_OPERATOR_SUM, ORIEL_OPERATOR_MAX, ORIEL_OPERATOR_NO_OP};
    struct oriel_access access;
    memset(&access, 0, sizeof access);
    access.kind = (uint8_t)below(5);
    access.origin = (int32_t)below(RANKS);
    access.site.address = 1 + below(6);
    if (access.kind == ORIEL_ACCESS_ACCUMULATE) {
        access.op = ops[below(3)];
        access.element = below(8) == 0 ? ORIEL_KIND_DOUBLE : ORIEL_KIND_INT64;
        access.flags = below(8) == 0   ? ORIEL_ACCESS_ANY_OP
                       : below(8) == 0 ? ORIEL_ACCESS_SAME_OP
                                       : 0;
    }
    if (buffers) {
        access.kind = (uint8_t)below(2);
        access.origin = 0;
        access.group = ORIEL_ACCESS_GROUP | below(8);
        access.op = access.element = access.flags = 0;
    }
    access.snapshot = snapshot_of(access.origin);
    access.issued = clocks[access.origin][access.origin];
    if (buffers)
        return access;
    if (access.kind <= ORIEL_ACCESS_STORE && below(2) == 0)
        access.complete = clocks[access.origin][access.origin];
    else if (access.kind <= ORIEL_ACCESS_STORE)
        access.group = ORIEL_ACCESS_GROUP | (uint64_t)access.origin << 32 | below(3);
    else if (below(4) == 0)
        access.flags |= ORIEL_ACCESS_ALONE;
    if ((access.flags & ORIEL_ACCESS_ALONE) != 0 && below(2) == 0)
        access.group = ORIEL_ACCESS_GROUP | ORIEL_ACCESS_GROUP_TWICE | (uint64_t)model_count;
    return access;
}

/* The phase that all starts of runs have; both elements are of 8 bytes. */
static uint8_t phase_of(const struct oriel_access_extent *extents, size_t count)
{
    int64_t phase = extents[0].offset & 7;
    for (size_t e = 0; e < count; e++)
        for (uint64_t i = 0; i < extents[e].count; i++)
            if (((extents[e].offset + (int64_t)i * extents[e].stride_bytes) & 7) != phase)
                return ORIEL_PHASE_MIXED;
    return (uint8_t)phase;
}

static void add_to_both(oriel_shm_offset history)
{
    struct oriel_access_extent extents[4];
    size_t count = draw_extents(extents);
    struct seen *seen = &model[model_count];
    seen->access = draw_access();
    if (seen->access.kind == ORIEL_ACCESS_ACCUMULATE)
        seen->access.phase = phase_of(extents, count);
    count_out(extents, count, seen->bytes);
    bool expected = false;
    for (int i = 0; i < model_count; i++)
        expected |= model_conflicts(&model[i], &seen->access, seen->bytes);
    struct reported reported = {0, seen->bytes, &seen->access};
    if (below(8) == 0) {
        oriel_history_look(history, &seen->access, extents, count, check_reported, &reported);
        assert_int_equal(reported.count > 0, expected);
        return;
    }
    seen->ticket =
        oriel_history_add(history, &seen->access, extents, count, check_reported, &reported);
    assert_int_equal(reported.count > 0, expected);
    assert_int_equal(seen->ticket != 0, seen->access.complete == ORIEL_TICK_PENDING);
    if (seen->access.group != 0)
        assert_int_equal(seen->ticket, seen->access.group);
    seen->access.snapshot = 0;
    model_count++;
}

static void complete_in_both(oriel_shm_offset history)
{
    int32_t origin = (int32_t)below(RANKS);
    oriel_tick now = clocks[origin][origin];
    oriel_history_complete(history, origin, 0, now);
    for (int i = 0; i < model_count; i++) {
        struct oriel_access *access = &model[i].access;
        if (access->origin == origin && access->group == 0 &&
            access->complete == ORIEL_TICK_PENDING)
            access->complete = now;
    }
}

/* The number with which a ticket is completed: for the second time maybe what another rank knew,
 * which has learnt of the access, and so of its issue. */
static oriel_tick number_of_completion(const struct oriel_access *access)
{
    const bool is_twice = (access->group & ORIEL_ACCESS_GROUP_TWICE) != 0;
    const oriel_tick known = clocks[below(RANKS)][access->origin];
    return is_twice && known >= access->issued ? known : clocks[access->origin][access->origin];
}

/* A ticket or group, by completion or end. */
static void complete_one_in_both(oriel_shm_offset history)
{
    if (model_count == 0)
        return;
    struct seen seen = model[below((uint64_t)model_count)];
    bool lonely = seen.access.group != 0 || (seen.access.flags & ORIEL_ACCESS_ALONE) != 0;
    bool is_twice = (seen.access.group & ORIEL_ACCESS_GROUP_TWICE) != 0;
    if ((seen.access.complete != ORIEL_TICK_PENDING && !is_twice) || !lonely)
        return;
    bool ends = buffers;
    oriel_tick now = number_of_completion(&seen.access);
    if (ends)
        oriel_history_end_one(history, seen.ticket);
    else
        oriel_history_complete_one(history, seen.ticket, now);
    for (int i = 0; i < model_count; i++) {
        struct oriel_access *access = &model[i].access;
        const bool is_first = access->complete == ORIEL_TICK_PENDING;
        if (model[i].ticket != seen.ticket || (!is_first && access->group == 0))
            continue;
        if (ends)
            memset(model[i].bytes, 0, BYTES);
        if (is_first || now < access->complete)
            access->complete = now;
        if (!is_first || !is_twice)
            access->group = 0;
    }
}

static void forget_in_both(oriel_shm_offset history)
{
    int64_t offset = (int64_t)below(BYTES - 8);
    uint64_t len_bytes = below(9);
    oriel_history_forget(history, offset, len_bytes);
    for (int i = 0; i < model_count; i++)
        memset(model[i].bytes + offset, 0, len_bytes);
}

static void conflicts_are_those_of_the_model(void **state)
{
    (void)state;
    model = malloc(STEPS * sizeof *model);
    const int rounds = oriel_is_under_valgrind() ? ROUNDS / 10 : ROUNDS;
    for (int round = 0; round < rounds; round++) {
        oriel_shm_offset history = oriel_history_make(0);
        clocks_start();
        model_count = 0;
        buffers = round % 4 == 3;
        uint64_t patience = 2 + below(12); /* long epochs and short ones */
        for (int step = 0; step < STEPS; step++) {
            uint64_t what = below(patience + 4);
            if (what < patience)
                add_to_both(history);
            else if (what == patience)
                message((int)below(RANKS), (int)below(RANKS));
            else if (what == patience + 1)
                complete_in_both(history);
            else if (what == patience + 2)
                complete_one_in_both(history);
            else if (below(20) == 0)
                forget_in_both(history);
            else if (below(4) == 0) /* reports nothing new */
                oriel_history_flag(history, (int32_t)below(RANKS), ORIEL_ACCESS_FLUSHED_LOCAL);
        }
        oriel_history_free(history);
    }
    free(model);
}

/* --- stored accesses --- */

static oriel_shm_offset fresh(void)
{
    clocks_start();
    return oriel_history_make(0);
}

static uint64_t size_of(oriel_shm_offset history)
{
    uint64_t accesses;
    uint64_t bytes;
    oriel_history_size(history, &accesses, &bytes);
    return accesses;
}

static void never(const struct oriel_conflict *conflict, void *closure)
{
    (void)closure;
    fail_msg("a conflict at %jd", (intmax_t)conflict->offset);
}

static void count_it(const struct oriel_conflict *conflict, void *closure)
{
    (void)conflict;
    ++*(int *)closure;
}

static struct oriel_access access_by(int origin, enum oriel_access_kind kind)
{
    return (struct oriel_access){.kind = (uint8_t)kind,
                                 .op = ORIEL_OPERATOR_SUM,
                                 .origin = origin,
                                 .snapshot = snapshot_of(origin),
                                 .site = {1, (uint32_t)origin, 0, 0}};
}

static void put(oriel_shm_offset history, int origin, int64_t offset, uint64_t len_bytes,
                oriel_conflict_fn *report, void *closure)
{
    struct oriel_access access = access_by(origin, ORIEL_ACCESS_PUT);
    oriel_history_add(history, &access, &(struct oriel_access_extent){offset, len_bytes, 1, 0}, 1,
                      report, closure);
}

/* A million puts of 8 bytes, step apart and flushed: each one completes before the next. */
static uint64_t after_a_million(int64_t first, int64_t step, bool flushed)
{
    oriel_shm_offset history = fresh();
    for (int i = 0; i < 1000000; i++) {
        put(history, 1, first + i * step, 8, never, NULL);
        if (flushed)
            oriel_history_complete(history, 1, 0, clocks[1][1]);
    }
    uint64_t accesses = size_of(history);
    int reported = 0;
    put(history, 2, first + 777777 * step, 8, count_it, &reported); /* and they are still known */
    assert_int_equal(reported, 1);
    if (step > 8) {
        put(history, 2, first + 777776 * step + 8, (uint64_t)step - 8, count_it, &reported);
        assert_int_equal(reported, 1);
    }
    oriel_history_free(history);
    return accesses;
}

static void a_million_puts_of_a_loop_are_few(void **state)
{
    (void)state;
    assert_in_range(after_a_million(0, 8, false), 1, 3);
    assert_in_range(after_a_million(0, 8, true), 1, 3);
    assert_in_range(after_a_million(8000000, -8, false), 1, 3);
    assert_in_range(after_a_million(8000000, -8, true), 1, 3);
    assert_in_range(after_a_million(0, 64, false), 1, 3);
    assert_in_range(after_a_million(64000000, -64, false), 1, 3);
}

static void puts_in_any_order_become_few(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    for (uint64_t i = 0; i < 1 << 16; i++)
        put(history, 1, (int64_t)(i * 40503 % (1 << 16) * 8), 8, never, NULL);
    assert_in_range(size_of(history), 1, 1000);
    oriel_history_free(history);
}

static void puts_to_one_place_with_flushes_are_one(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    for (int i = 0; i < 1000; i++) {
        put(history, 1, 64, 8, never, NULL);
        oriel_history_complete(history, 1, 0, clocks[1][1]);
        message(1, 2); /* a new number each time */
    }
    assert_in_range(size_of(history), 1, 2);
    oriel_history_free(history);
}

static void add_sum(oriel_shm_offset history, uint64_t len_bytes, uint8_t flags, uint64_t *ticket)
{
    struct oriel_access access = access_by(1, ORIEL_ACCESS_ACCUMULATE);
    access.flags = flags;
    *ticket = oriel_history_add(history, &access,
                                &(struct oriel_access_extent){64, len_bytes, 1, 0}, 1, never, NULL);
}

/* Small ones, long ones, and those of requests. */
static void equally_flagged_accesses_do_not_accumulate(void **state)
{
    (void)state;
    uint64_t ticket;
    for (int variant = 0; variant < 3; variant++) {
        oriel_shm_offset history = fresh();
        for (int i = 0; i < 1000; i++) {
            add_sum(history, variant == 1 ? 1000 : 8, variant == 2 ? ORIEL_ACCESS_ALONE : 0,
                    &ticket);
            if (variant == 2)
                oriel_history_request_done(history, ticket);
            else
                oriel_history_flag(history, 1, ORIEL_ACCESS_FLUSHED_LOCAL);
        }
        assert_in_range(size_of(history), 1, 2);
        int reported = 0;
        put(history, 2, 64, 8, count_it, &reported);
        assert_int_equal(reported, 1);
        oriel_history_complete(history, 1, 0, clocks[1][1]);
        oriel_history_complete(history, 2, 0, clocks[2][2]);
        message(1, 2);
        put(history, 2, 64, 8, never, NULL);
        oriel_history_free(history);
    }
}

/* One thread has its clock snapshot, another one releases and completes, then the first one
 * accesses. */
static void threads_of_one_process_are_ordered(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    put(history, 1, 64, 8, never, NULL);
    oriel_history_complete(history, 1, 0, clocks[1][1] + 1);
    put(history, 1, 64, 8, never, NULL);
    oriel_history_free(history);
}

static void columns_side_by_side_become_one(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    struct oriel_access access = access_by(1, ORIEL_ACCESS_PUT);
    for (int column = 0; column < 64; column++)
        oriel_history_add(history, &access, &(struct oriel_access_extent){column * 8, 8, 1000, 512},
                          1, never, NULL);
    assert_int_equal(size_of(history), 1);
    oriel_history_free(history);
}

static void accesses_known_to_all_are_dropped_when_the_history_grows(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 1000; i++)
            put(history, 1, i * 24 + i * i % 7, 8, never, NULL);
        oriel_history_complete(history, 1, 0, clocks[1][1]);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 1)
                message(1, rank);
    }
    assert_in_range(size_of(history), 1, 2500);
    oriel_history_free(history);
}

/* Accesses that are not completed once more. */
static void accesses_completed_once_of_twice_do_not_accumulate(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    for (uint64_t i = 0; i < 50000; i++) {
        struct oriel_access access = access_by(1, ORIEL_ACCESS_PUT);
        access.flags = ORIEL_ACCESS_ALONE;
        access.group = ORIEL_ACCESS_GROUP | ORIEL_ACCESS_GROUP_TWICE | i;
        oriel_history_add(history, &access, &(struct oriel_access_extent){(int64_t)i * 24, 8, 1, 0},
                          1, never, NULL);
        oriel_history_complete_one(history, access.group, clocks[1][1]);
        if (i % 100 != 0)
            continue;
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 1)
                message(1, rank);
        assert_in_range(size_of(history), 1, 2500); /* a long one would take minutes */
    }
    oriel_history_free(history);
}

static void long_histories_are_shortened_without_false_blame(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    counted = 0;
    for (int i = 0; i < 200000; i++) { /* each with its own number, which all but rank 3 know */
        put(history, 1, i * 8, 8, never, NULL);
        oriel_history_complete(history, 1, 0, clocks[1][1]);
        message(1, 2);
    }
    assert_in_range(size_of(history), 1, 40000);
    assert_true(counted > 0);
    for (int i = 0; i < 200000; i += 1000)
        put(history, 2, i * 8, 8, never, NULL);
    int reported = 0;
    put(history, 3, 8 * 199990, 8, count_it, &reported);
    assert_int_equal(reported, 1);
    oriel_history_free(history);
}

static void a_full_memory_misses_and_continues(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    uint64_t left = shm_left;
    shm_left = 20000;
    for (int i = 0; i < 10000; i++)
        put(history, 1, i * 24 + i * i % 7, 8, never, NULL);
    struct oriel_access access = access_by(2, ORIEL_ACCESS_GET);
    oriel_history_add(history, &access, &(struct oriel_access_extent){1 << 20, 1, 1, 0}, 1, never,
                      NULL);
    int reported = 0;
    put(history, 2, 0, 8, count_it, &reported);
    assert_int_equal(reported, 1);
    oriel_history_complete(history, 1, 0, clocks[1][1]);
    shm_left = left;
    oriel_history_free(history);
}

static void a_process_that_died_inside_leaves_an_empty_history(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    for (int i = 0; i < 100; i++)
        put(history, 1, i * 24, 8, never, NULL);
    uint32_t *busy = (uint32_t *)((char *)oriel_shm_at(history) + sizeof(struct oriel_shm_lock));
    *busy = 1;
    put(history, 2, 0, 8, never, NULL);
    assert_int_equal(size_of(history), 1);
    for (int i = 0; i < 100; i++)
        put(history, 1, 100 + i * 24, 8, never, NULL);
    assert_int_equal(size_of(history), 2);
    oriel_history_free(history);
}

static struct oriel_access site_access(int origin, uint64_t address)
{
    struct oriel_access access = access_by(origin, ORIEL_ACCESS_PUT);
    access.site.address = address;
    return access;
}

static void a_pair_of_sites_is_reported_once(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    struct oriel_access_extent everything = {0, 1000, 1, 0};
    for (int i = 0; i < 10; i++) {
        struct oriel_access access = site_access(1, 1 + (uint64_t)i % 2);
        oriel_history_add(history, &access, &(struct oriel_access_extent){i * 50 + i, 8, 1, 0}, 1,
                          never, NULL);
    }
    int reported = 0;
    struct oriel_access access = site_access(2, 7);
    oriel_history_add(history, &access, &everything, 1, count_it, &reported);
    assert_int_equal(reported, 2);
    oriel_history_free(history);
}

static void remember_flags(const struct oriel_conflict *conflict, void *closure)
{
    *(uint8_t *)closure |= conflict->earlier.flags;
}

static void flags_are_reported_with_the_conflict(void **state)
{
    (void)state;
    oriel_shm_offset history = fresh();
    struct oriel_access access = access_by(1, ORIEL_ACCESS_PUT);
    access.flags = ORIEL_ACCESS_ALONE;
    uint64_t first = oriel_history_add(history, &access, &(struct oriel_access_extent){0, 8, 1, 0},
                                       1, never, NULL);
    oriel_history_add(history, &access, &(struct oriel_access_extent){8, 8, 1, 0}, 1, never, NULL);
    oriel_history_request_done(history, first);
    uint8_t flags = 0;
    put(history, 2, 0, 8, remember_flags, &flags);
    assert_true((flags & ORIEL_ACCESS_REQUEST_DONE) != 0);
    flags = 0;
    put(history, 2, 8, 8, remember_flags, &flags);
    assert_true((flags & ORIEL_ACCESS_REQUEST_DONE) == 0);
    oriel_history_flag(history, 1, ORIEL_ACCESS_FLUSHED_OTHER);
    put(history, 3, 8, 8, remember_flags, &flags);
    assert_true((flags & ORIEL_ACCESS_FLUSHED_OTHER) != 0);
    oriel_history_free(history);
}

/* With an argument: only the test of that name. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conflicts_are_those_of_the_model),
        cmocka_unit_test(a_million_puts_of_a_loop_are_few),
        cmocka_unit_test(puts_in_any_order_become_few),
        cmocka_unit_test(puts_to_one_place_with_flushes_are_one),
        cmocka_unit_test(equally_flagged_accesses_do_not_accumulate),
        cmocka_unit_test(threads_of_one_process_are_ordered),
        cmocka_unit_test(columns_side_by_side_become_one),
        cmocka_unit_test(accesses_known_to_all_are_dropped_when_the_history_grows),
        cmocka_unit_test(accesses_completed_once_of_twice_do_not_accumulate),
        cmocka_unit_test(long_histories_are_shortened_without_false_blame),
        cmocka_unit_test(a_full_memory_misses_and_continues),
        cmocka_unit_test(a_process_that_died_inside_leaves_an_empty_history),
        cmocka_unit_test(a_pair_of_sites_is_reported_once),
        cmocka_unit_test(flags_are_reported_with_the_conflict),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
