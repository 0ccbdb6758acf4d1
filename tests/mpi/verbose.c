/* Windows for ORIEL_VERBOSE=1: the argument selects a case. verbose.py runs it and reads the lines
 * on standard error. A comment marks each call that they must name. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank;

static void allocated(void)
{
    MPI_Win win;
    char *base;
    for (int i = 0; i < 2; i++) {
        const MPI_Aint bytes = 1 << 20;
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); /* CALL twice */
        MPI_Win_free(&win);
    }
    const MPI_Aint bytes = rank == 0 ? 0 : 24; /* a window whose rank 0 has no memory */
    MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); /* CALL once */
    MPI_Win_free(&win);
}

/* Even ranks have memory that is shared already. Odd ranks have some that is too short to be
 * promoted. */
static void with_two_paths(void)
{
    MPI_Win win;
    char own[64];
    char *shared;
    MPI_Alloc_mem(sizeof own, MPI_INFO_NULL, &shared);
    char *base = rank % 2 == 0 ? shared : own;
    MPI_Win_create(base, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win); /* CALL paths */
    MPI_Win_free(&win);
    MPI_Free_mem(shared);
}

static void dynamic(void)
{
    MPI_Win win;
    char *memory;
    MPI_Alloc_mem(64, MPI_INFO_NULL, &memory);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win); /* CALL dynamic */
    for (int i = 0; i < 64; i += 16)
        MPI_Win_attach(win, memory + i, 16); /* CALL attach */
    MPI_Win_free(&win);
    MPI_Free_mem(memory);
}

static void with_handled_error(void)
{
    MPI_Win win;
    char *base;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); /* CALL window */
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++) /* a line for all, as where the compiler unrolls a loop */
        MPI_Win_unlock(0, win), MPI_Win_unlock(0, win); /* CALL handled */
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"allocated", allocated},
        {"paths", with_two_paths},
        {"dynamic", dynamic},
        {"handled", with_handled_error},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    MPI_Finalize();
    return 0;
}
