/* Transparent huge pages through promotion and demotion: they are huge in the memory file and huge
 * again afterwards. */
#include "promote_common.h"

#include "memory/promote/huge_pages.h"
#include "memory/pages.h"

enum { HUGE_PAGES = 8 };
#define RANGE_BYTES (HUGE_PAGES * ORIEL_HUGE_BYTES)

/* A field of /proc/self/smaps in bytes, for all mappings in the range together. */
static uint64_t sum_of(const char *field, const char *start, uint64_t len_bytes)
{
    char line[4400], pattern[64];
    unsigned long low, high, kib;
    uint64_t sum_bytes = 0;
    bool inside = false;
    FILE *smaps = fopen("/proc/self/smaps", "re");
    assert_non_null(smaps);
    snprintf(pattern, sizeof pattern, "%s: %%lu kB", field);
    while (fgets(line, sizeof line, smaps) != NULL) {
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            inside = low < (uintptr_t)start + len_bytes && high > (uintptr_t)start;
        else if (inside && sscanf(line, pattern, &kib) == 1)
            sum_bytes += kib * 1024;
    }
    fclose(smaps);
    return sum_bytes;
}

/* Memory in huge pages, except odd_bytes at each end; a separate mapping. */
static char *map_huge(uint64_t odd_bytes)
{
    char *room = map_private(RANGE_BYTES + 2 * ORIEL_HUGE_BYTES);
    char *first =
        (char *)(((uintptr_t)room + ORIEL_HUGE_BYTES - 1) & ~(uintptr_t)(ORIEL_HUGE_BYTES - 1)) +
        ORIEL_HUGE_BYTES;
    char *start = first - odd_bytes;
    if (!oriel_huge_pages_can_collapse() ||
        madvise(room, RANGE_BYTES + 2 * ORIEL_HUGE_BYTES, MADV_HUGEPAGE) != 0)
        skip();
    for (uint64_t at = 0; at < RANGE_BYTES; at++)
        start[at] = (char)(at / 8 % 251 + 1);
    if (sum_of("AnonHugePages", start, RANGE_BYTES) < RANGE_BYTES / 2) {
        print_message("the system has no free huge pages\n");
        skip();
    }
    return start;
}

static void expect_contents(const char *start)
{
    for (uint64_t at = 0; at < RANGE_BYTES; at++)
        if (start[at] != (char)(at / 8 % 251 + 1))
            fail_msg("byte %lu is %d", (unsigned long)at, start[at]);
}

static void there_and_back(const struct oriel_promote_options *how, uint64_t odd_bytes)
{
    struct oriel_promoted promoted;
    char *start = map_huge(odd_bytes);
    uint64_t before_bytes = sum_of("AnonHugePages", start, RANGE_BYTES);
    promote(start, RANGE_BYTES, how, &promoted);
    assert_true(sum_of("ShmemPmdMapped", start, RANGE_BYTES) >=
                (HUGE_PAGES - 2) * ORIEL_HUGE_BYTES);
    expect_contents(start);
    start[RANGE_BYTES / 2] ^= 1;
    start[RANGE_BYTES / 2] ^= 1;
    oriel_promote_release(&promoted);
    assert_true(sum_of("AnonHugePages", start, RANGE_BYTES) >= before_bytes - 2 * ORIEL_HUGE_BYTES);
    expect_contents(start);
    munmap(start, RANGE_BYTES);
}

static void huge_pages_stay_huge(void **state)
{
    there_and_back(means_of(state), 0);
}

static void huge_pages_inside_of_an_odd_range_stay_huge(void **state)
{
    there_and_back(means_of(state), 5 * PAGE);
}

static void memory_without_huge_pages_gets_none(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *start = map_private(RANGE_BYTES);
    madvise(start, RANGE_BYTES, MADV_NOHUGEPAGE);
    memset(start, 1, RANGE_BYTES);
    promote(start, RANGE_BYTES, how, &promoted);
    if (oriel_pages_huge() == ORIEL_HUGE_NONE)
        assert_int_equal(sum_of("ShmemPmdMapped", start, RANGE_BYTES), 0);
    oriel_promote_release(&promoted);
    munmap(start, RANGE_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(huge_pages_stay_huge),
        BY_BOTH(huge_pages_inside_of_an_odd_range_stay_huge),
        BY_BOTH(memory_without_huge_pages_gets_none),
    };
    if (oriel_file_start() != ORIEL_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
