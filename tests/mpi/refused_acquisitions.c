/* Each acquisition of a resource by Oriel may fail once. The call then still succeeds, or fails
 * with an error of memory or resources, on all ranks if it creates a window. The repeated call
 * succeeds, and its results are right. The test refuses rank 0's first, second, third acquisition
 * and so on, until no more follow. TEST_FIRST is the first number, which selects a later
 * acquisition of the first window; TEST_RANK selects another rank. refused_acquisitions.py refuses
 * each acquisition of the first windows in a job of its own (TEST_ONCE). A plain MPI program, run
 * by the test rows with refuse_preload.c preloaded. */
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 3000, ACQUISITIONS_MOST = 2000 };

static void (*arm)(int which);
static bool (*disarm)(void);
static int failures; /* of calls, on this rank */

/* With one of the classes for memory and resources, or one that MPI defines for the call. */
static bool may_fail_so(int code, int own_class)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class == own_class || class == MPI_ERR_NO_MEM || class == MPI_ERR_OTHER ||
           class == MPI_ERR_INTERN || class == MPI_ERR_WIN;
}

/* A call of this rank alone. */
#define TRY(call) TRY_OR(MPI_ERR_NO_MEM, call)
#define TRY_OR(own_class, call)                                                                    \
    do {                                                                                           \
        int code = call;                                                                           \
        if (code != MPI_SUCCESS) {                                                                 \
            failures++;                                                                            \
            CHECK(may_fail_so(code, own_class), "%s failed with another class", #call);            \
            CHECK_OK(call);                                                                        \
        }                                                                                          \
    } while (0)

/* A collective call, over all ranks or a communicator. */
#define TRY_TOGETHER(call) TRY_TOGETHER_IN(MPI_COMM_WORLD, call)
#define TRY_TOGETHER_IN(comm, call)                                                                \
    do {                                                                                           \
        int code = call, failed = code != MPI_SUCCESS, sum, all;                                   \
        MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, comm);                                   \
        MPI_Comm_size(comm, &all);                                                                 \
        CHECK(sum == 0 || sum == all, "%s failed on %d ranks", #call, sum);                        \
        if (sum == all) {                                                                          \
            failures++;                                                                            \
            CHECK(may_fail_so(code, MPI_ERR_NO_MEM), "%s failed with another class", #call);       \
            CHECK_OK(call);                                                                        \
        }                                                                                          \
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
    MPI_Group_incl(world, world_size > 2 ? 2 : 1, (int[]){left, right}, &both);
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

static void use_plain_windows(void)
{
    MPI_Aint size_bytes = ELEMENTS * sizeof(double);
    double *own = calloc(ELEMENTS, sizeof *own), *base = NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* of creation */
    MPI_Type_vector(ELEMENTS / 2, 1, 2, MPI_DOUBLE, &gaps);
    MPI_Type_commit(&gaps);

    TRY_TOGETHER(
        MPI_Win_allocate(size_bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    use(win, 0);
    check_memory(base);
    TRY_TOGETHER(MPI_Win_free(&win));

    TRY_TOGETHER(
        MPI_Win_create(own, size_bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use(win, 0);
    check_memory(own);
    TRY_TOGETHER(MPI_Win_free(&win));
    MPI_Type_free(&gaps);
    free(own);
}

/* --- the other windows and operations --- */

enum { FETCHED_AT = 1000, SWAPPED_AT = 2000, PAIRS = 400, REPEATS_MOST = 3 };

/* A window, and the location of the right neighbour's memory in it. */
struct setup {
    MPI_Win win;
    MPI_Comm comm;
    int rank, right, left; /* in comm */
    MPI_Aint at, unit;     /* displacements: its first element, and the distance between elements */
    double *memory;        /* the caller's own */
};
static MPI_Comm node;

static struct setup setup_make(MPI_Comm comm)
{
    int size;
    struct setup setup = {.comm = comm, .unit = 1};
    MPI_Comm_rank(comm, &setup.rank);
    MPI_Comm_size(comm, &size);
    setup.right = (setup.rank + 1) % size;
    setup.left = (setup.rank + size - 1) % size;
    return setup;
}

/* A failure at the target is reported by the flush, when the operation is over. All operations here
 * may be repeated. */
static void operate_on(const struct setup *setup)
{
    static double values[2 * PAIRS], got[2 * PAIRS];
    int64_t own = setup->rank + 1, zero = 0, found;
    int before, repeats = 0, wrong = 0;
    for (int i = 0; i < 2 * PAIRS; i++)
        values[i] = (double)own;
    do {
        MPI_Request request = MPI_REQUEST_NULL;
        before = failures;
        found = -1;
        TRY(MPI_Accumulate(values, 1, gaps, setup->right, setup->at, 1, gaps, MPI_MAX, setup->win));
        TRY(MPI_Rget_accumulate(values, 1, gaps, got, 1, gaps, setup->right,
                                setup->at + FETCHED_AT * setup->unit, 1, gaps, MPI_REPLACE,
                                setup->win, &request));
        TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
        TRY(MPI_Compare_and_swap(&own, &zero, &found, MPI_INT64_T, setup->right,
                                 setup->at + SWAPPED_AT * setup->unit, setup->win));
        TRY(MPI_Win_flush(setup->right, setup->win));
    } while (failures != before && repeats++ < REPEATS_MOST);
    CHECK(found == 0 || (repeats > 0 && found == own), "compare_and_swap found %lld",
          (long long)found);
    for (int i = 0; i < 2 * PAIRS; i += 2)
        wrong += got[i] != 0 && (repeats == 0 || got[i] != (double)own);
    CHECK(wrong == 0, "%d elements that were fetched are wrong", wrong);
}

static void check_operated(const struct setup *setup)
{
    int wrong = 0;
    int64_t swapped;
    for (int i = 0; i < 2 * PAIRS; i++) {
        double wanted = i % 2 == 0 ? setup->left + 1 : 0;
        wrong += (setup->memory[i] != wanted) + (setup->memory[FETCHED_AT + i] != wanted);
    }
    CHECK(wrong == 0, "%d elements are wrong", wrong);
    memcpy(&swapped, &setup->memory[SWAPPED_AT], sizeof swapped);
    CHECK_EQUAL(swapped, setup->left + 1);
}

/* The host has hints of its own and makes the window where Oriel cannot. */
static void use_hints(MPI_Win win)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int is_own = 0, found = 0;
    MPI_Info wanted, used = MPI_INFO_NULL;
    MPI_Info_create(&wanted);
    MPI_Info_set(wanted, "no_locks", "false");
    TRY(MPI_Win_set_info(win, wanted));
    TRY(MPI_Win_get_info(win, &used));
    MPI_Info_get(used, "oriel_memory", MPI_MAX_INFO_VAL, value, &is_own);
    MPI_Info_get(used, "no_locks", MPI_MAX_INFO_VAL, value, &found);
    CHECK(!is_own || (found && strcmp(value, "false") == 0), "no_locks is %s", value);
    MPI_Info_free(&used);
    MPI_Info_free(&wanted);
}

static void setup_use(const struct setup *setup)
{
    MPI_Win_set_errhandler(setup->win, MPI_ERRORS_RETURN);
    use_hints(setup->win);
    TRY(MPI_Win_lock_all(0, setup->win));
    memset(setup->memory, 0, ELEMENTS * sizeof(double));
    TRY(MPI_Win_sync(setup->win));
    barrier(setup->comm);
    operate_on(setup);
    TRY(MPI_Win_unlock_all(setup->win));
    barrier(setup->comm);
    check_operated(setup);
}

static void use_dynamic(MPI_Aint size_bytes)
{
    struct setup setup = setup_make(MPI_COMM_WORLD);
    MPI_Aint own_at;
    double *further = calloc(ELEMENTS, sizeof *further);
    setup.memory = calloc(ELEMENTS, sizeof *setup.memory);
    setup.unit = sizeof(double);
    TRY_TOGETHER(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &setup.win));
    MPI_Win_set_errhandler(setup.win, MPI_ERRORS_RETURN);
    TRY_OR(MPI_ERR_RMA_ATTACH, MPI_Win_attach(setup.win, setup.memory, size_bytes));
    TRY_OR(MPI_ERR_RMA_ATTACH, MPI_Win_attach(setup.win, further, size_bytes));
    MPI_Get_address(setup.memory, &own_at);
    MPI_Sendrecv(&own_at, 1, MPI_AINT, setup.left, 0, &setup.at, 1, MPI_AINT, setup.right, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    setup_use(&setup);
    TRY(MPI_Win_detach(setup.win, further));
    TRY(MPI_Win_detach(setup.win, setup.memory));
    TRY_TOGETHER(MPI_Win_free(&setup.win));
    free(setup.memory);
    free(further);
}

static void use_shared(MPI_Aint size_bytes)
{
    struct setup setup = setup_make(node);
    MPI_Aint theirs_bytes;
    double *theirs = NULL;
    int unit;
    TRY_TOGETHER_IN(node, MPI_Win_allocate_shared(size_bytes, sizeof(double), MPI_INFO_NULL, node,
                                                  &setup.memory, &setup.win));
    setup_use(&setup);
    TRY(MPI_Win_shared_query(setup.win, setup.right, &theirs_bytes, &unit, &theirs));
    CHECK(theirs_bytes == size_bytes && theirs[0] == setup.rank + 1,
          "another rank's memory differs from the written data");
    barrier(node);
    TRY_TOGETHER_IN(node, MPI_Win_free(&setup.win));
}

static void use_allocated(MPI_Aint size_bytes)
{
    struct setup setup = setup_make(MPI_COMM_WORLD);
    TRY(MPI_Alloc_mem(size_bytes, MPI_INFO_NULL, &setup.memory));
    TRY_TOGETHER(MPI_Win_create(setup.memory, size_bytes, sizeof(double), MPI_INFO_NULL,
                                MPI_COMM_WORLD, &setup.win));
    setup_use(&setup);
    TRY_TOGETHER(MPI_Win_free(&setup.win));
    TRY(MPI_Free_mem(setup.memory));
}

static void use_dynamic_and_shared_windows(void)
{
    MPI_Aint size_bytes = ELEMENTS * sizeof(double);
    MPI_Comm comm;
    for (int i = 0; i < 3; i++) /* of creation, and of memory */
        MPI_Comm_set_errhandler((MPI_Comm[]){MPI_COMM_WORLD, MPI_COMM_SELF, node}[i],
                                MPI_ERRORS_RETURN);
    MPI_Type_vector(PAIRS, 1, 2, MPI_DOUBLE, &gaps);
    MPI_Type_commit(&gaps);
    use_dynamic(size_bytes);
    use_shared(size_bytes);
    use_allocated(size_bytes);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    TRY(MPI_Comm_free(&comm)); /* the hosts' does not wait for other ranks */
    MPI_Type_free(&gaps);
}

/* --- */

static void refuse_each(void (*use_windows)(void))
{
    int which = getenv("TEST_FIRST") ? atoi(getenv("TEST_FIRST")) - 1 : 0, goes_on = 1;
    const int refused_rank = getenv("TEST_RANK") ? atoi(getenv("TEST_RANK")) : 0;
    const bool once = getenv("TEST_ONCE") != NULL;
    failures = 0;
    while (goes_on && which < ACQUISITIONS_MOST) {
        which++;
        if (world_rank == refused_rank)
            arm(which);
        use_windows();
        if (world_rank == refused_rank)
            goes_on = disarm();
        if (once && world_rank == refused_rank)
            printf("# acquisition %d %s\n", which, goes_on ? "was refused" : "is one too many");
        use_windows();
        goes_on = goes_on && !harness_failed() && !once;
        MPI_Allreduce(MPI_IN_PLACE, &goes_on, 1, MPI_INT, MPI_MIN,
                      MPI_COMM_WORLD); /* a rank that failed ends the loop for all */
    }
    if (world_rank == refused_rank)
        printf("# %d acquisitions, of which %d made calls fail\n", which - 1, failures);
    CHECK((which > 1 || once) && which < ACQUISITIONS_MOST, "%d acquisitions", which - 1);
}

static void plain_windows_survive_refusals(enum window_kind kind)
{
    (void)kind;
    refuse_each(use_plain_windows);
}

static void dynamic_and_shared_windows_survive_refusals(enum window_kind kind)
{
    (void)kind;
    node = node_comm();
    refuse_each(use_dynamic_and_shared_windows);
    MPI_Comm_free(&node);
}

static const struct test_case cases[] = {
    CASE(plain_windows_survive_refusals, KIND_ANY, 2),
    CASE(dynamic_and_shared_windows_survive_refusals, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    void *function = dlsym(RTLD_DEFAULT, "refuse_arm");
    memcpy(&arm, &function, sizeof arm);
    function = dlsym(RTLD_DEFAULT, "refuse_disarm");
    memcpy(&disarm, &function, sizeof disarm);
    if (arm == NULL || disarm == NULL) {
        fprintf(stderr, "refuse_preload.c is not preloaded\n");
        return 1;
    }
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
