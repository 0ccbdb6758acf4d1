/* Valid uses at the end: memory of MPI_Alloc_mem still exists after MPI_Finalize. A library can
 * free a window in its own attribute callback of MPI_COMM_SELF. A window whose delete callback
 * failed once can be freed.
 *
 * With the name of a library, late_destructor.c: MPI_Finalize fails where Oriel ends its thread for
 * other nodes. It then ends before the destructors of libraries that it uses. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static MPI_Win late;
static int freed_late;

static int free_late(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    freed_late = MPI_Win_free(&late) == MPI_SUCCESS;
    return MPI_SUCCESS;
}

static int fail_once(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win, (void)keyval, (void)extra;
    int *calls = value;
    return (*calls)++ == 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int fail(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    return MPI_ERR_OTHER;
}

static int finalise_with_failure(const char *library)
{
    int *base, key;
    if (dlopen(library, RTLD_NOW) == NULL)
        return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Win_allocate(sizeof *base, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &late);
    MPI_Win_fence(0, late);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, late);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, fail, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    int rank, comm_key, win_key, calls = 0, failures = 0;
    char *memory, *base;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    if (argc > 1)
        return finalise_with_failure(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_late, &comm_key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, comm_key, NULL);

    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, fail_once, &win_key, NULL);
    if (rank == 1)
        MPI_Win_set_attr(win, win_key, &calls);
    int code = MPI_Win_free(&win); /* Open MPI ignores the callback's error */
    if (rank == 1 && code != MPI_SUCCESS)
        code = MPI_Win_free(&win);
    failures += code != MPI_SUCCESS || win != MPI_WIN_NULL || (rank == 1 && calls == 0);
    if (rank == 0 || failures)
        printf("%s a_failed_delete_callback_holds_nobody_up\n", failures ? "not ok" : "ok");

    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &late);
    MPI_Alloc_mem(64, MPI_INFO_NULL, &memory);
    strcpy(memory, "still here");
    MPI_Finalize();
    int lost = !freed_late || strcmp(memory, "still here") != 0;
    if (rank == 0 || lost)
        printf("%s windows_and_memory_last_to_the_end_of_finalize\n", lost ? "not ok" : "ok");
    return failures + lost != 0;
}
