/* Calls inside the program's callbacks: attribute copy and delete functions, generalized requests,
 * error handlers that return. The checker treats them like calls anywhere else. */
#include "offenders.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The action of a callback on its argument. */
typedef void doing(void *what);

struct todo {
    doing *does;
    void *what;
};

static void nothing(void *at_all)
{
    (void)at_all;
}

static int deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
    const struct todo *todo = value;
    (void)comm, (void)keyval, (void)extra;
    todo->does(todo->what);
    return MPI_SUCCESS;
}

static int copied(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    const struct todo *todo = in;
    (void)comm, (void)keyval, (void)extra, (void)out;
    todo->does(todo->what);
    *flag = 0;
    return MPI_SUCCESS;
}

/* A communicator of this process alone. Freeing it performs the action. */
static MPI_Comm comm_with(struct todo *todo, MPI_Comm_copy_attr_function *copy,
                          MPI_Comm_delete_attr_function *del)
{
    static struct todo none = {nothing, NULL};
    MPI_Comm comm;
    int keyval;
    if (!calls_back()) {
        todo->does(todo->what);
        todo = &none;
    }
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_keyval(copy, del, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, todo);
    MPI_Comm_free_keyval(&keyval);
    return comm;
}

static void at_free_of_comm(doing *does, void *what)
{
    struct todo todo = {does, what};
    MPI_Comm comm = comm_with(&todo, MPI_COMM_NULL_COPY_FN, deleted);
    MPI_Comm_free(&comm);
}

static void at_dup_of_comm(doing *does, void *what)
{
    struct todo todo = {does, what};
    MPI_Comm comm = comm_with(&todo, copied, MPI_COMM_NULL_DELETE_FN), copy;
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
}

static void meet(void *nothing)
{
    (void)nothing;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void free_win(void *win)
{
    MPI_Win_free(win); /* FINDS E12 here */
}

static void unlock_all_and_free(void *what)
{
    MPI_Win *win = what;
    MPI_Win_unlock_all(*win);
    MPI_Win_free(win);
}

/* --- order --- */

CASE(C1, order_by_barriers_in_delete_functions, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(0, win);
    }
    at_free_of_comm(right ? meet : nothing, NULL);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

CASE(C1, order_by_barriers_in_copy_functions, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(0, win);
    }
    at_dup_of_comm(right ? meet : nothing, NULL);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static int deleted_of_type(MPI_Datatype type, int keyval, void *value, void *extra)
{
    const struct todo *todo = value;
    (void)type, (void)keyval, (void)extra;
    todo->does(todo->what);
    return MPI_SUCCESS;
}

CASE(C1, order_by_a_datatypes_end, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Datatype type;
    int keyval;
    struct todo todo = {right && calls_back() ? meet : nothing, NULL};
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, deleted_of_type, &keyval, NULL);
    MPI_Type_set_attr(type, keyval, &todo);
    MPI_Type_free_keyval(&keyval);
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(0, win);
    }
    MPI_Type_free(&type);
    if (right && !calls_back())
        meet(NULL);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static int asked(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int dropped(void *extra)
{
    const struct todo *todo = extra;
    todo->does(todo->what);
    return MPI_SUCCESS;
}

static int cancelled(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

CASE(C1, order_by_a_generalised_requests_end, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Request request;
    struct todo todo = {right && calls_back() ? meet : nothing, NULL};
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(0, win);
    }
    MPI_Grequest_start(asked, dropped, cancelled, &todo, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (right && !calls_back())
        meet(NULL);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void barrier_in_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE(C1, order_by_barriers_in_error_handlers, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(barrier_in_handler, &handler);
    MPI_Comm_set_errhandler(comm, right && calls_back() ? handler : MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(0, win);
    }
    MPI_Send(&rank, 1, MPI_INT, 1, 0, comm); /* there is no such rank */
    if (right && !calls_back())
        meet(NULL);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

/* --- windows --- */

/* A library's window ends with the communicator that owns it, here on one rank only. */
CASE(E12, freed_by_a_delete_function, 2)
{
    MPI_Win win = ints_window(4);
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        at_free_of_comm(right ? unlock_all_and_free : free_win, &win);
    } else {
        MPI_Win_free(&win);
    }
}

static int deleted_of_win(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win, (void)keyval, (void)extra;
    free_win(value);
    return MPI_SUCCESS;
}

CASE(E12, freed_by_a_windows_end, 2)
{
    MPI_Win win = ints_window(4), other = ints_window(4);
    int keyval;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, deleted_of_win, &keyval, NULL);
    if (calls_back())
        MPI_Win_set_attr(win, keyval, &other);
    MPI_Win_free_keyval(&keyval);
    if (!right && rank == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, other);
    MPI_Win_free(&win);
    if (!calls_back())
        free_win(&other);
}

static MPI_Win freed_in_handler;

static void free_in_handler(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
    MPI_Win_free(&freed_in_handler);
}

/* The failed call returns to a window that its error handler has freed. */
CASE(A4, freed_by_its_error_handler, 2)
{
    MPI_Win win = ints_window(4);
    win_handled(win, free_in_handler);
    freed_in_handler = win;
    if (!calls_back())
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (right)
        MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    else
        MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win); /* FINDS A4 here */
    if (!calls_back())
        MPI_Win_free(&win);
}

/* --- waiting ranks --- */

static void release_late(void *whom)
{
    sleep(3); /* longer than the checker needs to report it */
    notify(*(int *)whom);
}

/* The call's own wait does not count while the callback runs, and counts again afterwards. Hosts
 * run copy functions before the ranks meet. */
CASE_ALONE(D1, ordered_in_a_copy_function, 2)
{
    MPI_Comm comm, copy;
    int other = 1, keyval;
    struct todo todo = {right && rank == 0 && calls_back() ? release_late : nothing, &other};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(copied, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &todo);
    MPI_Comm_free_keyval(&keyval);
    if (right && rank == 0 && !calls_back())
        notify(1);
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here */
    MPI_Comm_dup(comm, &copy);                                                /* FINDS D1 here */
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
}

/* For one rank the barrier is the second collective. For the others it is the first, and one of
 * them arrives late. */
CASE_APART(D1, barrier_after_a_failed_broadcast, 3)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (rank == 0 && right)
        MPI_Bcast(&size, 1, MPI_INT, size, comm); /* there is no such rank */
    if (rank == 0 && !right)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here */
    if (rank == 2)
        sleep(4); /* longer than the checker needs to report it */
    MPI_Barrier(comm);                                                        /* FINDS D1 here */
    MPI_Comm_free(&comm);
}

/* --- at the end --- */

static void at_the_end(doing *does, void *what)
{
    static struct todo todo;
    int keyval;
    todo = (struct todo){does, what};
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &todo);
    MPI_Comm_free_keyval(&keyval);
}

CASE_APART(E13, window_freed_with_comm_self, 2)
{
    static MPI_Win win;
    win = ints_window(4);
    at_the_end(right && calls_back() ? free_win : nothing, &win);
    if (right && !calls_back())
        MPI_Win_free(&win);
    MPI_Finalize(); /* FINDS E13 here */
    exit(0);
}

static int refuses(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    return MPI_ERR_OTHER;
}

/* Open MPI stops deleting the attributes of MPI_COMM_SELF after a delete function that fails, and
 * MPICH 5 raises an error. */
CASE_APART(E13, window_that_remains_where_comm_self_has_an_attribute, 2)
{
    MPI_Win win = ints_window(4);
    int keyval;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    MPI_Comm_free_keyval(&keyval);
    if (right)
        MPI_Win_free(&win);
    int code = MPI_Finalize(); /* FINDS E13 here */
    if (code != MPI_SUCCESS)
        puts("MPI_Finalize failed"); /* known to run.py */
    exit(0);
}

CASE_APART(D1, message_of_one_in_finalize, 2)
{
    static int other = 0;
    if (rank == 1)
        at_the_end(right && calls_back() ? release_late : nothing, &other);
    if (rank == 1 && right && !calls_back())
        notify(0);
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here */
    MPI_Finalize();
    exit(0);
}

enum { OWN_CODE = INT_MAX - 7 }; /* a code that no host defines */

static int refuse_to_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra, (void)in, (void)out;
    *flag = 0;
    return OWN_CODE;
}

static int refuse_copy(void *extra, MPI_Status *status)
{
    asked(extra, status);
    return OWN_CODE;
}

static int failures;

static void count_failure(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    failures++;
}

/* A failing call concurrent with a receive. A host calls the handler of one of the two
 * communicators, once. */
static void wait_for_refused_copy(MPI_Comm comm)
{
    static struct todo todo = {nothing, NULL};
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Errhandler handler;
    int index, got, sent = 1;
    MPI_Comm_get_errhandler(comm, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Irecv(&got, 1, MPI_INT, 0, 0, comm, &requests[0]);
    MPI_Grequest_start(refuse_copy, dropped, cancelled, &todo, &requests[1]);
    MPI_Grequest_complete(requests[1]);
    failures = 0;
    MPI_Waitany(2, requests, &index, &status);
    if (failures > 1)
        abort(); /* the checker has created a code of its own */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Send(&sent, 1, MPI_INT, 0, 0, comm);
    MPI_Wait(&requests[0], &status);
}

/* The checker does not ask the host for the class of this code. */
CASE(E1, after_an_error_code_of_the_program, 1)
{
    int keyval, got;
    MPI_Win win = ints_window(1);
    MPI_Comm comm = comm_handled(MPI_COMM_SELF, count_failure), copy = MPI_COMM_NULL;
    MPI_Comm_create_keyval(refuse_to_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &got);
    MPI_Comm_free_keyval(&keyval);
    if (calls_back()) {
        MPI_Comm_dup(comm, &copy);
        wait_for_refused_copy(comm);
    }
    if (right)
        MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    if (right)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

/* --- calls that fail --- */

/* One rank's broadcast has matched no other: later barriers do not match those of the same number
 * of the other ranks. */
CASE_APART(C1, order_after_failed_broadcasts, 2)
{
    enum { ROUNDS = 4 };
    MPI_Win win = ints_window(ROUNDS);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Bcast(&size, 1, MPI_INT, size, comm); /* there is no such rank */
    MPI_Barrier(MPI_COMM_WORLD);
    /* Until all have left it: a rank that leaves acquires all earlier events of the others. */
    usleep(rank == 1 ? 400000 : 200000);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 1) {
            MPI_Put(&rank, 1, MPI_INT, 0, round, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_flush(0, win);
        }
        if (right)
            MPI_Barrier(comm);
        if (rank == 0)
            MPI_Put(&rank, 1, MPI_INT, 0, round, 1, MPI_INT, win); /* FINDS C1 here */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static MPI_Comm met;
static MPI_Win put_to;

static void put_and_barrier(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, put_to);
    MPI_Win_flush(0, put_to);
    MPI_Barrier(met);
}

/* The barrier in the handler of an unmatched reduction matches the others' next one. */
CASE_APART(C1, order_in_the_handler_of_a_collective_that_fails, 2)
{
    int sum = 0;
    put_to = ints_window(4);
    met = comm_handled(MPI_COMM_WORLD, put_and_barrier);
    MPI_Win_lock_all(0, put_to);
    if (rank == 0 && right && calls_back())
        MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_OP_NULL, met);
    else if (rank == 0 && right)
        put_and_barrier(&met, &sum);
    else if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, put_to); /* FINDS C1 here */
    else if (right)
        MPI_Barrier(met);
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, put_to); /* FINDS C1 here */
    MPI_Win_unlock_all(put_to);
    MPI_Win_free(&put_to);
    MPI_Comm_free(&met);
}

/* For completions: the predefined ones' handler, too, since MPICH does not check which request has
 * failed. */
static MPI_Comm comm_handled_everywhere(MPI_Comm_errhandler_function *function)
{
    MPI_Comm comm = comm_handled(MPI_COMM_WORLD, function);
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    if (calls_back())
        MPI_Comm_get_errhandler(comm, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    return comm;
}

/* --- error handlers that complete the requests of the wait around them --- */

static struct {
    MPI_Request requests[2];
    int few, later, first, last;
    bool starts;
} waited;

static void complete_the_other(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Wait(&waited.requests[1], MPI_STATUS_IGNORE);
    if (waited.starts) {
        MPI_Irecv(&waited.first, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &waited.requests[0]);
        MPI_Irecv(&waited.last, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &waited.requests[1]);
    }
}

static void wait_and_put(MPI_Comm comm, MPI_Win win)
{
    int index;
    MPI_Irecv(&waited.few, 1, MPI_INT, 1, 0, comm, &waited.requests[0]);
    MPI_Irecv(&waited.later, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &waited.requests[1]);
    MPI_Waitany(2, waited.requests, &index, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
    for (int i = 0; i < 2 && waited.starts; i++)
        MPI_Wait(&waited.requests[i], MPI_STATUS_IGNORE);
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Get(&waited.later, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Get(&waited.first, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Get(&waited.last, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
}

static void put_and_send(MPI_Comm comm, MPI_Win win)
{
    int pair[] = {1, 2};
    MPI_Send(pair, 2, MPI_INT, 0, 0, comm);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!waited.starts) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
    }
    MPI_Send(pair, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (waited.starts) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        for (int i = 0; i < 2; i++)
            MPI_Send(pair, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
}

/* The error handler of a wait for any waits for the other request, and may start new ones at the
 * indices of both. */
CASE_APART(E1, requests_that_a_waits_handler_completes, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled_everywhere(complete_the_other);
    MPI_Win_lock_all(0, win);
    /* Hosts of the standard ABI write a converted copy of the requests back over what the handler
     * has started. */
#if defined(MPI_ABI_VERSION) && !defined(MPICH_VERSION) && !defined(OMPI_MAJOR_VERSION)
    enum { STARTS = 1 };
#else
    enum { STARTS = 2 };
#endif
    for (int variant = 0; variant < STARTS && calls_back(); variant++) {
        waited.starts = variant != 0;
        if (rank == 0)
            wait_and_put(comm, win);
        if (rank == 1)
            put_and_send(comm, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    if (!right)
        MPI_Get(&waited.later, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static struct {
    MPI_Request persistent;
    int few, later;
    bool both; /* the wait is for both requests, of which the persistent one is under way */
} used;

static void use_the_persistent_one(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    if (used.persistent == MPI_REQUEST_NULL) /* Open MPI has made an end of it */
        MPI_Recv_init(&used.later, 1, MPI_INT, 1, 2, *comm, &used.persistent);
    if (!used.both)
        MPI_Start(&used.persistent);
    MPI_Wait(&used.persistent, MPI_STATUS_IGNORE);
}

static void wait_for_the_persistent_one(MPI_Comm comm, MPI_Win win)
{
    MPI_Status statuses[2];
    int done, indices[2];
    MPI_Recv_init(&used.later, 1, MPI_INT, 1, 2, comm, &used.persistent);
    MPI_Start(&used.persistent);
    if (used.both) {
        MPI_Request requests[2];
        MPI_Irecv(&used.few, 1, MPI_INT, 1, 0, comm, &requests[0]);
        requests[1] = used.persistent;
        MPI_Waitsome(2, requests, &done, indices, statuses);
    } else {
        MPI_Wait(&used.persistent, MPI_STATUS_IGNORE);
    }
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Get(&used.later, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    if (used.persistent != MPI_REQUEST_NULL)
        MPI_Request_free(&used.persistent);
}

/* The error handler of a wait starts the persistent request anew whose wait has failed, or waits
 * for one that is under way. */
CASE_APART(E1, persistent_requests_that_a_waits_handler_uses, 2)
{
    int pair[] = {1, 2};
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled_everywhere(use_the_persistent_one);
    MPI_Win_lock_all(0, win);
    for (int variant = 0; variant < 2 && calls_back(); variant++) {
        used.both = variant != 0;
        if (rank == 0)
            wait_for_the_persistent_one(comm, win);
        if (rank == 1) {
            MPI_Send(pair, 2, MPI_INT, 0, used.both ? 0 : 2, comm);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
            MPI_Win_flush(0, win);
            MPI_Send(pair, 1, MPI_INT, 0, 2, comm);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    if (!right)
        MPI_Get(&used.later, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}
