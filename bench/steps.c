/* Does each kind of one-sided operation a given number of times, for counting instructions. Each
 * loop is in a function of its own that calls only MPI, so that a profiler can count the calls of
 * that function alone. One-time work at the first call is done before it. Run by
 * bench/instructions: `mpiexec -n 2 steps COUNT OPERATION...`. */
#include <mpi.h>
#include <oriel/ext.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation {
    PUT,
    GET,
    FLUSH,
    PUT_FLUSH,
    PUT_TWO_FLUSH,
    GET_TWO_FLUSH,
    FETCH_AND_OP,
    LOCK_UNLOCK,
    LOCK_PUT_UNLOCK,
    ROUND,
    START_PUT_WAIT,
    START_PUT_TWO_WAIT,
    PUT_NOTIFY,
    MEMORY_HANDLE /* this and the three before it: only through Oriel */
};

enum { HANDLES = 500 };

static MPI_Group self;                      /* of the only rank that is counted */
static MPI_Datatype two;                    /* two doubles with one between them */
static MPI_Request started;                 /* persistent puts: of a word, */
static MPI_Request started_two;             /* of two; only with Oriel */
static MPIX_Memory_handle handles[HANDLES]; /* the operation replaces the oldest */

static inline __attribute__((always_inline)) void loop(enum operation operation, long count,
                                                       MPI_Win win)
{
    const int target = operation == ROUND ? 0 : 1;
    const int64_t one = 1;
    int64_t word = 1;
    double pair[2] = {1, 2};

    for (long i = 0; i < count; i++) {
        if (operation == LOCK_UNLOCK || operation == LOCK_PUT_UNLOCK)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        if (operation == ROUND) {
            MPI_Win_post(self, 0, win);
            MPI_Win_start(self, 0, win);
        }
        if (operation == PUT || operation == PUT_FLUSH || operation == LOCK_PUT_UNLOCK ||
            operation == ROUND)
            MPI_Put(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
        if (operation == PUT_NOTIFY)
            MPIX_Put_notify(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 0, win);
        if (operation == GET)
            MPI_Get(&word, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
        if (operation == PUT_TWO_FLUSH)
            MPI_Put(pair, 2, MPI_DOUBLE, target, 0, 1, two, win);
        if (operation == GET_TWO_FLUSH)
            MPI_Get(pair, 2, MPI_DOUBLE, target, 0, 1, two, win);
        if (operation == FETCH_AND_OP)
            MPI_Fetch_and_op(&one, &word, MPI_INT64_T, target, 0, MPI_SUM, win);
        if (operation == FLUSH || operation == PUT_FLUSH || operation == PUT_TWO_FLUSH ||
            operation == GET_TWO_FLUSH)
            MPI_Win_flush(target, win);
        if (operation == START_PUT_WAIT)
            MPI_Start(&started);
        if (operation == START_PUT_TWO_WAIT)
            MPI_Start(&started_two);
        if (operation == START_PUT_WAIT)
            MPI_Wait(&started, MPI_STATUS_IGNORE);
        if (operation == START_PUT_TWO_WAIT)
            MPI_Wait(&started_two, MPI_STATUS_IGNORE);
        if (operation == MEMORY_HANDLE) {
            MPIX_Win_memory_handle_free(&handles[i % HANDLES]);
            MPIX_Win_memory_handle_create(win, 0, 8, &handles[i % HANDLES]);
        }
        if (operation == LOCK_UNLOCK || operation == LOCK_PUT_UNLOCK)
            MPI_Win_unlock(target, win);
        if (operation == ROUND) {
            MPI_Win_complete(win);
            MPI_Win_wait(win);
        }
    }
}

/* Not inlined and not static: the profiler finds them by name. */
#define COUNTED(name, operation)                                                                   \
    __attribute__((noinline)) void counted_##name(long count, MPI_Win win);                        \
    void counted_##name(long count, MPI_Win win)                                                   \
    {                                                                                              \
        loop(operation, count, win);                                                               \
    }
COUNTED(put, PUT)
COUNTED(get, GET)
COUNTED(flush, FLUSH)
COUNTED(put_flush, PUT_FLUSH)
COUNTED(put_two_flush, PUT_TWO_FLUSH)
COUNTED(get_two_flush, GET_TWO_FLUSH)
COUNTED(fetch_and_op, FETCH_AND_OP)
COUNTED(lock_unlock, LOCK_UNLOCK)
COUNTED(lock_put_unlock, LOCK_PUT_UNLOCK)
COUNTED(round, ROUND)
COUNTED(start_put_wait, START_PUT_WAIT)
COUNTED(start_put_two_wait, START_PUT_TWO_WAIT)
COUNTED(put_notify, PUT_NOTIFY)
COUNTED(memory_handle, MEMORY_HANDLE)

static const struct step {
    const char *name;
    void (*counted)(long count, MPI_Win win);
    enum operation operation;
    int locks;
} steps[] = {
    {"put", counted_put, PUT, 0},
    {"get", counted_get, GET, 0},
    {"flush", counted_flush, FLUSH, 0},
    {"put-flush", counted_put_flush, PUT_FLUSH, 0},
    {"put-two-flush", counted_put_two_flush, PUT_TWO_FLUSH, 0},
    {"get-two-flush", counted_get_two_flush, GET_TWO_FLUSH, 0},
    {"fetch-and-op", counted_fetch_and_op, FETCH_AND_OP, 0},
    {"lock-unlock", counted_lock_unlock, LOCK_UNLOCK, 1},
    {"lock-put-unlock", counted_lock_put_unlock, LOCK_PUT_UNLOCK, 1},
    {"round", counted_round, ROUND, 1},
    {"start-put-wait", counted_start_put_wait, START_PUT_WAIT, 0},
    {"start-put-two-wait", counted_start_put_two_wait, START_PUT_TWO_WAIT, 0},
    {"put-notify", counted_put_notify, PUT_NOTIFY, 0},
    {"memory-handle", counted_memory_handle, MEMORY_HANDLE, 0},
};

static const struct step *step_find(const char *name)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (strcmp(steps[i].name, name) == 0)
            return &steps[i];
    fprintf(stderr, "usage: steps COUNT OPERATION...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    return NULL;
}

/* A few uncounted operations come first: they resolve symbols and fill caches. */
static void step_run(const struct step *step, long count, MPI_Win win)
{
    for (int i = 0; i < HANDLES && step->operation == MEMORY_HANDLE; i++)
        MPIX_Win_memory_handle_create(win, 0, 8, &handles[i]);
    if (!step->locks)
        MPI_Win_lock_all(0, win);
    loop(step->operation, 3, win);
    step->counted(count, win);
    if (!step->locks)
        MPI_Win_unlock_all(win);
}

static void requests_make(MPI_Win win)
{
    static const double values[2] = {1, 2};
    MPIX_Put_init(values, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win, &started);
    MPIX_Put_init(values, 2, MPI_DOUBLE, 1, 0, 1, two, win, &started_two);
}

static void requests_free(void)
{
    MPI_Request_free(&started);
    MPI_Request_free(&started_two);
}

int main(int argc, char **argv)
{
    int rank;
    int64_t *base;
    MPI_Group all;
    MPI_Info info;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    MPI_Win_allocate(4096, sizeof *base, info, MPI_COMM_WORLD, &base, &win);
    MPI_Info_free(&info);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &rank, &self);
    MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &two);
    MPI_Type_commit(&two);
    if (MPIX_Query_oriel())
        requests_make(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 2; i < argc && rank == 0; i++)
        step_run(step_find(argv[i]), atol(argv[1]), win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (MPIX_Query_oriel())
        requests_free();
    MPI_Type_free(&two);
    MPI_Group_free(&self);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
