/* The stand-in for the runtime of -fsanitize=thread: what it tells of code that was compiled for it, and that its atomic
 * operations are right.  This file is the checker: it says what is watched, and writes down what it is told.  It is not compiled
 * for it itself. */
#include "check/watch.h"
#include "check_tsan_program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cmocka_all.h"

struct told {
    const void *address;
    uint64_t len_bytes;
    bool writes;
    bool atomic;
    uint64_t value; /* of the word when it was told */
};

static struct told told[64];
static int told_count;
static char *memory; /* watched; the page behind it is not */

static void remember(const void *address, uint64_t len_bytes, bool writes, bool atomic, const void *address_of_call)
{
    assert_non_null(address_of_call);
    assert_true(told_count < 64);
    told[told_count] = (struct told){address, len_bytes, writes, atomic, 0};
    memcpy(&told[told_count++].value, memory, 8);
}

static struct oriel_watched_pages watched = {.shift = 12, .count = UINT64_C(1) << 35, .accessed = remember};

__attribute__((visibility("default"))) const struct oriel_watched_pages *oriel_check_watch(void)
{
    watched.pages = mmap(NULL, watched.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    watched.pages[(uintptr_t)memory >> 12] = 1;
    return &watched;
}

static int forget(void **state)
{
    (void)state;
    memset(memory, 0, 8192); /* which is told too: it lies in the same module */
    told_count = 0;
    return 0;
}

static void expect(int which, const void *address, uint64_t len_bytes, bool writes, bool atomic)
{
    assert_true(which < told_count);
    assert_ptr_equal(told[which].address, address);
    assert_int_equal(told[which].len_bytes, len_bytes);
    assert_int_equal(told[which].writes, writes);
    assert_int_equal(told[which].atomic, atomic);
}

static void loads_and_stores_of_every_size_are_told(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; i++) {
        told_count = 0;
        program_store(memory + 16, sizes[i], 42);
        assert_int_equal(program_load(memory + 16, sizes[i]), 42);
        assert_int_equal(told_count, 2);
        expect(0, memory + 16, (uint64_t)sizes[i], true, false);
        expect(1, memory + 16, (uint64_t)sizes[i], false, false);
    }
}

static void unaligned_fields_are_told(void **state)
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
    for (int i = 0; i < told_count; i++) {
        if (told[i].writes != writes)
            continue;
        const char *first = told[i].address;
        assert_true(first >= from && first + told[i].len_bytes <= from + len_bytes);
        sum += told[i].len_bytes;
    }
    assert_int_equal(sum, len_bytes);
}

static void copies_and_fills_are_told(void **state)
{
    (void)state;
    static struct large large;
    program_copy_struct((struct large *)memory, &large);
    expect_bytes(memory, sizeof large, true);
    told_count = 0;
    program_copy_struct(&large, (struct large *)(memory + 400));
    expect_bytes(memory + 400, sizeof large, false);
    told_count = 0;
    program_copy(memory + 1000, memory + 2000, 333);
    expect_bytes(memory + 2000, 333, false);
    expect_bytes(memory + 1000, 333, true);
    told_count = 0;
    program_fill(memory + 7, 99);
    expect_bytes(memory + 7, 99, true);
    assert_int_equal(memory[7 + 98], 7);
}

static void what_others_do_is_not_told(void **state)
{
    (void)state;
    memory[3] = 1;
    program_store(memory + 4096, 8, 1);
    program_load(memory + 5000, 4);
    assert_int_equal(told_count, 0);
}

static void an_access_that_reaches_into_watched_memory_is_told(void **state)
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

static void atomic_stores_are_told_before_and_loads_behind(void **state)
{
    (void)state;
    program_atomic_store(memory);
    expect(0, memory, 8, true, true);
    assert_int_equal(told[0].value, 0);
    program_atomic_load(memory);
    expect(1, memory, 8, false, true);
    program_atomic_add(memory);
    expect(2, memory, 8, true, true);
    assert_int_equal(told[2].value, 1);
    expect(3, memory, 8, false, true);
    assert_int_equal(told[3].value, 2);
}

static void volatile_objects_are_polled(void **state)
{
    (void)state;
    program_load_volatile((int32_t *)memory);
    expect(0, memory, 4, false, true);
    program_store_volatile((int32_t *)memory);
    expect(1, memory, 4, true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(loads_and_stores_of_every_size_are_told, forget),
        cmocka_unit_test_setup(unaligned_fields_are_told, forget),
        cmocka_unit_test_setup(copies_and_fills_are_told, forget),
        cmocka_unit_test_setup(what_others_do_is_not_told, forget),
        cmocka_unit_test_setup(an_access_that_reaches_into_watched_memory_is_told, forget),
        cmocka_unit_test_setup(atomic_operations_are_right, forget),
        cmocka_unit_test_setup(atomic_stores_are_told_before_and_loads_behind, forget),
        cmocka_unit_test_setup(volatile_objects_are_polled, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
