/* Persistent requests whose condition another thread or rank makes true (host/persistent.h), with a
 * condition of this test. Links the library's code under test into the program, which runs on the
 * bare host. */
#include "harness.h"

#include "host/persistent.h"

#include <pthread.h>

/* The library's parts that are not linked. */
_Atomic uint32_t oriel_requests_open;
static MPI_Comm singleton = MPI_COMM_NULL;

MPI_Comm oriel_host_singleton(void)
{
    if (singleton == MPI_COMM_NULL)
        MPI_Comm_dup(MPI_COMM_SELF, &singleton);
    return singleton;
}

struct condition {
    struct oriel_persistent request;
    _Atomic int state; /* enum oriel_persistent_state, as poll returns it */
    enum oriel_status starting;
    int cancelled, released;
};

static enum oriel_status condition_start(struct oriel_persistent *request,
                                         struct oriel_window *window)
{
    (void)window;
    return ((struct condition *)request)->starting;
}

static enum oriel_persistent_state condition_poll(struct oriel_persistent *request)
{
    return (enum oriel_persistent_state)((struct condition *)request)->state;
}

static void condition_cancel(struct oriel_persistent *request)
{
    ((struct condition *)request)->cancelled++;
}

static void condition_release(struct oriel_persistent *request)
{
    ((struct condition *)request)->released++;
}

static const struct oriel_persistent_kind conditions = {
    .start = condition_start,
    .poll = condition_poll,
    .cancel = condition_cancel,
    .release = condition_release,
};

static MPI_Request condition_make(struct condition *condition)
{
    MPI_Request request = MPI_REQUEST_NULL;
    (void)oriel_host();
    *condition = (struct condition){.request.kind = &conditions, .starting = ORIEL_OK};
    CHECK(oriel_persistent_create(&condition->request, false, &request) == ORIEL_OK,
          "no request is made");
    return request;
}

static void condition_begin(struct condition *condition)
{
    condition->state = ORIEL_PERSISTENT_ACTIVE;
    CHECK(oriel_persistent_start(&condition->request, NULL) == ORIEL_OK, "a start is refused");
}

static bool is_complete(MPI_Request *request, int *cancelled)
{
    int done = 0;
    MPI_Status status;
    oriel_persistent_progress();
    CHECK_OK(MPI_Test(request, &done, &status));
    *cancelled = 0;
    if (done)
        MPI_Test_cancelled(&status, cancelled);
    return done;
}

static void await(struct condition *condition, MPI_Request *request, int wants_cancelled)
{
    int cancelled = 0;
    for (double end = seconds_now() + 20; !is_complete(request, &cancelled);)
        if (!CHECK(seconds_now() < end, "the request does not end"))
            return;
    CHECK_EQUAL(cancelled, wants_cancelled);
    (void)oriel_persistent_end(&condition->request);
}

static void a_request_ends_when_its_condition_holds(enum window_kind kind)
{
    (void)kind;
    int cancelled;
    struct condition condition;
    MPI_Request request = condition_make(&condition);
    for (int start = 0; start < 100; start++) {
        condition_begin(&condition);
        CHECK(!is_complete(&request, &cancelled), "start %d is complete at once", start);
        CHECK_EQUAL(oriel_requests_open, 1);
        CHECK(oriel_persistent_start(&condition.request, NULL) == ORIEL_E_REQUEST,
              "an active request is started");
        condition.state = ORIEL_PERSISTENT_DONE;
        await(&condition, &request, 0);
        CHECK_EQUAL(oriel_requests_open, 0);
    }
    CHECK_OK(oriel_persistent_free(&condition.request, &request));
    CHECK(request == MPI_REQUEST_NULL, "a freed request is left");
    CHECK_EQUAL(condition.cancelled, 0);
    CHECK_EQUAL(condition.released, 1);
    CHECK(!oriel_persistent_exist(), "a request is left in the count");
}

static void a_refused_start_leaves_the_request_inactive(enum window_kind kind)
{
    (void)kind;
    int index;
    struct condition condition;
    MPI_Request request = condition_make(&condition);
    for (int start = 0; start < 10; start++) {
        condition.starting = ORIEL_E_SYNC;
        CHECK(oriel_persistent_start(&condition.request, NULL) == ORIEL_E_SYNC,
              "the start is not refused");
        CHECK_OK(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
        CHECK_EQUAL(index, MPI_UNDEFINED);
        CHECK_EQUAL(oriel_requests_open, 0);
        condition.starting = ORIEL_OK;
        condition_begin(&condition);
        condition.state = ORIEL_PERSISTENT_DONE;
        await(&condition, &request, 0);
    }
    CHECK_OK(oriel_persistent_free(&condition.request, &request));
}

static void a_failure_is_returned_once(enum window_kind kind)
{
    (void)kind;
    int cancelled = 0;
    struct condition condition;
    MPI_Request request = condition_make(&condition);
    condition_begin(&condition);
    condition.state = ORIEL_PERSISTENT_FAILED;
    while (!is_complete(&request, &cancelled) && !harness_failed())
        ;
    CHECK_EQUAL(oriel_requests_open, 1);
    CHECK(oriel_persistent_end(&condition.request), "the failure is not returned");
    CHECK(!oriel_persistent_end(&condition.request), "the failure is returned twice");
    CHECK_EQUAL(oriel_requests_open, 0);
    CHECK_OK(oriel_persistent_free(&condition.request, &request));
}

/* No message of an earlier start is left for the next one, which has the same tag. */
static void a_cancelled_start_leaves_nothing(enum window_kind kind)
{
    (void)kind;
    int cancelled;
    struct condition condition;
    for (int round = 0; round < 200; round++) {
        MPI_Request request = condition_make(&condition);
        condition_begin(&condition);
        CHECK_OK(oriel_persistent_cancel(&condition.request));
        CHECK_EQUAL(condition.cancelled, 1);
        condition.state = ORIEL_PERSISTENT_DONE; /* too late */
        await(&condition, &request, 1);
        condition_begin(&condition);
        CHECK(!is_complete(&request, &cancelled), "round %d is complete at once", round);
        if (round % 2 == 0) {
            condition.state = ORIEL_PERSISTENT_DONE;
            await(&condition, &request, 0);
        }
        CHECK_OK(oriel_persistent_free(&condition.request, &request));
        CHECK_EQUAL(condition.cancelled, round % 2 == 0 ? 1 : 2);
        CHECK_EQUAL(condition.released, 1);
        CHECK_EQUAL(oriel_requests_open, 0);
    }
}

static _Atomic bool polling;

static void *poll_main(void *unused)
{
    while (polling) {
        oriel_persistent_progress();
        sched_yield();
    }
    return unused;
}

static void *cycle_main(void *argument)
{
    struct random random = random_start((uint64_t)(intptr_t)argument);
    struct condition condition;
    int cancelled;
    for (int round = 0; round < scaled_rounds(500) && !harness_failed(); round++) {
        MPI_Request request = condition_make(&condition);
        for (int start = 0; start < 3; start++) {
            condition_begin(&condition);
            CHECK(!is_complete(&request, &cancelled), "a start is complete at once");
            condition.state = ORIEL_PERSISTENT_DONE;
            random_pause(&random, 20);
            if (random_below(&random, 2) == 0)
                CHECK_OK(oriel_persistent_cancel(&condition.request)); /* maybe too late */
            while (!is_complete(&request, &cancelled) && !harness_failed())
                ;
            CHECK_EQUAL(cancelled, condition.cancelled);
            condition.cancelled = 0;
            (void)oriel_persistent_end(&condition.request);
        }
        condition_begin(&condition);
        condition.state = ORIEL_PERSISTENT_DONE;
        random_pause(&random, 20);
        CHECK_OK(oriel_persistent_free(&condition.request, &request));
    }
    return NULL;
}

/* Threads poll while others start, cancel and free. */
static void threads_poll_requests_of_others(enum window_kind kind)
{
    enum { THREADS = 3 };
    pthread_t poller, cyclers[THREADS];
    (void)kind;
    if (harness_thread_level() != MPI_THREAD_MULTIPLE) {
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
        return;
    }
    (void)oriel_host_singleton();
    polling = true;
    pthread_create(&poller, NULL, poll_main, NULL);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&cyclers[i], NULL, cycle_main, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(cyclers[i], NULL);
    polling = false;
    pthread_join(poller, NULL);
    CHECK_EQUAL(oriel_requests_open, 0);
    CHECK(!oriel_persistent_exist(), "a request is left in the count");
}

static const struct test_case cases[] = {
    CASE(a_request_ends_when_its_condition_holds, KIND_ANY, 1),
    CASE(a_refused_start_leaves_the_request_inactive, KIND_ANY, 1),
    CASE(a_failure_is_returned_once, KIND_ANY, 1),
    CASE(a_cancelled_start_leaves_nothing, KIND_ANY, 1),
    CASE(threads_poll_requests_of_others, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
