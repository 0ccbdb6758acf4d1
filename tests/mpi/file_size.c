/* Windows work where files may not grow (RLIMIT_FSIZE). Growth beyond the limit also sends a
 * signal, which ends programs that do not expect it. A window over the program's memory needs no
 * file of the host's, so this case works on a bare host. A plain MPI program, run by the test rows.
 */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { HUGE_PAGE = 2 << 20, BYTES = 8 * HUGE_PAGE };

/* All ranks put to a neighbour, at both ends. */
static void use(char *memory)
{
    MPI_Win win;
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    int64_t value = 1000 + world_rank, found[2];
    CHECK_OK(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
    MPI_Put(&value, 1, MPI_INT64_T, target, BYTES - 8, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    memcpy(&found[0], memory, 8);
    memcpy(&found[1], memory + BYTES - 8, 8);
    CHECK_EQUAL(found[0], 1000 + origin);
    CHECK_EQUAL(found[1], 1000 + origin);
    MPI_Win_free(&win);
}

/* Promotion tries a file of 2 MiB once, since the pages are huge. */
static void window_works_where_files_may_not_grow(enum window_kind kind)
{
    static const rlim_t most_bytes[] = {1 << 20, 3000, 64 << 10, 3 << 20, 12 << 20};
    char *memory = aligned_alloc(HUGE_PAGE, BYTES);
    struct rlimit before;
    (void)kind;
    if (!memory) {
        harness_skip("no memory");
        return;
    }
    madvise(memory, BYTES, MADV_HUGEPAGE);
    memset(memory, 1, BYTES);
    getrlimit(RLIMIT_FSIZE, &before);
    for (int i = 0; i < (int)COUNT_OF(most_bytes); i++) {
        struct rlimit tight = {most_bytes[i], before.rlim_max};
        CHECK(setrlimit(RLIMIT_FSIZE, &tight) == 0, "setrlimit: %s", strerror(errno));
        use(memory);
        setrlimit(RLIMIT_FSIZE, &before);
    }
    free(memory);
}

static const struct test_case cases[] = {
    CASE(window_works_where_files_may_not_grow, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
