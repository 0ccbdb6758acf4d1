/* Calls inside the program's callbacks: attribute copy and delete functions, generalized requests,
 * error handlers that return. The checker treats them like calls anywhere else. */
#include "offenders.h"

#include <limits.h>
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

static void meet_in_handler(MPI_Comm *comm, int *code, ...)
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
    MPI_Comm_create_errhandler(meet_in_handler, &handler);
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

static void tell_late(void *whom)
{
    sleep(3); /* longer than the checker needs to report it */
    tell(*(int *)whom);
}

/* The call's own wait does not count while the callback runs, and counts again afterwards. Hosts
 * run copy functions before the ranks meet. */
CASE_ALONE(D1, told_in_a_copy_function, 2)
{
    MPI_Comm comm, copy;
    int other = 1, keyval;
    struct todo todo = {right && rank == 0 && calls_back() ? tell_late : nothing, &other};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(copied, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &todo);
    MPI_Comm_free_keyval(&keyval);
    if (right && rank == 0 && !calls_back())
        tell(1);
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* FINDS D1 here */
    MPI_Comm_dup(comm, &copy);                                                /* FINDS D1 here */
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
}

/* For one rank the barrier is the second collective. For the others it is the first, and one of
 * them arrives late. */
CASE_APART(D1, barrier_behind_a_broadcast_that_failed, 3)
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

CASE_APART(E13, window_that_goes_with_self, 2)
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

/* Open MPI stops deleting the attributes of MPI_COMM_SELF after a delete function that fails. */
CASE_APART(E13, window_that_stays_where_self_keeps_an_attribute, 2)
{
    MPI_Win win = ints_window(4);
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    MPI_Comm_free_keyval(&keyval);
    if (right)
        MPI_Win_free(&win);
    MPI_Finalize(); /* FINDS E13 here */
    exit(0);
}

CASE_APART(D1, message_of_one_in_finalize, 2)
{
    static int other = 0;
    if (rank == 1)
        at_the_end(right && calls_back() ? tell_late : nothing, &other);
    if (rank == 1 && right && !calls_back())
        tell(0);
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

static int refuse_to_tell(void *extra, MPI_Status *status)
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
static void wait_for_what_refuses(MPI_Comm comm)
{
    static struct todo todo = {nothing, NULL};
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Errhandler handler;
    int index, got, sent = 1;
    MPI_Comm_get_errhandler(comm, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Irecv(&got, 1, MPI_INT, 0, 0, comm, &requests[0]);
    MPI_Grequest_start(refuse_to_tell, dropped, cancelled, &todo, &requests[1]);
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
CASE(E1, behind_a_code_of_the_programs_own, 1)
{
    int keyval, got;
    MPI_Win win = ints_window(1);
    MPI_Comm comm = comm_handled(MPI_COMM_SELF, count_failure), copy = MPI_COMM_NULL;
    MPI_Comm_create_keyval(refuse_to_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &got);
    MPI_Comm_free_keyval(&keyval);
    if (calls_back()) {
        MPI_Comm_dup(comm, &copy);
        wait_for_what_refuses(comm);
    }
    if (right)
        MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 0, MPI_INT, win); /* FINDS E1 here */
    if (right)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}
