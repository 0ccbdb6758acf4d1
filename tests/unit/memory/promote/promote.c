/* Promotion in one thread: the memory that peers see, the memory after demotion, and the owner of
 * each page. */
#include "promote_common.h"

static char zeroes[64 << 10];                           /* .bss */
static char data[64 << 10] = "initialised in the file"; /* .data */

/* Reads and writes in both directions while promoted. Afterwards the last contents, in memory that
 * peers no longer reach. */
static void check_range(char *memory, uint64_t len_bytes, const struct oriel_promote_options *how)
{
    struct oriel_promoted promoted;
    uint64_t before_bytes = file_bytes();
    fill(memory, len_bytes, 1);
    promote(memory, len_bytes, how, &promoted);
    char *view = peer_view(memory, len_bytes);
    expect_data(memory, len_bytes, 1);
    expect_data(view, len_bytes, 1);
    fill(view, len_bytes, 2);
    expect_data(memory, len_bytes, 2);
    fill(memory, len_bytes, 3);
    expect_data(view, len_bytes, 3);
    oriel_promote_release(&promoted);
    assert_false(is_promoted(memory));
    expect_data(memory, len_bytes, 3);
    assert_in_range(file_bytes(), 0, before_bytes);
    memory[0] = 99;
    assert_int_not_equal(view[0], 99); /* reading it allocates a page of the file again */
    munmap(view, len_bytes);
}

static void mapped_memory_is_shared_and_private_again(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_private(9 * MIB); /* more than two chunks */
    check_range(memory, 9 * MIB, how);
    check_range(memory, 9 * MIB, how);
    check_range(memory + PAGE, 3 * PAGE, how);
    munmap(memory, 9 * MIB);
}

static void heap_memory_is_shared_and_private_again(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = aligned_alloc(PAGE, 100 * PAGE);
    assert_non_null(memory);
    check_range(memory, 100 * PAGE, how);
    free(memory);
    memory = aligned_alloc(PAGE, 8 * PAGE); /* below malloc's mmap threshold: in the heap proper */
    assert_non_null(memory);
    check_range(memory, 8 * PAGE, how);
    free(memory);
}

static void static_memory_is_shared_and_private_again(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    uintptr_t start = ((uintptr_t)zeroes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    check_range((char *)start, 8 * PAGE, how);
}

/* .data is a private copy of a file: threads can be stopped for it, but its pages cannot be
 * write-protected. */
static void initialised_memory_is_shared_by_stopping(void **state)
{
    (void)state;
    uintptr_t start = ((uintptr_t)data + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    static const struct oriel_promote_options automatic = {.method = ORIEL_BARRIER_AUTO};
    check_range((char *)start, 8 * PAGE, &quiesce);
    fill((char *)start, 8 * PAGE, 5);
    check_range((char *)start, 8 * PAGE, &automatic);
}

static void untouched_file_pages_preserve_their_contents(void **state)
{
    (void)state;
    char path[] = "/tmp/oriel-promote-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    char page[PAGE];
    for (int i = 0; i < 16; i++) {
        memset(page, 'a' + i, sizeof page);
        assert_int_equal(write(fd, page, sizeof page), sizeof page);
    }
    char *memory = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_true(memory != MAP_FAILED);
    close(fd);
    struct oriel_promoted promoted;
    promote(memory, 16 * PAGE, &quiesce, &promoted);
    char *view = peer_view(memory, 16 * PAGE);
    for (int i = 0; i < 16; i++)
        assert_int_equal(view[(uint64_t)i * PAGE + 17], 'a' + i);
    oriel_promote_release(&promoted);
    for (int i = 0; i < 16; i++)
        assert_int_equal(memory[(uint64_t)i * PAGE + 17], 'a' + i);
    munmap(view, 16 * PAGE);
    munmap(memory, 16 * PAGE);
}

static void pages_are_whole_outward_or_inward(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(8 * PAGE);
    fill(memory, 8 * PAGE, 4);
    promote(memory + PAGE + 100, 3 * PAGE, how, &promoted);
    bool outward = how->method == ORIEL_BARRIER_UFFD;
    assert_int_equal(promoted.start - (uintptr_t)memory, outward ? PAGE : 2 * PAGE);
    assert_int_equal(promoted.end - (uintptr_t)memory, outward ? 5 * PAGE : 4 * PAGE);
    assert_int_equal(is_promoted(memory + PAGE + 100), outward);
    expect_data(memory, 8 * PAGE, 4);
    uint64_t offset;
    uint64_t held_bytes;
    assert_true(
        oriel_promote_find((uintptr_t)memory + 2 * PAGE + 7, 100 * PAGE, &offset, &held_bytes));
    assert_int_equal(held_bytes, promoted.end - ((uintptr_t)memory + 2 * PAGE + 7));
    assert_int_equal(offset % PAGE, 7);
    oriel_promote_release(&promoted);
    expect_data(memory, 8 * PAGE, 4);
    if (!outward)
        assert_refused(memory + 100, PAGE, how, "contain no whole page");
    promote(memory, 0, how, &promoted);
    oriel_promote_release(&promoted);
    munmap(memory, 8 * PAGE);
}

/* Ranges [0, 5) and [3, 8) of eight pages. */
static void check_two_holds(const struct oriel_promote_options *how, int released_first)
{
    char *memory = map_private(8 * PAGE);
    fill(memory, 8 * PAGE, 6);
    struct oriel_promoted promoted[2];
    promote(memory, 5 * PAGE, how, &promoted[0]);
    uint64_t before, after, held_bytes;
    assert_true(oriel_promote_find((uintptr_t)memory + 3 * PAGE, 1, &before, &held_bytes));
    promote(memory + 3 * PAGE, 5 * PAGE, how, &promoted[1]);
    assert_true(oriel_promote_find((uintptr_t)memory + 3 * PAGE, 1, &after, &held_bytes));
    assert_int_equal(before, after); /* origins know the offset of the first */
    uint64_t before_bytes = file_bytes();
    oriel_promote_release(&promoted[released_first]);
    assert_int_equal(before_bytes - file_bytes(),
                     3 * PAGE); /* no page belongs to both kinds of memory */
    assert_int_equal(is_promoted(memory), released_first == 1);
    assert_true(is_promoted(memory + 3 * PAGE) && is_promoted(memory + 5 * PAGE - 1));
    assert_int_equal(is_promoted(memory + 5 * PAGE), released_first == 0);
    expect_data(memory, 8 * PAGE, 6);
    char *view = peer_view(memory + 3 * PAGE, 2 * PAGE);
    expect_data(view, 2 * PAGE, 6 + 3 * 8);
    munmap(view, 2 * PAGE);
    oriel_promote_release(&promoted[1 - released_first]);
    for (int i = 0; i < 8; i++)
        assert_false(is_promoted(memory + (uint64_t)i * PAGE));
    expect_data(memory, 8 * PAGE, 6);
    munmap(memory, 8 * PAGE);
}

static void pages_of_two_holds_stay_until_the_last_release(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    uint64_t before_bytes = file_bytes();
    check_two_holds(how, 0);
    check_two_holds(how, 1);
    assert_in_range(file_bytes(), 0, before_bytes);
}

/* Overlapping promotions of random ranges in one piece of memory, against a count for each page. */
static void random_holds_agree_with_counts(void **state)
{
    enum { PAGES = 48, HOLDS = 24, ROUNDS = 1500 };
    const struct oriel_promote_options *how = means_of(state);
    uint64_t before_bytes = file_bytes();
    char *memory = map_private(PAGES * PAGE);
    struct oriel_promoted promoted[HOLDS] = {{.start = 0}};
    uint32_t random = 12345;
    int counts[PAGES] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 1103515245u + 12345u;
        struct oriel_promoted *hold = &promoted[(random >> 8) % HOLDS];
        int first = (int)((random >> 13) % PAGES);
        int pages = 1 + (int)((random >> 19) % (uint32_t)(PAGES - first));
        memory[(uint64_t)first * PAGE] = (char)round;
        int change = hold->start == hold->end ? 1 : -1;
        if (change < 0) {
            first = (int)((hold->start - (uintptr_t)memory) / PAGE);
            pages = (int)((hold->end - hold->start) / PAGE);
            oriel_promote_release(hold);
        } else {
            promote(memory + (uint64_t)first * PAGE, (uint64_t)pages * PAGE, how, hold);
        }
        for (int page = first; page < first + pages; page++)
            counts[page] += change;
        for (int page = 0; page < PAGES; page++)
            assert_int_equal(is_promoted(memory + (uint64_t)page * PAGE), counts[page] > 0);
    }
    for (int i = 0; i < HOLDS; i++)
        oriel_promote_release(&promoted[i]);
    munmap(memory, PAGES * PAGE);
    assert_in_range(file_bytes(), 0, before_bytes);
}

static void untouched_pages_cost_nothing(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    const uint64_t len_bytes = UINT64_C(1) << 30;
    struct oriel_promoted promoted;
    uint64_t before_bytes = file_bytes();
    char *memory = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(memory != MAP_FAILED);
    memory[0] = 1;
    memory[len_bytes / 2 + 5 * PAGE] = 2;
    memory[len_bytes - 1] = 3;
    promote(memory, len_bytes, how, &promoted);
    assert_int_equal(file_bytes(), before_bytes + 3 * PAGE);
    char *view = peer_view(memory, len_bytes);
    assert_int_equal(view[0] + view[len_bytes / 2 + 5 * PAGE] + view[len_bytes - 1], 6);
    view[7 * PAGE] = 7; /* a hole that a peer fills */
    assert_int_equal(memory[7 * PAGE], 7);
    oriel_promote_release(&promoted);
    assert_int_equal(memory[0] + memory[len_bytes / 2 + 5 * PAGE] + memory[len_bytes - 1] +
                         memory[7 * PAGE],
                     13);
    assert_int_equal(file_bytes(), before_bytes);
    unsigned char *present = calloc(len_bytes / PAGE, 1);
    assert_non_null(present);
    assert_int_equal(mincore(memory, len_bytes, present), 0);
    uint64_t pages = 0;
    for (uint64_t i = 0; i < len_bytes / PAGE; i++)
        pages += present[i] & 1;
    assert_int_equal(pages, 4);
    free(present);
    munmap(view, len_bytes);
    munmap(memory, len_bytes);
}

static void memory_freed_after_release_is_zero_when_reused(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    const uint64_t sizes[] = {24 * PAGE, 200 * PAGE}; /* in the heap, and mapped by malloc */
    for (int round = 0; round < 40; round++) {
        uint64_t len_bytes = sizes[round % 2];
        struct oriel_promoted promoted;
        char *memory = malloc(len_bytes);
        assert_non_null(memory);
        memset(memory, 0x5a, len_bytes);
        promote(memory, len_bytes, how, &promoted);
        memset(memory, 0xa5, len_bytes);
        oriel_promote_release(&promoted);
        free(memory);
        memory = calloc(1, len_bytes);
        assert_non_null(memory);
        for (uint64_t i = 0; i < len_bytes; i++)
            assert_int_equal(memory[i], 0);
        free(memory);
    }
}

/* An allocator that discards pages expects zeroes. */
static void pages_given_back_after_release_are_zero(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(4 * PAGE);
    memset(memory, 1, 4 * PAGE);
    promote(memory, 4 * PAGE, how, &promoted);
    oriel_promote_release(&promoted);
    assert_int_equal(madvise(memory + PAGE, PAGE, MADV_DONTNEED), 0);
    assert_int_equal(memory[PAGE], 0);
    assert_int_equal(memory[2 * PAGE], 1);
    munmap(memory, 4 * PAGE);
}

static void too_many_ranges_are_refused(void **state)
{
    struct oriel_promote_options few = *means_of(state);
    struct oriel_promoted promoted[3];
    char *memory = map_private(8 * PAGE);
    fill(memory, 8 * PAGE, 1);
    few.ranges_max = 2;
    promote(memory, PAGE, &few, &promoted[0]);
    promote(memory + 2 * PAGE, PAGE, &few, &promoted[1]);
    assert_refused(memory + 4 * PAGE, PAGE, &few, "the maximum is 2");
    promote(memory, PAGE, &few, &promoted[2]); /* needs no more */
    oriel_promote_release(&promoted[1]);
    promote(memory + 4 * PAGE, PAGE, &few, &promoted[1]);
    for (int i = 0; i < 3; i++)
        oriel_promote_release(&promoted[i]);
    munmap(memory, 8 * PAGE);
}

static void hundreds_of_ranges_cost_no_mapping_afterwards(void **state)
{
    enum { RANGES = 500 };
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted[RANGES];
    char *memory = map_private(2 * RANGES * PAGE);
    fill(memory, 2 * RANGES * PAGE, 3);
    for (int i = 0; i < RANGES; i++)
        promote(memory + 2 * (uint64_t)i * PAGE, PAGE, how, &promoted[i]);
    for (int i = 0; i < RANGES; i++)
        assert_true(is_promoted(memory + 2 * (uint64_t)i * PAGE) &&
                    !is_promoted(memory + (2 * (uint64_t)i + 1) * PAGE));
    for (int i = 0; i < RANGES; i++)
        oriel_promote_release(&promoted[(i * 7) % RANGES]);
    expect_data(memory, 2 * RANGES * PAGE, 3);
    munmap(memory, 2 * RANGES * PAGE);
}

static void probe_reports_one_promotion(void **state)
{
    (void)state;
    struct oriel_probe probe;
    oriel_probe_promotion(&probe);
    print_message("%s: %s\n", probe.name, probe.detail);
    assert_true(probe.available);
    assert_non_null(strstr(probe.detail, "one page shared in place"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(mapped_memory_is_shared_and_private_again),
        BY_BOTH(heap_memory_is_shared_and_private_again),
        BY_BOTH(static_memory_is_shared_and_private_again),
        cmocka_unit_test(initialised_memory_is_shared_by_stopping),
        cmocka_unit_test(untouched_file_pages_preserve_their_contents),
        BY_BOTH(pages_are_whole_outward_or_inward),
        BY_BOTH(pages_of_two_holds_stay_until_the_last_release),
        BY_BOTH(random_holds_agree_with_counts),
        BY_BOTH(untouched_pages_cost_nothing),
        BY_BOTH(memory_freed_after_release_is_zero_when_reused),
        BY_BOTH(pages_given_back_after_release_are_zero),
        BY_BOTH(too_many_ranges_are_refused),
        BY_BOTH(hundreds_of_ranges_cost_no_mapping_afterwards),
        cmocka_unit_test(probe_reports_one_promotion),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
