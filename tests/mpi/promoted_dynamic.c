/* Dynamic windows over the program's memory: thousands of regions that share pages are attached and
 * detached in any order while peers put and add to neighbouring regions; detached memory is
 * ordinary memory again. A plain MPI program, run by the test rows. */
#define _GNU_SOURCE
#include "dynamic.h"
#include "memory_path.h"

#include <sys/mman.h>

enum {
    REGIONS = 1500,
    REGION_BYTES = 48,
    STRIDE_BYTES = 64,
    FIXED = 16,
    AREA_BYTES = REGIONS * STRIDE_BYTES
};

static _Alignas(4096) char static_area[AREA_BYTES];

/* The first word of a region belongs to the rank before, the second is the sum of all ranks, the
 * third is the owner's own. */
struct region {
    int64_t word, sum, own;
};

static struct region *region_of(char *area, int number)
{
    return (struct region *)(area + (size_t)number * STRIDE_BYTES);
}

static MPI_Aint disp_of(MPI_Aint area, int number, int word)
{
    return MPI_Aint_add(area, (MPI_Aint)number * STRIDE_BYTES + word * 8);
}

/* A permutation that is the same on all ranks. */
static void shuffle(int *numbers, int count, struct random *random)
{
    for (int i = 0; i < count; i++)
        numbers[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int other = (int)random_below(random, (uint64_t)i + 1), saved = numbers[i];
        numbers[i] = numbers[other];
        numbers[other] = saved;
    }
}

/* Operates on the remaining regions while their neighbours are attached and detached. */
static void operate(MPI_Win win, const MPI_Aint *there, int64_t round)
{
    const int64_t one = 1;
    for (int number = 0; number < FIXED; number++) {
        int at = number * (REGIONS / FIXED);
        int64_t seen = -1;
        MPI_Put(&round, 1, MPI_INT64_T, next_rank(), disp_of(there[next_rank()], at, 0), 1,
                MPI_INT64_T, win);
        for (int target = 0; target < world_size; target++)
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, disp_of(there[target], at, 1), 1,
                           MPI_INT64_T, MPI_SUM, win);
        MPI_Win_flush_all(win);
        MPI_Get(&seen, 1, MPI_INT64_T, next_rank(), disp_of(there[next_rank()], at, 0), 1,
                MPI_INT64_T, win);
        MPI_Win_flush(next_rank(), win);
        CHECK_EQUAL(seen, round);
    }
}

static bool is_fixed(int number)
{
    return number % (REGIONS / FIXED) == 0 && number / (REGIONS / FIXED) < FIXED;
}

static int regions_toggle(MPI_Win win, char *area, const int *order, bool *attached, int from,
                          int to)
{
    int changed = 0;
    for (int i = from; i < to; i++) {
        int number = order[i];
        if (is_fixed(number))
            continue;
        struct region *region = region_of(area, number);
        region->own += 1;
        if (attached[number])
            CHECK_OK(MPI_Win_detach(win, region));
        else
            CHECK_OK(MPI_Win_attach(win, region, REGION_BYTES));
        attached[number] = !attached[number];
        changed++;
    }
    return changed;
}

static void storm(char *area)
{
    enum { ROUNDS = 12, SLICES = 10 };
    static int order[REGIONS];
    static bool attached[REGIONS];
    MPI_Aint there[MANY_RANKS];
    struct random random = random_start(77);
    int64_t turns = 0;
    memset(area, 0, AREA_BYTES);
    memset(attached, 0, sizeof attached);
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    for (int number = 0; number < REGIONS; number++)
        if (is_fixed(number))
            CHECK_OK(MPI_Win_attach(win, region_of(area, number), REGION_BYTES));
    addresses_share(area, there);
    MPI_Win_lock_all(0, win);
    int rounds = scaled_rounds(ROUNDS);
    for (int round = 0; round < rounds; round++) {
        shuffle(order, REGIONS, &random);
        for (int slice = 0; slice < SLICES; slice++) {
            regions_toggle(win, area, order, attached, slice * REGIONS / SLICES,
                           (slice + 1) * REGIONS / SLICES);
            operate(win, there, turns++);
        }
    }
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    for (int number = 0; number < REGIONS; number++) {
        const struct region *region = region_of(area, number);
        CHECK_EQUAL(region->word, is_fixed(number) ? turns - 1 : 0);
        CHECK_EQUAL(region->sum, is_fixed(number) ? turns * world_size : 0);
        CHECK_EQUAL(region->own, is_fixed(number) ? 0 : rounds);
    }
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win); /* detaches the remaining regions */
}

static void zero_check(const char *memory, size_t len_bytes, const char *what)
{
    for (size_t i = 0; i < len_bytes; i++)
        if (!CHECK(memory[i] == 0, "%s: byte %zu is %d, not zero", what, i, memory[i]))
            return;
}

static void regions_on_shared_pages_are_reattached_in_the_heap(enum window_kind kind)
{
    (void)kind;
    char *block = malloc(AREA_BYTES + 32);
    storm(block + (16 - (uintptr_t)block % 16));
    free(block);
    block = calloc(1, AREA_BYTES + 32);
    zero_check(block, AREA_BYTES + 32, "calloc");
    free(block);
}

static void regions_on_shared_pages_are_reattached_in_mapped_memory(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    storm(area);
    madvise(area, AREA_BYTES, MADV_DONTNEED);
    zero_check(area, AREA_BYTES, "MADV_DONTNEED");
    munmap(area, AREA_BYTES);
}

static void regions_on_shared_pages_are_reattached_in_static_memory(enum window_kind kind)
{
    (void)kind;
    storm(static_area);
}

static void detached_blocks_are_the_allocators_again(enum window_kind kind)
{
    static const size_t sizes[] = {24, 1000, 5000, 40000, 200000, 1 << 20};
    MPI_Aint there[MANY_RANKS];
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    (void)kind;
    for (int round = 0; round < scaled_rounds(20); round++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            size_t last = sizes[i] - 8;
            char *memory = malloc(sizes[i]);
            memset(memory, 0x5c, sizes[i]);
            int64_t value = 1000 * round + world_rank, seen;
            CHECK_OK(MPI_Win_attach(win, memory, (MPI_Aint)sizes[i]));
            addresses_share(memory, there);
            MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win);
            MPI_Put(&value, 1, MPI_INT64_T, next_rank(),
                    MPI_Aint_add(there[next_rank()], (MPI_Aint)last), 1, MPI_INT64_T, win);
            MPI_Win_unlock(next_rank(), win);
            barrier(MPI_COMM_WORLD);
            CHECK_OK(MPI_Win_detach(win, memory));
            memcpy(&seen, memory + last, sizeof seen);
            CHECK_EQUAL(seen, 1000 * round + previous_rank());
            CHECK(memory[0] == 0x5c && memory[last - 1] == 0x5c, "detaching changes the contents");
            free(memory);
            memory = calloc(1, sizes[i]);
            zero_check(memory, sizes[i], "calloc");
            free(memory);
        }
    }
    MPI_Win_free(&win);
}

/* One region over many pages, others inside pages of a window that was created over the same
 * memory. */
static void attached_and_created_windows_share_pages(enum window_kind kind)
{
    enum { LEN_BYTES = 6 * PAGE };
    MPI_Aint there[MANY_RANKS];
    (void)kind;
    char *area = pages_map(LEN_BYTES);
    MPI_Win dynamic = dynamic_make(MPI_COMM_WORLD);
    addresses_share(area, there);
    for (int turn = 0; turn < 6; turn++) {
        bool created_first = turn % 2 == 0, freed_first = turn % 3 == 0;
        MPI_Win created = MPI_WIN_NULL;
        int64_t value = 50 + turn, seen = 0;
        if (!created_first)
            CHECK_OK(MPI_Win_attach(dynamic, area + PAGE + 8, 3 * PAGE));
        created = window_over(area, LEN_BYTES - 100);
        if (created_first)
            CHECK_OK(MPI_Win_attach(dynamic, area + PAGE + 8, 3 * PAGE));
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, dynamic);
        MPI_Put(&value, 1, MPI_INT64_T, next_rank(), MPI_Aint_add(there[next_rank()], 2 * PAGE), 1,
                MPI_INT64_T, dynamic);
        MPI_Win_unlock(next_rank(), dynamic);
        MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, created);
        MPI_Get(&seen, 1, MPI_INT64_T, next_rank(), 2 * PAGE, 1, MPI_INT64_T, created);
        MPI_Win_unlock(next_rank(), created);
        CHECK_EQUAL(seen, value);
        window_exercise(created, area, LEN_BYTES - 100);
        if (freed_first)
            MPI_Win_free(&created);
        char saved[LEN_BYTES];
        memcpy(saved, area, sizeof saved);
        CHECK_OK(MPI_Win_detach(dynamic, area + PAGE + 8));
        CHECK(memcmp(saved, area, sizeof saved) == 0, "detaching changes the contents");
        barrier(MPI_COMM_WORLD);
        if (!freed_first) {
            window_exercise(created, area, LEN_BYTES - 100);
            MPI_Win_free(&created);
        }
    }
    MPI_Win_free(&dynamic);
    munmap(area, LEN_BYTES);
}

static const struct test_case cases[] = {
    CASE(regions_on_shared_pages_are_reattached_in_the_heap, KIND_ANY, 2),
    CASE(regions_on_shared_pages_are_reattached_in_mapped_memory, KIND_ANY, 2),
    CASE(regions_on_shared_pages_are_reattached_in_static_memory, KIND_ANY, 2),
    CASE(detached_blocks_are_the_allocators_again, KIND_ANY, 2),
    CASE(attached_and_created_windows_share_pages, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
