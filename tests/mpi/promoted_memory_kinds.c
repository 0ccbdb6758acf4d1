/* Every kind of memory that a program can pass to MPI_Win_create supports every operation at every
 * offset. Bytes around it never change, and it keeps its contents after MPI_Win_free. The window
 * reports its path and the reason why no better one is available. A plain MPI program, run by the
 * test rows. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum expected_path {
    PROMOTED,        /* whole pages, as the node allows */
    PROMOTED_INWARD, /* private copies of files */
    COPIED,
    EITHER /* depends on the node: promoted, or copied for the given reason */
};

enum { GUARD = 0x6b };

static void path_check(MPI_Win win, char *base, size_t len_bytes, enum expected_path expected_path,
                       const char *why)
{
    if (expected_path == COPIED)
        check_copied(win, why);
    else if (expected_path == PROMOTED_INWARD)
        check_promoted_inward(win, base, len_bytes);
    else if (expected_path == PROMOTED || is_promoted(win))
        check_promoted(win, base, len_bytes);
    else
        check_copied(win, why);
}

/* A window over a part of an area that is writable as a whole. */
static void part_try(char *area, size_t area_bytes, size_t at, size_t len_bytes,
                     enum expected_path expected_path, const char *why)
{
    memset(area, GUARD, area_bytes);
    MPI_Win win = window_over(area + at, len_bytes);
    path_check(win, area + at, len_bytes, expected_path, why);
    window_exercise(win, area + at, len_bytes);
    size_t stored_bytes = len_bytes < (1 << 20) ? len_bytes : 1 << 20;
    char *saved = malloc(stored_bytes + 1);
    memcpy(saved, area + at, stored_bytes);
    MPI_Win_free(&win);
    CHECK(memcmp(saved, area + at, stored_bytes) == 0, "MPI_Win_free changes the contents");
    for (size_t i = 0; i < area_bytes; i++)
        if ((i < at || i >= at + len_bytes) &&
            !CHECK(area[i] == GUARD, "byte %zu next to the window is %d", i, area[i]))
            break;
    memset(area, 1, area_bytes);
    free(saved);
}

static void whole_check(char *area, size_t len_bytes, enum expected_path expected_path,
                        const char *why)
{
    part_try(area, len_bytes, 0, len_bytes, expected_path, why);
}

/* --- ordinary memory --- */

static void heap_memory_of_every_size(enum window_kind kind)
{
    static const size_t sizes[] = {1, 8, 100, 3000, 4096, 9000, 50000, 131000, 300000, 3000000};
    (void)kind;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char *memory = malloc(sizes[i]);
        whole_check(memory, sizes[i], PROMOTED, "");
        free(memory);
        memory = aligned_alloc(PAGE, 4 * PAGE);
        part_try(memory, 4 * PAGE, sizes[i] % PAGE, 2 * PAGE, PROMOTED, "");
        free(memory);
    }
}

static char bss_small[40];
static _Alignas(4096) char bss_pages[5 * PAGE];
static _Alignas(4096) char data_pages[5 * PAGE] = {1, 2, 3};
static _Alignas(4096) char more_data_pages[5 * PAGE] = {1, 2, 3};

static void static_memory(enum window_kind kind)
{
    (void)kind;
    whole_check(bss_small, sizeof bss_small, EITHER, "no whole page");
    whole_check(bss_pages, sizeof bss_pages, PROMOTED, "");
    part_try(bss_pages, sizeof bss_pages, 1001, 3 * PAGE, PROMOTED, "");
    whole_check(data_pages, sizeof data_pages, PROMOTED_INWARD, "");
    part_try(more_data_pages, sizeof more_data_pages, 1001, 3 * PAGE, PROMOTED_INWARD, "");
}

static void mapped_memory(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(16 * PAGE);
    whole_check(area, 16 * PAGE, PROMOTED, "");
    part_try(area, 16 * PAGE, PAGE + 3, 9 * PAGE + 5, PROMOTED, "");
    munmap(area, 16 * PAGE);
    area = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    part_try(area, 16 * PAGE, PAGE - 3, 9 * PAGE + 5, PROMOTED, "");
    munmap(area, 16 * PAGE);
}

static void places_at_the_ends_of_pages(enum window_kind kind)
{
    static const size_t ranges[][2] = {
        {0, 1},           {1, 1},           {PAGE - 1, 1},      {PAGE - 1, 2},
        {PAGE - 4, 8},    {13, 7},          {0, PAGE},          {PAGE - 100, 100},
        {PAGE, PAGE + 1}, {PAGE + 1, PAGE}, {3, 2 * PAGE - 3},  {4 * PAGE - 9, 9},
        {5, 8},           {PAGE - 7, 15},   {17, 3 * PAGE + 1}, {4 * PAGE - 1, 1}};
    (void)kind;
    char *area = pages_map(4 * PAGE);
    for (size_t i = 0; i < COUNT_OF(ranges); i++)
        part_try(area, 4 * PAGE, ranges[i][0], ranges[i][1], PROMOTED, "");
    munmap(area, 4 * PAGE);
}

static void memory_of_no_size(enum window_kind kind)
{
    char word[8] = {GUARD};
    (void)kind;
    for (int turn = 0; turn < 3; turn++) {
        size_t len_bytes = turn < 2 || world_rank == 0 ? 0 : sizeof word;
        MPI_Win win = window_over(turn == 0 ? NULL : word, len_bytes);
        window_exercise(win, word, len_bytes);
        MPI_Win_free(&win);
    }
}

static void memory_with_a_guard_page_after_it(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(6 * PAGE);
    CHECK(mprotect(area, PAGE, PROT_NONE) == 0 && mprotect(area + 5 * PAGE, PAGE, PROT_NONE) == 0,
          "mprotect");
    whole_check(area + PAGE, 4 * PAGE, PROMOTED, "");
    part_try(area + PAGE, 4 * PAGE, PAGE + 9, 3 * PAGE - 9, PROMOTED, "");
    part_try(area + PAGE, 4 * PAGE, 4 * PAGE - 3, 3, PROMOTED, "");
    munmap(area, 6 * PAGE);
}

static void memory_that_spans_several_mappings(enum window_kind kind)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    (void)kind;
    char *area = pages_map(8 * PAGE);
    CHECK(mmap(area + 3 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, -1, 0) !=
              MAP_FAILED,
          "mmap");
    CHECK(madvise(area + 6 * PAGE, PAGE, MADV_RANDOM) == 0, "madvise");
    whole_check(area, 8 * PAGE, PROMOTED, "");
    part_try(area, 8 * PAGE, 2 * PAGE + 77, 5 * PAGE, PROMOTED, "");
    CHECK(mmap(area + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
          "mmap");
    whole_check(area, 8 * PAGE, COPIED, "already shared");
    munmap(area, 8 * PAGE);
}

static void sparse_memory_beyond_two_gib_stays_sparse(enum window_kind kind)
{
    const size_t len_bytes = ((size_t)3 << 30) + 12345;
    (void)kind;
    char *area = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(area != MAP_FAILED, "mmap: %s", strerror(errno));
    madvise(area, len_bytes, MADV_NOHUGEPAGE);
    MPI_Win win = window_over(area, len_bytes);
    check_promoted(win, area, len_bytes);
    window_exercise(win, area, len_bytes);
    CHECK_EQUAL(area[(size_t)2 << 30], 0);
    char last = area[len_bytes - 1];
    MPI_Win_free(&win);
    CHECK_EQUAL(area[len_bytes - 1], last);
    unsigned char present[(1 << 20) / PAGE];
    CHECK(mincore(area + ((size_t)2 << 30) + (1 << 22), 1 << 20, present) == 0, "mincore");
    for (size_t i = 0; i < sizeof present; i++)
        CHECK((present[i] & 1) == 0, "an untouched page is present");
    munmap(area, len_bytes);
}

/* --- memory that stays where it is --- */

static void memory_of_mpi_alloc_mem(enum window_kind kind)
{
    char *memory;
    (void)kind;
    MPI_Alloc_mem(3 * PAGE, MPI_INFO_NULL, &memory);
    MPI_Win win = window_over(memory + 33, 2 * PAGE);
    if (through_oriel())
        check_path(win, "direct");
    CHECK(memory_path_read(win).reason[0] == '\0', "there is a reason: %s",
          memory_path_read(win).reason);
    window_exercise(win, memory + 33, 2 * PAGE);
    MPI_Win_free(&win);
    MPI_Free_mem(memory);
}

static void shared_mappings_show_puts(enum window_kind kind)
{
    (void)kind;
    int fd = memfd_create("test", 0);
    CHECK(ftruncate(fd, 4 * PAGE) == 0, "ftruncate");
    char *area = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    whole_check(area, 4 * PAGE, COPIED, "already shared");
    part_try(area, 4 * PAGE, 100, 2 * PAGE, COPIED, "already shared");
    char *other = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MPI_Win win = window_over(area, 4 * PAGE);
    window_exercise(win, area, 4 * PAGE);
    CHECK(memcmp(area, other, 4 * PAGE) == 0, "another mapping of the file shows something else");
    MPI_Win_free(&win);
    munmap(other, 4 * PAGE);
    munmap(area, 4 * PAGE);
    close(fd);
    area = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    whole_check(area, 4 * PAGE, COPIED, "already shared");
    munmap(area, 4 * PAGE);
}

static void private_mappings_of_a_file_leave_the_file_alone(enum window_kind kind)
{
    enum { LEN_BYTES = 4 * PAGE };
    char text[LEN_BYTES], now[LEN_BYTES];
    (void)kind;
    FILE *file = tmpfile();
    memset(text, 'x', sizeof text);
    if (!CHECK(file && fwrite(text, 1, sizeof text, file) == sizeof text && fflush(file) == 0,
               "no file"))
        return;
    for (size_t skipped = 0; skipped < 400; skipped += 200) {
        char *area = mmap(NULL, LEN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
        MPI_Win win = window_over(area + skipped, LEN_BYTES - skipped);
        check_promoted_inward(win, area + skipped, LEN_BYTES - skipped);
        CHECK(memcmp(area, text, sizeof text) == 0, "the window changes the contents");
        window_exercise(win, area + skipped, LEN_BYTES - skipped);
        CHECK(memcmp(area, text, skipped) == 0, "a byte next to the window has changed");
        MPI_Win_free(&win);
        munmap(area, LEN_BYTES);
    }
    CHECK(pread(fileno(file), now, sizeof now, 0) == sizeof now &&
              memcmp(now, text, sizeof now) == 0,
          "the file has changed");
    fclose(file);
}

/* Memory that has never been seen before. */
static void advised_memory(enum window_kind kind)
{
    static const struct {
        int advice;
        const char *why;
    } advice[] = {{MADV_DONTFORK, "MADV_DONTFORK"},
                  {MADV_WIPEONFORK, "MADV_WIPEONFORK"},
                  {MADV_DONTDUMP, "MADV_DONTDUMP"}};
    char *fresh[COUNT_OF(advice)];
    (void)kind;
    for (size_t i = 0; i < COUNT_OF(advice); i++) {
        fresh[i] = pages_map(4 * PAGE);
        CHECK(madvise(fresh[i] + PAGE, PAGE, advice[i].advice) == 0, "madvise");
    }
    for (size_t i = 0; i < COUNT_OF(advice); i++)
        whole_check(fresh[i], 4 * PAGE, COPIED, advice[i].why);
    for (size_t i = 0; i < COUNT_OF(advice); i++)
        munmap(fresh[i], 4 * PAGE);
    char *area = pages_map(256 * PAGE);
    memset(area, 1, 256 * PAGE);
    CHECK(madvise(area, 256 * PAGE, MADV_FREE) == 0, "madvise");
    MPI_Win win = window_over(area, 256 * PAGE);
    path_check(win, area, 256 * PAGE, EITHER, "MADV_FREE");
    window_exercise(win, area, 256 * PAGE);
    MPI_Win_free(&win);
    munmap(area, 256 * PAGE);
}

static void locked_and_executable_memory(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(4 * PAGE);
    CHECK(mlock(area + PAGE, 2 * PAGE) == 0, "mlock: %s", strerror(errno));
    whole_check(area, 4 * PAGE, EITHER, "locked by mlock");
    munmap(area, 4 * PAGE);
    area = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
    whole_check(area, 2 * PAGE, COPIED, "executable");
}

static void transparent_huge_pages(enum window_kind kind)
{
    const size_t huge = (size_t)2 << 20;
    (void)kind;
    char *area = pages_map(4 * huge);
    char *start = area + (huge - (uintptr_t)area % huge);
    madvise(start, 2 * huge, MADV_HUGEPAGE);
    part_try(start, 2 * huge, 100, huge + PAGE, EITHER, "huge pages");
    munmap(area, 4 * huge);
}

static void huge_pages_of_hugetlbfs(enum window_kind kind)
{
    const size_t huge = (size_t)2 << 20;
    int any_failed;
    (void)kind;
    char *area =
        mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    int failed = area == MAP_FAILED;
    MPI_Allreduce(&failed, &any_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any_failed)
        harness_skip("the node has no free huge pages (/proc/sys/vm/nr_hugepages)");
    else
        part_try(area, huge, 77, 5 * PAGE, COPIED, "hugetlb");
    if (!failed)
        munmap(area, huge);
}

/* --- stacks and variables of threads --- */

static __thread char own_variables[3 * PAGE];

struct sleeper {
    pthread_barrier_t ready, done;
    char *stack;
    char *variables;
};

static void *pass_memory(void *context)
{
    struct sleeper *sleeper = context;
    char array[3 * PAGE];
    sleeper->stack = array;
    sleeper->variables = own_variables;
    pthread_barrier_wait(&sleeper->ready);
    pthread_barrier_wait(&sleeper->done);
    return NULL;
}

static void stacks_and_variables_of_threads(enum window_kind kind)
{
    struct sleeper sleeper;
    pthread_t thread;
    char array[3 * PAGE], small[16];
    (void)kind;
    whole_check(array, sizeof array, COPIED, "stack");
    whole_check(small, sizeof small, COPIED, "stack|no whole page");
    whole_check(own_variables, sizeof own_variables, EITHER,
                "variables|stack|kernel|no whole page");
    pthread_barrier_init(&sleeper.ready, NULL, 2);
    pthread_barrier_init(&sleeper.done, NULL, 2);
    pthread_create(&thread, NULL, pass_memory, &sleeper);
    pthread_barrier_wait(&sleeper.ready);
    whole_check(sleeper.stack, sizeof array, COPIED, "stack of thread|stacks of threads");
    whole_check(sleeper.variables, sizeof own_variables, COPIED,
                "stack of thread|stacks of threads");
    pthread_barrier_wait(&sleeper.done);
    pthread_join(thread, NULL);
}

/* --- memory that may only be read --- */

/* The operation itself returns the error, or the flush that completes it at the target. */
static void refused(int code, int target, MPI_Win win)
{
    if (code == MPI_SUCCESS)
        code = MPI_Win_flush(target, win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, code);
}

static void operations_on_readonly(MPI_Win win, int target, char *got, bool puts)
{
    int64_t value = 5, seen = 0;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    CHECK_OK(MPI_Get(got, 3 * PAGE, MPI_BYTE, target, 0, 3 * PAGE, MPI_BYTE, win));
    CHECK_OK(MPI_Win_flush(target, win));
    if (puts) {
        refused(MPI_Put(&value, 1, MPI_INT64_T, target, 8, 1, MPI_INT64_T, win), target, win);
        refused(MPI_Put(got, 2 * PAGE, MPI_BYTE, target, 8, 2 * PAGE, MPI_BYTE, win), target, win);
        refused(MPI_Fetch_and_op(&value, &seen, MPI_INT64_T, target, PAGE, MPI_SUM, win), target,
                win);
        refused(MPI_Accumulate(&value, 1, MPI_INT64_T, target, 16, 1, MPI_INT64_T, MPI_SUM, win),
                target, win);
    }
    CHECK_OK(MPI_Win_unlock(target, win));
}

static void readonly_memory_is_read_and_a_put_is_the_origins_error(enum window_kind kind)
{
    char *got = malloc(3 * PAGE);
    (void)kind;
    char *area = pages_map(3 * PAGE);
    for (int i = 0; i < 3 * PAGE; i++)
        area[i] = (char)(i % 127);
    CHECK(mprotect(area, 3 * PAGE, PROT_READ) == 0, "mprotect");
    MPI_Win win = window_over(area, 3 * PAGE);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    check_copied(win, "not writable");
    for (int distance = 0; distance < world_size; distance++) {
        memset(got, 0, 3 * PAGE);
        operations_on_readonly(win, (world_rank + distance) % world_size, got,
                               distance > 0 && through_oriel());
        CHECK(memcmp(got, area, 3 * PAGE) == 0, "MPI_Get reads something else");
        barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < 3 * PAGE; i++)
        if (!CHECK(area[i] == (char)(i % 127), "byte %d has changed", i))
            break;
    MPI_Win_free(&win);
    munmap(area, 3 * PAGE);
    free(got);
}

static const struct test_case cases[] = {
    CASE(heap_memory_of_every_size, KIND_ANY, 2),
    CASE(static_memory, KIND_ANY, 2),
    CASE(mapped_memory, KIND_ANY, 2),
    CASE(places_at_the_ends_of_pages, KIND_ANY, 2),
    CASE(memory_of_no_size, KIND_ANY, 2),
    CASE(memory_with_a_guard_page_after_it, KIND_ANY, 2),
    CASE(memory_that_spans_several_mappings, KIND_ANY, 2),
    CASE(sparse_memory_beyond_two_gib_stays_sparse, KIND_ANY, 2),
    CASE(memory_of_mpi_alloc_mem, KIND_ANY, 2),
    CASE(shared_mappings_show_puts, KIND_ANY, 2),
    CASE(private_mappings_of_a_file_leave_the_file_alone, KIND_ANY, 2),
    CASE(advised_memory, KIND_ANY, 2),
    CASE(locked_and_executable_memory, KIND_ANY, 2),
    CASE(transparent_huge_pages, KIND_ANY, 2),
    CASE(huge_pages_of_hugetlbfs, KIND_ANY, 2),
    CASE(stacks_and_variables_of_threads, KIND_ANY, 2),
    CASE(readonly_memory_is_read_and_a_put_is_the_origins_error, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
