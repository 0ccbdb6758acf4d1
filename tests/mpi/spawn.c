/* Processes that the program starts by MPI_Comm_spawn run under the same library and share windows
 * with their parents. Parents and children check the same windows over the merged communicator, and
 * agree on one verdict. A plain MPI program, run by the test rows; it starts itself with --child.
 */
#include "harness.h"

#include <stdio.h>
#include <string.h>

enum { CHILDREN = 2 };

static const char *program;

static bool version_names(const char *name)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    return strstr(version, name) != NULL;
}

/* Each rank puts into its right neighbour and adds to rank 0. Returns whether the results here are
 * right. */
static bool windows_work(MPI_Comm merged)
{
    int rank, size;
    int64_t *allocated, created[2] = {0, 0}, one = 1;
    MPI_Win wins[2];
    MPI_Comm_rank(merged, &rank);
    MPI_Comm_size(merged, &size);
    int left = (rank + size - 1) % size;
    bool right_values = true;
    MPI_Win_allocate(16, 8, MPI_INFO_NULL, merged, &allocated, &wins[0]);
    MPI_Win_create(created, 16, 8, MPI_INFO_NULL, merged, &wins[1]);
    allocated[0] = allocated[1] = 0;
    for (int i = 0; i < 2; i++) {
        int64_t value = 100 + rank;
        const int64_t *words = i ? created : allocated;
        MPI_Win_fence(0, wins[i]);
        MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, wins[i]);
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, wins[i]);
        MPI_Win_fence(0, wins[i]);
        right_values &= words[0] == 100 + left && words[1] == (rank == 0 ? size : 0);
        MPI_Win_free(&wins[i]);
    }
    return right_values;
}

/* Both sides: 0 when all is well, bit 0 for a wrong window, bit 1 for a process without Oriel.
 * Combines the verdicts of all. */
static int family_verdict(MPI_Comm between, int is_child)
{
    MPI_Comm merged;
    MPI_Intercomm_merge(between, is_child, &merged);
    int verdict = (windows_work(merged) ? 0 : 1) | (version_names("Oriel") ? 0 : 2), all = 0;
    MPI_Allreduce(&verdict, &all, 1, MPI_INT, MPI_BOR, merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&between);
    return all;
}

static void children_share_windows_with_their_parents(enum window_kind kind)
{
    char child_argument[] = "--child";
    char *arguments[] = {child_argument, NULL};
    MPI_Comm between;
    (void)kind;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_spawn(program, arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                              &between, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (code != MPI_SUCCESS && version_names("MPICH")) {
        /* Debian's MPICH uses a process manager interface that cannot. */
        harness_skip("this MPICH cannot spawn processes");
        return;
    }
    if (!CHECK_OK(code))
        return;
    int verdict = family_verdict(between, 0);
    CHECK((verdict & 1) == 0, "a window over parents and children is wrong");
    if (version_names("Oriel"))
        CHECK((verdict & 2) == 0, "a child runs without Oriel");
}

static int child_main(int argc, char **argv)
{
    MPI_Comm between;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&between);
    if (between == MPI_COMM_NULL) {
        fprintf(stderr, "--child is for processes that are spawned\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    family_verdict(between, 1);
    MPI_Finalize();
    return 0;
}

static const struct test_case cases[] = {
    CASE(children_share_windows_with_their_parents, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return child_main(argc, argv);
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
