/* Calls that fail on rank 0 and are left: "room", by an error handler beyond those that the checker can keep apart; "thread", by a
 * thread that ends in its error handler.  What is done behind them is ordered: by messages through rank 0, by a barrier.  "wrong":
 * rank 0 puts outside an epoch, behind them. */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum { HANDLERS = 70 };

static jmp_buf back;
static MPI_Comm comm;
static int rank, size;

#define HANDLER(at)                                          \
    static void handler_##at(MPI_Comm *failed, int *code, ...) \
    {                                                        \
        (void)failed, (void)code;                            \
        longjmp(back, 1 + (at));                             \
    }
#define NAME(at) handler_##at,
#define TEN(EACH, tens)                                                                  \
    EACH(tens##0) EACH(tens##1) EACH(tens##2) EACH(tens##3) EACH(tens##4) EACH(tens##5)  \
    EACH(tens##6) EACH(tens##7) EACH(tens##8) EACH(tens##9)
#define ALL(EACH)                                                                        \
    TEN(EACH, 1) TEN(EACH, 2) TEN(EACH, 3) TEN(EACH, 4) TEN(EACH, 5) TEN(EACH, 6) TEN(EACH, 7)
ALL(HANDLER)

static void leave_by_the_last(void)
{
    static MPI_Comm_errhandler_function *const functions[HANDLERS] = {ALL(NAME)};
    MPI_Errhandler handlers[HANDLERS];
    for (int i = 0; i < HANDLERS; i++)
        MPI_Comm_create_errhandler(functions[i], &handlers[i]);
    MPI_Comm_set_errhandler(comm, handlers[HANDLERS - 1]);
    for (int i = 0; i < HANDLERS; i++)
        MPI_Errhandler_free(&handlers[i]);
    if (rank == 0 && setjmp(back) == 0)
        MPI_Send(&rank, 1, MPI_INT, size, 0, comm); /* there is no such rank */
}

static void end_thread(MPI_Comm *failed, int *code, ...)
{
    (void)failed, (void)code;
    pthread_exit(NULL);
}

static void *reduce(void *nothing)
{
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
    return nothing;
}

static void leave_with_a_thread(void)
{
    MPI_Errhandler handler;
    pthread_t thread;
    MPI_Comm_create_errhandler(end_thread, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    if (rank == 0 && pthread_create(&thread, NULL, reduce, NULL) == 0)
        pthread_join(thread, NULL);
}

static void put_in_order(MPI_Win win)
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

int main(int argc, char **argv)
{
    int provided, *memory;
    MPI_Win win;
    MPI_Init_thread(&argc, &argv, strcmp(argv[1], "thread") == 0 ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    if (strcmp(argv[1], "thread") == 0)
        leave_with_a_thread();
    else
        leave_by_the_last();
    put_in_order(win);
    MPI_Win_unlock_all(win);
    if (rank == 0 && argc > 2)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    puts("end");
    return 0;
}
