/* Errors of persistent operations: each wrong argument has its class at the creation, and each
 * wrong start has it at MPI_Start. Nothing moves, and window and request stay usable. A plain MPI
 * program, run by the test rows; skipped without Oriel. */
#include "errors.h"
#include "ext_persistent.h"

#include <stdlib.h>

static MPI_Status *volatile no_statuses =
    MPI_STATUSES_IGNORE; /* gcc takes MPICH's for an array that is too short */
static int64_t word = 1, result_word = -1;
static int64_t many[2 * RANGE_WORDS];

/* The arguments that the functions share, with right values; a case spoils one at a time. */
struct call {
    MPI_Count origin_count;
    MPI_Datatype origin_type;
    int target;
    MPI_Aint disp;
    MPI_Count target_count;
    MPI_Datatype target_type;
    MPI_Op op;
};

static struct call right_call(void)
{
    return (struct call){1, MPI_INT64_T, guarded_target(), 3, 1, MPI_INT64_T, MPI_SUM};
}

static void creations_fail(const struct call *c, void *buffer, MPI_Win win, int class)
{
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_CLASS(class, MPIX_Put_init(buffer, c->origin_count, c->origin_type, c->target, c->disp,
                                     c->target_count, c->target_type, win, &request));
    CHECK_CLASS(class, MPIX_Get_init(buffer, c->origin_count, c->origin_type, c->target, c->disp,
                                     c->target_count, c->target_type, win, &request));
    CHECK_CLASS(class,
                MPIX_Accumulate_init(buffer, c->origin_count, c->origin_type, c->target, c->disp,
                                     c->target_count, c->target_type, c->op, win, &request));
    CHECK_CLASS(class,
                MPIX_Get_accumulate_init(buffer, c->origin_count, c->origin_type, many,
                                         c->target_count, c->target_type, c->target, c->disp,
                                         c->target_count, c->target_type, c->op, win, &request));
    CHECK(request == MPI_REQUEST_NULL, "a creation that failed made a request");
}

static void singles_fail(const void *origin, void *result, MPI_Datatype type, int target,
                         MPI_Aint disp, MPI_Op op, MPI_Win win, int class)
{
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_CLASS(class,
                MPIX_Fetch_and_op_init(origin, result, type, target, disp, op, win, &request));
    CHECK_CLASS(class, MPIX_Compare_and_swap_init(origin, &word, result, type, target, disp, win,
                                                  &request));
    CHECK(request == MPI_REQUEST_NULL, "a creation that failed made a request");
}

static void wrong_arguments_are_refused_at_the_creation(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    struct call c = right_call();
    MPI_Datatype pair;
    MPI_Win win = window.win;
    MPI_Type_contiguous(2, MPI_INT64_T, &pair);
    MPI_Type_commit(&pair);
    c.target = world_size;
    creations_fail(&c, many, win, MPI_ERR_RANK);
    singles_fail(&word, &result_word, MPI_INT64_T, -7, 3, MPI_SUM, win, MPI_ERR_RANK);
    c = right_call();
    c.origin_count = c.target_count = -1;
    creations_fail(&c, many, win, MPI_ERR_COUNT);
    c = right_call();
    c.disp = RANGE_WORDS;
    creations_fail(&c, many, win, MPI_ERR_RMA_RANGE);
    singles_fail(&word, &result_word, MPI_INT64_T, c.target, c.disp, MPI_SUM, win,
                 MPI_ERR_RMA_RANGE);
    c.disp = -1;
    creations_fail(&c, many, win, MPI_ERR_DISP);
    c = right_call();
    c.origin_type = c.target_type = MPI_DATATYPE_NULL;
    creations_fail(&c, many, win, MPI_ERR_TYPE);
    singles_fail(&word, &result_word, pair, c.target, 3, MPI_SUM, win, MPI_ERR_TYPE);
    c = right_call();
    creations_fail(&c, NULL, win, MPI_ERR_BUFFER);
    singles_fail(NULL, &result_word, MPI_INT64_T, c.target, 3, MPI_SUM, win, MPI_ERR_BUFFER);
    singles_fail(&word, NULL, MPI_INT64_T, c.target, 3, MPI_SUM, win, MPI_ERR_BUFFER);
    MPI_Type_free(&pair);
    guarded_free(&window);
}

static void wrong_operators_and_sizes_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Win win = window.win;
    MPI_Request request = MPI_REQUEST_NULL;
    int target = guarded_target();
    CHECK_CLASS(MPI_ERR_OP, MPIX_Accumulate_init(many, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T,
                                                 MPI_NO_OP, win, &request));
    CHECK_CLASS(MPI_ERR_OP, MPIX_Accumulate_init(many, 1, MPI_DOUBLE, target, 3, 1, MPI_DOUBLE,
                                                 MPI_BXOR, win, &request));
    CHECK_CLASS(MPI_ERR_TYPE, MPIX_Accumulate_init(many, 1, MPI_DOUBLE, target, 3, 1, MPI_INT64_T,
                                                   MPI_SUM, win, &request));
    CHECK_CLASS(MPI_ERR_TRUNCATE,
                MPIX_Put_init(many, 2, MPI_INT64_T, target, 3, 1, MPI_INT64_T, win, &request));
    CHECK_CLASS(MPI_ERR_TRUNCATE,
                MPIX_Get_init(many, 1, MPI_INT64_T, target, 3, 2, MPI_INT64_T, win, &request));
    CHECK_CLASS(MPI_ERR_ARG,
                MPIX_Put_init(many, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, win, NULL));
    CHECK_CLASS(MPI_ERR_TYPE,
                MPIX_Compare_and_swap_init(many, many, many, MPI_DOUBLE, target, 3, win, &request));
    CHECK_CLASS(MPI_ERR_BUFFER, MPIX_Compare_and_swap_init(many, NULL, many, MPI_INT64_T, target, 3,
                                                           win, &request));
    CHECK_CLASS(MPI_ERR_ARG,
                MPIX_Compare_and_swap_init(many, many, many, MPI_INT64_T, target, 3, win, NULL));
    CHECK(request == MPI_REQUEST_NULL, "a creation that failed made a request");
    guarded_free(&window);
}

/* Starts that fail leave the request inactive, and it can be started later. */
static void a_start_outside_an_epoch_is_refused(enum window_kind kind)
{
    enum { KINDS = 6 };
    struct window window = guarded_make(kind);
    MPI_Win win = window.win;
    MPI_Request requests[KINDS];
    int target = guarded_target(), index;
    CHECK_OK(MPIX_Put_init(many, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, win, &requests[0]));
    CHECK_OK(MPIX_Get_init(many, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, win, &requests[1]));
    CHECK_OK(MPIX_Accumulate_init(many, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, MPI_SUM, win,
                                  &requests[2]));
    CHECK_OK(MPIX_Get_accumulate_init(many, 1, MPI_INT64_T, many, 1, MPI_INT64_T, target, 3, 1,
                                      MPI_INT64_T, MPI_SUM, win, &requests[3]));
    CHECK_OK(MPIX_Fetch_and_op_init(NULL, &result_word, MPI_INT64_T, target, SCRATCH_WORD,
                                    MPI_NO_OP, win, &requests[4]));
    CHECK_OK(MPIX_Compare_and_swap_init(&word, &word, &result_word, MPI_INT64_T, target,
                                        SCRATCH_WORD, win, &requests[5]));
    for (int i = 0; i < KINDS; i++)
        CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Start(&requests[i]));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Startall(KINDS, requests));
    CHECK_OK(MPI_Waitany(KINDS, requests, &index, MPI_STATUS_IGNORE));
    CHECK_EQUAL(index, MPI_UNDEFINED);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    for (int turn = 0; turn < 3; turn++) {
        CHECK_OK(MPI_Start(&requests[4]));
        CHECK_OK(MPI_Wait(&requests[4], MPI_STATUS_IGNORE));
    }
    MPI_Win_unlock(target, win);
    for (int i = 0; i < KINDS; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    guarded_free(&window);
}

/* The others are started, and the first error is returned. */
static void startall_starts_those_that_it_can(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    struct window closed = guarded_make(kind);
    int target = guarded_target();
    int64_t seen[3] = {-1, -1, -1};
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(MPIX_Get_init(&seen[i], 1, MPI_INT64_T, target, i, 1, MPI_INT64_T,
                               i == 1 ? closed.win : window.win, &requests[i]));
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Startall(3, requests));
    for (int i = 0; i < 3; i++)
        CHECK_OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    CHECK_EQUAL(seen[0], 0x5a5a5a5a5a5a5a5a);
    CHECK_EQUAL(seen[1], -1);
    CHECK_EQUAL(seen[2], 0x5a5a5a5a5a5a5a5a);
    MPI_Win_unlock(target, window.win);
    for (int i = 0; i < 3; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    guarded_free(&window);
    guarded_free(&closed);
}

static void an_active_request_is_not_started_again(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    int target = guarded_target();
    int64_t seen = -1;
    MPI_Request request;
    CHECK_OK(MPIX_Get_init(&seen, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, window.win, &request));
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    CHECK_OK(MPI_Start(&request));
    CHECK_CLASS(MPI_ERR_REQUEST, MPI_Start(&request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQUAL(seen, 0x5a5a5a5a5a5a5a5a);
    CHECK_OK(MPI_Start(&request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Win_unlock(target, window.win);
    CHECK_OK(MPI_Request_free(&request));
    guarded_free(&window);
}

/* Errors without a window are raised on these. */
static void errors_return_on_communicators(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static void a_freed_window_starts_nothing(enum window_kind kind)
{
    int64_t value = 1;
    MPI_Request requests[2];
    errors_return_on_communicators();
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Put_init(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T,
                                           MPI_WIN_NULL, &requests[0]));
    struct window window = guarded_make(kind);
    int target = guarded_target();
    CHECK_OK(
        MPIX_Put_init(&value, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, window.win, &requests[0]));
    CHECK_OK(
        MPIX_Get_init(&value, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, window.win, &requests[1]));
    guarded_free(&window);
    for (int i = 0; i < 2; i++)
        CHECK_CLASS(MPI_ERR_WIN, MPI_Start(&requests[i]));
    struct window next = guarded_make(kind); /* it may get the handle */
    MPI_Win_lock_all(0, next.win);
    for (int i = 0; i < 2; i++)
        CHECK_CLASS(MPI_ERR_WIN, MPI_Start(&requests[i]));
    CHECK_OK(MPI_Waitall(2, requests, no_statuses));
    MPI_Win_unlock_all(next.win);
    for (int i = 0; i < 2; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    guarded_free(&next);
}

/* A request that waits for notifications ends with its window. */
static void a_freed_window_notifies_no_request(enum window_kind kind)
{
    (void)kind;
    int64_t *memory;
    MPI_Win win;
    MPI_Info info;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    errors_return_on_communicators();
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "2");
    MPI_Win_allocate(8, 8, info, MPI_COMM_WORLD, &memory, &win);
    MPI_Info_free(&info);
    CHECK_OK(MPIX_Win_notify_init(win, 0, 1, &requests[0]));
    CHECK_OK(MPIX_Win_notify_init(win, 1, 1, &requests[1]));
    for (int turn = 0; turn < 2; turn++) {
        CHECK_OK(MPI_Startall(2, requests));
        if (turn == 1)
            break;
        MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
        CHECK_OK(MPIX_Put_notify(NULL, 0, MPI_INT, world_rank, 0, 0, MPI_INT, 0, win));
        CHECK_OK(MPIX_Put_notify(NULL, 0, MPI_INT, world_rank, 0, 0, MPI_INT, 1, win));
        MPI_Win_unlock(world_rank, win);
        CHECK_OK(MPI_Waitall(2, requests, no_statuses));
    }
    MPI_Win_free(&win);
    CHECK_CLASS(MPI_ERR_WIN, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK_CLASS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, statuses));
    CHECK_CLASS(MPI_ERR_WIN, statuses[1].MPI_ERROR);
    for (int i = 0; i < 2; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
}

static void proc_null_is_a_target_without_effect(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Request requests[3];
    int index;
    CHECK_OK(MPIX_Put_init(NULL, -1, MPI_DATATYPE_NULL, MPI_PROC_NULL, -1, -1, MPI_DATATYPE_NULL,
                           window.win, &requests[0]));
    CHECK_OK(MPIX_Get_init(NULL, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win,
                           &requests[1]));
    CHECK_OK(MPIX_Fetch_and_op_init(NULL, NULL, MPI_INT64_T, MPI_PROC_NULL, 0, MPI_SUM, window.win,
                                    &requests[2]));
    for (int turn = 0; turn < 3; turn++) {
        CHECK_OK(MPI_Startall(3, requests));
        CHECK_OK(MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE));
        CHECK(index >= 0 && index < 3, "Waitany returned %d", index);
        CHECK_OK(MPI_Waitall(3, requests, no_statuses));
    }
    for (int i = 0; i < 3; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    guarded_free(&window);
}

static void nothing_moves_with_a_count_of_zero(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    int target = guarded_target();
    MPI_Request requests[2];
    CHECK_OK(MPIX_Put_init(NULL, 0, MPI_INT64_T, target, 12345, 0, MPI_INT64_T, window.win,
                           &requests[0]));
    CHECK_OK(MPIX_Accumulate_init(NULL, 0, MPI_INT64_T, target, 12345, 0, MPI_INT64_T, MPI_SUM,
                                  window.win, &requests[1]));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Startall(2, requests));
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    CHECK_OK(MPI_Startall(2, requests));
    CHECK_OK(MPI_Waitall(2, requests, no_statuses));
    MPI_Win_unlock(target, window.win);
    CHECK_OK(MPI_Request_free(&requests[0]));
    CHECK_OK(MPI_Request_free(&requests[1]));
    guarded_free(&window);
}

/* --- dynamic windows --- */

static int errors_raised;

static void count_error(MPI_Win *win, int *code, ...)
{
    (void)win;
    CHECK_CLASS(MPI_ERR_RMA_RANGE, *code);
    errors_raised++;
}

/* What is attached is checked at each start: by the start on one node, and by the target, so at the
 * completion, between nodes. */
static void each_start_sees_what_is_attached(enum window_kind kind)
{
    (void)kind;
    int64_t memory = 40 + world_rank, seen[2];
    int target = guarded_target(), from = (world_rank + world_size - 1) % world_size;
    MPI_Aint here, there;
    MPI_Win win;
    MPI_Errhandler handler;
    MPI_Status statuses[2];
    MPI_Request requests[2];
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_create_errhandler(count_error, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Get_address(&memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, from, 0, &there, 1, MPI_AINT, target, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_OK(
        MPIX_Get_init(&seen[0], 1, MPI_INT64_T, target, there, 1, MPI_INT64_T, win, &requests[0]));
    CHECK_OK(
        MPIX_Get_init(&seen[1], 0, MPI_INT64_T, target, there, 0, MPI_INT64_T, win, &requests[1]));
    for (int turn = 0; turn < 8; turn++) {
        bool attached = turn % 2 == 1;
        int index;
        if (attached)
            MPI_Win_attach(win, &memory, sizeof memory);
        barrier(MPI_COMM_WORLD);
        seen[0] = -1;
        errors_raised = 0;
        MPI_Win_lock_all(0, win);
        int code = MPI_Startall(2, requests);
        if (code == MPI_SUCCESS && turn % 4 == 0) {
            CHECK_CLASS(attached ? MPI_SUCCESS : MPI_ERR_IN_STATUS,
                        MPI_Waitall(2, requests, statuses));
            if (!attached) {
                CHECK_CLASS(MPI_ERR_RMA_RANGE, statuses[0].MPI_ERROR);
                CHECK_CLASS(MPI_SUCCESS, statuses[1].MPI_ERROR);
            }
        } else if (code == MPI_SUCCESS && turn % 4 == 2) {
            CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
            CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
        } else {
            CHECK_CLASS(attached ? MPI_SUCCESS : MPI_ERR_RMA_RANGE, code);
            CHECK_OK(MPI_Waitall(2, requests, statuses));
        }
        CHECK_OK(MPI_Win_flush_all(win));
        CHECK_EQUAL(errors_raised, !attached);
        CHECK_EQUAL(seen[0], attached ? 40 + target : -1);
        MPI_Win_unlock_all(win);
        barrier(MPI_COMM_WORLD);
        if (attached)
            MPI_Win_detach(win, &memory);
    }
    CHECK_OK(MPI_Request_free(&requests[0]));
    CHECK_OK(MPI_Request_free(&requests[1]));
    MPI_Errhandler_free(&handler);
    MPI_Win_free(&win);
}

/* --- limits --- */

/* Between nodes each get needs a tag of the host's. When none is left, the error is clean. */
static void many_requests_exist_and_end(enum window_kind kind)
{
    enum { MANY = 40000 };
    struct window window = guarded_make(kind);
    MPI_Request *requests = malloc(MANY * sizeof *requests);
    int64_t seen = -1;
    int made = 0, code = MPI_SUCCESS;
    for (int turn = 0; turn < 2; turn++) {
        for (made = 0; made < MANY && code == MPI_SUCCESS; made += code == MPI_SUCCESS)
            code = MPIX_Get_init(&seen, 1, MPI_INT64_T, guarded_target(), 3, 1, MPI_INT64_T,
                                 window.win, &requests[made]);
        if (made < MANY)
            CHECK_CLASS(MPI_ERR_NO_MEM, code);
        CHECK(made >= 30000, "only %d requests", made);
        MPI_Win_lock_all(0, window.win);
        CHECK_OK(MPI_Start(&requests[made - 1]));
        CHECK_OK(MPI_Wait(&requests[made - 1], MPI_STATUS_IGNORE));
        CHECK_EQUAL(seen, 0x5a5a5a5a5a5a5a5a);
        MPI_Win_unlock_all(window.win);
        for (int i = 0; i < made; i++)
            MPI_Request_free(&requests[i]);
        code = MPI_SUCCESS;
    }
    free(requests);
    guarded_free(&window);
}

static const struct test_case cases[] = {
    CASE(wrong_arguments_are_refused_at_the_creation, KINDS_BOTH, 1),
    CASE(wrong_operators_and_sizes_are_refused, KINDS_BOTH, 1),
    CASE(a_start_outside_an_epoch_is_refused, KINDS_BOTH, 1),
    CASE(startall_starts_those_that_it_can, KINDS_BOTH, 1),
    CASE(an_active_request_is_not_started_again, KINDS_BOTH, 1),
    CASE(a_freed_window_starts_nothing, KINDS_BOTH, 1),
    CASE(a_freed_window_notifies_no_request, KIND_ANY, 1),
    CASE(proc_null_is_a_target_without_effect, KINDS_BOTH, 1),
    CASE(nothing_moves_with_a_count_of_zero, KINDS_BOTH, 1),
    CASE(each_start_sees_what_is_attached, KIND_ANY, 1),
    CASE(many_requests_exist_and_end, KIND_ALLOCATE, 1),
};

int main(int argc, char **argv)
{
    return persistent_main(argc, argv, cases, COUNT_OF(cases));
}
