/* The replacement for the runtime of -fsanitize=thread: which accesses of instrumented code it
 * reports, and whether its atomic operations are right. This file is the checker: it selects the
 * watched memory and records the reports. It is not instrumented. */
#include "check/local/watched_pages.h"
#include "check/tsan/tsan_program.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cmocka_all.h"

struct reported {
    const void *address;
    uint64_t len_bytes;
    bool writes;
    bool atomic;
    uint64_t value; /* of the word at the time of the report */
};

static struct reported reported[64];
static int reported_count;
static oriel_code_fn *instrumented;
static oriel_code_fn *watcher;
static char *memory; /* watched; the page after it is not */

static void remember(const void *address, uint64_t len_bytes, bool writes, bool atomic,
                     const void *address_of_call)
{
    assert_non_null(address_of_call);
    assert_true(reported_count < 64);
    reported[reported_count] = (struct reported){address, len_bytes, writes, atomic, 0};
    memcpy(&reported[reported_count++].value, memory, 8);
}

static struct oriel_watched_pages watched = {
    .shift = 12, .count = UINT64_C(1) << 35, .accessed = remember};

__attribute__((visibility("default"))) const struct oriel_watched_pages *
oriel_check_watch(oriel_code_fn *is_instrumented, oriel_code_fn *is_watcher)
{
    instrumented = is_instrumented;
    watcher = is_watcher;
    watched.pages = mmap(NULL, watched.count, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    watched.pages[(uintptr_t)memory >> 12] = 1;
    return &watched;
}

static int forget(void **state)
{
    (void)state;
    memset(memory, 0, 8192); /* reported, too: it is in the same module */
    reported_count = 0;
    return 0;
}

static void expect(int which, const void *address, uint64_t len_bytes, bool writes, bool atomic)
{
    assert_true(which < reported_count);
    assert_ptr_equal(reported[which].address, address);
    assert_int_equal(reported[which].len_bytes, len_bytes);
    assert_int_equal(reported[which].writes, writes);
    assert_int_equal(reported[which].atomic, atomic);
}

static void instrumented_code_is_known(void **state)
{
    (void)state;
    assert_true(instrumented((const void *)(uintptr_t)program_load));
    assert_false(instrumented((const void *)(uintptr_t)strtol));
    assert_true(watcher(dlsym(RTLD_DEFAULT, "__tsan_init")));
    assert_false(watcher((const void *)(uintptr_t)program_load));
    assert_false(watcher((const void *)(uintptr_t)strtol));
}

static void loads_and_stores_of_every_size_are_reported(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; i++) {
        reported_count = 0;
        program_store(memory + 16, sizes[i], 42);
        assert_int_equal(program_load(memory + 16, sizes[i]), 42);
        assert_int_equal(reported_count, 2);
        expect(0, memory + 16, (uint64_t)sizes[i], true, false);
        expect(1, memory + 16, (uint64_t)sizes[i], false, false);
    }
}

static void unaligned_fields_are_reported(void **state)
{
    (void)state;
    struct odd *odd = (struct odd *)(memory + 8);
    program_load_unaligned(odd);
    expect(0, memory + 9, 4, false, false);
    program_store_unaligned(odd);
    expect(1, memory + 13, 8, true, false);
}

/* As one range or in pieces: each byte once. */
static void expect_bytes(const char *from, size_t len_bytes, bool writes)
{
    size_t sum = 0;
    for (int i = 0; i < reported_count; i++) {
        if (reported[i].writes != writes)
            continue;
        const char *first = reported[i].address;
        assert_true(first >= from && first + reported[i].len_bytes <= from + len_bytes);
        sum += reported[i].len_bytes;
    }
    assert_int_equal(sum, len_bytes);
}

static void copies_and_fills_are_reported(void **state)
{
    (void)state;
    static struct large large;
    program_copy_struct((struct large *)memory, &large);
    expect_bytes(memory, sizeof large, true);
    reported_count = 0;
    program_copy_struct(&large, (struct large *)(memory + 400));
    expect_bytes(memory + 400, sizeof large, false);
    reported_count = 0;
    program_copy(memory + 1000, memory + 2000, 333);
    expect_bytes(memory + 2000, 333, false);
    expect_bytes(memory + 1000, 333, true);
    reported_count = 0;
    program_fill(memory + 7, 99);
    expect_bytes(memory + 7, 99, true);
    assert_int_equal(memory[7 + 98], 7);
}

static void accesses_to_unwatched_memory_are_not_reported(void **state)
{
    (void)state;
    memory[3] = 1;
    program_store(memory + 4096, 8, 1);
    program_load(memory + 5000, 4);
    assert_int_equal(reported_count, 0);
}

static void an_access_that_reaches_into_watched_memory_is_reported(void **state)
{
    (void)state;
    program_fill(memory + 4090, 50);
    expect_bytes(memory + 4090, 50, true);
}

static void atomic_operations_are_right(void **state)
{
    (void)state;
    assert_true(program_atomics_8(memory + 4096));
    assert_true(program_atomics_16(memory + 4096));
    assert_true(program_atomics_32(memory + 4096));
    assert_true(program_atomics_64(memory + 4096));
}

static void atomic_stores_are_reported_before_and_loads_after(void **state)
{
    (void)state;
    program_atomic_store(memory);
    expect(0, memory, 8, true, true);
    assert_int_equal(reported[0].value, 0);
    program_atomic_load(memory);
    expect(1, memory, 8, false, true);
    program_atomic_add(memory);
    expect(2, memory, 8, true, true);
    assert_int_equal(reported[2].value, 1);
    expect(3, memory, 8, false, true);
    assert_int_equal(reported[3].value, 2);
}

static void volatile_objects_are_polled(void **state)
{
    (void)state;
    program_load_volatile((int32_t *)memory);
    expect(0, memory, 4, false, true);
    program_store_volatile((int32_t *)memory);
    expect(1, memory, 4, true, true);
}

/* --- entry points that no code here makes the compiler call --- */

__attribute__((format(printf, 1, 2))) static void *entry(const char *format, ...)
{
    char name[80];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL)
        fail_msg("%s is not there", name);
    reported_count = 0;
    return found;
}

typedef void by_address(void *at);
typedef void by_address_of_call(void *at, const void *call);
typedef void by_range(void *at, unsigned long len_bytes);
typedef void by_range_of_call(void *at, unsigned long len_bytes, const void *call);
typedef void *copy_bytes(void *to, const void *from, size_t len_bytes);

static void every_load_and_store_reports_the_access_of_its_name(void **state)
{
    (void)state;
    static const char *const kinds[] = {"", "unaligned_", "volatile_", "unaligned_volatile_"};
    char *at = memory + 16;
    for (unsigned size = 1; size <= 16; size *= 2) {
        for (unsigned i = 0; i < 8; i++) {
            ((by_address *)entry("__tsan_%s%s%u", kinds[i / 2], i % 2 ? "write" : "read", size))(
                at);
            expect(0, at, size, i % 2, i >= 4);
        }
        for (int writes = 0; writes < 2; writes++) {
            ((by_address_of_call *)entry("__tsan_%s%u_pc", writes ? "write" : "read", size))(
                at, (const void *)expect);
            expect(0, at, size, writes, false);
        }
        for (unsigned i = size == 1; i < 2; i++) {
            ((by_address *)entry("__tsan_%sread_write%u", i == 0 ? "unaligned_" : "", size))(at);
            expect(0, at, size, false, false);
            expect(1, at, size, true, false);
        }
    }
    for (int writes = 0; writes < 2; writes++) {
        ((by_range *)entry("__tsan_%s_range", writes ? "write" : "read"))(at, 77);
        expect(0, at, 77, writes, false);
        ((by_range_of_call *)entry("__tsan_%s_range_pc", writes ? "write" : "read"))(
            at, 77, (const void *)expect);
        expect(0, at, 77, writes, false);
    }
}

/* A write to a table of functions is reported if the table changes. */
static void tables_of_functions_are_reported(void **state)
{
    (void)state;
    void **at = (void **)(void *)(memory + 16);
    ((void (*)(void **))entry("__tsan_vptr_read"))(at);
    expect(0, at, sizeof *at, false, false);
    void (*update)(void **, void *) = (void (*)(void **, void *))entry("__tsan_vptr_update");
    update(at, NULL);
    assert_int_equal(reported_count, 0);
    update(at, memory);
    expect(0, at, sizeof *at, true, false);
}

/* The reported bytes are those that were copied. */
static void copies_of_the_runtime_are_reported(void **state)
{
    (void)state;
    static const char *const copies[] = {"__tsan_memcpy", "__tsan_memmove"};
    for (unsigned i = 0; i < 2; i++) {
        memset(memory + 16, (int)i + 1, 30);
        assert_ptr_equal(((copy_bytes *)entry("%s", copies[i]))(memory + 100, memory + 16, 30),
                         memory + 100);
        expect_bytes(memory + 16, 30, false);
        expect_bytes(memory + 100, 30, true);
        assert_int_equal(memory[129], i + 1);
    }
    assert_ptr_equal(((void *(*)(void *, int, size_t))entry("__tsan_memset"))(memory + 16, 9, 30),
                     memory + 16);
    expect_bytes(memory + 16, 30, true);
    assert_ptr_equal(
        ((void *(*)(void *, int, size_t, size_t))entry("__memset_chk"))(memory + 50, 9, 30, 30),
        memory + 50);
    expect_bytes(memory + 50, 30, true);
    assert_int_equal(memory[79], 9);
}

__extension__ typedef unsigned __int128 uint128;

#define SWAPS(bits, type)                                                                          \
    static void expect_swaps_##bits(void)                                                          \
    {                                                                                              \
        typedef type by_value(volatile type *, type, type, int, int);                              \
        typedef int by_place(volatile type *, type *, type, int, int);                             \
        static const char *const strengths[] = {"strong", "weak"};                                 \
        type *at = (type *)(void *)(memory + 16);                                                  \
        by_value *swap = (by_value *)entry("__tsan_atomic" #bits "_compare_exchange_val");         \
        *at = 5;                                                                                   \
        assert_true(swap(at, 4, 7, 0, 0) == 5 && *at == 5);                                        \
        assert_true(swap(at, 5, 7, 0, 0) == 5 && *at == 7);                                        \
        expect(0, at, bits / 8, true, true);                                                       \
        expect(1, at, bits / 8, false, true);                                                      \
        for (int i = 0; i < 2; i++) {                                                              \
            by_place *replace =                                                                    \
                (by_place *)entry("__tsan_atomic" #bits "_compare_exchange_%s", strengths[i]);     \
            type expected = 4;                                                                     \
            *at = 5;                                                                               \
            assert_true(!replace(at, &expected, 7, 0, 0) && expected == 5 && *at == 5);            \
            assert_true(replace(at, &expected, 7, 0, 0) && *at == 7);                              \
        }                                                                                          \
    }
SWAPS(8, uint8_t)
SWAPS(16, uint16_t)
SWAPS(32, uint32_t)
SWAPS(64, uint64_t)
SWAPS(128, uint128)

static void swaps_of_every_size_are_right(void **state)
{
    (void)state;
    expect_swaps_8();
    expect_swaps_16();
    expect_swaps_32();
    expect_swaps_64();
    expect_swaps_128();
}

static void wide_atomic_operations_are_right(void **state)
{
    (void)state;
    typedef uint128 fetch(volatile uint128 *, uint128, int);
    static const struct {
        const char *name;
        uint128 left; /* of 12, by 10 */
    } fetches[] = {{"exchange", 10},           {"fetch_add", 22}, {"fetch_sub", 2},
                   {"fetch_and", 8},           {"fetch_or", 14},  {"fetch_xor", 6},
                   {"fetch_nand", ~(uint128)8}};
    uint128 *at = (uint128 *)(void *)(memory + 16);
    const uint128 high = (uint128)1 << 100;
    for (unsigned i = 0; i < sizeof fetches / sizeof fetches[0]; i++) {
        fetch *function = (fetch *)entry("__tsan_atomic128_%s", fetches[i].name);
        *at = 12;
        assert_true(function(at, 10, 0) == 12 && *at == fetches[i].left);
    }
    ((void (*)(volatile uint128 *, uint128, int))entry("__tsan_atomic128_store"))(at, high, 0);
    expect(0, at, 16, true, true);
    assert_true(*at == high);
    assert_true(
        ((uint128(*)(const volatile uint128 *, int))entry("__tsan_atomic128_load"))(at, 0) == high);
    expect(0, at, 16, false, true);
    ((void (*)(int))entry("__tsan_atomic_thread_fence"))(0);
    ((void (*)(int))entry("__tsan_atomic_signal_fence"))(0);
}

static void entry_points_for_threads_do_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"__tsan_func_entry",
                                        "__tsan_func_exit",
                                        "__tsan_ignore_thread_begin",
                                        "__tsan_ignore_thread_end",
                                        "__tsan_flush_memory",
                                        "__tsan_acquire",
                                        "__tsan_release",
                                        "__tsan_mutex_create",
                                        "__tsan_mutex_destroy",
                                        "__tsan_mutex_pre_lock",
                                        "__tsan_mutex_post_lock",
                                        "__tsan_mutex_post_unlock",
                                        "__tsan_mutex_pre_signal",
                                        "__tsan_mutex_post_signal",
                                        "__tsan_mutex_pre_divert",
                                        "__tsan_mutex_post_divert",
                                        "__tsan_destroy_fiber",
                                        "__tsan_switch_to_fiber",
                                        "__tsan_set_fiber_name",
                                        "__tsan_external_register_header",
                                        "__tsan_external_assign_tag",
                                        "__tsan_external_read",
                                        "__tsan_external_write",
                                        "AnnotateHappensBefore",
                                        "AnnotateHappensAfter",
                                        "AnnotateIgnoreReadsBegin",
                                        "AnnotateIgnoreReadsEnd",
                                        "AnnotateIgnoreWritesBegin",
                                        "AnnotateIgnoreWritesEnd",
                                        "AnnotateIgnoreSyncBegin",
                                        "AnnotateIgnoreSyncEnd",
                                        "AnnotateBenignRace",
                                        "AnnotateBenignRaceSized",
                                        "AnnotateRWLockCreate",
                                        "AnnotateRWLockCreateStatic",
                                        "AnnotateRWLockDestroy",
                                        "AnnotateRWLockAcquired",
                                        "AnnotateRWLockReleased",
                                        "AnnotateNewMemory",
                                        "AnnotateThreadName",
                                        "AnnotateFlushState"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        ((void (*)(void *, void *, void *))entry("%s", names[i]))(memory, memory, memory);
        assert_int_equal(reported_count, 0);
    }
    static const char *const answers[] = {"__tsan_mutex_pre_unlock", "__tsan_get_current_fiber",
                                          "__tsan_create_fiber", "__tsan_external_register_tag",
                                          "__tsan_get_current_report"};
    for (unsigned i = 0; i < sizeof answers / sizeof answers[0]; i++)
        assert_null(((void *(*)(void *))entry("%s", answers[i]))(memory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(instrumented_code_is_known, forget),
        cmocka_unit_test_setup(loads_and_stores_of_every_size_are_reported, forget),
        cmocka_unit_test_setup(unaligned_fields_are_reported, forget),
        cmocka_unit_test_setup(copies_and_fills_are_reported, forget),
        cmocka_unit_test_setup(accesses_to_unwatched_memory_are_not_reported, forget),
        cmocka_unit_test_setup(an_access_that_reaches_into_watched_memory_is_reported, forget),
        cmocka_unit_test_setup(atomic_operations_are_right, forget),
        cmocka_unit_test_setup(atomic_stores_are_reported_before_and_loads_after, forget),
        cmocka_unit_test_setup(volatile_objects_are_polled, forget),
        cmocka_unit_test_setup(every_load_and_store_reports_the_access_of_its_name, forget),
        cmocka_unit_test_setup(tables_of_functions_are_reported, forget),
        cmocka_unit_test_setup(copies_of_the_runtime_are_reported, forget),
        cmocka_unit_test_setup(swaps_of_every_size_are_right, forget),
        cmocka_unit_test_setup(wide_atomic_operations_are_right, forget),
        cmocka_unit_test_setup(entry_points_for_threads_do_nothing, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
