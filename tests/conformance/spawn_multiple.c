/* Processes of two commands, spawned together, share a window with their parents and also run
 * through Oriel. Rank 0 of the parents chooses the commands; skipped where the host cannot spawn. A
 * plain MPI program, run by the test rows. */
#include "../mpi/harness.h"

#include <stdio.h>
#include <string.h>

static char *program;

static bool version_names(const char *name)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(version, &length);
    return strstr(version, name) != NULL;
}

/* Each process adds the number that its command received to a word of rank 0; true when the sum is
 * right. */
static bool sum_is_right(MPI_Comm between, int is_child, int64_t mine, int64_t wanted)
{
    MPI_Comm merged;
    MPI_Win win;
    int64_t *base;
    int rank;
    MPI_Intercomm_merge(between, is_child, &merged);
    MPI_Comm_rank(merged, &rank);
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, merged, &base, &win);
    *base = 0;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&mine, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_fence(0, win);
    bool right = rank != 0 || *base == wanted;
    MPI_Win_free(&win);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&between);
    return right;
}

static void children_of_two_commands_share_a_window(enum window_kind kind)
{
    char child_argument[] = "--child", ten[] = "10", hundred[] = "100";
    char *first[] = {child_argument, ten, NULL}, *second[] = {child_argument, hundred, NULL};
    char *commands[] = {program, program}, **arguments[] = {first, second};
    const int counts[] = {1, 2};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm between = MPI_COMM_NULL;
    (void)kind;
    if (version_names("MPICH")) {
        /* Debian's MPICH uses a process manager interface that cannot spawn, and an attempt ends
         * the job. */
        harness_skip("this MPICH cannot spawn processes");
        return;
    }
    if (version_names("Open MPI v5.")) {
        harness_skip("Open MPI 5.0 crashes in MPI_Comm_spawn_multiple");
        return;
    }
    CHECK_OK(MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD,
                                     &between, MPI_ERRCODES_IGNORE));
    if (!CHECK(between != MPI_COMM_NULL, "no communicator to the children"))
        return;
    CHECK(sum_is_right(between, 0, 1, world_size + 10 + 2 * 100),
          "the children have not all added their number");
}

static int child_main(int argc, char **argv)
{
    MPI_Comm between;
    long number = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&between);
    if (argc < 3 || sscanf(argv[2], "%ld", &number) != 1 || between == MPI_COMM_NULL) {
        fprintf(stderr, "--child is for processes that are spawned\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    sum_is_right(between, 1, number, 0);
    MPI_Finalize();
    return 0;
}

static const struct test_case cases[] = {
    CASE(children_of_two_commands_share_a_window, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return child_main(argc, argv);
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
