/* A later window over a communicator with many ranks needs memory for their records, and one rank
 * has none. The creation fails on all ranks, and it does not affect the next windows. This
 * program's own calloc refuses. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>

enum { FEW = 32, RECORD_BYTES = 100, ROUNDS = 3 };

void *__libc_calloc(size_t count, size_t size);

static bool refuses; /* refuses one array that has an element of some size for each rank */
static int refused;

void *calloc(size_t count, size_t size)
{
    if (!refuses || count != (size_t)world_size || size < RECORD_BYTES)
        return __libc_calloc(count, size);
    refused++;
    errno = ENOMEM;
    return NULL;
}

static void use_a_window(MPI_Comm comm)
{
    int right = (world_rank + 1) % world_size;
    int *base;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate(64, 4, MPI_INFO_NULL, comm, &base, &win));
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_OK(MPI_Put(&world_rank, 1, MPI_INT, right, 0, 1, MPI_INT, win));
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_EQUAL(base[0], (world_rank + world_size - 1) % world_size);
    CHECK_OK(MPI_Win_free(&win));
}

static void a_rank_without_room_is_everybodys_error(enum window_kind kind)
{
    MPI_Comm comm;
    (void)kind;
    if (world_size <= FEW) {
        harness_skip("so few ranks need no memory for their records");
        return;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    use_a_window(comm);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Win win = MPI_WIN_NULL;
        void *base;
        refuses = world_rank == round * 7;
        int code = MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, &base,
                                           &win); /* which needs the records */
        CHECK(!refuses || refused > 0, "no array of records was asked for");
        refuses = false;
        CHECK_CLASS(MPI_ERR_NO_MEM, code);
        use_a_window(comm);
    }
    MPI_Comm_free(&comm);
}

static const struct test_case cases[] = {
    CASE(a_rank_without_room_is_everybodys_error, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
