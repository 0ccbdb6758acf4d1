/* Creation of windows: every flavour over every kind of memory and communicator makes a window
 * whose whole memory is reachable. Each case makes and frees its own windows; bytes outside a
 * window never change. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Puts the bytes first, first + 1, ... into the whole window of the target and reads them back. */
static void fill_and_read(MPI_Win win, int target, MPI_Aint disp, int len_bytes,
                          unsigned char first)
{
    unsigned char *sent = malloc((size_t)len_bytes), *got = calloc((size_t)len_bytes, 1);
    for (int i = 0; i < len_bytes; i++)
        sent[i] = (unsigned char)(first + i);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Put(sent, len_bytes, MPI_BYTE, target, disp, len_bytes, MPI_BYTE, win);
    MPI_Win_flush(target, win);
    MPI_Get(got, len_bytes, MPI_BYTE, target, disp, len_bytes, MPI_BYTE, win);
    MPI_Win_unlock(target, win);
    CHECK(memcmp(sent, got, (size_t)len_bytes) == 0,
          "a get from rank %d does not return the put data", target);
    free(sent);
    free(got);
}

static void bytes_expect(const void *memory, int len_bytes, unsigned char first, const char *what)
{
    const unsigned char *byte = memory;
    for (int i = 0; i < len_bytes; i++)
        if (!CHECK(byte[i] == (unsigned char)(first + i), "%s: byte %d is %d", what, i, byte[i]))
            return;
}

/* Every rank writes to its right neighbour, which reads its own memory. */
static void ring_check(MPI_Win win, MPI_Comm comm, const void *memory, int len_bytes,
                       const char *what)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    barrier(comm);
    fill_and_read(win, (rank + 1) % size, 0, len_bytes, (unsigned char)rank);
    barrier(comm);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    bytes_expect(memory, len_bytes, (unsigned char)((rank + size - 1) % size), what);
    MPI_Win_unlock(rank, win);
    barrier(comm);
}

static void every_byte_of_a_window_is_reachable(enum window_kind kind)
{
    struct window window = window_make(kind, 1000, 1, MPI_COMM_WORLD);
    ring_check(window.win, MPI_COMM_WORLD, window.base, 1000, "window");
    window_free(&window);
    CHECK(window.win == MPI_WIN_NULL, "the freed handle is not MPI_WIN_NULL");
}

static void sizes_and_units_may_differ_by_rank(enum window_kind kind)
{
    int unit = 1 << (world_rank % 4);
    MPI_Aint size_bytes = 64 * (world_rank + 1);
    struct window window = window_make(kind, size_bytes, unit, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int target = 0; target < world_size; target++) {
        char mark = (char)(world_rank + 1);
        int target_unit = 1 << (target % 4);
        MPI_Aint last = 64 * (target + 1) - 8 * (world_size - world_rank);
        if (last >= 0)
            MPI_Put(&mark, 1, MPI_CHAR, target, last / target_unit, 1, MPI_CHAR, window.win);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int origin = 0; origin < world_size; origin++) {
        MPI_Aint last = size_bytes - 8 * (world_size - origin);
        if (last >= 0)
            CHECK_EQUAL(window.base[last / unit * unit], origin + 1);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Ranks above 0 have no memory; they are still targets of every synchronisation. */
static void size_zero_with_a_null_base_is_a_window(enum window_kind kind)
{
    MPI_Aint size_bytes = world_rank == 0 ? 64 : 0;
    struct window window = window_make(kind, size_bytes, 1, MPI_COMM_WORLD);
    int value = world_rank;
    MPI_Win_fence(0, window.win);
    MPI_Put(&value, 1, MPI_INT, 0, (world_rank % 16) * 4, 1, MPI_INT, window.win);
    MPI_Put(NULL, 0, MPI_INT, world_size - 1, 0, 0, MPI_INT, window.win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    for (int target = 0; target < world_size; target++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        MPI_Win_flush(target, window.win);
        MPI_Win_unlock(target, window.win);
    }
    MPI_Win_lock_all(0, window.win);
    MPI_Win_flush_all(window.win);
    MPI_Win_unlock_all(window.win);
    if (world_rank == 0 && world_size > 1)
        CHECK_EQUAL(((int *)window.base)[1], 1);
    window_free(&window);
}

static void sub_communicators_have_their_own_ranks(enum window_kind kind)
{
    MPI_Comm half, reversed;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    struct window first = window_make(kind, 100, 1, half);
    struct window second = window_make(kind, 100, 1, reversed);
    ring_check(first.win, half, first.base, 100, "half");
    ring_check(second.win, reversed, second.base, 100, "reversed");
    window_free(&second);
    window_free(&first);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
}

static void one_process_is_enough(enum window_kind kind)
{
    MPI_Comm alone;
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    struct window first = window_make(kind, 33, 1, MPI_COMM_SELF);
    struct window second = window_make(kind, 33, 1, alone);
    ring_check(first.win, MPI_COMM_SELF, first.base, 33, "MPI_COMM_SELF");
    ring_check(second.win, alone, second.base, 33, "its duplicate");
    MPI_Win_fence(0, first.win);
    MPI_Put("x", 1, MPI_CHAR, 0, 7, 1, MPI_CHAR, first.win);
    MPI_Win_fence(0, first.win);
    CHECK_EQUAL(first.base[7], 'x');
    window_free(&second);
    window_free(&first);
    MPI_Comm_free(&alone);
}

static void the_communicator_may_be_freed_first(enum window_kind kind)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    struct window window = window_make(kind, 64, 1, comm);
    MPI_Comm_free(&comm);
    ring_check(window.win, MPI_COMM_WORLD, window.base, 64, "window");
    MPI_Win_fence(0, window.win);
    window_free(&window);
}

static void the_same_memory_may_be_in_two_windows(enum window_kind kind)
{
    struct window window = window_make(kind, 256, 1, MPI_COMM_WORLD);
    MPI_Win whole, middle;
    char seen = 0, mark = (char)(world_rank + 'a');
    int target = (world_rank + 1) % world_size;
    MPI_Win_create(window.base, 256, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &whole);
    MPI_Win_create(window.base + 101, 50, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &middle);
    window_watch(whole);
    window_watch(middle);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, middle);
    MPI_Put(&mark, 1, MPI_CHAR, target, 9, 1, MPI_CHAR, middle);
    MPI_Win_unlock(target, middle);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, whole);
    MPI_Get(&seen, 1, MPI_CHAR, target, 110, 1, MPI_CHAR, whole);
    MPI_Win_unlock(target, whole);
    CHECK_EQUAL(seen, mark);
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(window.base[110], (world_rank + world_size - 1) % world_size + 'a');
    MPI_Win_free(&middle);
    ring_check(whole, MPI_COMM_WORLD, window.base, 256, "after the other window was freed");
    MPI_Win_free(&whole);
    window_free(&window);
}

static void windows_may_share_a_page(enum window_kind kind)
{
    enum { PIECES = 8, PIECE_BYTES = 96, WINDOW_BYTES = 32 };
    char *page = aligned_alloc(4096, 4096);
    MPI_Win win[PIECES];
    (void)kind;
    memset(page, 0x55, 4096);
    for (int i = 0; i < PIECES; i++) {
        MPI_Win_create(page + i * PIECE_BYTES, WINDOW_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                       &win[i]);
        window_watch(win[i]);
    }
    for (int i = 0; i < PIECES; i++)
        ring_check(win[i], MPI_COMM_WORLD, page + i * PIECE_BYTES, WINDOW_BYTES, "piece");
    for (int i = 0; i < 4096; i++)
        if (i >= PIECES * PIECE_BYTES || i % PIECE_BYTES >= WINDOW_BYTES)
            CHECK(page[i] == 0x55, "byte %d next to the windows changed", i);
    for (int i = 0; i < PIECES; i++)
        MPI_Win_free(&win[i]);
    free(page);
}

static int static_word;
static int initialised_word[3] = {1, 2, 3};
static char static_pages[3 * 4096];

static void word_window_check(int *word, const char *what)
{
    MPI_Win win;
    MPI_Win_create(word, sizeof *word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    window_watch(win);
    ring_check(win, MPI_COMM_WORLD, word, sizeof *word, what);
    MPI_Win_free(&win);
}

static void variables_of_four_bytes_accept_puts(enum window_kind kind)
{
    int stack_words[3] = {1, 2, 3};
    int *heap_words = calloc(3, sizeof *heap_words);
    (void)kind;
    word_window_check(&static_word, "static variable");
    word_window_check(&initialised_word[1], "initialised variable");
    word_window_check(&stack_words[1], "stack variable");
    word_window_check(&heap_words[1], "heap variable");
    CHECK(initialised_word[0] == 1 && initialised_word[2] == 3,
          "a neighbour of the initialised variable changed");
    CHECK(stack_words[0] == 1 && stack_words[2] == 3, "a neighbour of the stack variable changed");
    CHECK(heap_words[0] == 0 && heap_words[2] == 0, "a neighbour of the heap variable changed");
    free(heap_words);
}

static void static_and_stack_arrays_accept_puts(enum window_kind kind)
{
    char stack_pages[3 * 4096];
    char *memory[] = {static_pages, stack_pages};
    (void)kind;
    for (size_t i = 0; i < COUNT_OF(memory); i++) {
        MPI_Win win;
        MPI_Win_create(memory[i] + 5, 2 * 4096 + 17, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        window_watch(win);
        ring_check(win, MPI_COMM_WORLD, memory[i] + 5, 2 * 4096 + 17, i ? "stack" : "static");
        MPI_Win_free(&win);
    }
}

static void allocations_of_odd_sizes_are_reachable(enum window_kind kind)
{
    static const int sizes[] = {1, 2, 3, 5, 7, 13, 17, 31, 33, 63, 65, 100, 4095, 4097, 65537};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct window window = window_make(kind, sizes[i], 1, MPI_COMM_WORLD);
        ring_check(window.win, MPI_COMM_WORLD, window.base, sizes[i], "odd size");
        window_free(&window);
    }
}

static void a_large_window_is_reachable_at_its_end(enum window_kind kind)
{
    const MPI_Aint size_bytes = (MPI_Aint)24 << 20;
    struct window window = window_make(kind, size_bytes, 8, MPI_COMM_WORLD);
    int target = (world_rank + 1) % world_size;
    fill_and_read(window.win, target, size_bytes / 8 - 16, 128, (unsigned char)world_rank);
    barrier(MPI_COMM_WORLD);
    bytes_expect(window.base + size_bytes - 128, 128,
                 (unsigned char)((world_rank + world_size - 1) % world_size), "end");
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void allocated_memory_may_have_interior_windows(enum window_kind kind)
{
    char *memory[20];
    (void)kind;
    for (int i = 0; i < 20; i++) {
        MPI_Alloc_mem(100 << (i % 12), MPI_INFO_NULL, &memory[i]);
        memset(memory[i], i, (size_t)100 << (i % 12));
    }
    MPI_Win win;
    MPI_Win_create(memory[5] + 33, 50, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    window_watch(win);
    ring_check(win, MPI_COMM_WORLD, memory[5] + 33, 50, "interior of MPI_Alloc_mem");
    CHECK(memory[5][32] == 5 && memory[5][83] == 5, "a byte next to the window changed");
    MPI_Win_free(&win);
    for (int i = 0; i < 20; i++) {
        CHECK(memory[i][0] == i && memory[i][(100 << (i % 12)) - 1] == i,
              "block %d was overwritten", i);
        MPI_Free_mem(memory[i]);
    }
}

/* Programs that ran on fresh memory rely on zeros. MPI may return freed memory again. */
static void allocated_windows_are_zero(enum window_kind kind)
{
    enum { ROUNDS = 3 };
    static const size_t sizes[] = {1000, 40000, 1 << 20, (3 << 20) + 5};
    (void)kind;
    for (size_t i = 0; i < ROUNDS * COUNT_OF(sizes); i++) {
        const size_t len_bytes = sizes[i % COUNT_OF(sizes)];
        char *memory, *base;
        MPI_Win win;
        MPI_Alloc_mem((MPI_Aint)sizes[i / ROUNDS], MPI_INFO_NULL, &memory);
        memset(memory, 1, sizes[i / ROUNDS]);
        MPI_Free_mem(memory);
        MPI_Win_allocate((MPI_Aint)len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        window_watch(win);
        CHECK(base[0] == 0 && memcmp(base, base + 1, len_bytes - 1) == 0,
              "%zu bytes of a window are not all zero", len_bytes);
        memset(base, 2, len_bytes);
        MPI_Win_free(&win);
    }
}

static void alignment_asked_for_is_given(enum window_kind kind)
{
    MPI_Info info;
    char *memory, *base;
    MPI_Win win;
    (void)kind;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "1024");
    MPI_Alloc_mem(24, info, &memory);
    CHECK((uintptr_t)memory % 1024 == 0, "MPI_Alloc_mem gave %p", (void *)memory);
    MPI_Free_mem(memory);
    MPI_Win_allocate(24 + world_rank, 1, info, MPI_COMM_WORLD, &base, &win);
    CHECK((uintptr_t)base % 1024 == 0, "MPI_Win_allocate gave %p", (void *)base);
    MPI_Win_free(&win);
    if (ranks_share_memory()) {
        MPI_Info_set(info, "alloc_shared_noncontig", "true");
        MPI_Win_allocate_shared(24 + world_rank, 1, info, MPI_COMM_WORLD, &base, &win);
        CHECK((uintptr_t)base % 1024 == 0, "MPI_Win_allocate_shared gave %p", (void *)base);
        MPI_Win_free(&win);
    }
    MPI_Info_free(&info);
}

/* --- large mappings of which nothing is used --- */

struct pages {
    long resident_kib; /* VmRSS */
    long tables_kib;   /* VmPTE */
};

static struct pages pages_of_process(void)
{
    struct pages pages = {0, 0};
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "VmRSS: %ld", &pages.resident_kib);
        sscanf(line, "VmPTE: %ld", &pages.tables_kib);
    }
    if (status)
        fclose(status);
    return pages;
}

/* NULL on all ranks where one of them gets none: address space or overcommit may forbid it. */
static char *sparse_mapping(size_t size_bytes)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int mapped = memory != MAP_FAILED, all_mapped;
    MPI_Allreduce(&mapped, &all_mapped, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all_mapped)
        return memory;
    if (mapped)
        munmap(memory, size_bytes);
    return NULL;
}

/* CPU time of this process: other load on the node does not count. */
static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Checks the time since started, and this process's growth since then. */
static void check_sparse(const char *what, double started, struct pages before)
{
    enum { RESIDENT_KIB = 16 << 10, TABLES_KIB = 1 << 10 };
    double seconds = processor_seconds() - started;
    struct pages after = pages_of_process();
    CHECK(seconds < 1, "%s took %.3f s of the processor", what, seconds);
    CHECK(after.resident_kib - before.resident_kib < RESIDENT_KIB,
          "%s: VmRSS grew from %ld to %ld KiB", what, before.resident_kib, after.resident_kib);
    CHECK(after.tables_kib - before.tables_kib < TABLES_KIB, "%s: VmPTE grew from %ld to %ld KiB",
          what, before.tables_kib, after.tables_kib);
}

/* A window over the mapping, of which three parts are then used. */
static void use_sparse(char *memory, size_t size_bytes, bool attached)
{
    MPI_Win win;
    MPI_Aint base = 0;
    barrier(MPI_COMM_WORLD);
    struct pages before = pages_of_process();
    double started = processor_seconds();
    if (attached) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        window_watch(win);
        MPI_Win_attach(win, memory, (MPI_Aint)size_bytes);
        MPI_Get_address(memory, &base);
    } else {
        MPI_Win_create(memory, (MPI_Aint)size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        window_watch(win);
    }
    check_sparse(attached ? "MPI_Win_attach" : "MPI_Win_create", started, before);
    barrier(MPI_COMM_WORLD);
    for (int part = 0; part < 3; part++)
        fill_and_read(win, world_rank, base + (MPI_Aint)(size_bytes / 4) * part, 1000,
                      (unsigned char)part);
    barrier(MPI_COMM_WORLD);
    started = processor_seconds();
    if (attached)
        MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
    check_sparse("MPI_Win_free", started, before);
}

/* Creation touches no untouched page and does not inspect each page. */
static void sparse_mappings_become_windows_at_once(enum window_kind kind)
{
    /* The last of these may be promoted. The cost of its promotion prevents later ones. */
    static const size_t sizes_bytes[] = {(size_t)1 << 40, (size_t)64 << 30, (size_t)16 << 30};
    (void)kind;
    for (size_t i = 0; i < COUNT_OF(sizes_bytes); i++) {
        char *memory = sparse_mapping(sizes_bytes[i]);
        if (memory == NULL) {
            harness_skip("no room for a mapping of 1 TiB");
            return;
        }
        for (int attached = 0; attached < 2; attached++)
            use_sparse(memory, sizes_bytes[i], attached);
        munmap(memory, sizes_bytes[i]);
    }
}

static const struct test_case cases[] = {
    CASE(every_byte_of_a_window_is_reachable, KINDS_ALL, 1),
    CASE(sizes_and_units_may_differ_by_rank, KINDS_ALL, 1),
    CASE(size_zero_with_a_null_base_is_a_window, KINDS_ALL, 1),
    CASE(sub_communicators_have_their_own_ranks, KINDS_ALL, 1),
    CASE(one_process_is_enough, KINDS_ALL, 1),
    CASE(the_communicator_may_be_freed_first, KINDS_ALL, 1),
    CASE(the_same_memory_may_be_in_two_windows, KINDS_ALL, 1),
    CASE(windows_may_share_a_page, KIND_ANY, 1),
    CASE(variables_of_four_bytes_accept_puts, KIND_ANY, 1),
    CASE(static_and_stack_arrays_accept_puts, KIND_ANY, 1),
    CASE(allocations_of_odd_sizes_are_reachable, KINDS_ALL, 1),
    CASE(a_large_window_is_reachable_at_its_end, KINDS_ALL, 1),
    CASE(allocated_memory_may_have_interior_windows, KIND_ANY, 1),
    CASE(allocated_windows_are_zero, KIND_ANY, 1),
    CASE(alignment_asked_for_is_given, KIND_ANY, 1),
    CASE(sparse_mappings_become_windows_at_once, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
