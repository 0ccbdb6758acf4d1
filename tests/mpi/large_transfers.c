/* More than 2^31 bytes or elements in one operation, and windows of more than 4 GiB with
 * displacements to match. Only a few pages of the large windows are touched. Cases that move 2 GiB
 * are slow and need TEST_LARGE=1. A plain MPI program, run by the test rows; skipped where memory
 * is short. */
#include "operation_forms.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#define GIB        ((MPI_Aint)1 << 30)
#define PAGE_BYTES ((MPI_Aint)4096)

/* Checks the node's memory and the limit of shared memory. */
static bool has_memory(int gib)
{
    char line[256];
    long long available_kib = 0;
    struct statvfs shm;
    int enough, all = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (fgets(line, sizeof line, file))
        sscanf(line, "MemAvailable: %lld", &available_kib);
    fclose(file);
    enough = available_kib / (1 << 20) >= gib && statvfs("/dev/shm", &shm) == 0 &&
             (long long)shm.f_bavail * (long long)shm.f_frsize >= gib * (long long)GIB;
    MPI_Allreduce(&enough, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all)
        harness_skip("the node has not enough free memory");
    return all;
}

/* For the cases that touch 2 GiB twice: ten seconds each. */
static bool long_cases_wanted(void)
{
    if (!getenv("TEST_LARGE"))
        harness_skip("takes long: TEST_LARGE=1");
    return getenv("TEST_LARGE") != NULL && has_memory(8);
}

/* Address space without memory until it is touched. */
static char *reserve(MPI_Aint size_bytes)
{
    void *memory = mmap(NULL, (size_t)size_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return CHECK(memory != MAP_FAILED, "no address space for %ld bytes", (long)size_bytes) ? memory
                                                                                           : NULL;
}

/* The last rank has the large window; every other rank has a page. */
static int large_rank(void)
{
    return world_size - 1;
}

static struct window large_make(enum window_kind kind, MPI_Aint size_bytes, int unit)
{
    struct window window = {MPI_WIN_NULL, NULL, kind};
    if (world_rank != large_rank())
        size_bytes = PAGE_BYTES;
    if (kind == KIND_ALLOCATE) {
        MPI_Win_allocate(size_bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window.base,
                         &window.win);
    } else if (kind == KIND_SHARED) {
        MPI_Win_allocate_shared(size_bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window.base,
                                &window.win);
    } else {
        window.base = reserve(size_bytes);
        MPI_Win_create(window.base, size_bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window.win);
    }
    window_watch(window.win);
    return window;
}

static void large_free(struct window *window, MPI_Aint size_bytes)
{
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window->win);
    if (window->kind == KIND_HEAP)
        munmap(window->base, (size_t)(world_rank == large_rank() ? size_bytes : PAGE_BYTES));
}

static int64_t mark_of(MPI_Aint offset)
{
    return 0x5a0000000000 + offset;
}

/* Every rank puts a word at each offset and reads it back; the owner sees them. offsets are in
 * bytes, of 8 for each rank. */
static void places_check(const struct window *window, int unit, const MPI_Aint *offsets,
                         size_t count)
{
    MPI_Win_lock_all(0, window->win);
    for (size_t i = 0; i < count; i++) {
        MPI_Aint offset = offsets[i] + (MPI_Aint)unit * ((8 + unit - 1) / unit) * world_rank;
        int64_t value = mark_of(offset), got = -1, one = 1, old = -1;
        MPI_Put(&value, 1, MPI_INT64_T, large_rank(), offset / unit, 1, MPI_INT64_T, window->win);
        MPI_Win_flush(large_rank(), window->win);
        MPI_Get(&got, 1, MPI_INT64_T, large_rank(), offset / unit, 1, MPI_INT64_T, window->win);
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, large_rank(), offset / unit, MPI_SUM,
                         window->win);
        MPI_Win_flush(large_rank(), window->win);
        CHECK(got == value && old == value, "at %ld: get brings %llx, fetch_and_op %llx",
              (long)offset, (long long)got, (long long)old);
    }
    MPI_Win_unlock_all(window->win);
    barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < count && world_rank == large_rank(); i++)
        for (int origin = 0; origin < world_size; origin++) {
            MPI_Aint offset = offsets[i] + (MPI_Aint)unit * ((8 + unit - 1) / unit) * origin;
            int64_t word;
            memcpy(&word, window->base + offset, sizeof word);
            CHECK(word == mark_of(offset) + 1, "the owner finds %llx at %ld", (long long)word,
                  (long)offset);
        }
    barrier(MPI_COMM_WORLD);
}

static void windows_beyond_4_gib_are_reachable_everywhere(enum window_kind kind)
{
    static const int units[] = {1, 8, 4096};
    const MPI_Aint size_bytes = 5 * GIB, slack = PAGE_BYTES * 64;
    const MPI_Aint offsets[] = {0,       2 * GIB - slack, 2 * GIB, 4 * GIB - slack,
                                4 * GIB, 5 * GIB - slack};
    if (!has_memory(6))
        return;
    for (size_t i = 0; i < COUNT_OF(units) && world_size <= 64; i++) {
        struct window window = large_make(kind, size_bytes, units[i]);
        places_check(&window, units[i], offsets, COUNT_OF(offsets));
        MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
        MPI_Win_lock(MPI_LOCK_SHARED, large_rank(), 0, window.win);
        CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Put(&units, 1, MPI_BYTE, large_rank(),
                                               size_bytes / units[i], 1, MPI_BYTE, window.win));
        MPI_Win_unlock(large_rank(), window.win);
        large_free(&window, size_bytes);
    }
}

/* Displacements 0, 1, ... with a unit of 1 GiB; with an MPI_Aint unit also of 3 GiB, which no int
 * represents. */
static void wide_units_scale_beyond_32_bits(enum window_kind kind)
{
    int (*create)(void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *);
    const MPI_Aint size_bytes = 6 * GIB + PAGE_BYTES;
    if (!has_memory(7))
        return;
    for (int wide = 0; wide < 2; wide++) {
        struct window window = {MPI_WIN_NULL, NULL, kind};
        MPI_Aint unit = wide ? 3 * GIB : GIB,
                 size = world_rank == large_rank() ? size_bytes : PAGE_BYTES;
        if (wide && (kind != KIND_HEAP || !large_find("MPI_Win_create_c", &create)))
            continue;
        if (wide) {
            window.base = reserve(size);
            CHECK_OK(create(window.base, size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window.win));
            window_watch(window.win);
        } else {
            window = large_make(kind, size_bytes, (int)unit);
        }
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, large_rank(), 0, window.win);
        for (MPI_Aint disp = 0; disp <= 6 * GIB / unit; disp++) {
            int64_t value = mark_of(disp * unit), got = -1;
            MPI_Put(&value, 1, MPI_INT64_T, large_rank(), disp, 1, MPI_INT64_T, window.win);
            MPI_Win_flush(large_rank(), window.win);
            MPI_Get(&got, 1, MPI_INT64_T, large_rank(), disp, 1, MPI_INT64_T, window.win);
            MPI_Win_flush(large_rank(), window.win);
            CHECK_EQUAL(got, value);
        }
        MPI_Win_unlock(large_rank(), window.win);
        barrier(MPI_COMM_WORLD);
        for (MPI_Aint offset = 0; offset < size_bytes && world_rank == large_rank(); offset += unit)
            CHECK_EQUAL(*(int64_t *)(window.base + offset), mark_of(offset));
        large_free(&window, size_bytes);
    }
}

/* Three words, 2.5 GiB apart, in one element of a datatype: its extent needs more than 32 bits, its
 * size does not. */
static void a_sparse_type_spans_more_than_4_gib(enum window_kind kind)
{
    const MPI_Aint size_bytes = 5 * GIB + PAGE_BYTES, stride = 5 * GIB / 2;
    MPI_Datatype sparse;
    if (!has_memory(6))
        return;
    struct window window = large_make(kind, size_bytes, 1);
    MPI_Type_create_hvector(3, 1, stride, MPI_INT64_T, &sparse);
    MPI_Type_commit(&sparse);
    if (world_rank == 0) {
        int64_t sent[3] = {11, 22, 33}, add[3] = {100, 200, 300}, got[3] = {0};
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, large_rank(), 0, window.win);
        MPI_Put(sent, 3, MPI_INT64_T, large_rank(), 16, 1, sparse, window.win);
        MPI_Win_flush(large_rank(), window.win);
        MPI_Accumulate(add, 3, MPI_INT64_T, large_rank(), 16, 1, sparse, MPI_SUM, window.win);
        MPI_Win_flush(large_rank(), window.win);
        MPI_Get(got, 3, MPI_INT64_T, large_rank(), 16, 1, sparse, window.win);
        MPI_Win_unlock(large_rank(), window.win);
        CHECK(got[0] == 111 && got[1] == 222 && got[2] == 333, "%lld, %lld, %lld are returned",
              (long long)got[0], (long long)got[1], (long long)got[2]);
    }
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3 && world_rank == large_rank(); i++)
        CHECK_EQUAL(*(int64_t *)(window.base + 16 + i * stride), 111 * (i + 1));
    MPI_Type_free(&sparse);
    large_free(&window, size_bytes);
}

/* A buffer with a few written words; the rest reads as zero and uses no memory. */
static void marks_write(char *buffer, const MPI_Aint *offsets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(buffer + offsets[i], &(int64_t){mark_of(offsets[i])}, sizeof(int64_t));
}

static void marks_check(const char *buffer, const MPI_Aint *offsets, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        int64_t word;
        memcpy(&word, buffer + offsets[i], sizeof word);
        CHECK(word == mark_of(offsets[i]), "%s: %llx at %ld", what, (long long)word,
              (long)offsets[i]);
    }
}

#define LARGE_BYTES (2 * GIB + 3 * PAGE_BYTES)
static const MPI_Aint marked[] = {
    0, 4096, GIB + 8, 2 * GIB - 8, 2 * GIB, LARGE_BYTES - 16, LARGE_BYTES - 8};

enum shape { COUNT_OF_BYTES, ONE_OF_A_LARGE_TYPE, COUNT_OF_LARGE_BLOCKS };

/* One call moves everything. Rank 0 is the only origin. */
static void large_move(enum operation operation, enum shape shape, char *buffer, MPI_Win win)
{
    MPI_Datatype pages, type = MPI_BYTE;
    MPI_Type_contiguous((int)PAGE_BYTES, MPI_BYTE, &pages);
    MPI_Type_commit(&pages);
    struct arguments a = {.origin = buffer, .target = large_rank(), .disp = 0};
    if (shape == ONE_OF_A_LARGE_TYPE)
        MPI_Type_contiguous((int)(LARGE_BYTES / PAGE_BYTES), pages, &type);
    if (shape == COUNT_OF_LARGE_BLOCKS)
        MPI_Type_dup(pages, &type);
    if (type != MPI_BYTE)
        MPI_Type_commit(&type);
    a.origin_type = a.target_type = type;
    a.origin_count = a.target_count = shape == COUNT_OF_BYTES        ? LARGE_BYTES
                                      : shape == ONE_OF_A_LARGE_TYPE ? 1
                                                                     : LARGE_BYTES / PAGE_BYTES;
    CHECK_OK(form_call(operation, shape == COUNT_OF_BYTES ? FORM_LARGE : 0, &a, win, NULL));
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    MPI_Type_free(&pages);
}

static void one_operation_moves(enum window_kind kind, enum shape shape)
{
    if (shape == COUNT_OF_BYTES && !large_forms_exist()) {
        harness_skip("no library defines the functions with large counts");
        return;
    }
    if (!long_cases_wanted())
        return;
    struct window window = large_make(kind, LARGE_BYTES + PAGE_BYTES, 1);
    if (world_rank == 0) {
        char *sent = reserve(LARGE_BYTES), *got = reserve(LARGE_BYTES + PAGE_BYTES);
        marks_write(sent, marked, COUNT_OF(marked));
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, large_rank(), 0, window.win);
        large_move(OPERATION_PUT, shape, sent, window.win);
        MPI_Win_unlock(large_rank(), window.win);
        munmap(sent, (size_t)LARGE_BYTES);
        MPI_Win_lock(MPI_LOCK_SHARED, large_rank(), 0, window.win);
        large_move(OPERATION_GET, shape, got, window.win);
        MPI_Win_unlock(large_rank(), window.win);
        marks_check(got, marked, COUNT_OF(marked), "get");
        CHECK(got[LARGE_BYTES] == 0 && got[12345] == 0 && got[LARGE_BYTES - 17] == 0,
              "get returns data that no rank put");
        munmap(got, (size_t)(LARGE_BYTES + PAGE_BYTES));
    }
    barrier(MPI_COMM_WORLD);
    if (world_rank == large_rank()) {
        marks_check(window.base, marked, COUNT_OF(marked), "the owner");
        CHECK(window.base[LARGE_BYTES] == 0 && window.base[54321] == 0,
              "put writes data that no rank sent");
    }
    large_free(&window, LARGE_BYTES + PAGE_BYTES);
}

static void put_c_and_get_c_move_more_than_2_gib(enum window_kind kind)
{
    one_operation_moves(kind, COUNT_OF_BYTES);
}
static void one_element_of_more_than_2_gib_moves(enum window_kind kind)
{
    one_operation_moves(kind, ONE_OF_A_LARGE_TYPE);
}
static void many_pages_of_more_than_2_gib_move(enum window_kind kind)
{
    one_operation_moves(kind, COUNT_OF_LARGE_BLOCKS);
}

/* Slightly more than 2^28 words, as one element of a derived type. */
static void an_accumulate_of_more_than_2_gib_adds_up(enum window_kind kind)
{
    MPI_Datatype words, type;
    if (!long_cases_wanted())
        return;
    struct window window = large_make(kind, LARGE_BYTES + PAGE_BYTES, 8);
    MPI_Type_contiguous((int)(PAGE_BYTES / 8), MPI_INT64_T, &words);
    MPI_Type_contiguous((int)(LARGE_BYTES / PAGE_BYTES), words, &type);
    MPI_Type_commit(&type);
    if (world_rank == 0) {
        char *sent = reserve(LARGE_BYTES);
        marks_write(sent, marked, COUNT_OF(marked));
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, large_rank(), 0, window.win);
        MPI_Accumulate(sent, 1, type, large_rank(), 0, 1, type, MPI_SUM, window.win);
        MPI_Win_unlock(large_rank(), window.win);
        munmap(sent, (size_t)LARGE_BYTES);
    }
    barrier(MPI_COMM_WORLD);
    if (world_rank == large_rank()) {
        marks_check(window.base, marked, COUNT_OF(marked), "the owner");
        CHECK(window.base[LARGE_BYTES] == 0 && window.base[54321] == 0,
              "accumulate writes data that no rank sent");
    }
    MPI_Type_free(&type);
    MPI_Type_free(&words);
    large_free(&window, LARGE_BYTES + PAGE_BYTES);
}

static const struct test_case cases[] = {
    CASE(windows_beyond_4_gib_are_reachable_everywhere, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(wide_units_scale_beyond_32_bits, KIND_ALLOCATE | KIND_HEAP, 1),
    CASE(a_sparse_type_spans_more_than_4_gib, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(put_c_and_get_c_move_more_than_2_gib, KINDS_BOTH, 1),
    CASE(one_element_of_more_than_2_gib_moves, KINDS_BOTH, 1),
    CASE(many_pages_of_more_than_2_gib_move, KIND_ALLOCATE, 1),
    CASE(an_accumulate_of_more_than_2_gib_adds_up, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
