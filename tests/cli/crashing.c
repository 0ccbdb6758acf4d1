/* Rank 1 dies of a signal while it has windows of every flavour, and leaves a core file in the
 * working directory.
 *
 * It prints a line for each piece of window memory: name, address, bytes, and the 64-bit word that
 * fills the memory. The other ranks wait in a barrier until the launcher ends them. */
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { BYTES = 3 << 20, WORDS = BYTES / 8 };

static int rank;

static void fill(const char *name, int64_t *memory, int number)
{
    int64_t word = INT64_C(0x6f7269656c000000) + rank * 16 + number;
    for (int i = 0; i < WORDS; i++)
        memory[i] = word;
    if (rank == 1)
        printf("%s %" PRIuPTR " %d %" PRId64 "\n", name, (uintptr_t)memory, BYTES, word);
}

/* Private memory, or memory without a file: the kernel's default. */
static void choose_contents(void)
{
    FILE *filter = fopen("/proc/self/coredump_filter", "w");
    if (filter == NULL || fputs("0x33", filter) < 0 || fclose(filter) != 0)
        exit(77);
}

int main(int argc, char **argv)
{
    const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    int64_t *allocated, *shared, *arena, *heap = malloc(BYTES);
    MPI_Win windows[4];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &windows[0]);
    MPI_Win_allocate_shared(BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &windows[1]);
    MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &arena);
    MPI_Win_create(arena, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[2]);
    MPI_Win_create(heap, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[3]);
    fill("MPI_Win_allocate", allocated, 0);
    fill("MPI_Win_allocate_shared", shared, 1);
    fill("MPI_Alloc_mem", arena, 2);
    fill("malloc", heap, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        fflush(stdout);
        choose_contents();
        if (setrlimit(RLIMIT_CORE, &unlimited) != 0)
            exit(77);
        abort();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++)
        MPI_Win_free(&windows[i]);
    MPI_Finalize();
    return 0;
}
