/* Requests of gets that may be outstanding: long ones, refused ones, and those of several threads.
 * A plain MPI program, run by the test rows; the threads' case is skipped without
 * MPI_THREAD_MULTIPLE. */
#include "outstanding.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 8, LONG_WORDS = 400000 };

static MPI_Status *volatile no_statuses =
    MPI_STATUSES_IGNORE; /* gcc takes MPICH's for an array that is too short */

/* --- long gets --- */

static bool prodding;

/* Processes answers while another thread still issues gets. */
static void *prod(void *unused)
{
    MPI_Request never;
    int done = 0;
    MPI_Irecv(NULL, 0, MPI_BYTE, world_rank, 8, MPI_COMM_WORLD, &never);
    while (__atomic_load_n(&prodding, __ATOMIC_ACQUIRE))
        CHECK_OK(MPI_Test(&never, &done, MPI_STATUS_IGNORE));
    MPI_Cancel(&never);
    MPI_Wait(&never, MPI_STATUS_IGNORE);
    return unused;
}

/* A get longer than one message, contiguous and with gaps; the request completes with the last
 * message. */
static void a_long_get_is_complete_as_a_whole(enum window_kind kind)
{
    enum { HALF = LONG_WORDS / 2 };
    struct window window = numbered_make(kind, LONG_WORDS);
    int64_t *seen = malloc(8 * LONG_WORDS);
    int target = (world_rank + 1) % world_size, wrong = 0;
    MPI_Request requests[2];
    MPI_Datatype odd;
    MPI_Type_vector(HALF, 1, 2, MPI_INT64_T, &odd);
    MPI_Type_commit(&odd);
    bool threads = harness_thread_level() == MPI_THREAD_MULTIPLE;
    pthread_t prodder;
    __atomic_store_n(&prodding, threads, __ATOMIC_RELEASE);
    if (threads)
        pthread_create(&prodder, NULL, prod, NULL);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    for (int turn = 0; turn < 10; turn++) {
        memset(seen, -1, 8 * LONG_WORDS);
        MPI_Rget(seen, 1, odd, target, 0, 1, odd, window.win, &requests[0]);
        MPI_Rget(seen + 1, 1, odd, target, 1, HALF, MPI_INT64_T, window.win, &requests[1]);
        CHECK_OK(MPI_Waitall(2, requests, no_statuses));
        for (int i = 0; i < LONG_WORDS; i++)
            wrong += seen[i] != 1000 * target + (i % 2 ? 1 + i / 2 : i);
        CHECK_EQUAL(wrong, 0);
    }
    MPI_Win_unlock(target, window.win);
    __atomic_store_n(&prodding, false, __ATOMIC_RELEASE);
    if (threads)
        pthread_join(prodder, NULL);
    MPI_Type_free(&odd);
    free(seen);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* --- failures --- */

static int errors_raised;

static void on_error(MPI_Win *win, int *code, ...)
{
    (void)win;
    CHECK_CLASS(MPI_ERR_RMA_RANGE, *code);
    errors_raised++;
}

/* On one node the get itself fails; between nodes the answer fails the request's completion. Either
 * way the error is reported once. */
static void a_refused_get_is_reported_once_at_its_completion(enum window_kind kind)
{
    (void)kind;
    int64_t memory[WORDS], seen[2] = {-1, -1};
    MPI_Aint here, there;
    MPI_Win win;
    MPI_Errhandler handler;
    MPI_Status statuses[2];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, none = MPI_REQUEST_NULL;
    for (int i = 0; i < WORDS; i++)
        memory[i] = 5;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, memory, 8);
    MPI_Get_address(memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, (world_rank + world_size - 1) % world_size, 0, &there, 1,
                 MPI_AINT, (world_rank + 1) % world_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(win, handler);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < 5; turn++) {
        int target = (world_rank + 1) % world_size, code, done = turn != 4, unasked;
        errors_raised = 0;
        code = MPI_Rget(&seen[0], 1, MPI_INT64_T, target, there + 8, 1, MPI_INT64_T, win,
                        &requests[0]);
        if (code == MPI_SUCCESS && turn == 0)
            code = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK_OK(
            MPI_Rget(&seen[1], 1, MPI_INT64_T, target, there, 1, MPI_INT64_T, win, &requests[1]));
        while (code == MPI_SUCCESS &&
               !done) { /* a poll does not report it, nor does the completion of another request */
            CHECK_OK(MPI_Request_get_status(requests[0], &done, MPI_STATUS_IGNORE));
            CHECK_OK(MPI_Test(&none, &unasked, MPI_STATUS_IGNORE));
        }
        CHECK_EQUAL(errors_raised, code != MPI_SUCCESS);
        if (code == MPI_SUCCESS) {
            CHECK_CLASS(MPI_ERR_IN_STATUS,
                        MPI_Waitall(2, requests, turn % 2 ? no_statuses : statuses));
            if (turn % 2 == 0)
                CHECK_CLASS(MPI_ERR_RMA_RANGE, statuses[0].MPI_ERROR);
        } else {
            CHECK_CLASS(MPI_ERR_RMA_RANGE, code);
            CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        }
        CHECK_OK(MPI_Win_flush(target, win));
        CHECK_EQUAL(errors_raised, 1);
        CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL,
              "a request is left");
        CHECK_EQUAL(seen[0], -1);
        CHECK_EQUAL(seen[1], 5);
    }
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    MPI_Errhandler_free(&handler);
    MPI_Win_free(&win);
}

/* Refused at the call: its request state is released, and the request variable is unchanged. */
static void a_get_beyond_the_window_makes_no_request(enum window_kind kind)
{
    struct window window = numbered_make(kind, WORDS);
    int target = (world_rank + 1) % world_size;
    int64_t seen = -1, nothing = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Errhandler handler;
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(window.win, handler);
    errors_raised = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Rget(&seen, 1, MPI_INT64_T, target, WORDS, 1, MPI_INT64_T,
                                            window.win, &request));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Rget_accumulate(&nothing, 1, MPI_INT64_T, &seen, 1, MPI_INT64_T, target, WORDS,
                                    1, MPI_INT64_T, MPI_SUM, window.win, &request));
    CHECK_EQUAL(errors_raised, 2);
    CHECK(request == MPI_REQUEST_NULL, "there is a request");
    CHECK_OK(MPI_Win_flush(target, window.win));
    CHECK_EQUAL(seen, -1);
    CHECK_OK(
        MPI_Rget(&seen, 1, MPI_INT64_T, target, WORDS - 1, 1, MPI_INT64_T, window.win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQUAL(seen, 1000 * target + WORDS - 1);
    MPI_Win_unlock(target, window.win);
    CHECK_EQUAL(errors_raised, 2);
    barrier(MPI_COMM_WORLD);
    MPI_Errhandler_free(&handler);
    window_free(&window);
}

/* --- threads --- */

enum { WAITERS = 3, ROUNDS = 400, EACH = 10 };
static struct window threads_window;

static void *waiter_main(void *argument)
{
    int64_t seen[EACH];
    MPI_Request requests[EACH];
    struct random random =
        random_start((uint64_t)(world_rank * WAITERS) + (uint64_t)(uintptr_t)argument);
    for (int round = 0; round < scaled_rounds(ROUNDS) && !harness_failed(); round++) {
        int target = (int)random_below(&random, (uint64_t)world_size), index;
        memset(seen, -1, sizeof seen);
        for (int i = 0; i < EACH; i++)
            MPI_Rget(&seen[i], 1, MPI_INT64_T, target, i % WORDS, 1, MPI_INT64_T,
                     threads_window.win, &requests[i]);
        if (round % 4 == 0)
            CHECK_OK(MPI_Win_flush(target, threads_window.win));
        if (round % 3 == 0)
            CHECK_OK(MPI_Request_free(&requests[0]));
        if (round % 2 == 0)
            CHECK_OK(MPI_Waitany(EACH, requests, &index, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Waitall(EACH, requests, no_statuses));
        if (round % 3 == 0)
            CHECK_OK(MPI_Win_flush_local(target, threads_window.win));
        for (int i = 0; i < EACH; i++)
            CHECK_EQUAL(seen[i], 1000 * target + i % WORDS);
    }
    return NULL;
}

static void threads_wait_for_their_own_while_others_flush(enum window_kind kind)
{
    pthread_t threads[WAITERS];
    if (harness_thread_level() != MPI_THREAD_MULTIPLE) {
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
        return;
    }
    threads_window = numbered_make(kind, WORDS);
    MPI_Win_lock_all(0, threads_window.win);
    for (intptr_t i = 0; i < WAITERS; i++)
        pthread_create(&threads[i], NULL, waiter_main, (void *)i);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(threads_window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&threads_window);
}

static const struct test_case cases[] = {
    CASE(a_long_get_is_complete_as_a_whole, KINDS_BOTH, 1),
    CASE(a_refused_get_is_reported_once_at_its_completion, KIND_ANY, 2),
    CASE(a_get_beyond_the_window_makes_no_request, KINDS_BOTH, 1),
    CASE(threads_wait_for_their_own_while_others_flush, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
