/* A rank is stopped before its first contact with any other rank; an RDMA device alone connects the
 * ranks, and no connection reports the silence. The other ranks get an error in time, continue with
 * each other, and exit. The stopped rank exits too after it resumes. TEST_SILENT_SECONDS is the
 * limit, equal to ORIEL_TIMEOUT. */
#include "../mpi/harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SILENT = 1, LATE_SECONDS = 15 };

static void expect_refusal(MPI_Win win, double limit_s)
{
    const int64_t word = 1;
    double begin_s = MPI_Wtime();
    int class = MPI_SUCCESS;
    int code = MPI_Put(&word, 1, MPI_INT64_T, SILENT, 0, 1, MPI_INT64_T, win);
    if (code == MPI_SUCCESS)
        code = MPI_Win_flush(SILENT, win);
    double took_s = MPI_Wtime() - begin_s;
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_OTHER);
    CHECK(took_s > limit_s / 2 && took_s < limit_s + LATE_SECONDS, "given up after %.1f s", took_s);
    code = MPI_Put(&word, 1, MPI_INT64_T, SILENT, 0, 1, MPI_INT64_T, win);
    CHECK(code != MPI_SUCCESS, "a put to an abandoned rank began");
}

/* With each of the other running ranks. */
static void continue_with_others(MPI_Win win)
{
    const int64_t one = 1;
    int64_t old;
    for (int to = 0; to < world_size; to++) {
        if (to == SILENT)
            continue;
        CHECK_OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, to, 0, MPI_SUM, win));
        CHECK_OK(MPI_Put(&one, 1, MPI_INT64_T, to, 1 + world_rank, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Win_flush(to, win));
    }
}

static void a_rank_silent_from_the_start_is_given_up(enum window_kind kind)
{
    const char *limit = getenv("TEST_SILENT_SECONDS");
    struct window window = window_make(kind, 16 * sizeof(int64_t), sizeof(int64_t), MPI_COMM_WORLD);
    MPI_Comm awake;
    int *processes = malloc((size_t)world_size * sizeof *processes);
    int own = getpid();
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    memset(window.base, 0, 16 * sizeof(int64_t));
    MPI_Allgather(&own, 1, MPI_INT, processes, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank == SILENT, world_rank, &awake);
    barrier(MPI_COMM_WORLD);
    if (world_rank == SILENT) {
        raise(SIGSTOP);
        (void)MPI_Win_free(&window.win); /* the others have given it up */
    } else {
        sleep(1);
        CHECK_OK(MPI_Win_lock_all(0, window.win));
        expect_refusal(window.win, limit == NULL ? 30 : atof(limit));
        continue_with_others(window.win);
        MPI_Barrier(awake);
        CHECK_EQUAL(((int64_t *)(void *)window.base)[0], world_size - 1);
        for (int from = 0; from < world_size; from++)
            CHECK_EQUAL(((int64_t *)(void *)window.base)[1 + from], from != SILENT);
        (void)MPI_Win_unlock_all(window.win);
        (void)MPI_Win_free(&window.win);
        MPI_Barrier(awake);
        if (world_rank == 0)
            kill(processes[SILENT], SIGCONT);
    }
    free(processes);
    MPI_Comm_free(&awake);
}

static const struct test_case cases[] = {
    CASE(a_rank_silent_from_the_start_is_given_up, KIND_ALLOCATE, 3),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
