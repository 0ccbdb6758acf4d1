/* Requests whose answers have not arrived: the target's process is stopped meanwhile, so an
 * internode target cannot answer. On one node the same operations complete at once, which is also
 * right. A plain MPI program, run by the test rows; the target is stopped only where all ranks see
 * each other's processes. */
#include "outstanding.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 8, PIECES = 6, ORIGIN = 0, TARGET = 1 };

static volatile sig_atomic_t target_pid;

/* --- a target that is stopped --- */

static timer_t timer;

static void on_timer(int signal)
{
    (void)signal;
    kill((pid_t)target_pid, SIGCONT);
}

/* True if this process may signal the ranks: the target's process id is valid at the origin. */
static bool target_is_here(void)
{
    char name[2][MPI_MAX_PROCESSOR_NAME] = {"", ""};
    int length = 0, pid = (int)getpid(), here;
    MPI_Get_processor_name(name[0], &length);
    memcpy(name[1], name[0], sizeof name[1]);
    MPI_Bcast(name[1], sizeof name[1], MPI_CHAR, TARGET, MPI_COMM_WORLD);
    MPI_Bcast(&pid, 1, MPI_INT, TARGET, MPI_COMM_WORLD);
    target_pid = pid;
    here = strcmp(name[0], name[1]) == 0 && kill((pid_t)pid, 0) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!here)
        harness_skip("the target is on another node");
    return here;
}

static void timer_run(int for_ms)
{
    struct itimerspec once = {.it_value = {for_ms / 1000, for_ms % 1000 * 1000000L}};
    timer_settime(timer, 0, &once, NULL);
}

/* The target resumes after this number of milliseconds. */
static void stop_target(int for_ms)
{
    static bool made;
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGUSR2}; /* the harness uses SIGALRM */
    if (!made)
        CHECK(sigaction(SIGUSR2, &action, NULL) == 0 &&
                  timer_create(CLOCK_MONOTONIC, &event, &timer) == 0,
              "no timer");
    made = true;
    kill((pid_t)target_pid, SIGSTOP);
    sleep_us(2000); /* until it has stopped */
    timer_run(for_ms);
}

static void resume_target(void)
{
    timer_run(0);
    kill((pid_t)target_pid, SIGCONT);
}

/* Gets at the even indexes, additions of zero at the odd ones, and at the last a message from the
 * origin itself. */
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
            MPI_Rget_accumulate(&mix->nothing, 1, MPI_INT64_T, &mix->seen[i], 1, MPI_INT64_T,
                                TARGET, i, 1, MPI_INT64_T, MPI_SUM, win, &mix->requests[i]);
        else
            MPI_Rget(&mix->seen[i], 1, MPI_INT64_T, TARGET, i, 1, MPI_INT64_T, win,
                     &mix->requests[i]);
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

enum completion {
    WAIT,
    TEST,
    WAITALL,
    WAITANY,
    WAITSOME,
    TESTALL,
    TESTANY,
    TESTSOME,
    GET_STATUS,
    COMPLETIONS
};

/* Completes one by one, in reverse order. */
static void finish_each(struct mix *mix, enum completion completion)
{
    for (int i = PIECES - 1; i >= 0; i--) {
        int done = completion == WAIT;
        if (completion == WAIT)
            CHECK_OK(MPI_Wait(&mix->requests[i], MPI_STATUS_IGNORE));
        while (!done) {
            if (completion == TEST)
                CHECK_OK(MPI_Test(&mix->requests[i], &done, MPI_STATUS_IGNORE));
            else
                CHECK_OK(MPI_Request_get_status(mix->requests[i], &done, MPI_STATUS_IGNORE));
        }
        if (completion == GET_STATUS)
            CHECK_OK(MPI_Wait(&mix->requests[i], MPI_STATUS_IGNORE));
    }
}

/* Each index is reported once. */
static void finish_found(struct mix *mix, enum completion completion)
{
    bool found[PIECES] = {false};
    MPI_Status statuses[PIECES];
    int indices[PIECES], left = PIECES, count, done;
    while (left > 0 && !harness_failed()) {
        count = done = 1;
        indices[0] = MPI_UNDEFINED;
        switch (completion) {
        case WAITANY: CHECK_OK(MPI_Waitany(PIECES, mix->requests, indices, statuses)); break;
        case TESTANY: CHECK_OK(MPI_Testany(PIECES, mix->requests, indices, &done, statuses)); break;
        case WAITSOME:
            CHECK_OK(MPI_Waitsome(PIECES, mix->requests, &count, indices, statuses));
            break;
        default: CHECK_OK(MPI_Testsome(PIECES, mix->requests, &count, indices, statuses)); break;
        }
        if (completion == WAITSOME)
            CHECK(count >= 1, "MPI_Waitsome waited for nothing");
        for (int i = 0; i < (done ? count : 0); i++) {
            if (!CHECK(indices[i] >= 0 && indices[i] < PIECES && !found[indices[i]],
                       "index %d is returned", indices[i]))
                return;
            found[indices[i]] = true;
            left--;
        }
    }
}

static void finish_all(struct mix *mix, enum completion completion)
{
    MPI_Status statuses[PIECES];
    int done = completion == WAITALL;
    if (completion == WAITALL)
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

static void finish(struct mix *mix, enum completion completion)
{
    if (completion == WAIT || completion == TEST || completion == GET_STATUS)
        finish_each(mix, completion);
    else if (completion == WAITALL || completion == TESTALL)
        finish_all(mix, completion);
    else
        finish_found(mix, completion);
}

/* --- cases --- */

/* The timer eventually resumes the target; the get must return before that. */
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
        MPI_Get(&seen, 1, MPI_INT64_T, TARGET, 0, 1, MPI_INT64_T,
                window.win); /* which acquires the lock */
        MPI_Win_flush(TARGET, window.win);
        stop_target(20000);
        CHECK_OK(MPI_Rget(&seen, 1, MPI_INT64_T, TARGET, 3, 1, MPI_INT64_T, window.win, &request));
        CHECK_OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done)
            CHECK_EQUAL(seen, 1000 * TARGET + 3);
        timer_gettime(timer, &left);
        CHECK(left.it_value.tv_sec > 0, "MPI_Rget has waited for its target");
        resume_target();
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_EQUAL(seen, 1000 * TARGET + 3);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void every_function_waits_for_outstanding_requests(enum window_kind kind)
{
    if (!target_is_here())
        return;
    struct window window = numbered_make(kind, WORDS);
    MPI_Win_lock_all(0, window.win);
    for (int completion = 0; world_rank == ORIGIN && completion < COMPLETIONS; completion++) {
        struct mix mix;
        int64_t first = -1;
        MPI_Get(&first, 1, MPI_INT64_T, TARGET, 0, 1, MPI_INT64_T, window.win);
        MPI_Win_flush(TARGET, window.win);
        stop_target(15);
        mix_start(&mix, window.win);
        send_to_oneself();
        finish(&mix, (enum completion)completion);
        mix_check(&mix);
        resume_target();
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Only the flush reports the completion of a freed request. */
static void a_flush_completes_requests_freed_while_outstanding(enum window_kind kind)
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
        resume_target();
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(a_get_returns_while_its_target_is_stopped, KINDS_BOTH, 2),
    CASE(every_function_waits_for_outstanding_requests, KINDS_BOTH, 2),
    CASE(a_flush_completes_requests_freed_while_outstanding, KINDS_BOTH, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
