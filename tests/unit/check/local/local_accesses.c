/* The process's own memory: uses of buffers, loads and stores become accesses in the right
 * histories, and end. Datatypes are made-up layouts; the test inserts other ranks' operations into
 * the histories. Each test starts and stops the module. */
#include "check/local/local_accesses.h"

#include "check/common/reentrancy.h"
#include "check/order/order.h"
#include "check/local/window_memory.h"
#include "check/report/call_sites.h"
#include "check/local/watched_pages.h"

#include <stdlib.h>
#include <string.h>

#include "check_stubs.h"
#include "random_numbers.h"
#include "cmocka_all.h"

/* --- stand-ins --- */

enum oriel_status oriel_type_find_slow(MPI_Datatype datatype, const struct oriel_type **out)
{
    *out = datatype;
    return datatype != NULL ? ORIEL_OK : ORIEL_E_TYPE;
}

struct oriel_site oriel_site_here(const void *address, uint16_t call, uint32_t world_rank,
                                  uint16_t opening)
{
    return (struct oriel_site){(uint64_t)(uintptr_t)address, world_rank, call, opening};
}

/* Calls have letters as addresses. */
static bool is_watcher(const void *address)
{
    return *(const char *)address == 'w';
}

static struct oriel_type one_long;
static MPI_Datatype type_long;

struct reported {
    int count;
    struct oriel_conflict last;
};

static void remember(const struct oriel_conflict *conflict, void *closure)
{
    struct reported *reported = closure;
    reported->count++;
    reported->last = *conflict;
}

static struct reported outside; /* of windows */
static struct reported window;
static oriel_shm_offset history; /* of the window */
static int given;                /* by atomic instructions */
static int taken;
enum { MEMORY_BYTES = 64 * sizeof(long) };
static long space[128];
static long *const memory = &space[32];

static void count_order(void *closure, int64_t offset, bool gives)
{
    assert_ptr_equal(closure, &window);
    assert_int_equal(offset, 48);
    ++*(gives ? &given : &taken);
}

static int memory_start(void **state)
{
    (void)state;
    one_long = (struct oriel_type){.kind = ORIEL_KIND_INT64,
                                   .dense = true,
                                   .elements = 1,
                                   .size_bytes = 8,
                                   .extent_bytes = 8,
                                   .plain_bytes = 8};
    type_long = &one_long;
    clocks_start();
    rank_now = 1;
    oriel_check_running = true;
    memset(&outside, 0, sizeof outside);
    memset(&window, 0, sizeof window);
    history = oriel_history_make(0);
    assert_int_equal(oriel_local_start(remember, &outside, count_order), ORIEL_OK);
    assert_int_equal(oriel_local_region_add(memory, MEMORY_BYTES, history, 0, remember, &window),
                     ORIEL_OK);
    return 0;
}

static int memory_stop(void **state)
{
    (void)state;
    oriel_local_region_remove(memory, history);
    oriel_local_forget(history);
    oriel_local_stop();
    oriel_history_free(history);
    return 0;
}

static uint64_t put_by(int origin, int64_t offset, uint64_t len_bytes)
{
    struct oriel_access access = {.kind = ORIEL_ACCESS_PUT,
                                  .origin = origin,
                                  .snapshot = snapshot_of(origin),
                                  .site = {77, (uint32_t)origin, 1, 0}};
    return oriel_history_add(history, &access,
                             &(struct oriel_access_extent){offset, len_bytes, 1, 0}, 1, remember,
                             &window);
}

static void load(const void *at, const void *caller)
{
    oriel_local_access(at, sizeof(long), false, false, caller);
}

static void store(const void *at, const void *caller)
{
    oriel_local_access(at, sizeof(long), true, false, caller);
}

static const struct oriel_site put_site = {500, 1, 3, 0};

static void loads_and_stores_conflict_with_operations_on_the_window(void **state)
{
    (void)state;
    put_by(0, 16, 8);
    load(&memory[1], "a");
    store(&memory[3], "b");
    assert_int_equal(window.count, 0);
    load(&memory[2], "c");
    assert_int_equal(window.count, 1);
    assert_int_equal(window.last.offset, 16);
    assert_int_equal(window.last.later.kind, ORIEL_ACCESS_LOAD);
    assert_int_equal(window.last.later.site.call, ORIEL_CALL_load);
    put_by(0, 24, 8);
    assert_int_equal(window.count, 2);
    assert_int_equal(window.last.earlier.kind, ORIEL_ACCESS_STORE);
    assert_int_equal(outside.count, 0);
}

static void ordered_loads_and_stores_are_no_conflict(void **state)
{
    (void)state;
    store(&memory[2], "a");
    message(1, 0);
    put_by(0, 16, 8);
    oriel_history_complete(history, 0, 0, clocks[0][0]);
    message(0, 1);
    load(&memory[2], "b");
    store(&memory[2], "b");
    assert_int_equal(window.count, 0);
}

static void buffers_are_needed_until_their_group_is_complete(void **state)
{
    (void)state;
    long origin = 0;
    long result = 0;
    oriel_local_group group = oriel_local_group_target(9, 3);
    oriel_local_buffer(&origin, 1, type_long, false, 0, group, &put_site);
    oriel_local_buffer(&result, 1, type_long, true, 0, group, &put_site);
    load(&origin, "a");
    assert_int_equal(outside.count, 0);
    store(&origin, "b");
    assert_int_equal(outside.count, 1);
    assert_int_equal(outside.last.offset, (int64_t)(intptr_t)&origin);
    load(&result, "c");
    assert_int_equal(outside.count, 2);
    oriel_local_complete(oriel_local_group_target(9, 2)); /* of another target */
    store(&result, "d");
    assert_int_equal(outside.count, 3);
    oriel_local_complete(group);
    store(&origin, "e");
    store(&result, "f");
    assert_int_equal(outside.count, 3);
}

static void a_call_that_needs_a_buffer_twice_is_reported_once(void **state)
{
    (void)state;
    long buffer = 0;
    const struct oriel_site other_site = {600, 1, 3, 0}, use_site = {700, 1, 3, 0};
    oriel_local_group first = oriel_local_group_new();
    oriel_local_group second = oriel_local_group_new();
    oriel_local_message(&buffer, 1, type_long, false, first, &put_site);
    oriel_local_message(&buffer, 1, type_long, false, second, &put_site);
    oriel_local_message(&buffer, 1, type_long, true, 0, &use_site);
    assert_int_equal(outside.count, 1);
    oriel_local_message(&buffer, 1, type_long, false, oriel_local_group_new(), &other_site);
    oriel_local_message(&buffer, 1, type_long, true, 0, &use_site);
    assert_int_equal(outside.count, 3);
    oriel_local_complete(first);
    oriel_local_message(&buffer, 1, type_long, true, 0, &use_site);
    assert_int_equal(outside.count, 5);
}

static void memory_that_is_used_again_is_not_blamed(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        oriel_local_group group = oriel_local_group_new();
        long *buffer = malloc(sizeof *buffer);
        oriel_local_message(buffer, 1, type_long, i % 2 == 0, group, &put_site);
        oriel_local_complete(group);
        store(buffer, "a");
        free(buffer);
    }
    assert_int_equal(outside.count, 0);
}

static void a_buffer_in_the_window_is_an_access_to_it(void **state)
{
    (void)state;
    oriel_local_group group = oriel_local_group_new();
    oriel_local_buffer(&memory[4], 2, type_long, false, 0, group, &put_site);
    put_by(0, 40, 8);
    assert_int_equal(window.count, 1);
    assert_int_equal(window.last.earlier.site.address, 500);
    message(1, 0); /* too early: it is not complete */
    put_by(0, 32, 8);
    assert_int_equal(window.count, 2);
    oriel_history_forget(history, 0, MEMORY_BYTES);
    oriel_local_buffer(&memory[4], 2, type_long, false, 0, group, &put_site);
    oriel_local_complete(group);
    put_by(2, 32, 8);
    assert_int_equal(window.count, 3);
    message(1, 0);
    put_by(0, 40, 8);
    assert_int_equal(window.count, 3);
}

static void buffers_across_the_border_count_where_they_are(void **state)
{
    (void)state;
    oriel_local_group group = oriel_local_group_new();
    oriel_local_buffer(&memory[-3], 4, type_long, true, 0, group,
                       &put_site); /* one of them inside */
    oriel_local_buffer(&memory[63], 4, type_long, true, 0, group, &put_site);
    put_by(0, 8, 62 * 8 - 8);
    assert_int_equal(window.count, 0);
    put_by(0, 0, 8);
    assert_int_equal(window.count, 1);
    put_by(0, 504, 8);
    assert_int_equal(window.count, 2);
    oriel_local_complete(group);
}

static void memory_of_two_windows_is_recorded_in_both(void **state)
{
    (void)state;
    struct reported other = {0};
    oriel_shm_offset second = oriel_history_make(0);
    oriel_local_region_add(&memory[8], 64, second, 1000, remember, &other);
    store(&memory[9], "a");
    put_by(0, 72, 4);
    assert_int_equal(window.count, 1);
    struct oriel_access access = {
        .kind = ORIEL_ACCESS_GET, .origin = 0, .snapshot = snapshot_of(0)};
    oriel_history_add(second, &access, &(struct oriel_access_extent){1012, 4, 1, 0}, 1, remember,
                      &other);
    assert_int_equal(other.count, 1);
    oriel_history_add(second, &access, &(struct oriel_access_extent){1008, 4, 1, 0}, 1, remember,
                      &other);
    assert_int_equal(other.count, 3); /* the store, and the put through the first window */
    oriel_local_region_remove(&memory[8], second);
    oriel_local_forget(second);
    oriel_history_free(second);
}

static void uses_end_where_a_region_was_detached(void **state)
{
    (void)state;
    static long more[8];
    oriel_local_group group = oriel_local_group_new();
    assert_int_equal(oriel_local_region_add(more, sizeof more, history, 4096, remember, &window),
                     ORIEL_OK);
    oriel_local_buffer(&memory[4], 2, type_long, false, 0, group, &put_site);
    oriel_local_buffer(&more[4], 2, type_long, false, 0, group, &put_site);
    oriel_local_region_remove(more, history);
    put_by(0, 32, 8);
    assert_int_equal(window.count, 1);
    oriel_local_complete(group);
    message(1, 0);
    put_by(0, 40, 8);
    put_by(0, 4096 + 40, 8);
    assert_int_equal(window.count, 1);
}

static void earlier_accesses_are_recorded_once(void **state)
{
    (void)state;
    assert_non_null(oriel_check_watch(NULL, is_watcher));
    uint64_t accesses;
    uint64_t bytes;
    for (int i = 0; i < 1000; i++)
        for (int k = 0; k < 10; k++)
            load(&memory[k * 3], (const char *)"0123456789" + k);
    oriel_history_size(history, &accesses, &bytes);
    assert_in_range(accesses, 1, 10);
    put_by(1, 3 * 8, 8); /* its own, and still outstanding */
    oriel_local_buffer(&bytes, 1, type_long, false, 0, oriel_local_group_new(), &put_site);
    load(&memory[3], "a");
    assert_int_equal(window.count, 1);
    load(&memory[3], "a");
    assert_int_equal(window.count, 1);
}

static void stores_are_seen_again_once_their_buffer_is_needed(void **state)
{
    (void)state;
    assert_non_null(oriel_check_watch(NULL, is_watcher));
    long buffer = 0;
    store(&buffer, "a");
    store(&memory[5], "a");
    oriel_local_buffer(&buffer, 1, type_long, false, 0, oriel_local_group_new(), &put_site);
    oriel_local_buffer(&memory[5], 1, type_long, false, 0, oriel_local_group_new(), &put_site);
    store(&buffer, "a");
    store(&memory[5], "a");
    assert_int_equal(outside.count, 1);
    assert_int_equal(window.count, 1);
}

static void atomic_instructions_order_and_are_never_blamed(void **state)
{
    (void)state;
    given = taken = 0;
    put_by(0, 48, 8);
    oriel_local_access(&memory[6], 8, true, true, "a");
    assert_int_equal(given, 1);
    oriel_local_access(&memory[6], 8, false, true, "a");
    assert_int_equal(taken, 1);
    load(&memory[7], "b"); /* values that the load may have seen since are acquired before */
    assert_int_equal(taken, 2);
    load(&memory[8], "b");
    assert_int_equal(taken, 2);
    put_by(0, 48, 8);
    assert_int_equal(window.count, 1); /* of the two puts */
}

/* A signal handler that interrupts a step under a lock of the checker. */
static void stores_under_a_lock_are_not_recorded(void **state)
{
    (void)state;
    put_by(0, 24, 8);
    oriel_shm_lock_begin();
    store(&memory[3], "a");
    oriel_shm_lock_end();
    assert_int_equal(window.count, 0);
    store(&memory[3], "a");
    assert_int_equal(window.count, 1);
}

static void library_store(const void *at, const char *place)
{
    oriel_local_library_access(at, 8, true, ORIEL_CALL_memset, place);
}

static bool is_unused(const long *first, const long *end)
{
    return oriel_local_is_unused((uint64_t)(uintptr_t)first, (uint64_t)(uintptr_t)end);
}

/* Also in the history, and if several threads make calls, because programs copy much while a
 * request is outstanding. */
static void bytes_beside_outstanding_buffers_are_unused(void **state)
{
    static long buffers[64];
    oriel_local_group first = oriel_local_group_new();
    oriel_local_group second = oriel_local_group_new();
    struct oriel_node *two = oriel_node_loop(2, 64, oriel_node_run(ORIEL_KIND_INT64, 1));
    struct oriel_type apart = {
        .layout = two, .plain_bytes = INT64_MAX, .size_bytes = 16, .extent_bytes = 72};
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        oriel_check_many_threads = threads;
        assert_true(is_unused(buffers, buffers + 64));
        oriel_local_buffer(buffers + 8, 1, threads ? type_long : &apart, true, 0, first, &put_site);
        assert_true(is_unused(buffers, buffers + 8));
        assert_false(is_unused(buffers + 8, buffers + 9));
        assert_true(is_unused(buffers + 24, buffers + 64));
        oriel_local_buffer(buffers + 32, 1, &apart, true, 0, second, &put_site);
        oriel_local_complete(threads ? second : first);
        assert_false(is_unused(buffers + 8 + 24 * !threads, buffers + 9 + 24 * !threads));
        assert_true(is_unused(buffers + 48, buffers + 64));
        oriel_local_complete(threads ? first : second);
        assert_true(is_unused(buffers, buffers + 64));
    }
    oriel_check_many_threads = false;
    oriel_node_free(two);
}

static void functions_of_libc_meet_only_what_is_under_way(void **state)
{
    (void)state;
    long buffer = 0;
    oriel_local_group group = oriel_local_group_new();
    library_store(&memory[3], "a"); /* not stored */
    put_by(0, 24, 8);
    library_store(&memory[4], "a");
    assert_int_equal(window.count, 0);
    library_store(&memory[3], "a");
    assert_int_equal(window.count, 1);
    assert_int_equal(window.last.later.site.call, ORIEL_CALL_memset);
    assert_int_equal(window.last.may_be_hosts, 1);
    oriel_history_complete(history, 0, 0, clocks[0][0]); /* it may be ordered in ways unseen */
    library_store(&memory[3], "a");
    assert_int_equal(window.count, 1);
    oriel_local_buffer(&buffer, 1, type_long, false, 0, group, &put_site);
    library_store(&buffer, "a");
    assert_int_equal(outside.count, 1);
    oriel_local_complete(group);
    library_store(&buffer, "a");
    assert_int_equal(outside.count, 1);
}

static bool all_instrumented(const void *address)
{
    (void)address;
    return true;
}

static void functions_of_libc_are_recorded_for_instrumented_code(void **state)
{
    (void)state;
    assert_non_null(oriel_check_watch(all_instrumented, is_watcher));
    library_store(&memory[4], "w"); /* the watcher itself has recorded it */
    put_by(0, 32, 8);
    assert_int_equal(window.count, 0);
    library_store(&memory[3], "a");
    put_by(0, 24, 8);
    assert_int_equal(window.count, 1);
}

/* Both lists of buffers, and windows. A buffer is forgotten, a window is reported once. */
static void memory_that_ends_is_reported(void **state)
{
    (void)state;
    const struct oriel_site free_site = {700, 1, ORIEL_CALL_free, 0};
    for (int watched = 0; watched < 2; watched++) {
        long block[16];
        oriel_local_group group = oriel_local_group_new();
        uint64_t low = (uint64_t)(uintptr_t)block;
        outside.count = 0;
        oriel_local_buffer(&block[8], 2, type_long, false, 0, group, &put_site);
        oriel_local_end_memory(low, low + 8 * sizeof(long), &free_site);
        assert_int_equal(outside.count, 0);
        oriel_local_end_memory(low, low + sizeof block, &free_site);
        assert_int_equal(outside.count, 1);
        assert_int_equal(outside.last.earlier.site.address, put_site.address);
        oriel_local_end_memory(low, low + sizeof block, &free_site);
        assert_int_equal(outside.count, 1);
        oriel_local_complete(group);
        assert_non_null(oriel_check_watch(NULL, is_watcher));
    }
    uint64_t low = (uint64_t)(uintptr_t)memory;
    oriel_local_end_memory(low - 8, low, &free_site);
    assert_int_equal(window.count, 0);
    oriel_local_end_memory(low - 8, low + 16, &free_site);
    oriel_local_end_memory(low - 8, low + 16, &free_site);
    assert_int_equal(window.count, 1);
    assert_int_equal(window.last.offset, 0);
    assert_int_equal(window.last.len_bytes, 16);
}

static void only_relevant_memory_is_watched(void **state)
{
    (void)state;
    long *buffer = aligned_alloc(4096, 8192);
    assert_non_null(oriel_check_watch(NULL, is_watcher));
    assert_true(oriel_local_watched(&memory[63], 8));
    assert_false(oriel_local_watched(buffer, 8192));
    oriel_local_group group = oriel_local_group_new();
    oriel_local_buffer(buffer, 1, type_long, false, 0, group, &put_site);
    oriel_local_buffer(buffer + 1, 1, type_long, false, 0, group, &put_site);
    assert_true(oriel_local_watched(buffer + 3, 8));
    assert_false(oriel_local_watched(buffer + 512, 8));
    assert_true(oriel_local_watched(buffer, 8192));
    oriel_local_buffer(buffer + 512, 1, type_long, false, 0, group,
                       &put_site); /* after it: the range grows */
    assert_true(oriel_local_watched(buffer + 512, 8));
    oriel_local_complete(group);
    assert_false(oriel_local_watched(buffer, 8192));
    assert_false(oriel_local_watched((void *)UINTPTR_MAX, 1));
    free(buffer);
}

static void regions_are_found_however_they_overlap(void **state)
{
    (void)state;
    struct oriel_local_region regions[40];
    oriel_local_region_remove(memory, history);
    for (int round = 0; round < 300; round++) {
        int count = 0;
        for (int step = 0; step < 60; step++) {
            if (count < 40 && below(3) != 0) {
                uint64_t low = 1 + below(1000);
                regions[count] = (struct oriel_local_region){
                    .low = low,
                    .high = low + 1 + below(below(4) == 0 ? 900 : 40),
                    .history = (oriel_shm_offset)(count + 1 + step * 100)};
                assert_int_equal(oriel_region_add(&regions[count++]), ORIEL_OK);
            } else if (count > 0) {
                struct oriel_local_region detached;
                int which = (int)below((uint64_t)count);
                assert_true(
                    oriel_region_remove(regions[which].low, regions[which].history, &detached));
                assert_int_equal(detached.high, regions[which].high);
                regions[which] = regions[--count];
            }
            uint64_t low = below(2000);
            uint64_t high = low + 1 + below(100);
            int expected = 0;
            for (int i = 0; i < count; i++)
                expected += regions[i].low < high && regions[i].high > low;
            for (const struct oriel_local_region *found = NULL;
                 (found = oriel_region_find(low, high, found)) != NULL; expected--)
                assert_true(found->low < high && found->high > low);
            assert_int_equal(expected, 0);
        }
        oriel_regions_clear();
    }
}

/* Runs of any kind, in loops of loops and lists. */
static struct oriel_node *draw_layout(int depth)
{
    uint64_t form = depth == 0 ? 0 : below(3);
    if (form == 0)
        return oriel_node_run((enum oriel_kind)below(ORIEL_KIND_COUNT), 1 + below(3));
    struct oriel_node *child = draw_layout(depth - 1);
    int64_t span = child->high_bytes;
    if (form == 1)
        return oriel_node_loop(1 + below(4), span + (int64_t)below(40), child);
    struct oriel_branch *branches = malloc(2 * sizeof *branches);
    branches[0] = (struct oriel_branch){(int64_t)below(40), child};
    branches[1] = (struct oriel_branch){span + 40, draw_layout(0)};
    return oriel_node_list(2, branches);
}

/* Each byte of the list is removed from the bytes that move. */
static void acquire_bytes(const struct oriel_extents *extents, char *moves, int64_t low,
                          int64_t high)
{
    for (size_t i = 0; i < extents->count; i++) {
        assert_true(extents->list[i].count > 0);
        for (uint64_t k = 0; k < extents->list[i].count * extents->list[i].len_bytes; k++) {
            uint64_t run = k / extents->list[i].len_bytes;
            int64_t at = extents->list[i].offset - (1 << 20) +
                         (int64_t)run * extents->list[i].stride_bytes +
                         (int64_t)(k % extents->list[i].len_bytes);
            assert_true(at >= low && at < high);
            assert_int_equal(moves[at - low]--, 1);
        }
    }
}

/* For some of them only the bytes that move first. */
static void extents_are_the_bytes_that_move(void **state)
{
    (void)state;
    int shortened = 0;
    for (int round = 0; round < 3000; round++) {
        struct oriel_node *layout = draw_layout(3);
        struct oriel_type type = {.layout = layout,
                                  .plain_bytes = INT64_MAX,
                                  .size_bytes = layout->size_bytes,
                                  .elements = layout->elements};
        uint64_t count = 1 + below(3);
        type.extent_bytes = layout->high_bytes + (int64_t)below(20);
        int64_t low;
        int64_t high;
        assert_true(oriel_layout_bounds(layout, count, type.extent_bytes, &low, &high));
        char *moves = calloc(1, (size_t)(high - low));
        struct oriel_extents extents;
        uint64_t left = below(2) == 0 ? UINT64_MAX : below(count * type.size_bytes + 1);
        shortened += left < count * type.size_bytes;
        assert_int_equal(oriel_extents_open(&extents, &type, count, 1 << 20, left), ORIEL_OK);
        struct oriel_cursor cursor;
        assert_true(oriel_cursor_open(&cursor, layout, count, type.extent_bytes));
        while (oriel_cursor_fill(&cursor)) {
            uint64_t piece = oriel_batch_piece(&cursor.batch), first = piece < left ? piece : left;
            memset(moves + cursor.batch.at_bytes - low, 1, first);
            left -= first;
            oriel_batch_use(&cursor.batch, piece);
        }
        oriel_cursor_close(&cursor);
        acquire_bytes(&extents, moves, low, high);
        oriel_extents_close(&extents);
        for (int64_t i = 0; i < high - low; i++)
            assert_int_equal(moves[i], 0);
        free(moves);
        oriel_node_free(layout);
    }
    assert_true(shortened > 100);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, memory_start, memory_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(loads_and_stores_conflict_with_operations_on_the_window),
        CASE(ordered_loads_and_stores_are_no_conflict),
        CASE(buffers_are_needed_until_their_group_is_complete),
        CASE(a_call_that_needs_a_buffer_twice_is_reported_once),
        CASE(memory_that_is_used_again_is_not_blamed),
        CASE(a_buffer_in_the_window_is_an_access_to_it),
        CASE(buffers_across_the_border_count_where_they_are),
        CASE(memory_of_two_windows_is_recorded_in_both),
        CASE(uses_end_where_a_region_was_detached),
        CASE(bytes_beside_outstanding_buffers_are_unused),
        CASE(stores_under_a_lock_are_not_recorded),
        CASE(functions_of_libc_meet_only_what_is_under_way),
        CASE(memory_that_ends_is_reported), /* watches from its second half on */
        CASE(functions_of_libc_are_recorded_for_instrumented_code),
        CASE(earlier_accesses_are_recorded_once),
        CASE(stores_are_seen_again_once_their_buffer_is_needed),
        CASE(atomic_instructions_order_and_are_never_blamed),
        CASE(only_relevant_memory_is_watched),
        CASE(regions_are_found_however_they_overlap),
        CASE(extents_are_the_bytes_that_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
