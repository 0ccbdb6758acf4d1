/* Operations with a request: every completion function completes the request, with its guarantees.
 * After a wait on a put or accumulate the origin buffer is free; after a wait on a get or
 * get_accumulate the data has arrived. A plain MPI program, run by the test rows. */
#include "operation_forms.h"

#include <string.h>

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

/* Completes the request by one of four functions. */
static void complete(MPI_Request *request, int completion)
{
    MPI_Status status;
    int done = 0, index = -1;
    switch (completion % 4) {
    case 0: CHECK_OK(MPI_Wait(request, MPI_STATUS_IGNORE)); break;
    case 1:
        while (!done)
            CHECK_OK(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        break;
    case 2: CHECK_OK(MPI_Waitall(1, request, &status)); break;
    default: CHECK_OK(MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE)); break;
    }
    CHECK(*request == MPI_REQUEST_NULL, "a completed request is not MPI_REQUEST_NULL");
}

static void rget_brings_the_data_at_its_wait(enum window_kind kind)
{
    struct window window = window_make(kind, (MPI_Aint)8 * world_size, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base;
    for (int i = 0; i < world_size; i++)
        words[i] = 100 * world_rank + i;
    MPI_Win_sync(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int completion = 0; completion < 8; completion++) {
        int64_t seen = -1;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rget(&seen, 1, MPI_INT64_T, right_of(world_rank), world_rank, 1, MPI_INT64_T,
                 window.win, &request);
        complete(&request, completion);
        CHECK_EQUAL(seen, 100 * right_of(world_rank) + world_rank);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void rput_frees_its_buffer_at_its_wait(enum window_kind kind)
{
    struct window window = window_make(kind, (MPI_Aint)8 * world_size * 8, 8, MPI_COMM_WORLD);
    const int64_t *words = (const int64_t *)window.base;
    MPI_Win_lock_all(0, window.win);
    for (int completion = 0; completion < 8; completion++) {
        int64_t value = 1000 * completion + world_rank;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rput(&value, 1, MPI_INT64_T, right_of(world_rank), 8 * world_rank + completion, 1,
                 MPI_INT64_T, window.win, &request);
        complete(&request, completion);
        value = -1;
    }
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window.win);
    int origin = (world_rank + world_size - 1) % world_size;
    for (int completion = 0; completion < 8; completion++)
        CHECK_EQUAL(words[8 * origin + completion], 1000 * completion + origin);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void many_requests_complete_together(enum window_kind kind)
{
    enum { MANY = 64 };
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    MPI_Request requests[2 * MANY];
    MPI_Status statuses[2 * MANY];
    int64_t one[MANY], old[MANY], total = 0;
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < MANY; i++) {
        one[i] = 1;
        old[i] = -1;
        MPI_Raccumulate(&one[i], 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, window.win,
                        &requests[2 * i]);
        MPI_Rget_accumulate(&one[i], 1, MPI_INT64_T, &old[i], 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T,
                            MPI_SUM, window.win, &requests[2 * i + 1]);
    }
    CHECK_OK(MPI_Waitall(2 * MANY, requests, statuses));
    for (int i = 0; i < MANY; i++)
        CHECK(old[i] >= (i ? old[i - 1] + 1 : 0) && old[i] < (int64_t)MANY * world_size,
              "result %d is %lld", i, (long long)old[i]);
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int word = 0; word < 2; word++) {
        MPI_Fetch_and_op(NULL, &total, MPI_INT64_T, 0, word, MPI_NO_OP, window.win);
        MPI_Win_flush(0, window.win);
        CHECK_EQUAL(total, (int64_t)MANY * world_size);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

#define HAS_STATUS_OF_MANY (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))

/* Sequences that end the use of one request. */
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
#if HAS_STATUS_OF_MANY
    GET_STATUS_ALL,
    GET_STATUS_ANY,
    GET_STATUS_SOME,
#endif
    FREE,
    WAYS
};

static void status_check(const MPI_Status *status)
{
    int cancelled = 1, count = 0;
    CHECK_OK(MPI_Test_cancelled(status, &cancelled));
    CHECK_EQUAL(cancelled, 0);
    MPI_Get_count(status, MPI_BYTE, &count); /* any value is valid */
    MPI_Get_elements(status, MPI_INT64_T, &count);
    CHECK(status->MPI_ERROR == MPI_SUCCESS, "the status has the error %d", status->MPI_ERROR);
}

/* One attempt; returns false while the request is not complete. */
static bool finish_once(MPI_Request *request, enum completion completion, MPI_Status *status)
{
    int done = 1, index = 0, count = 1;
    switch (completion) {
    case WAIT: CHECK_OK(MPI_Wait(request, status)); break;
    case TEST: CHECK_OK(MPI_Test(request, &done, status)); break;
    case WAITALL: CHECK_OK(MPI_Waitall(1, request, status)); break;
    case WAITANY: CHECK_OK(MPI_Waitany(1, request, &index, status)); break;
    case WAITSOME: CHECK_OK(MPI_Waitsome(1, request, &count, &index, status)); break;
    case TESTALL: CHECK_OK(MPI_Testall(1, request, &done, status)); break;
    case TESTANY: CHECK_OK(MPI_Testany(1, request, &index, &done, status)); break;
    case TESTSOME: CHECK_OK(MPI_Testsome(1, request, &count, &index, status)); break;
    case GET_STATUS:
        CHECK_OK(MPI_Request_get_status(*request, &done, status));
        CHECK(*request != MPI_REQUEST_NULL, "MPI_Request_get_status took the request");
        if (done)
            CHECK_OK(MPI_Wait(request, status));
        break;
#if HAS_STATUS_OF_MANY
    case GET_STATUS_ALL:
        CHECK_OK(MPI_Request_get_status_all(1, request, &done, status));
        if (done)
            CHECK_OK(MPI_Wait(request, status));
        break;
    case GET_STATUS_ANY:
        CHECK_OK(MPI_Request_get_status_any(1, request, &index, &done, status));
        if (done)
            CHECK_OK(MPI_Wait(request, status));
        break;
    case GET_STATUS_SOME:
        CHECK_OK(MPI_Request_get_status_some(1, request, &count, &index, status));
        if (count > 0)
            CHECK_OK(MPI_Wait(request, status));
        break;
#endif
    default: CHECK_OK(MPI_Request_free(request)); break;
    }
    if (done && count > 0 && completion != FREE)
        CHECK_EQUAL(index, 0);
    return done && count > 0;
}

static void finish(MPI_Request *request, enum completion completion)
{
    MPI_Status status = {.MPI_ERROR = MPI_SUCCESS};
    CHECK(*request != MPI_REQUEST_NULL, "the operation gave no request");
    while (!finish_once(request, completion, &status) && !harness_failed())
        ;
    CHECK(*request == MPI_REQUEST_NULL,
          "completion %d leaves a request that is not MPI_REQUEST_NULL", completion);
    if (completion != FREE)
        status_check(&status);
}

/* Every operation on a word of its own: 500 first, 30 put or added. After MPI_Request_free only a
 * flush reports the end. */
static void finish_operation(enum operation operation, int form, enum completion completion,
                             MPI_Win win)
{
    int64_t first = 500, value = 30, old = -1, now = -1;
    int target = right_of(world_rank);
    MPI_Request request = MPI_REQUEST_NULL;
    struct arguments a = {&value, 1,          MPI_INT64_T, &old,        1,      MPI_INT64_T,
                          target, world_rank, 1,           MPI_INT64_T, MPI_SUM};
    MPI_Put(&first, 1, MPI_INT64_T, target, world_rank, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    CHECK_OK(form_call(operation, form | FORM_REQUEST, &a, win, &request));
    finish(&request, completion);
    if (completion == FREE)
        MPI_Win_flush(target, win);
    if (operation == OPERATION_GET)
        CHECK(value == 500, "%s brought %lld", form_name(operation, form | FORM_REQUEST),
              (long long)value);
    if (operation == OPERATION_GET_ACCUMULATE)
        CHECK(old == 500, "%s brought %lld", form_name(operation, form | FORM_REQUEST),
              (long long)old);
    if (operation != OPERATION_GET && completion != FREE)
        value = -1; /* the buffer is the program's again */
    MPI_Win_flush(target, win);
    MPI_Get(&now, 1, MPI_INT64_T, target, world_rank, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    CHECK_EQUAL(now, operation == OPERATION_PUT ? 30 : operation == OPERATION_GET ? 500 : 530);
}

/* On its own windows, Open MPI from version 5 on refuses MPI_Request_free for operations, and local
 * flushes do not complete them. */
static bool requests_conform(MPI_Win win)
{
#if defined(MPICH_VERSION) || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5)
    (void)win;
    return true;
#else
    char value[MPI_MAX_INFO_VAL + 1];
    MPI_Info info;
    int is_served = 0;
    MPI_Win_get_info(win, &info);
    MPI_Info_get(info, "oriel_memory", MPI_MAX_INFO_VAL, value, &is_served);
    MPI_Info_free(&info);
    return is_served != 0;
#endif
}

static void every_completion_function_ends_every_operation(enum window_kind kind)
{
    struct window window = window_make(kind, (MPI_Aint)8 * world_size, 8, MPI_COMM_WORLD);
    int forms = forms_available();
    MPI_Win_lock_all(0, window.win);
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int form = 0; form < forms; form += FORM_LARGE)
            for (int completion = 0; completion < WAYS; completion++)
                if (completion != FREE || requests_conform(window.win))
                    finish_operation((enum operation)operation, form, (enum completion)completion,
                                     window.win);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Messages that are not yet sent, mixed with operations: receives at the even indexes, the last one
 * persistent. */
enum { MESSAGES = 4, MIXED = 2 * MESSAGES };
struct mixed {
    MPI_Request requests[MIXED];
    int received[MESSAGES];
    int64_t words[MESSAGES];
};

static void mixed_start(struct mixed *mixed, MPI_Win win)
{
    int left = (world_rank + world_size - 1) % world_size;
    for (int i = 0; i < MESSAGES; i++) {
        mixed->received[i] = mixed->words[i] = -1;
        if (i == MESSAGES - 1) {
            MPI_Recv_init(&mixed->received[i], 1, MPI_INT, left, i, MPI_COMM_WORLD,
                          &mixed->requests[2 * i]);
            MPI_Start(&mixed->requests[2 * i]);
        } else {
            MPI_Irecv(&mixed->received[i], 1, MPI_INT, left, i, MPI_COMM_WORLD,
                      &mixed->requests[2 * i]);
        }
        MPI_Rget(&mixed->words[i], 1, MPI_INT64_T, right_of(world_rank), i, 1, MPI_INT64_T, win,
                 &mixed->requests[2 * i + 1]);
    }
}

/* Removes the operations from the array; the receives stay outstanding all the time. */
static void mixed_complete_operations(struct mixed *mixed, bool wait)
{
    MPI_Status statuses[MIXED];
    int indices[MIXED], left = MESSAGES, count = 0, done = 1;
    CHECK_OK(MPI_Testall(MIXED, mixed->requests, &done, statuses));
    CHECK(!done, "MPI_Testall is done although no rank has sent");
    while (left > 0 && !harness_failed()) {
        if (wait)
            CHECK_OK(MPI_Waitsome(MIXED, mixed->requests, &count, indices, statuses));
        else
            CHECK_OK(MPI_Testsome(MIXED, mixed->requests, &count, indices, statuses));
        for (int i = 0; i < count; i++) {
            CHECK(indices[i] % 2 == 1, "the receive at index %d is done although no rank has sent",
                  indices[i]);
            CHECK(mixed->requests[indices[i]] == MPI_REQUEST_NULL,
                  "the request at index %d remains", indices[i]);
            CHECK_EQUAL(mixed->words[indices[i] / 2], 70 + indices[i] / 2 + right_of(world_rank));
        }
        left -= count;
    }
    CHECK_OK(MPI_Testany(MIXED, mixed->requests, indices, &done, statuses));
    CHECK(!done, "MPI_Testany finds another request that is done");
}

static void mixed_finish(struct mixed *mixed)
{
    MPI_Request sends[MESSAGES];
    MPI_Status statuses[MIXED];
    int sent[MESSAGES], index = 0;
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES; i++) {
        sent[i] = 10 * world_rank + i;
        MPI_Isend(&sent[i], 1, MPI_INT, right_of(world_rank), i, MPI_COMM_WORLD, &sends[i]);
    }
    CHECK_OK(MPI_Waitall(MIXED, mixed->requests, statuses));
    CHECK_OK(MPI_Waitall(MESSAGES, sends, statuses));
    for (int i = 0; i < MESSAGES; i++)
        CHECK_EQUAL(mixed->received[i], 10 * ((world_rank + world_size - 1) % world_size) + i);
    CHECK_OK(MPI_Waitany(MIXED, mixed->requests, &index, MPI_STATUS_IGNORE));
    CHECK_EQUAL(index, MPI_UNDEFINED);
    CHECK(mixed->requests[MIXED - 2] != MPI_REQUEST_NULL, "the persistent request is missing");
    CHECK_OK(MPI_Request_free(&mixed->requests[MIXED - 2]));
}

static void operations_complete_during_outstanding_messages(enum window_kind kind)
{
    struct window window = window_make(kind, 8 * MESSAGES, 8, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
    for (int i = 0; i < MESSAGES; i++)
        ((int64_t *)window.base)[i] = 70 + i + world_rank;
    MPI_Win_unlock(world_rank, window.win);
    barrier(MPI_COMM_WORLD);
    for (int wait = 0; wait < 2; wait++) {
        struct mixed mixed;
        MPI_Win_lock_all(0, window.win);
        mixed_start(&mixed, window.win);
        mixed_complete_operations(&mixed, wait);
        mixed_finish(&mixed);
        MPI_Win_unlock_all(window.win);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* The end of the operation is not the end of the request: it is completed later, once even after
 * its window is freed. */
static void requests_outlive_flush_unlock_and_window(enum window_kind kind)
{
    struct window window = window_make(kind, 32, 8, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    int64_t value = 11 + world_rank, seen[3] = {-1, -1, -1};
    MPI_Request requests[4];
    MPI_Status statuses[2];
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    MPI_Rput(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, window.win, &requests[0]);
    MPI_Win_flush(target, window.win);
    MPI_Rget(&seen[0], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, window.win, &requests[1]);
    MPI_Win_flush_local_all(window.win);
    if (requests_conform(window.win))
        CHECK_EQUAL(seen[0], value);
    CHECK_OK(MPI_Waitall(2, requests, statuses));
    MPI_Rget(&seen[1], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, window.win, &requests[2]);
    MPI_Raccumulate(&value, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_SUM, window.win,
                    &requests[3]);
    MPI_Win_unlock(target, window.win);
    CHECK_EQUAL(seen[1], value);
    CHECK_OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(((int64_t *)window.base)[1], 11 + (world_rank + world_size - 1) % world_size);
    window_free(&window);
    CHECK_OK(MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
}

static void proc_null_returns_a_completed_request(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int64_t word = 5;
    MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                               MPI_REQUEST_NULL};
    MPI_Status statuses[4];
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(MPI_Rput(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win,
                      &requests[0]));
    CHECK_OK(MPI_Rget(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win,
                      &requests[1]));
    CHECK_OK(MPI_Raccumulate(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM,
                             window.win, &requests[2]));
    CHECK_OK(MPI_Rget_accumulate(&word, 1, MPI_INT64_T, &word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1,
                                 MPI_INT64_T, MPI_SUM, window.win, &requests[3]));
    CHECK_OK(MPI_Waitall(4, requests, statuses));
    CHECK_EQUAL(word, 5);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void proc_null_requests_are_done_at_the_first_look(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int forms = forms_available();
    MPI_Win_lock_all(0, window.win);
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int form = FORM_REQUEST; form < forms; form += FORM_LARGE) {
            int64_t word = 5, old = 6;
            int done = 0;
            MPI_Request request = MPI_REQUEST_NULL;
            struct arguments a = {&word,         1, MPI_INT64_T, &old,        1,      MPI_INT64_T,
                                  MPI_PROC_NULL, 0, 1,           MPI_INT64_T, MPI_SUM};
            CHECK_OK(form_call((enum operation)operation, form, &a, window.win, &request));
            CHECK_OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            CHECK(done, "%s to MPI_PROC_NULL is not complete",
                  form_name((enum operation)operation, form));
            CHECK(word == 5 && old == 6, "%s from MPI_PROC_NULL brought data",
                  form_name((enum operation)operation, form));
        }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void requests_are_refused_outside_passive_epochs(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int64_t word = 5;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Rput(&word, 1, MPI_INT64_T, right_of(world_rank), 0, 1,
                                           MPI_INT64_T, window.win, &request));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Rget(&word, 1, MPI_INT64_T, right_of(world_rank), 0, 1,
                                           MPI_INT64_T, window.win, &request));
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Rput(&word, 1, MPI_INT64_T, right_of(world_rank), 1, 1,
                                            MPI_INT64_T, window.win, &request));
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(rget_brings_the_data_at_its_wait, KINDS_ALL, 1),
    CASE(rput_frees_its_buffer_at_its_wait, KINDS_ALL, 1),
    CASE(many_requests_complete_together, KINDS_ALL, 1),
    CASE(every_completion_function_ends_every_operation, KINDS_ALL, 1),
    CASE(operations_complete_during_outstanding_messages, KINDS_ALL, 1),
    CASE(requests_outlive_flush_unlock_and_window, KINDS_ALL, 1),
    CASE(proc_null_returns_a_completed_request, KINDS_BOTH, 1),
    CASE(proc_null_requests_are_done_at_the_first_look, KINDS_BOTH, 1),
    CASE(requests_are_refused_outside_passive_epochs, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
