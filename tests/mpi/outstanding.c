/* Requests whose answers have not come: the target's process is stopped meanwhile, so that nothing of it can answer where it stands
 * for another machine.  On one machine the same operations are complete at once, which is right as well.
 * A plain MPI program, run by the test rows; the target is stopped only where all ranks see each other's processes. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 8, PIECES = 6, LONG_WORDS = 400000, ORIGIN = 0, TARGET = 1 };

static volatile sig_atomic_t target_pid;
static MPI_Status *volatile no_statuses = MPI_STATUSES_IGNORE; /* gcc takes MPICH's for an array that is too short */

/* --- a target that is stopped --- */

static timer_t timer;

static void on_timer(int signal)
{
    (void)signal;
    kill((pid_t)target_pid, SIGCONT);
}

/* Whether ranks are processes that this one may stop: the target's number, as the origin sees it. */
static bool target_is_here(void)
{
    char name[2][MPI_MAX_PROCESSOR_NAME] = { "", "" };
    int length = 0, pid = (int)getpid(), here;
    MPI_Get_processor_name(name[0], &length);
    memcpy(name[1], name[0], sizeof name[1]);
    MPI_Bcast(name[1], sizeof name[1], MPI_CHAR, TARGET, MPI_COMM_WORLD);
    MPI_Bcast(&pid, 1, MPI_INT, TARGET, MPI_COMM_WORLD);
    target_pid = pid;
    here = strcmp(name[0], name[1]) == 0 && kill((pid_t)pid, 0) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!here)
        harness_skip("the target is on another machine");
    return here;
}

static void timer_run(int for_ms)
{
    struct itimerspec once = { .it_value = { for_ms / 1000, for_ms % 1000 * 1000000L } };
    timer_settime(timer, 0, &once, NULL);
}

/* It goes on after so many milliseconds. */
static void stop_target(int for_ms)
{
    static bool made;
    struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 }; /* the harness has the alarm */
    if (!made)
        CHECK(sigaction(SIGUSR2, &action, NULL) == 0 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "no timer");
    made = true;
    kill((pid_t)target_pid, SIGSTOP);
    sleep_us(2000); /* until it has stopped */
    timer_run(for_ms);
}

static void let_target_go(void)
{
    timer_run(0);
    kill((pid_t)target_pid, SIGCONT);
}

/* A window with 1000 * rank + i at place i. */
static struct window numbered_make(enum window_kind kind, int words)
{
    struct window window = window_make(kind, (MPI_Aint)8 * words, 8, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
    for (int i = 0; i < words; i++)
        ((int64_t *)window.base)[i] = 1000 * world_rank + i;
    MPI_Win_unlock(world_rank, window.win);
    barrier(MPI_COMM_WORLD);
    return window;
}

/* Gets at the even places, additions of nothing at the odd ones, and at the last a message that comes from the origin itself. */
struct mix {
    MPI_Request requests[PIECES];
    int64_t seen[PIECES];
    int64_t nothing;
    int message;
};

static void mix_start(struct mix *mix, MPI_Win win)
{
    mix->nothing = 0;
    mix->message = -1;
    for (int i = 0; i < PIECES - 1; i++) {
        mix->seen[i] = -1;
        if (i % 2)
            MPI_Rget_accumulate(&mix->nothing, 1, MPI_INT64_T, &mix->seen[i], 1, MPI_INT64_T, TARGET, i, 1, MPI_INT64_T,
                                MPI_SUM, win, &mix->requests[i]);
        else
            MPI_Rget(&mix->seen[i], 1, MPI_INT64_T, TARGET, i, 1, MPI_INT64_T, win, &mix->requests[i]);
    }
    MPI_Irecv(&mix->message, 1, MPI_INT, world_rank, 7, MPI_COMM_WORLD, &mix->requests[PIECES - 1]);
}

static void mix_check(const struct mix *mix)
{
    for (int i = 0; i < PIECES - 1; i++)
        CHECK_EQUAL(mix->seen[i], 1000 * TARGET + i);
    CHECK_EQUAL(mix->message, 77);
    for (int i = 0; i < PIECES; i++)
        CHECK(mix->requests[i] == MPI_REQUEST_NULL, "request %d is not complete", i);
}

static void send_to_oneself(void)
{
    MPI_Request request;
    static const int message = 77;
    MPI_Isend(&message, 1, MPI_INT, world_rank, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

enum way { WAIT, TEST, WAITALL, WAITANY, WAITSOME, TESTALL, TESTANY, TESTSOME, GET_STATUS, WAYS };

/* Completes one by one, in the order from the last. */
static void finish_each(struct mix *mix, enum way way)
{
    for (int i = PIECES - 1; i >= 0; i--) {
        int done = way == WAIT;
        if (way == WAIT)
            CHECK_OK(MPI_Wait(&mix->requests[i], MPI_STATUS_IGNORE));
        while (!done) {
            if (way == TEST)
                CHECK_OK(MPI_Test(&mix->requests[i], &done, MPI_STATUS_IGNORE));
            else
                CHECK_OK(MPI_Request_get_status(mix->requests[i], &done, MPI_STATUS_IGNORE));
        }
        if (way == GET_STATUS)
            CHECK_OK(MPI_Wait(&mix->requests[i], MPI_STATUS_IGNORE));
    }
}

/* Each place is told once. */
static void finish_found(struct mix *mix, enum way way)
{
    bool found[PIECES] = { false };
    MPI_Status statuses[PIECES];
    int indices[PIECES], left = PIECES, count, done;
    while (left > 0 && !harness_failed()) {
        count = done = 1;
        indices[0] = MPI_UNDEFINED;
        switch (way) {
        case WAITANY: CHECK_OK(MPI_Waitany(PIECES, mix->requests, indices, statuses)); break;
        case TESTANY: CHECK_OK(MPI_Testany(PIECES, mix->requests, indices, &done, statuses)); break;
        case WAITSOME: CHECK_OK(MPI_Waitsome(PIECES, mix->requests, &count, indices, statuses)); break;
        default: CHECK_OK(MPI_Testsome(PIECES, mix->requests, &count, indices, statuses)); break;
        }
        if (way == WAITSOME)
            CHECK(count >= 1, "MPI_Waitsome waited for nothing");
        for (int i = 0; i < (done ? count : 0); i++) {
            if (!CHECK(indices[i] >= 0 && indices[i] < PIECES && !found[indices[i]], "index %d is told", indices[i]))
                return;
            found[indices[i]] = true;
            left--;
        }
    }
}

static void finish_all(struct mix *mix, enum way way)
{
    MPI_Status statuses[PIECES];
    int done = way == WAITALL;
    if (way == WAITALL)
        CHECK_OK(MPI_Waitall(PIECES, mix->requests, statuses));
    while (!done)
        CHECK_OK(MPI_Testall(PIECES, mix->requests, &done, statuses));
    for (int i = 0; i < PIECES - 1; i++) {
        int count = -1, cancelled = 1;
        MPI_Get_count(&statuses[i], MPI_BYTE, &count);
        MPI_Test_cancelled(&statuses[i], &cancelled);
        CHECK_EQUAL(cancelled, 0);
    }
}

static void finish(struct mix *mix, enum way way)
{
    if (way == WAIT || way == TEST || way == GET_STATUS)
        finish_each(mix, way);
    else if (way == WAITALL || way == TESTALL)
        finish_all(mix, way);
    else
        finish_found(mix, way);
}

/* --- cases --- */

/* The timer would let the target go in the end: it must not have been needed. */
static void a_get_returns_while_its_target_is_stopped(enum window_kind kind)
{
    if (!target_is_here())
        return;
    struct window window = numbered_make(kind, WORDS);
    MPI_Win_lock_all(0, window.win);
    if (world_rank == ORIGIN) {
        struct itimerspec left;
        MPI_Request request;
        int64_t seen = -1;
        int done = 0;
        MPI_Get(&seen, 1, MPI_INT64_T, TARGET, 0, 1, MPI_INT64_T, window.win); /* which takes the lock */
        MPI_Win_flush(TARGET, window.win);
        stop_target(20000);
        CHECK_OK(MPI_Rget(&seen, 1, MPI_INT64_T, TARGET, 3, 1, MPI_INT64_T, window.win, &request));
        CHECK_OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done)
            CHECK_EQUAL(seen, 1000 * TARGET + 3);
        timer_gettime(timer, &left);
        CHECK(left.it_value.tv_sec > 0, "MPI_Rget has waited for its target");
        let_target_go();
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_EQUAL(seen, 1000 * TARGET + 3);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void every_function_waits_for_what_is_outstanding(enum window_kind kind)
{
    if (!target_is_here())
        return;
    struct window window = numbered_make(kind, WORDS);
    MPI_Win_lock_all(0, window.win);
    for (int way = 0; world_rank == ORIGIN && way < WAYS; way++) {
        struct mix mix;
        int64_t first = -1;
        MPI_Get(&first, 1, MPI_INT64_T, TARGET, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_flush(TARGET, window.win);
        stop_target(15);
        mix_start(&mix, window.win);
        send_to_oneself();
        finish(&mix, (enum way)way);
        mix_check(&mix);
        let_target_go();
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Nobody is told of the end of a request that was freed but by the flush. */
static void a_flush_completes_what_was_freed_while_outstanding(enum window_kind kind)
{
    if (!target_is_here())
        return;
    struct window window = numbered_make(kind, WORDS);
    MPI_Win_lock_all(0, window.win);
    for (int turn = 0; world_rank == ORIGIN && turn < 5; turn++) {
        MPI_Request requests[WORDS];
        int64_t seen[WORDS];
        memset(seen, -1, sizeof seen);
        stop_target(15);
        for (int i = 0; i < WORDS; i++)
            MPI_Rget(&seen[i], 1, MPI_INT64_T, TARGET, i, 1, MPI_INT64_T, window.win, &requests[i]);
        for (int i = 0; i < WORDS; i += 2)
            CHECK_OK(MPI_Request_free(&requests[i]));
        CHECK_OK(MPI_Win_flush(TARGET, window.win));
        for (int i = 0; i < WORDS; i++)
            CHECK_EQUAL(seen[i], 1000 * TARGET + i);
        for (int i = 1; i < WORDS; i += 2)
            CHECK_OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        let_target_go();
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static bool prodding;

/* Has answers taken while another thread still asks. */
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

/* More than one message has room for, whole and with gaps; the request waits for the last of them. */
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

/* One machine refuses the get itself; another's answer does so when the request is completed.  Either way once. */
static void a_refused_get_is_told_once_by_who_completes_it(enum window_kind kind)
{
    (void)kind;
    int64_t memory[WORDS], seen[2] = { -1, -1 };
    MPI_Aint here, there;
    MPI_Win win;
    MPI_Errhandler handler;
    MPI_Status statuses[2];
    MPI_Request requests[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };
    for (int i = 0; i < WORDS; i++)
        memory[i] = 5;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, memory, 8);
    MPI_Get_address(memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, (world_rank + world_size - 1) % world_size, 0, &there, 1, MPI_AINT,
                 (world_rank + 1) % world_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(win, handler);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < 4; turn++) {
        int target = (world_rank + 1) % world_size, code;
        errors_raised = 0;
        code = MPI_Rget(&seen[0], 1, MPI_INT64_T, target, there + 8, 1, MPI_INT64_T, win, &requests[0]);
        if (code == MPI_SUCCESS && turn == 0)
            code = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK_OK(MPI_Rget(&seen[1], 1, MPI_INT64_T, target, there, 1, MPI_INT64_T, win, &requests[1]));
        if (code == MPI_SUCCESS) {
            CHECK_CLASS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, turn % 2 ? no_statuses : statuses));
            if (turn % 2 == 0)
                CHECK_CLASS(MPI_ERR_RMA_RANGE, statuses[0].MPI_ERROR);
        } else {
            CHECK_CLASS(MPI_ERR_RMA_RANGE, code);
            CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        }
        CHECK_OK(MPI_Win_flush(target, win));
        CHECK_EQUAL(errors_raised, 1);
        CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "a request is left");
        CHECK_EQUAL(seen[0], -1);
        CHECK_EQUAL(seen[1], 5);
    }
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    MPI_Errhandler_free(&handler);
    MPI_Win_free(&win);
}

/* --- threads --- */

enum { WAITERS = 3, ROUNDS = 400, EACH = 10 };
static struct window threads_window;

static void *waiter_main(void *argument)
{
    int64_t seen[EACH];
    MPI_Request requests[EACH];
    struct random random = random_start((uint64_t)(world_rank * WAITERS) + (uint64_t)(uintptr_t)argument);
    for (int round = 0; round < scaled_rounds(ROUNDS) && !harness_failed(); round++) {
        int target = (int)random_below(&random, (uint64_t)world_size), index;
        memset(seen, -1, sizeof seen);
        for (int i = 0; i < EACH; i++)
            MPI_Rget(&seen[i], 1, MPI_INT64_T, target, i % WORDS, 1, MPI_INT64_T, threads_window.win, &requests[i]);
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
        harness_skip("the host gives no MPI_THREAD_MULTIPLE");
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
    CASE(a_get_returns_while_its_target_is_stopped, KINDS_BOTH, 2),
    CASE(every_function_waits_for_what_is_outstanding, KINDS_BOTH, 2),
    CASE(a_flush_completes_what_was_freed_while_outstanding, KINDS_BOTH, 2),
    CASE(a_long_get_is_complete_as_a_whole, KINDS_BOTH, 1),
    CASE(a_refused_get_is_told_once_by_who_completes_it, KIND_ANY, 2),
    CASE(threads_wait_for_their_own_while_others_flush, KINDS_BOTH, 1),
};

int main(int argc, char **argv) { return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases)); }
