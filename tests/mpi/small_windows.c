/* Tens of thousands of small windows over the program's own memory, as naive programs make them.
 * Each works, and the process's resources stay bounded, at any addresses in its heap. A plain MPI
 * program, run by the test rows. */
#include "footprint.h"
#include "memory_path.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 64, MAPPINGS_MORE = 600, DESCRIPTORS_MORE = 8, KIB_MORE = 32 * 1024 };

static int windows_wanted(void)
{
    const char *text = getenv("TEST_WINDOWS");
    return text ? atoi(text) : scaled_rounds(2000);
}

/* One put of the neighbour's into a window that lives for this call. */
static void window_once(char *memory, int64_t number)
{
    int target = (world_rank + 1) % world_size;
    int64_t value = number * 64 + world_rank, seen;
    MPI_Win win = window_over(memory, WINDOW_BYTES);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, target, 8 * (number % 8), 1, MPI_INT64_T, win);
    MPI_Win_unlock(target, win);
    MPI_Win_free(&win);
    memcpy(&seen, memory + 8 * (number % 8), sizeof seen);
    CHECK_EQUAL(seen, number * 64 + (world_rank + world_size - 1) % world_size);
}

static void footprint_check(const struct footprint *before)
{
    struct footprint after = footprint_read();
    CHECK(after.mappings <= before->mappings + MAPPINGS_MORE, "%ld mappings became %ld",
          before->mappings, after.mappings);
    CHECK(after.descriptors <= before->descriptors + DESCRIPTORS_MORE, "%ld descriptors became %ld",
          before->descriptors, after.descriptors);
    CHECK(after.resident_kib <= before->resident_kib + KIB_MORE + FREED_CACHED_KIB,
          "%ld KiB became %ld KiB", before->resident_kib, after.resident_kib);
}

static void one_place_may_be_a_window_again_and_again(enum window_kind kind)
{
    (void)kind;
    char *memory = calloc(1, WINDOW_BYTES);
    for (int64_t number = 0; number < 20; number++)
        window_once(memory, number);
    struct footprint before = footprint_read();
    for (int64_t number = 0; number < windows_wanted(); number++)
        window_once(memory, number);
    footprint_check(&before);
    free(memory);
}

/* Always other addresses of a heap of some 16 MiB. */
static void windows_all_over_the_heap_leave_a_bounded_number_of_mappings(enum window_kind kind)
{
    enum { BLOCKS = 4000, BLOCK_BYTES = 4200 };
    static char *blocks[BLOCKS];
    struct random random = random_start((uint64_t)world_rank);
    (void)kind;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_BYTES);
        memset(blocks[i], 1, BLOCK_BYTES);
    }
    for (int64_t number = 0; number < 20; number++)
        window_once(blocks[number], number);
    struct footprint before = footprint_read();
    for (int64_t number = 0; number < windows_wanted(); number++)
        window_once(blocks[random_below(&random, BLOCKS)] + 8 * random_below(&random, 512), number);
    footprint_check(&before);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    footprint_check(&before);
}

/* Many alive at once, freed in another order. */
static void hundreds_of_small_windows_live_at_once(enum window_kind kind)
{
    enum { WINDOWS = 300, DISTANCE_BYTES = 5000 };
    static MPI_Win wins[WINDOWS];
    (void)kind;
    char *area = malloc(WINDOWS * DISTANCE_BYTES);
    int target = (world_rank + 1) % world_size;
    memset(area, 0, WINDOWS * DISTANCE_BYTES);
    for (int turn = 0; turn < 3; turn++) {
        struct footprint before = footprint_read();
        for (int i = 0; i < WINDOWS; i++)
            wins[i] = window_over(area + i * DISTANCE_BYTES, WINDOW_BYTES + i);
        for (int i = 0; i < WINDOWS; i++) {
            int64_t value = 1000 * turn + i;
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, wins[i]);
            MPI_Put(&value, 1, MPI_INT64_T, target, 16, 1, MPI_INT64_T, wins[i]);
            MPI_Win_unlock(target, wins[i]);
        }
        for (int i = 0; i < WINDOWS; i++)
            MPI_Win_free(&wins[i * 7 % WINDOWS]);
        for (int i = 0; i < WINDOWS; i++) {
            int64_t seen;
            memcpy(&seen, area + i * DISTANCE_BYTES + 16, sizeof seen);
            CHECK_EQUAL(seen, 1000 * turn + i);
        }
        if (turn > 0)
            footprint_check(&before);
    }
    free(area);
}

static const struct test_case cases[] = {
    CASE(one_place_may_be_a_window_again_and_again, KIND_ANY, 2),
    CASE(windows_all_over_the_heap_leave_a_bounded_number_of_mappings, KIND_ANY, 2),
    CASE(hundreds_of_small_windows_live_at_once, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
