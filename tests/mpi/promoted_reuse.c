/* After MPI_Win_free, window memory is the program's own again: allocators and the kernel may use
 * it like any memory. Windows that share pages may be freed in any order. A plain MPI program, run
 * by the test rows; also with another allocator preloaded. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void fill(void *memory, size_t len_bytes, unsigned char first)
{
    for (size_t i = 0; i < len_bytes; i++)
        ((unsigned char *)memory)[i] = (unsigned char)(first + i % 251);
}

static bool filled_check(const void *memory, size_t len_bytes, unsigned char first,
                         const char *what)
{
    const unsigned char *byte = memory;
    for (size_t i = 0; i < len_bytes; i++)
        if (!CHECK(byte[i] == (unsigned char)(first + i % 251), "%s: byte %zu of %zu is %d", what,
                   i, len_bytes, byte[i]))
            return false;
    return true;
}

static bool zero_check(const void *memory, size_t len_bytes, const char *what)
{
    const unsigned char *byte = memory;
    for (size_t i = 0; i < len_bytes; i++)
        if (!CHECK(byte[i] == 0, "%s: byte %zu of %zu is %d, not zero", what, i, len_bytes,
                   byte[i]))
            return false;
    return true;
}

/* A window over the memory. Each neighbour changes one byte of it: the first of its last half. */
static void window_once(void *memory, size_t len_bytes, unsigned char mark)
{
    int target = (world_rank + 1) % world_size;
    MPI_Win win = window_over(memory, len_bytes);
    check_promoted(win, memory, len_bytes);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Put(&mark, 1, MPI_UNSIGNED_CHAR, target, (MPI_Aint)(len_bytes / 2), 1, MPI_UNSIGNED_CHAR,
            win);
    MPI_Win_unlock(target, win);
    MPI_Win_free(&win);
    CHECK_EQUAL(((unsigned char *)memory)[len_bytes / 2], mark);
}

static const size_t sizes[] = {1,     24,    1000,   4096,   5000,    8192,
                               20000, 70000, 131072, 200000, 1 << 20, (1 << 20) + 77};

static void freed_blocks_are_ordinary_memory_again(enum window_kind kind)
{
    (void)kind;
    for (int round = 0; round < 8; round++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            size_t len_bytes = sizes[i];
            char *memory = malloc(len_bytes);
            fill(memory, len_bytes, (unsigned char)round);
            memory[len_bytes / 2] = 0;
            window_once(memory, len_bytes, (unsigned char)(round + len_bytes / 2 % 251));
            filled_check(memory, len_bytes, (unsigned char)round, "after the window");
            free(memory);
            char *again = calloc(1, len_bytes), *other = malloc(len_bytes);
            zero_check(again, len_bytes, "calloc");
            fill(other, len_bytes, 1);
            fill(again, len_bytes, 2);
            filled_check(other, len_bytes, 1, "a new block");
            free(other);
            filled_check(again, len_bytes, 2, "the other block");
            free(again);
        }
    }
}

static void reallocated_blocks_preserve_their_contents(enum window_kind kind)
{
    (void)kind;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            size_t saved = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
            char *memory = malloc(sizes[i]);
            fill(memory, sizes[i], 5);
            window_once(memory, sizes[i], (unsigned char)(5 + sizes[i] / 2 % 251));
            memory = realloc(memory, sizes[k]);
            filled_check(memory, saved, 5, "realloc");
            fill(memory, sizes[k], 9);
            window_once(memory, sizes[k], (unsigned char)(9 + sizes[k] / 2 % 251));
            filled_check(memory, sizes[k], 9, "a window over the reallocated block");
            free(memory);
        }
    }
}

/* Blocks inside the heap whose pages the allocator returns to the kernel. */
static void trimmed_heap_is_zero_when_it_grows_again(enum window_kind kind)
{
    enum { BLOCKS = 40, BLOCK_BYTES = 60000 };
    char *blocks[BLOCKS];
    (void)kind;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(BLOCK_BYTES);
            memset(blocks[i], 0x77, BLOCK_BYTES);
        }
        for (int i = 0; i < BLOCKS; i += 2)
            window_once(blocks[i], BLOCK_BYTES, 0x78);
        for (int i = 0; i < BLOCKS; i++)
            if (i % 8 != 7)
                free(blocks[i]);
        malloc_trim(0);
        for (int i = 0; i < BLOCKS; i++) {
            if (i % 8 == 7)
                continue;
            blocks[i] = calloc(1, BLOCK_BYTES);
            zero_check(blocks[i], BLOCK_BYTES, "calloc after malloc_trim");
            window_once(blocks[i], BLOCK_BYTES, 0x79);
        }
        for (int i = 0; i < BLOCKS; i++) {
            if (i % 8 == 7)
                CHECK(blocks[i][0] == 0x77 && blocks[i][BLOCK_BYTES - 1] == 0x77,
                      "a neighbour has changed");
            free(blocks[i]);
        }
    }
    malloc_trim(0);
}

static void the_break_may_shrink_and_grow(enum window_kind kind)
{
    enum { LEN_BYTES = 16 * PAGE };
    (void)kind;
    for (int round = 0; round < 10; round++) {
        char *memory = sbrk(LEN_BYTES);
        if (!CHECK(memory != (void *)-1, "sbrk failed"))
            return;
        zero_check(memory, LEN_BYTES, "new memory of sbrk");
        memset(memory, 3, LEN_BYTES);
        window_once(memory + 100, LEN_BYTES - 200, 4);
        if (sbrk(0) == memory + LEN_BYTES) /* the break has not moved since */
            sbrk(-LEN_BYTES);
        free(malloc(1000));
    }
}

static void pages_unmapped_and_mapped_again_are_zero(enum window_kind kind)
{
    enum { LEN_BYTES = 6 * PAGE };
    (void)kind;
    char *memory = pages_map(LEN_BYTES);
    for (int round = 0; round < 20; round++) {
        fill(memory, LEN_BYTES, 1);
        window_once(memory, LEN_BYTES, (unsigned char)(1 + LEN_BYTES / 2 % 251));
        filled_check(memory, LEN_BYTES, 1, "after the window");
        munmap(memory, LEN_BYTES);
        void *again = mmap(memory, LEN_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (again != memory) { /* another mapping has taken the address */
            munmap(again, LEN_BYTES);
            memory = pages_map(LEN_BYTES);
        }
        zero_check(memory, LEN_BYTES, "mapped again");
    }
    munmap(memory, LEN_BYTES);
}

static void advice_and_access_work_as_before(enum window_kind kind)
{
    enum { LEN_BYTES = 6 * PAGE };
    (void)kind;
    char *memory = pages_map(LEN_BYTES);
    for (int round = 0; round < 4; round++) {
        fill(memory, LEN_BYTES, 7);
        window_once(memory, LEN_BYTES, (unsigned char)(7 + LEN_BYTES / 2 % 251));
        CHECK(madvise(memory + PAGE, 2 * PAGE, MADV_DONTNEED) == 0, "madvise");
        zero_check(memory + PAGE, 2 * PAGE, "MADV_DONTNEED");
        filled_check(memory, PAGE, 7, "the page before");
        CHECK(mprotect(memory, PAGE, PROT_READ) == 0, "mprotect");
        filled_check(memory, PAGE, 7, "the page that is read-only");
        CHECK(mprotect(memory, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
        memory = mremap(memory, LEN_BYTES, LEN_BYTES, MREMAP_MAYMOVE);
        CHECK(memory != MAP_FAILED && memory[PAGE - 1] == (char)(7 + (PAGE - 1) % 251), "mremap");
    }
    munmap(memory, LEN_BYTES);
}

static bool has_flag(const char *memory, const char *flag)
{
    char line[4400];
    unsigned long start, end;
    bool here = false, found = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            here = (uintptr_t)memory >= start && (uintptr_t)memory < end;
        if (here && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    if (file)
        fclose(file);
    return found;
}

/* The mapping keeps its address and its ends, so its change is not visible at a glance. */
static void advice_given_between_windows_is_in_force_afterwards(enum window_kind kind)
{
    static const struct {
        int advice, undone;
        const char *flag;
    } advice[] = {{MADV_DONTFORK, MADV_DOFORK, " dc"},
                  {MADV_WIPEONFORK, MADV_KEEPONFORK, " wf"},
                  {MADV_DONTDUMP, MADV_DODUMP, " dd"}};
    (void)kind;
    for (size_t i = 0; i < COUNT_OF(advice); i++) {
        char *around = pages_map(6 * PAGE), *area = around + PAGE;
        CHECK(mprotect(around, PAGE, PROT_NONE) == 0 &&
                  mprotect(around + 5 * PAGE, PAGE, PROT_NONE) == 0,
              "mprotect");
        window_once(area, 4 * PAGE, 1);
        for (int turn = 0; turn < 3; turn++) {
            bool is_set = turn % 2 == 0;
            CHECK(madvise(area, 4 * PAGE, is_set ? advice[i].advice : advice[i].undone) == 0,
                  "madvise");
            MPI_Win win = window_over(area, 4 * PAGE);
            window_exercise(win, area, 4 * PAGE);
            MPI_Win_free(&win);
            CHECK(has_flag(area, advice[i].flag) == is_set &&
                      has_flag(area + 3 * PAGE, advice[i].flag) == is_set,
                  "the flag%s is not as the program has set it", advice[i].flag);
        }
        munmap(around, 6 * PAGE);
    }
}

/* --- windows that share pages --- */

struct arrangement {
    const char *name;
    size_t at[3];
    size_t len_bytes[3];
};

static const struct arrangement arrangements[] = {
    {"three on one page", {16, 1000, 3001}, {500, 1001, 900}},
    {"overlapping", {100, 2 * PAGE + 50, 4 * PAGE + 10}, {3 * PAGE, 3 * PAGE, 2 * PAGE}},
    {"one inside another", {0, PAGE, 2 * PAGE + 100}, {8 * PAGE, 6 * PAGE, PAGE}},
    {"the same", {40, 40, 40}, {5 * PAGE, 5 * PAGE, 5 * PAGE}},
    {"byte by byte", {PAGE, 3 * PAGE - 7, 5 * PAGE + 1}, {2 * PAGE - 7, 2 * PAGE + 8, PAGE}},
    {"pages next to pages", {PAGE, 3 * PAGE, 5 * PAGE}, {2 * PAGE, 2 * PAGE, 2 * PAGE}},
    {"the ends first", {0, 6 * PAGE, PAGE / 2}, {2 * PAGE, 2 * PAGE, 7 * PAGE}},
};

enum { AREA_BYTES = 8 * PAGE, GUARD = 0x6b };

static bool is_inside(const struct arrangement *arrangement, size_t at)
{
    for (int i = 0; i < 3; i++)
        if (at >= arrangement->at[i] && at < arrangement->at[i] + arrangement->len_bytes[i])
            return true;
    return false;
}

/* The order is a permutation of three, numbered from 0. */
static void arrangement_try(const struct arrangement *arrangement, char *area, int order)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    MPI_Win wins[3];
    memset(area, GUARD, AREA_BYTES);
    for (int i = 0; i < 3; i++)
        wins[i] = window_over(area + arrangement->at[i], arrangement->len_bytes[i]);
    for (int freed = 0; freed < 3; freed++) {
        int last = orders[order][2], now = orders[order][freed];
        window_exercise(wins[last], area + arrangement->at[last], arrangement->len_bytes[last]);
        if (freed == 0)
            window_exercise(wins[now], area + arrangement->at[now], arrangement->len_bytes[now]);
        char saved[AREA_BYTES];
        memcpy(saved, area, sizeof saved);
        MPI_Win_free(&wins[now]);
        CHECK(memcmp(saved, area, sizeof saved) == 0, "%s: freeing window %d changes contents",
              arrangement->name, now);
        barrier(MPI_COMM_WORLD);
    }
    for (size_t i = 0; i < AREA_BYTES; i++)
        if (!is_inside(arrangement, i) &&
            !CHECK(area[i] == GUARD, "%s: byte %zu next to the windows", arrangement->name, i))
            return;
}

static void arrangements_try(char *area)
{
    for (size_t i = 0; i < COUNT_OF(arrangements); i++)
        for (int order = 0; order < 6; order++)
            arrangement_try(&arrangements[i], area, order);
}

static void windows_over_shared_pages_are_freed_in_any_order(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    arrangements_try(area);
    memset(area, 1, AREA_BYTES);
    munmap(area, AREA_BYTES);
}

static void windows_over_a_heap_block_are_freed_in_any_order(enum window_kind kind)
{
    (void)kind;
    char *area = malloc(AREA_BYTES + 8);
    arrangements_try(area + 8);
    free(area);
    area = calloc(1, AREA_BYTES + 8);
    zero_check(area, AREA_BYTES + 8, "calloc");
    free(area);
}

static void many_windows_over_the_same_memory_see_one_content(enum window_kind kind)
{
    enum { WINDOWS = 24, LEN_BYTES = 5 * PAGE + 123 };
    MPI_Win wins[WINDOWS];
    (void)kind;
    char *memory = calloc(1, LEN_BYTES);
    int target = (world_rank + 1) % world_size;
    for (int i = 0; i < WINDOWS; i++)
        wins[i] = window_over(memory, LEN_BYTES);
    for (int i = 0; i < WINDOWS; i++) {
        int mark = 100 * (world_rank + 1) + i, seen = 0;
        MPI_Aint disp = (MPI_Aint)i * 800 + 4;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, wins[i]);
        MPI_Put(&mark, 1, MPI_INT, target, disp, 1, MPI_INT, wins[i]);
        MPI_Win_unlock(target, wins[i]);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, wins[WINDOWS - 1 - i]);
        MPI_Get(&seen, 1, MPI_INT, target, disp, 1, MPI_INT, wins[WINDOWS - 1 - i]);
        MPI_Win_unlock(target, wins[WINDOWS - 1 - i]);
        CHECK_EQUAL(seen, mark);
    }
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_free(&wins[i * 7 % WINDOWS]);
    for (int i = 0; i < WINDOWS; i++) {
        int seen;
        memcpy(&seen, memory + i * 800 + 4, sizeof seen);
        CHECK_EQUAL(seen, 100 * ((world_rank + world_size - 1) % world_size + 1) + i);
    }
    free(memory);
}

static void windows_over_adjacent_bytes_do_not_interfere(enum window_kind kind)
{
    enum { WINDOWS = 16, LEN_BYTES = 1003 };
    MPI_Win wins[WINDOWS];
    (void)kind;
    unsigned char *memory = malloc(WINDOWS * LEN_BYTES);
    unsigned char *marks = malloc(LEN_BYTES);
    int target = (world_rank + 1) % world_size;
    memset(memory, 0, WINDOWS * LEN_BYTES);
    for (int i = 0; i < WINDOWS; i++)
        wins[i] = window_over(memory + i * LEN_BYTES, LEN_BYTES);
    for (int i = WINDOWS - 1; i >= 0; i--) {
        memset(marks, i + 1, LEN_BYTES);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, wins[i]);
        MPI_Put(marks, LEN_BYTES, MPI_BYTE, target, 0, LEN_BYTES, MPI_BYTE, wins[i]);
        MPI_Win_unlock(target, wins[i]);
        if (i % 2)
            MPI_Win_free(&wins[i]);
    }
    for (int i = 0; i < WINDOWS; i += 2)
        MPI_Win_free(&wins[i]);
    for (int i = 0; i < WINDOWS * LEN_BYTES; i++)
        if (!CHECK(memory[i] == i / LEN_BYTES + 1, "byte %d is %d", i, memory[i]))
            break;
    free(marks);
    free(memory);
}

static const struct test_case cases[] = {
    CASE(freed_blocks_are_ordinary_memory_again, KIND_ANY, 2),
    CASE(reallocated_blocks_preserve_their_contents, KIND_ANY, 2),
    CASE(trimmed_heap_is_zero_when_it_grows_again, KIND_ANY, 2),
    CASE(the_break_may_shrink_and_grow, KIND_ANY, 2),
    CASE(pages_unmapped_and_mapped_again_are_zero, KIND_ANY, 2),
    CASE(advice_and_access_work_as_before, KIND_ANY, 2),
    CASE(advice_given_between_windows_is_in_force_afterwards, KIND_ANY, 2),
    CASE(windows_over_shared_pages_are_freed_in_any_order, KIND_ANY, 2),
    CASE(windows_over_a_heap_block_are_freed_in_any_order, KIND_ANY, 2),
    CASE(many_windows_over_the_same_memory_see_one_content, KIND_ANY, 2),
    CASE(windows_over_adjacent_bytes_do_not_interfere, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
