/* Calls that rank 0 leaves by a jump (the modes' table says how).  From then on rank 0 is not
 * checked, and the other ranks are blamed for nothing that depends on it: puts ordered by messages
 * through rank 0, posts and starts, windows that are made and freed.  The end is the same for all
 * modes: rank 1 puts outside an epoch, which alone is found. */
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
static bool was_left = true;

#define HANDLER(at)                                                                                \
    static void handler_##at(MPI_Comm *failed, int *code, ...)                                     \
    {                                                                                              \
        (void)failed, (void)code;                                                                  \
        longjmp(back, 1 + (at));                                                                   \
    }
#define NAME(at) handler_##at,
#define TEN(EACH, tens)                                                                            \
    EACH(tens##0)                                                                                  \
    EACH(tens##1)                                                                                  \
    EACH(tens##2)                                                                                  \
    EACH(tens##3)                                                                                  \
    EACH(tens##4) EACH(tens##5) EACH(tens##6) EACH(tens##7) EACH(tens##8) EACH(tens##9)
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

static void send_to_proc_null(void)
{
    MPI_Send(&rank, 1, MPI_INT, size, 0, comm); /* there is no such rank */
}

static void leave_a_send(void)
{
    handle(jump);
    if (rank == 0 && setjmp(back) == 0)
        send_to_proc_null();
}

static void leave_a_send_without_room(void)
{
    handle_by_the_last();
    if (rank == 0 && setjmp(back) == 0)
        send_to_proc_null();
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

static void leave_a_failed_wait(void)
{
    MPI_Request request;
    handle(jump);
    send_too_much();
    if (rank == 0) {
        receive(&request);
        leave_a_wait(&request);
    }
}

static MPI_Comm inner;

static void jump_inside(MPI_Comm *failed, int *code, ...)
{
    (void)failed, (void)code;
    if (setjmp(back) == 0)
        MPI_Send(&rank, 1, MPI_INT, size, 0, inner); /* there is no such rank */
}

/* The inner handler is left, the outer one returns. */
static void leave_in_a_handler(void)
{
    MPI_Errhandler handler;
    MPI_Comm_dup(comm, &inner);
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(inner, handler);
    MPI_Errhandler_free(&handler);
    handle(jump_inside);
    if (rank == 0)
        send_to_proc_null();
    MPI_Comm_free(&inner);
}

static int copy_once(MPI_Comm of, int keyval, void *extra, void *in, void *out, int *flag)
{
    static bool has_left;
    (void)of, (void)keyval, (void)extra, (void)in, (void)out;
    *flag = 0;
    if (rank != 0 || has_left)
        return MPI_SUCCESS;
    has_left = true;
    longjmp(back, 1);
}

/* Before others are met: the call is made again. */
static void leave_a_copy_function(void)
{
    int keyval;
    MPI_Comm made;
    MPI_Comm_create_keyval(copy_once, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &rank);
    MPI_Comm_free_keyval(&keyval);
    (void)setjmp(back);
    MPI_Comm_dup(comm, &made);
    MPI_Comm_free(&made);
}

static void frames_between(int frames)
{
    volatile char room[2000];
    room[0] = (char)frames;
    if (frames > 0)
        frames_between(frames - 1);
    else
        MPI_Barrier(MPI_COMM_SELF);
    room[1] = room[0];
}

/* The next call is deeper in the stack than the handler was. */
static void leave_and_call_deeper(void)
{
    handle(jump);
    if (rank == 0 && setjmp(back) == 0)
        send_to_proc_null();
    frames_between(8);
}

/* The next call, from the same frame, registers a function. The frame of the left one is small. */
static void leave_and_register(void)
{
    MPI_Request none = MPI_REQUEST_NULL;
    MPI_Errhandler handler;
    handle_by_the_last();
    if (rank == 0 && setjmp(back) == 0)
        MPI_Request_free(&none);
    MPI_Comm_create_errhandler(jump, &handler);
    if (rank == 0)
        fputs("registered\n", stderr);
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
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_OP_NULL, comm);
    return nothing;
}

static void leave_with_a_thread(void)
{
    handle(end_thread);
    run_thread(reduce);
}

static MPI_Request waited[2];

enum { STACK_BYTES = 1 << 18 };
static ucontext_t here, there;
static bool has_asked;

static void send_from_rank(void)
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

static int request_from_rank(void *stack, MPI_Status *status)
{
    if (!has_asked) {
        has_asked = true; /* hosts may query twice */
        run_on(stack, send_from_rank);
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

/* A query function makes a call on a stack above the enclosing wait, which looks like a jump, and
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
        MPI_Grequest_start(request_from_rank, free_nothing, cancel_nothing, stack, &waited[1]);
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
    was_left = false;
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
    was_left = false;
    wait_for_too_much(finish_on_another_stack);
}

static const struct mode {
    const char *name;
    void (*leave)(void);
    int threads;
} modes[] = {
    {"send", leave_a_send, MPI_THREAD_SINGLE},
    {"wait", leave_a_failed_wait, MPI_THREAD_SINGLE},
    {"handler", leave_in_a_handler, MPI_THREAD_SINGLE},
    {"copy", leave_a_copy_function, MPI_THREAD_SINGLE},
    {"register", leave_and_register, MPI_THREAD_SINGLE},
    {"deeper", leave_and_call_deeper, MPI_THREAD_SINGLE},
    {"room", leave_a_send_without_room, MPI_THREAD_SINGLE}, /* its handler is not known */
    {"thread", leave_with_a_thread, MPI_THREAD_SERIALIZED}, /* the thread ends in its handler */
    {"stack", call_on_another_stack, MPI_THREAD_SINGLE},    /* not at all, but it looks so */
    {"fiber", leave_a_wait_for_another_stack, MPI_THREAD_SERIALIZED}, /* unseen: a stack below */
    {"use", use_in_the_handler, MPI_THREAD_SERIALIZED},               /* not at all */
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

static void start_and_post(void)
{
    MPI_Group world, other;
    int peer = 1 - rank;
    if (rank > 1)
        return;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &other);
    if (rank == 0) {
        MPI_Win_post(other, 0, win);
        MPI_Win_wait(win);
    } else {
        MPI_Win_start(other, 0, win);
        MPI_Put(&rank, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        MPI_Win_complete(win);
    }
    MPI_Group_free(&other);
    MPI_Group_free(&world);
}

static void use_another_window(void)
{
    int *memory;
    MPI_Win other;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &other);
    MPI_Win_fence(0, other);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, other);
    MPI_Win_fence(0, other);
    MPI_Win_free(&other);
}

static void finish(void)
{
    put_in_order();
    if (rank == 0) {
        MPI_Get(&few, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        if (was_left) /* wrong, and not checked */
            MPI_Get(&few, 1, MPI_INT, 1, 1, 1, MPI_INT, win);
        MPI_Get(&later, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    start_and_post();
    use_another_window();
    if (rank == 1)
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    MPI_Win_free(&win);
    puts("end");
    fflush(stdout); /* Open MPI kills the other ranks when one exits with the status of findings */
    MPI_Finalize();
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
