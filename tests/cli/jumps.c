/* Calls that fail on rank 0 and that a jump leaves without an immediate trace (see the modes'
 * table).  Everything after them is correct: puts ordered by messages through rank 0 and by a
 * barrier, gets into the buffers of completed requests.  Finally rank 0 puts outside an epoch, the
 * only finding. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { HANDLERS = 70 };

static jmp_buf back;
static MPI_Comm comm;
static MPI_Win win;
static int rank, size, few, later;

#define HANDLER(at)                                                                                \
    static void handler_##at(MPI_Comm *failed, int *code, ...)                                     \
    {                                                                                              \
        (void)failed, (void)code;                                                                  \
        longjmp(back, 1 + (at));                                                                   \
    }
#define NAME(at) handler_##at,
#define TEN(EACH, tens)                                                                            \
    EACH(tens##0)                                                                                  \
    EACH(tens##1) EACH(tens##2) EACH(tens##3) EACH(tens##4) EACH(tens##5) EACH(tens##6)            \
        EACH(tens##7) EACH(tens##8) EACH(tens##9)
#define ALL(EACH)                                                                                  \
    TEN(EACH, 1) TEN(EACH, 2) TEN(EACH, 3) TEN(EACH, 4) TEN(EACH, 5) TEN(EACH, 6) TEN(EACH, 7)
ALL(HANDLER)

/* Of every communicator whose handler a host may call. */
static void handle(MPI_Comm_errhandler_function *function)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(function, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
}

static void jump(MPI_Comm *failed, int *code, ...)
{
    (void)failed, (void)code;
    longjmp(back, 1);
}

/* Beyond the number that the checker can distinguish. */
static void handle_without_room(MPI_Comm_errhandler_function *function)
{
    static MPI_Comm_errhandler_function *const functions[HANDLERS] = {ALL(NAME)};
    MPI_Errhandler handlers[HANDLERS];
    for (int i = 0; i < HANDLERS; i++)
        MPI_Comm_create_errhandler(functions[i], &handlers[i]);
    handle(function);
    for (int i = 0; i < HANDLERS; i++)
        MPI_Errhandler_free(&handlers[i]);
}

static void handle_by_the_last(void)
{
    handle_without_room(jump);
}

static void send_to_nobody(void)
{
    MPI_Send(&rank, 1, MPI_INT, size, 0, comm); /* there is no such rank */
}

static void leave_a_send(void)
{
    handle_by_the_last();
    if (rank == 0 && setjmp(back) == 0)
        send_to_nobody();
}

static void leave_a_wait(MPI_Request *request)
{
    if (setjmp(back) == 0)
        MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Into a too small buffer: the wait for it fails. */
static void receive(MPI_Request *request)
{
    MPI_Irecv(&few, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, request);
}

static void send_too_much(void)
{
    int pair[] = {1, 2};
    if (rank == 1)
        MPI_Send(pair, 2, MPI_INT, 0, 1, MPI_COMM_WORLD);
}

static void leave_inside(MPI_Comm *failed, int *code, ...)
{
    MPI_Request request;
    (void)failed, (void)code;
    receive(&request);
    leave_a_wait(&request);
}

static void leave_in_a_handler(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave_inside, &handler);
    handle_by_the_last();
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    send_too_much();
    if (rank == 0)
        send_to_nobody();
}

static int leave_deleting(MPI_Comm of, int keyval, void *value, void *extra)
{
    (void)of, (void)keyval, (void)value, (void)extra;
    MPI_Request request;
    receive(&request);
    leave_a_wait(&request);
    return MPI_SUCCESS;
}

static void leave_in_a_delete_function(void)
{
    int keyval;
    handle_by_the_last();
    send_too_much();
    if (rank == 0) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_deleting, &keyval, NULL);
        MPI_Comm_set_attr(comm, keyval, &rank);
        MPI_Comm_delete_attr(comm, keyval);
        MPI_Comm_free_keyval(&keyval);
    }
}

static void go_on(MPI_Comm *failed, int *code, ...)
{
    (void)failed, (void)code;
}

/* The next failing call is one that the checker does not track: comm has no topology. */
static void leave_with_the_handle_gone(void)
{
    MPI_Errhandler handler;
    int coordinate;
    MPI_Comm_create_errhandler(go_on, &handler);
    handle_by_the_last();
    send_too_much();
    if (rank == 0) {
        MPI_Request *request =
            mmap(NULL, sizeof *request, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        receive(request);
        leave_a_wait(request);
        munmap(request, sizeof *request);
        MPI_Comm_set_errhandler(comm, handler);
        MPI_Cart_coords(comm, 0, 1, &coordinate);
    }
    MPI_Errhandler_free(&handler);
}

static void end_thread(MPI_Comm *failed, int *code, ...)
{
    (void)failed, (void)code;
    pthread_exit(NULL);
}

static void run_thread(void *(*function)(void *))
{
    pthread_t thread;
    if (rank == 0 && pthread_create(&thread, NULL, function, NULL) == 0)
        pthread_join(thread, NULL);
}

static void *reduce(void *nothing)
{
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
    return nothing;
}

static void leave_with_a_thread(void)
{
    handle(end_thread);
    run_thread(reduce);
}

static void *send(void *nothing)
{
    send_to_nobody();
    return nothing;
}

static void leave_a_send_with_a_thread(void)
{
    handle_without_room(end_thread);
    run_thread(send);
}

static void leave_with_a_thread_and_fail(void)
{
    leave_with_a_thread();
    handle(go_on);
    if (rank == 0)
        send_to_nobody();
}

static MPI_Request waited[2];

static void *wait_for_any(void *nothing)
{
    int index;
    MPI_Waitany(2, waited, &index, MPI_STATUS_IGNORE);
    return nothing;
}

/* Another thread waits for the other request. */
static void leave_a_wait_with_a_thread(void)
{
    handle(end_thread);
    send_too_much();
    if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&rank, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        receive(&waited[0]);
        MPI_Irecv(&later, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &waited[1]);
        run_thread(wait_for_any);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        MPI_Wait(&waited[1], MPI_STATUS_IGNORE);
    }
}

enum { STACK_BYTES = 1 << 18 };
static ucontext_t here, there;
static bool has_asked;

static void send_from_there(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
}

/* Until the function returns. */
static void run_on(char *stack, void (*function)(void))
{
    /* cppcheck-suppress getcontextCalled; a thread of POSIX would be another thread */
    if (getcontext(&there) != 0)
        return;
    there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
    there.uc_link = &here;
    /* cppcheck-suppress makecontextCalled; as above */
    makecontext(&there, function, 0);
    /* cppcheck-suppress swapcontextCalled; as above */
    swapcontext(&here, &there);
}

static int ask_from_there(void *stack, MPI_Status *status)
{
    if (!has_asked) {
        has_asked = true; /* hosts may query twice */
        run_on(stack, send_from_there);
    }
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int free_nothing(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int cancel_nothing(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

/* No call is left: a query function makes a call on a stack above that of the surrounding wait, and
 * returns. */
static void call_on_another_stack(void)
{
    char stack[STACK_BYTES];
    MPI_Status statuses[2];
    if (rank == 1) {
        MPI_Send(&rank, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        MPI_Irecv(&later, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &waited[0]);
        MPI_Grequest_start(ask_from_there, free_nothing, cancel_nothing, stack, &waited[1]);
        MPI_Grequest_complete(waited[1]);
        MPI_Waitall(2, waited, statuses);
    }
}

/* The buffer of the failed receive. */
static void use(MPI_Comm *failed, int *code, ...)
{
    (void)failed, (void)code;
    MPI_Get(&few, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
}

/* Leaves both calls: the one whose handler jumps, and one deeper in the stack, which the checker
 * does not track.  Its handler uses the buffer. */
static void leave_and_return(MPI_Comm *failed, int *code, ...)
{
    static int calls;
    if (calls++ == 0)
        longjmp(back, 1);
    use(failed, code);
}

static void fail_deeper(int frames)
{
    volatile char room[2000];
    room[0] = (char)frames;
    if (frames > 0)
        fail_deeper(frames - 1);
    else
        MPI_Comm_test_inter(comm, NULL);
    room[1] = room[0];
}

static void leave_a_wait_and_fail_deeper(void)
{
    MPI_Request request;
    handle(leave_and_return);
    send_too_much();
    if (rank == 0) {
        receive(&request);
        leave_a_wait(&request);
        fail_deeper(4);
    }
}

static void wait_for_too_much(MPI_Comm_errhandler_function *function)
{
    MPI_Request request;
    handle(function);
    send_too_much();
    if (rank == 0) {
        receive(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* No call is left. */
static void use_in_the_handler(void)
{
    if (rank == 1)
        MPI_Send(&rank, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Irecv(&later, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &waited[0]);
    wait_for_too_much(use);
    if (rank == 0)
        MPI_Wait(&waited[0], MPI_STATUS_IGNORE);
}

static void finish(void);

static void finish_on_another_stack(MPI_Comm *failed, int *code, ...)
{
    static char stack[STACK_BYTES];
    (void)failed, (void)code;
    run_on(stack, finish);
}

static void leave_a_wait_for_another_stack(void)
{
    wait_for_too_much(finish_on_another_stack);
}

static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void duplicate(MPI_Comm of)
{
    MPI_Comm made;
    MPI_Comm_dup(of, &made);
    MPI_Comm_free(&made);
}

static int copy_from_there(MPI_Comm of, int keyval, void *stack, void *in, void *out, int *flag)
{
    (void)of, (void)keyval, (void)in, (void)out;
    run_on(stack, meet);
    *flag = 0;
    return MPI_SUCCESS;
}

static int copy_around(MPI_Comm of, int keyval, void *other, void *in, void *out, int *flag)
{
    (void)of, (void)keyval, (void)in, (void)out;
    duplicate(*(MPI_Comm *)other);
    *flag = 0;
    return MPI_SUCCESS;
}

/* No call is left: the same, in a copy function inside another copy function. */
static void call_on_another_stack_deeper(void)
{
    char stack[STACK_BYTES];
    int inner, outer;
    MPI_Comm one, other;
    MPI_Comm_dup(comm, &one);
    MPI_Comm_dup(comm, &other);
    MPI_Comm_create_keyval(copy_from_there, MPI_COMM_NULL_DELETE_FN, &inner, stack);
    MPI_Comm_create_keyval(copy_around, MPI_COMM_NULL_DELETE_FN, &outer, &one);
    MPI_Comm_set_attr(one, inner, stack);
    MPI_Comm_set_attr(other, outer, stack);
    duplicate(other);
    MPI_Comm_free(&one);
    MPI_Comm_free(&other);
    MPI_Comm_free_keyval(&inner);
    MPI_Comm_free_keyval(&outer);
}

static const struct mode {
    const char *name;
    void (*leave)(void);
    int threads;
} modes[] = {
    {"room", leave_a_send, MPI_THREAD_SINGLE},          /* by an error handler beyond the limit */
    {"handler", leave_in_a_handler, MPI_THREAD_SINGLE}, /* the same, in a handler that returns */
    {"delete", leave_in_a_delete_function,
     MPI_THREAD_SINGLE}, /* the same, in an attribute's delete function */
    {"gone", leave_with_the_handle_gone,
     MPI_THREAD_SINGLE}, /* the same, with the memory of the request's handle */
    {"thread", leave_with_a_thread,
     MPI_THREAD_SERIALIZED}, /* by a thread that ends in its error handler */
    {"threads", leave_with_a_thread_and_fail,
     MPI_THREAD_SERIALIZED}, /* the same, and then another thread's call fails */
    {"waiter", leave_a_wait_with_a_thread,
     MPI_THREAD_SERIALIZED}, /* the same, out of a wait for any of two requests */
    {"end", leave_a_send_with_a_thread,
     MPI_THREAD_SERIALIZED}, /* the same, in an error handler beyond the limit */
    {"deeper", leave_a_wait_and_fail_deeper,
     MPI_THREAD_SERIALIZED}, /* by a handler that runs again, deeper in the stack */
    {"fiber", leave_a_wait_for_another_stack, MPI_THREAD_SERIALIZED}, /* for another stack, below */
    /* no call is left, but the request is complete */
    {"use", use_in_the_handler, MPI_THREAD_SERIALIZED},
    {"stack", call_on_another_stack,
     MPI_THREAD_SINGLE}, /* no call is left, though the stack pointer suggests it */
    {"stacks", call_on_another_stack_deeper,
     MPI_THREAD_SINGLE}, /* the same, inside another such function */
};

static const struct mode *mode_of(const char *name)
{
    size_t at = 0;
    while (strcmp(modes[at].name, name) != 0)
        at++;
    return &modes[at];
}

static void put_in_order(void)
{
    int token = 0;
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_flush_all(win);
    MPI_Barrier(comm);
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&token, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
    }
    if (rank == 2) {
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    }
}

static void finish(void)
{
    put_in_order();
    if (rank == 0) {
        MPI_Get(&few, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        MPI_Get(&later, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    }
    MPI_Win_unlock_all(win);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    puts("end");
    exit(0);
}

int main(int argc, char **argv)
{
    int provided, *memory;
    const struct mode *mode = mode_of(argv[1]);
    MPI_Init_thread(&argc, &argv, mode->threads, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    mode->leave();
    finish();
}
