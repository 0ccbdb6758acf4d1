/* What a forked child of a rank may do with windows: nothing. Its calls fail with MPI_ERR_OTHER and end nobody; the
 * parent's windows go on. */
#include "harness.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void calls_in_a_child_fail_and_harm_nobody(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    long value = 7;
    MPI_Win_lock_all(0, window.win);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        MPI_Win other;
        void *base;
        int failed = 0;
        failed += MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win) == MPI_ERR_OTHER;
        failed += MPI_Win_flush(0, window.win) == MPI_ERR_OTHER;
        failed += MPI_Win_unlock_all(window.win) == MPI_ERR_OTHER;
        failed += MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &other) == MPI_ERR_OTHER;
        _exit(failed);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork or waitpid failed");
    CHECK_EQUAL(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 4);
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, world_rank, 0, 1, MPI_LONG, window.win));
    CHECK_OK(MPI_Win_unlock_all(window.win));
    CHECK_EQUAL(*(long *)window.base, 7);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(calls_in_a_child_fail_and_harm_nobody, KIND_ALLOCATE, 1),
};

int main(int argc, char **argv) { return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases)); }
