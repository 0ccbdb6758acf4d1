/* With a memory file of a few MiB (ORIEL_RESERVE): the host serves windows that do not fit. All
 * origins use the same path to memory attached across the file's end. A plain MPI program, run by
 * the test rows. */
#include "dynamic.h"

#include <stdio.h>
#include <sys/mman.h>

enum { PAGE = 4096, CELLS = 16 };

/* The end of the mapping that contains the address; NULL when it is not found. */
static char *mapping_end(const void *address)
{
    char line[512], *end = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long low = 0, high = 0;
        if (sscanf(line, "%lx-%lx", &low, &high) == 2 && (uintptr_t)address >= low &&
            (uintptr_t)address < high)
            end = (char *)high;
    }
    if (maps)
        fclose(maps);
    return end;
}

/* Allocates blocks until one ends at the file's end, and maps a page of ordinary memory after it;
 * NULL on failure. */
static char *seam_make(void)
{
    char *first, *block = NULL;
    MPI_Alloc_mem(64, MPI_INFO_NULL, &first);
    char *end = mapping_end(first);
    for (MPI_Aint len_bytes = 1 << 20; end && len_bytes >= 8 * PAGE;) {
        if (MPI_Alloc_mem(len_bytes, MPI_INFO_NULL, &block) != MPI_SUCCESS ||
            block < first - (1 << 26) || block > end) {
            len_bytes -= PAGE; /* refused, or the host's */
            continue;
        }
        if (block + len_bytes != end)
            continue;
        char *next_page = mmap(end, PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        return next_page == end ? end : NULL;
    }
    return NULL;
}

static void updates_across_the_end_of_the_file_are_not_lost(enum window_kind kind)
{
    MPI_Aint addresses[MANY_RANKS];
    int64_t ones[CELLS], old;
    char *end = world_rank == 0 ? seam_make() : NULL;
    int found = end != NULL, rounds = scaled_rounds(20000);
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    (void)kind;
    MPI_Bcast(&found, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!found) {
        harness_skip("no block at the end of the memory file, or no room after it");
        MPI_Win_free(&win);
        return;
    }
    if (world_rank == 0) {
        memset(end - 64, 0, 128);
        MPI_Win_attach(win, end - 64, 64);
        MPI_Win_attach(win, end, 64);
    }
    addresses_share(end, addresses);
    for (int i = 0; i < CELLS; i++)
        ones[i] = 1;
    MPI_Aint first = addresses[0] - 64;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < rounds; i++)
        if (world_rank % 2 == 1)
            MPI_Accumulate(ones, CELLS, MPI_INT64_T, 0, first, CELLS, MPI_INT64_T, MPI_SUM, win);
        else
            for (int k = 0; k < CELLS; k++)
                MPI_Fetch_and_op(&ones[k], &old, MPI_INT64_T, 0, first + 8 * k, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    for (int k = 0; world_rank == 0 && k < CELLS; k++)
        CHECK_EQUAL(((int64_t *)(end - 64))[k], (int64_t)rounds * world_size);
    MPI_Win_free(&win);
    if (world_rank == 0)
        munmap(end, PAGE);
}

/* To MPICH 5.0 of Debian no two ranks share memory, and it makes the window nevertheless. */
static bool host_shares_memory(void)
{
    MPI_Comm node;
    int ranks;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    MPI_Comm_free(&node);
    return ranks == world_size;
}

static void windows_that_do_not_fit_are_made_by_the_host(enum window_kind kind)
{
    MPI_Aint size_bytes = (MPI_Aint)64 << 20;
    char *base = NULL, mark = 7;
    MPI_Win win;
    MPI_Errhandler before;
    if (kind == KIND_SHARED && ranks_share_memory() && !host_shares_memory()) {
        harness_skip("the host shares no memory");
        return;
    }
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error =
        kind == KIND_SHARED
            ? MPI_Win_allocate_shared(size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)
            : MPI_Win_allocate(size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    if (error != MPI_SUCCESS && !ranks_share_memory()) {
        harness_skip("the host has no windows over these nodes");
        return;
    }
    CHECK_OK(error);
    base[size_bytes - 1] = 0;
    MPI_Win_fence(0, win);
    MPI_Put(&mark, 1, MPI_CHAR, next_rank(), size_bytes - 1, 1, MPI_CHAR, win);
    MPI_Win_fence(0, win);
    CHECK_EQUAL(base[size_bytes - 1], 7);
    MPI_Win_free(&win);
}

enum { BLOCKS = 4, LARGE_BYTES = 9 << 20 }; /* each larger than the file */

static void large_blocks_check(const char *align)
{
    char *blocks[BLOCKS];
    MPI_Info info;
    MPI_Win win;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", align);
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(MPI_Alloc_mem(LARGE_BYTES + i, info, &blocks[i]));
        CHECK((uintptr_t)blocks[i] % strtoul(align, NULL, 10) == 0, "%p is not aligned to %s",
              (void *)blocks[i], align);
        memset(blocks[i], 'a' + i, (size_t)(LARGE_BYTES + i));
    }
    for (int i = 0; i < BLOCKS; i++)
        CHECK(memchr(blocks[i], 'a' + (i + 1) % BLOCKS, (size_t)(LARGE_BYTES + i)) == NULL &&
                  blocks[i][0] == 'a' + i && blocks[i][LARGE_BYTES + i - 1] == 'a' + i,
              "block %d belongs to another one too", i);
    char mark = 'z';
    MPI_Win_create(blocks[1], LARGE_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&mark, 1, MPI_CHAR, next_rank(), LARGE_BYTES - 1, 1, MPI_CHAR, win);
    MPI_Win_fence(0, win);
    CHECK_EQUAL(blocks[1][LARGE_BYTES - 1], 'z');
    MPI_Win_free(&win);
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(MPI_Free_mem(blocks[i]));
    MPI_Info_free(&info);
}

static void memory_of_the_host_has_the_alignment_asked_for(enum window_kind kind)
{
    (void)kind;
    large_blocks_check("64");
    large_blocks_check("4096");
    large_blocks_check("2097152");
}

static const struct test_case cases[] = {
    CASE(memory_of_the_host_has_the_alignment_asked_for, KIND_ANY, 1),
    CASE(windows_that_do_not_fit_are_made_by_the_host, KIND_ALLOCATE | KIND_SHARED, 2),
    CASE(updates_across_the_end_of_the_file_are_not_lost, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
