/* The kernel mappings that remain after promotion: none additional, for any type of memory; and the
 * limit where some remain. */
#include "promote_common.h"

static char zeroes[64 << 10];                           /* .bss */
static char data[64 << 10] = "initialised in the file"; /* .data */

/* The number of mappings in a piece of memory is the same before and after promotions of its parts,
 * and was higher meanwhile. */
static void check_mappings(char *memory, uint64_t pages, const struct oriel_promote_options *how)
{
    struct oriel_promoted promoted[2];
    memory = (char *)(((uintptr_t)memory + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    fill(memory, pages * PAGE, 2);
    int before = mappings_in(memory, pages * PAGE);
    for (uint64_t at = 1; at + 4 < pages; at += 3) {
        promote(memory + at * PAGE, PAGE, how, &promoted[0]);
        promote(memory + (at + 2) * PAGE, 2 * PAGE, how, &promoted[1]);
        assert_true(mappings_in(memory, pages * PAGE) >= before + 3);
        memory[at * PAGE + 7] = 3;
        oriel_promote_release(&promoted[at % 2]);
        oriel_promote_release(&promoted[1 - at % 2]);
        assert_int_equal(mappings_in(memory, pages * PAGE), before);
    }
    expect_data(memory, pages * PAGE, 2);
}

static void no_mapping_is_left(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_private(40 * PAGE);
    check_mappings(memory, 40, how);
    munmap(memory, 40 * PAGE);
    memory = mmap(NULL, 40 * PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(madvise(memory, 40 * PAGE, MADV_NOHUGEPAGE), 0);
    check_mappings(memory, 40, how);
    munmap(memory, 40 * PAGE);
    memory = malloc(20 * PAGE); /* in the heap */
    assert_non_null(memory);
    check_mappings(memory, 16, how);
    free(memory);
    check_mappings(zeroes, 15, how);
    check_mappings(data, 15, &quiesce);
}

/* Untouched memory; its surroundings are touched first while the middle is promoted. */
static void untouched_surroundings_are_joined_again(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    int before = mappings_in(memory, 32 * MIB);
    promote(memory + 8 * MIB, 16 * MIB, how, &promoted); /* several chunks */
    memory[0] = memory[9 * MIB] = memory[20 * MIB] = memory[31 * MIB] = 1;
    oriel_promote_release(&promoted);
    assert_int_equal(mappings_in(memory, 32 * MIB), before);
    assert_int_equal(memory[0] + memory[9 * MIB] + memory[20 * MIB] + memory[31 * MIB], 4);
    munmap(memory, 32 * MIB);
}

static void ranges_of_several_mappings_preserve_each(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(12 * PAGE);
    fill(memory, 12 * PAGE, 9);
    assert_int_equal(madvise(memory + 4 * PAGE, 4 * PAGE, MADV_NOHUGEPAGE), 0);
    int before = mappings_in(memory, 12 * PAGE);
    promote(memory + PAGE, 10 * PAGE, how, &promoted);
    expect_data(memory, 12 * PAGE, 9);
    oriel_promote_release(&promoted);
    expect_data(memory, 12 * PAGE, 9);
    assert_int_equal(mappings_in(memory, 12 * PAGE), before);
    munmap(memory, 12 * PAGE);
}

/* The program's advice in between keeps mappings separate, like a kernel that cannot merge them. */
static void boundaries_that_stay_have_a_limit(void **state)
{
    struct oriel_promote_options few = *means_of(state);
    struct oriel_promoted promoted;
    few.splits_max = 4;
    char *memory = map_private(64 * PAGE);
    fill(memory, 64 * PAGE, 1);
    for (int round = 0; round < 20; round++) { /* merged again, so nothing counts */
        promote(memory + (uint64_t)round * 3 * PAGE, PAGE, &few, &promoted);
        oriel_promote_release(&promoted);
    }
    enum oriel_status status = ORIEL_OK;
    int rounds = 0;
    for (; status == ORIEL_OK && rounds < 20; rounds++) {
        char *page = memory + (uint64_t)(1 + rounds * 3) * PAGE;
        status = oriel_promote((uintptr_t)page, PAGE, &few, &promoted);
        if (status != ORIEL_OK)
            break;
        oriel_promote_release(&promoted);
        assert_int_equal(madvise(page, PAGE, MADV_NOHUGEPAGE), 0);
    }
    assert_int_not_equal(status, ORIEL_OK);
    assert_in_range(rounds, 2, 4);
    assert_non_null(strstr(oriel_fail_message(), "have left more than 4 boundaries"));
    few.splits_max = 0;
    promote(memory, PAGE, &few, &promoted);
    oriel_promote_release(&promoted);
    munmap(memory, 64 * PAGE); /* and with it all boundaries */
    memory = map_private(PAGE);
    few.splits_max = 4;
    promote(memory, PAGE, &few, &promoted);
    oriel_promote_release(&promoted);
    munmap(memory, PAGE);
}

static void lazily_freed_memory_is_unchanged_or_zero(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(256 * PAGE);
    memset(memory, 7, 256 * PAGE);
    assert_int_equal(madvise(memory, 256 * PAGE, MADV_FREE), 0);
    memory[5 * PAGE] = 8; /* promoted again */
    promote(memory, 256 * PAGE, how, &promoted);
    assert_int_equal(memory[5 * PAGE], 8);
    for (uint64_t i = 0; i < 256; i++)
        assert_true(memory[i * PAGE + 9] == 7 || (memory[i * PAGE + 9] == 0 && i != 5));
    oriel_promote_release(&promoted);
    assert_int_equal(memory[5 * PAGE], 8);
    munmap(memory, 256 * PAGE);
}

/* Linux before 6.11. */
static void kernels_that_only_list_all_mappings_suffice(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    oriel_proc_maps_by_text = true;
    char *memory = map_private(40 * PAGE);
    check_mappings(memory, 40, how);
    munmap(memory, 40 * PAGE);
    oriel_proc_maps_by_text = false;
}

static bool fix_start(const struct oriel_mapping *mapping, void *context)
{
    *(uintptr_t *)context = mapping->start;
    return true;
}

/* No other mapping follows it in the list. */
static void last_mapping_of_the_list_is_visited(void **state)
{
    (void)state;
    char line[4400];
    uintptr_t last = 0, visited = 0;
    FILE *list = fopen("/proc/self/maps", "re");
    assert_non_null(list);
    while (fgets(line, sizeof line, list) != NULL)
        last = (uintptr_t)strtoull(line, NULL, 16);
    fclose(list);
    oriel_proc_maps_by_text = true;
    assert_true(oriel_proc_maps_visit(0, UINTPTR_MAX, false, fix_start, &visited));
    oriel_proc_maps_by_text = false;
    assert_int_equal(visited, last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(no_mapping_is_left),
        BY_BOTH(untouched_surroundings_are_joined_again),
        BY_BOTH(ranges_of_several_mappings_preserve_each),
        BY_BOTH(boundaries_that_stay_have_a_limit),
        BY_BOTH(lazily_freed_memory_is_unchanged_or_zero),
        BY_BOTH(kernels_that_only_list_all_mappings_suffice),
        cmocka_unit_test(last_mapping_of_the_list_is_visited),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
