/* A rank that waits in a function of MPICH, or polls in one, serves requests of other nodes itself
 * (src/api/progress_hook.c). All of rank 0's threads but the first are stopped at their next
 * sleep, as if they never got a processor. Rank 0 then waits in the function for rank 1, whose
 * operations on rank 0's memory must return before it does its part. */
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { OPERATIONS = 20, LONG_BYTES = 1 << 20, SLICE_NS = 1000000, STOPPED_MOST_S = 8, RANKS = 64 };

/* --- the stopped threads --- */

static pthread_t first;
static atomic_bool holds;
static atomic_bool is_stopped;
static atomic_bool was_released; /* after STOPPED_MOST_S: no other thread serves */

static void hold(void)
{
    double end = seconds_now() + STOPPED_MOST_S;
    atomic_store(&is_stopped, true);
    while (atomic_load(&holds) && seconds_now() < end)
        sleep_us(200);
    if (atomic_exchange(&holds, false))
        atomic_store(&was_released, true);
    atomic_store(&is_stopped, false);
}

static int64_t ns_of(const struct timespec *time)
{
    return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

/* Overrides the C library's, for the library too: sleeps in slices, so that a sleeping thread can
 * be stopped. */
__attribute__((visibility("default"))) int ppoll(struct pollfd *ready, nfds_t count,
                                                 const struct timespec *limit, const sigset_t *mask)
{
    (void)mask;
    for (int64_t left_ns = limit != NULL ? ns_of(limit) : INT64_MAX;;) {
        if (atomic_load(&holds) && !pthread_equal(pthread_self(), first))
            hold();
        int found = poll(ready, count, left_ns < SLICE_NS ? 0 : 1);
        left_ns -= SLICE_NS;
        if (found != 0 || left_ns <= 0)
            return found;
    }
}

/* --- a wait --- */

static int sent[RANKS], received[RANKS], counts[RANKS], displs[RANKS], bytes[RANKS];
static MPI_Datatype types[RANKS];
static MPI_Aint large_bytes[RANKS];
#if MPI_VERSION >= 4
static MPI_Count large_counts[RANKS];
static MPI_Aint large_displs[RANKS];
#endif
static char *message;
static MPI_Comm ring, backward, made;
static MPI_Group all;

static void prepare(void)
{
    for (int i = 0; i < RANKS; i++) {
        counts[i] = 1;
        displs[i] = i;
        bytes[i] = i * (int)sizeof(int);
        large_bytes[i] = bytes[i];
        types[i] = MPI_INT;
#if MPI_VERSION >= 4
        large_counts[i] = 1;
        large_displs[i] = i;
#endif
    }
    message = calloc(1, LONG_BYTES);
    made = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &(int){1}, 0, &ring);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &backward);
}

static void clean_up(void)
{
    if (made != MPI_COMM_NULL)
        MPI_Comm_free(&made);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&backward);
    MPI_Group_free(&all);
    free(message);
}

/* Rank 0 enters its wait with its other threads stopped, rank 1 after its operations have
 * returned. */
static void serves(void (*act)(void))
{
    MPI_Win win;
    int64_t *base;
    if (ranks_share_memory()) {
        harness_skip("all ranks are on one node");
        return;
    }
    CHECK_OK(MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    *base = 0;
    window_watch(win);
    prepare();
    MPI_Win_lock_all(0, win);
    barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        first = pthread_self();
        atomic_store(&was_released, false);
        atomic_store(&holds, true);
        while (!atomic_load(&is_stopped))
            sleep_us(200);
    }
    barrier(MPI_COMM_WORLD);
    for (int64_t i = 0, one = 1, got = -1; i < OPERATIONS && world_rank == 1; i++) {
        CHECK_OK(MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, win));
        CHECK_OK(MPI_Win_flush(0, win));
        CHECK_EQUAL(got, i);
    }
    act();
    atomic_store(&holds, false);
    while (atomic_load(&is_stopped)) /* the next one might begin before it has left */
        sleep_us(200);
    CHECK(!atomic_load(&was_released), "rank 0 does not serve while it waits");
    barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    CHECK_OK(MPI_Win_free(&win));
    clean_up();
}

/* The table of functions is used twice: with int counts, and with MPI_Count, whose names end in
 * _c. */
#define ACT(name, ...)                                                                             \
    static void act_##name(void)                                                                   \
    {                                                                                              \
        MPI_Request request = MPI_REQUEST_NULL;                                                    \
        MPI_Status status;                                                                         \
        int index, found;                                                                          \
        (void)request, (void)status, (void)index, (void)found;                                     \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    static void a_rank_serves_in_##name(enum window_kind kind)                                     \
    {                                                                                              \
        (void)kind;                                                                                \
        serves(act_##name);                                                                        \
    }
#define IS_LARGE 0
#define WAIT     ACT
#include "host_waits.def"
#undef IS_LARGE
#undef WAIT
#if MPI_VERSION >= 4
#define IS_LARGE        1
#define WAIT(name, ...) ACT(name##_c, __VA_ARGS__)
#include "host_waits.def"
#undef IS_LARGE
#undef WAIT
#endif

static const struct test_case cases[] = {
#define IS_LARGE        0
#define WAIT(name, ...) CASE(a_rank_serves_in_##name, KIND_ANY, 2),
#include "host_waits.def"
#undef IS_LARGE
#undef WAIT
#if MPI_VERSION >= 4
#define IS_LARGE        1
#define WAIT(name, ...) CASE(a_rank_serves_in_##name##_c, KIND_ANY, 2),
#include "host_waits.def"
#endif
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
