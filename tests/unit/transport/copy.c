/* Long copies: the result is right with any overlap. The first put into a mapping of a file causes
 * few faults, and a get into the program's memory no more than the program itself would. */
#include "transport/shared/copy.h"

#include "transport/transport.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmocka_all.h"

enum { LENGTH = 1 << 20, PAGES = LENGTH / 4096, FEW = PAGES / 2 };

static long faults(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

static char *source(void)
{
    char *bytes = malloc(LENGTH);
    assert_non_null(bytes);
    for (int i = 0; i < LENGTH; i++)
        bytes[i] = (char)(i * 7 + i / 4096);
    return bytes;
}

static char *map(int file)
{
    char *at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

static void skip_where_faults_are_more(void)
{
    if (THREAD_SANITIZER) {
        print_message("skipped: ThreadSanitizer's shadow has faults of its own\n");
        skip();
    }
}

/* The other process has touched its pages; this one has touched none of them. */
static void the_first_put_into_a_mapping_causes_few_faults(void **state)
{
    (void)state;
    skip_where_faults_are_more();
    char *bytes = source();
    int file = memfd_create("copy_long", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, LENGTH), 0);
    char *theirs = map(file);
    char *ours = map(file);
    const struct oriel_remote there = {.direct = ours};
    for (int round = 0; round < 3; round++) {
        memset(theirs, round, LENGTH);
        oriel_copy_window_created();
        long before = faults();
        assert_int_equal(oriel_transport_shared.write(&there, bytes, LENGTH), ORIEL_OK);
        long met = faults() - before;
        assert_memory_equal(theirs, bytes, LENGTH);
        if (met >= FEW)
            fail_msg("%ld faults in %d pages, round %d", met, PAGES, round);
        before = faults();
        assert_int_equal(oriel_transport_shared.write(&there, bytes, LENGTH), ORIEL_OK);
        assert_int_equal(faults() - before, 0);
        assert_int_equal(ftruncate(file, 0), 0); /* as when a window's memory is freed */
        assert_int_equal(ftruncate(file, LENGTH), 0);
    }
    munmap(ours, LENGTH);
    munmap(theirs, LENGTH);
    close(file);
    free(bytes);
}

/* A load before the first store would map the page of zeros, which the store has to replace: an
 * extra fault each time. */
static void a_get_into_unused_memory_causes_a_fault_for_each_page(void **state)
{
    (void)state;
    skip_where_faults_are_more();
    char *bytes = source();
    const struct oriel_remote there = {.direct = bytes};
    char *fresh = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(fresh, MAP_FAILED);
    madvise(fresh, LENGTH, MADV_NOHUGEPAGE);
    oriel_copy_window_created();
    long before = faults();
    assert_int_equal(oriel_transport_shared.read(&there, fresh, LENGTH), ORIEL_OK);
    long met = faults() - before;
    assert_memory_equal(fresh, bytes, LENGTH);
    if (met > PAGES + PAGES / 32)
        fail_msg("%ld faults in %d pages", met, PAGES);
    munmap(fresh, LENGTH);
    free(bytes);
}

static void all_lengths_and_overlaps_are_copied(void **state)
{
    static const int lengths[] = {0,
                                  1,
                                  8,
                                  4095,
                                  (16 << 10) - 1,
                                  16 << 10,
                                  (16 << 10) + 1,
                                  65536,
                                  (256 << 10) + 1,
                                  LENGTH - 8192};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int shift = -4096; shift <= 4096; shift += 1024) {
            char *moved = source();
            char *expected = source();
            int from = shift < 0 ? -shift : 0;
            oriel_copy(moved + from + shift, moved + from, (uint64_t)lengths[i]);
            memmove(expected + from + shift, expected + from, (size_t)lengths[i]);
            assert_memory_equal(moved, expected, LENGTH);
            free(moved);
            free(expected);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_put_into_a_mapping_causes_few_faults),
        cmocka_unit_test(a_get_into_unused_memory_causes_a_fault_for_each_page),
        cmocka_unit_test(all_lengths_and_overlaps_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
