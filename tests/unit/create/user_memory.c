/* src/memory/promote/registry.c and src/create/user_memory.c: which parts of a range other ranks
 * reach by load and store, and the time budget of promotion. */
#include "promote_common.h"

#include "memory/promote/registry.h"
#include "create/user_memory.h"

enum { PROMOTIONS_MAX = 200000, PATIENCE_US = 10000 };

/* Whole pages, which both methods of promotion accept. */
static char *make_pages(uint64_t pages)
{
    char *memory = map_private(pages * PAGE);
    memset(memory, 1, pages * PAGE);
    return memory;
}

static struct oriel_user_memory *take(const void *base, uint64_t size_bytes)
{
    struct oriel_user_memory *memory;
    assert_int_equal(oriel_user_memory_open((uintptr_t)base, size_bytes, true, &memory), ORIEL_OK);
    return memory;
}

/* The same, once the budget that others have spent has recovered with time. */
static struct oriel_user_memory *take_in_time(const void *base, uint64_t size_bytes)
{
    struct oriel_user_memory *memory = take(base, size_bytes);
    while (strstr(memory->reason, "too much of the run time") != NULL) {
        oriel_user_memory_close(memory);
        usleep(PATIENCE_US);
        memory = take(base, size_bytes);
    }
    return memory;
}

static void expect_stretch(const struct oriel_memory_range *stretch, const char *start,
                           const char *end, enum oriel_sharing sharing)
{
    assert_int_equal(stretch->start, (uintptr_t)start);
    assert_int_equal(stretch->end, (uintptr_t)end);
    assert_int_equal(stretch->place, sharing);
    assert_int_equal(stretch->offset == 0, sharing == ORIEL_SHARING_PRIVATE);
}

static void registry_distinguishes_private_memory_from_the_file(void **state)
{
    (void)state;
    uint64_t offset;
    char *pages = make_pages(1);
    assert_int_equal(oriel_file_alloc(PAGE, PAGE, &offset), ORIEL_OK);
    char *in_file = oriel_file_base() + offset;
    struct oriel_memory_range found =
        oriel_registry_find((uintptr_t)pages, (uintptr_t)pages + PAGE);
    expect_stretch(&found, pages, pages + PAGE, ORIEL_SHARING_PRIVATE);
    found = oriel_registry_find((uintptr_t)in_file + 8, (uintptr_t)in_file + PAGE);
    expect_stretch(&found, in_file + 8, in_file + PAGE, ORIEL_SHARING_ARENA);
    assert_int_equal(found.offset, offset + 8);
    found = oriel_registry_find((uintptr_t)oriel_file_base() - PAGE,
                                (uintptr_t)oriel_file_base() + PAGE);
    expect_stretch(&found, oriel_file_base() - PAGE, oriel_file_base(), ORIEL_SHARING_PRIVATE);
    oriel_file_free(offset);
    munmap(pages, PAGE);
}

static void registry_distinguishes_promoted_pages_from_neighbours(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *pages = make_pages(4);
    char *end = pages + 4 * PAGE;
    promote(pages + PAGE, 2 * PAGE, how, &promoted);
    struct oriel_memory_range found = oriel_registry_find((uintptr_t)pages, (uintptr_t)end);
    expect_stretch(&found, pages, pages + PAGE, ORIEL_SHARING_PRIVATE);
    found = oriel_registry_find(found.end, (uintptr_t)end);
    expect_stretch(&found, pages + PAGE, pages + 3 * PAGE, ORIEL_SHARING_PROMOTED);
    assert_int_equal(memcmp(oriel_file_base() + found.offset, pages + PAGE, 2 * PAGE), 0);
    found = oriel_registry_find(found.end, (uintptr_t)end);
    expect_stretch(&found, pages + 3 * PAGE, end, ORIEL_SHARING_PRIVATE);
    oriel_promote_release(&promoted);
    found = oriel_registry_find((uintptr_t)pages, (uintptr_t)end);
    expect_stretch(&found, pages, end, ORIEL_SHARING_PRIVATE);
    munmap(pages, 4 * PAGE);
}

static void ordinary_memory_is_promoted_while_in_use(void **state)
{
    (void)state;
    char *pages = make_pages(2);
    struct oriel_user_memory *memory = take_in_time(pages, 2 * PAGE);
    assert_int_equal(memory->range_count, 1);
    expect_stretch(memory->ranges, pages, pages + 2 * PAGE, ORIEL_SHARING_PROMOTED);
    assert_int_equal(oriel_user_memory_paths(memory), ORIEL_PATH_PROMOTED);
    assert_string_equal(memory->reason, "");
    oriel_user_memory_close(memory);
    assert_false(is_promoted(pages));
    munmap(pages, 2 * PAGE);
}

static void overlapping_ranges_are_described_in_parts(void **state)
{
    (void)state;
    char *pages = make_pages(6);
    struct oriel_user_memory *low = take_in_time(pages, 4 * PAGE);
    struct oriel_user_memory *high = take_in_time(pages + 2 * PAGE, 4 * PAGE);
    assert_int_equal(high->range_count, 2); /* two blocks of the file */
    expect_stretch(&high->ranges[0], pages + 2 * PAGE, pages + 4 * PAGE, ORIEL_SHARING_PROMOTED);
    expect_stretch(&high->ranges[1], pages + 4 * PAGE, pages + 6 * PAGE, ORIEL_SHARING_PROMOTED);
    oriel_user_memory_close(low);
    assert_false(is_promoted(pages));
    assert_true(is_promoted(pages + 2 * PAGE));
    oriel_user_memory_close(high);
    assert_false(is_promoted(pages + 2 * PAGE));
    munmap(pages, 6 * PAGE);
}

static void memory_that_cannot_be_promoted_is_described_with_the_reason(void **state)
{
    (void)state;
    char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    struct oriel_user_memory *memory = take_in_time(shared, PAGE);
    assert_int_equal(memory->range_count, 1);
    expect_stretch(memory->ranges, shared, shared + PAGE, ORIEL_SHARING_PRIVATE);
    assert_non_null(strstr(memory->reason, "already shared"));
    oriel_user_memory_close(memory);
    munmap(shared, PAGE);
}

static void nothing_is_promoted_for_a_window_of_one_rank(void **state)
{
    (void)state;
    struct oriel_user_memory *memory;
    char *pages = make_pages(1);
    assert_int_equal(oriel_user_memory_open((uintptr_t)pages, PAGE, false, &memory), ORIEL_OK);
    assert_int_equal(oriel_user_memory_paths(memory), ORIEL_PATH_COPY);
    assert_string_equal(memory->reason, "");
    assert_false(is_promoted(pages));
    oriel_user_memory_close(memory);
    munmap(pages, PAGE);
}

/* The last two cases leave the budget empty. Ranks wait for each other's promotions before a window
 * exists, and while it is freed. */
static void waiting_outside_of_a_windows_life_earns_nothing(void **state)
{
    (void)state;
    bool refused = false;
    char *pages = make_pages(1);
    for (int i = 0; i < PROMOTIONS_MAX / 100 && !refused; i++) {
        struct oriel_user_memory *memory = take(pages, PAGE);
        refused = strstr(memory->reason, "too much of the run time") != NULL;
        usleep(1000);
        oriel_user_memory_begin(memory, 64);
        oriel_user_memory_end(memory);
        usleep(1000);
        oriel_user_memory_close(memory);
    }
    assert_true(refused);
    munmap(pages, PAGE);
}

static void short_lived_windows_are_not_promoted_for_ever(void **state)
{
    (void)state;
    bool refused = false;
    char *pages = make_pages(1);
    for (int i = 0; i < PROMOTIONS_MAX && !refused; i++) {
        struct oriel_user_memory *memory = take(pages, PAGE);
        refused = strstr(memory->reason, "too much of the run time") != NULL;
        assert_int_equal(oriel_user_memory_paths(memory),
                         refused ? ORIEL_PATH_COPY : ORIEL_PATH_PROMOTED);
        oriel_user_memory_close(memory);
    }
    assert_true(refused);
    munmap(pages, PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry_distinguishes_private_memory_from_the_file),
        BY_BOTH(registry_distinguishes_promoted_pages_from_neighbours),
        cmocka_unit_test(ordinary_memory_is_promoted_while_in_use),
        cmocka_unit_test(overlapping_ranges_are_described_in_parts),
        cmocka_unit_test(memory_that_cannot_be_promoted_is_described_with_the_reason),
        cmocka_unit_test(nothing_is_promoted_for_a_window_of_one_rank),
        cmocka_unit_test(waiting_outside_of_a_windows_life_earns_nothing),
        cmocka_unit_test(short_lived_windows_are_not_promoted_for_ever),
    };
    if (oriel_file_start() != ORIEL_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
