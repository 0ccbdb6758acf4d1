/* Whatever Oriel acquires may be refused, once: the call then succeeds all the same, or fails with an error of memory or
 * resources, on all ranks where it makes a window; the same call again succeeds, and what was done is right.  Rank 0's first,
 * second, third acquisition and so on are refused, until there are no more; TEST_FIRST is where the row begins, so that a later
 * one of the first window's is refused, TEST_RANK another rank.  acquisitions.py has each of the first windows' refused in a job of
 * its own (TEST_ONCE).
 * A plain MPI program, run by the test rows with refuse.c preloaded. */
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 3000, ACQUISITIONS_MOST = 2000 };

static void (*arm)(int which);
static bool (*disarm)(void);
static int failures; /* of calls, on this rank */

static bool may_fail_so(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class == MPI_ERR_NO_MEM || class == MPI_ERR_OTHER || class == MPI_ERR_INTERN || class == MPI_ERR_WIN;
}

/* A call of this rank alone. */
#define TRY(call)                                                              \
    do {                                                                       \
        int code = call;                                                       \
        if (code != MPI_SUCCESS) {                                             \
            failures++;                                                        \
            CHECK(may_fail_so(code), "%s failed with another class", #call);   \
            CHECK_OK(call);                                                    \
        }                                                                      \
    } while (0)

/* One that all make together. */
#define TRY_TOGETHER(call)                                                     \
    do {                                                                       \
        int code = call, failed = code != MPI_SUCCESS, sum;                    \
        MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);     \
        CHECK(sum == 0 || sum == world_size, "%s failed on %d ranks", #call, sum); \
        if (sum == world_size) {                                               \
            failures++;                                                        \
            CHECK(may_fail_so(code), "%s failed with another class", #call);   \
            CHECK_OK(call);                                                    \
        }                                                                      \
    } while (0)

/* Every second double. */
static MPI_Datatype gaps;

static void use(MPI_Win win, MPI_Aint at)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    static double values[2 * ELEMENTS], old;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Group world, both;
    for (int i = 0; i < 2 * ELEMENTS; i++)
        values[i] = world_rank + 1;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    TRY(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
    TRY(MPI_Put(values, ELEMENTS, MPI_DOUBLE, right, at, ELEMENTS, MPI_DOUBLE, win));
    TRY(MPI_Win_unlock(right, win));
    barrier(MPI_COMM_WORLD);
    TRY(MPI_Win_lock_all(0, win));
    TRY(MPI_Rput(values, 1, gaps, right, at, 1, gaps, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    TRY(MPI_Win_flush(right, win));
    TRY(MPI_Fetch_and_op(values, &old, MPI_DOUBLE, right, at, MPI_NO_OP, win));
    TRY(MPI_Win_unlock_all(win));
    CHECK_EQUAL(old, world_rank + 1);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, world_size > 2 ? 2 : 1, (int[]){ left, right }, &both);
    TRY(MPI_Win_post(both, 0, win));
    TRY(MPI_Win_start(both, 0, win));
    TRY(MPI_Put(values + ELEMENTS, ELEMENTS, MPI_DOUBLE, right, at, ELEMENTS, MPI_DOUBLE, win));
    TRY(MPI_Win_complete(win));
    TRY(MPI_Win_wait(win));
    MPI_Group_free(&both);
    MPI_Group_free(&world);
}

static void check_memory(const double *memory)
{
    int left = (world_rank + world_size - 1) % world_size, wrong = 0;
    for (int i = 0; i < ELEMENTS; i++)
        wrong += memory[i] != left + 1;
    CHECK(wrong == 0, "%d elements are wrong", wrong);
}

static void use_all_kinds(void)
{
    MPI_Aint size_bytes = ELEMENTS * sizeof(double);
    double *own = calloc(ELEMENTS, sizeof *own), *base = NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* of creation */
    MPI_Type_vector(ELEMENTS / 2, 1, 2, MPI_DOUBLE, &gaps);
    MPI_Type_commit(&gaps);

    TRY_TOGETHER(MPI_Win_allocate(size_bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    use(win, 0);
    check_memory(base);
    TRY_TOGETHER(MPI_Win_free(&win));

    TRY_TOGETHER(MPI_Win_create(own, size_bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use(win, 0);
    check_memory(own);
    TRY_TOGETHER(MPI_Win_free(&win));
    MPI_Type_free(&gaps);
    free(own);
}

static void refused_acquisitions_are_errors_or_no_matter(enum window_kind kind)
{
    int which = getenv("TEST_FIRST") ? atoi(getenv("TEST_FIRST")) - 1 : 0, goes_on = 1;
    const int refused_rank = getenv("TEST_RANK") ? atoi(getenv("TEST_RANK")) : 0;
    const bool once = getenv("TEST_ONCE") != NULL;
    (void)kind;
    while (goes_on && which < ACQUISITIONS_MOST) {
        which++;
        if (world_rank == refused_rank)
            arm(which);
        use_all_kinds();
        if (world_rank == refused_rank)
            goes_on = disarm();
        if (once && world_rank == refused_rank)
            printf("# acquisition %d %s\n", which, goes_on ? "was refused" : "is one too many");
        use_all_kinds();
        goes_on = goes_on && !harness_failed() && !once;
        MPI_Allreduce(MPI_IN_PLACE, &goes_on, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD); /* one that failed ends it for all */
    }
    if (world_rank == refused_rank)
        printf("# %d acquisitions, of which %d made calls fail\n", which - 1, failures);
    CHECK((which > 1 || once) && which < ACQUISITIONS_MOST, "%d acquisitions", which - 1);
}

static const struct test_case cases[] = {
    CASE(refused_acquisitions_are_errors_or_no_matter, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    void *function = dlsym(RTLD_DEFAULT, "refuse_arm");
    memcpy(&arm, &function, sizeof arm);
    function = dlsym(RTLD_DEFAULT, "refuse_disarm");
    memcpy(&disarm, &function, sizeof disarm);
    if (arm == NULL || disarm == NULL) {
        fprintf(stderr, "refuse.c is not preloaded\n");
        return 1;
    }
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
