/* Programs with known statistics: the operations of each rank, and which rank is late by how much.
 * test_statistics.py runs one scenario each, and compares. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../include/oriel/ext.h"
#include "../mpi/file_size_limit.h"

enum {
    LATE_US = 50000,
    TIMES = 4,
    THREADS = 20,
    PUTS = 500,
    OFTEN = 200000,
    SERVED = 20000,
    WINDOWS = 1010
};

static int rank, ranks;

static void nap(void)
{
    usleep(LATE_US);
}

/* --- counts --- */

/* All operations in all their forms, to the next rank. */
static void operate(MPI_Win win)
{
    int next = (rank + 1) % ranks;
    long in[4] = {1, 2, 3, 4};
    long out[4];
    MPI_Request requests[4];
    MPI_Datatype every_second;
    MPI_Type_vector(2, 1, 2, MPI_LONG, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Put(in, 1, MPI_LONG, next, 0, 1, MPI_LONG, win);     /* SITE put */
    MPI_Put(in, 2, MPI_LONG, next, 0, 1, every_second, win); /* SITE strided put */
    MPI_Put(in, 0, MPI_LONG, next, 0, 0, MPI_LONG, win);
    MPI_Put(in, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win); /* no effect, and not counted */
    MPI_Put(in, 1, MPI_LONG, next, 1000, 1, MPI_LONG, win);       /* refused, and not counted */
    MPI_Get(out, 4, MPI_LONG, next, 0, 4, MPI_LONG, win);
    MPI_Accumulate(in, 3, MPI_LONG, next, 0, 3, MPI_LONG, MPI_SUM, win);
    MPI_Get_accumulate(in, 2, MPI_LONG, out, 2, MPI_LONG, next, 0, 2, MPI_LONG, MPI_SUM, win);
    MPI_Fetch_and_op(in, out, MPI_LONG, next, 0, MPI_SUM, win);
    MPI_Compare_and_swap(in, in + 1, out, MPI_LONG, next, 0, win);
    MPI_Rput(in, 1, MPI_LONG, next, 0, 1, MPI_LONG, win, &requests[0]);
    MPI_Rget(out, 1, MPI_LONG, next, 1, 1, MPI_LONG, win, &requests[1]);
    MPI_Raccumulate(in, 1, MPI_LONG, next, 2, 1, MPI_LONG, MPI_SUM, win, &requests[2]);
    MPI_Rget_accumulate(in, 1, MPI_LONG, out + 1, 1, MPI_LONG, next, 3, 1, MPI_LONG, MPI_SUM, win,
                        &requests[3]);
    for (int i = 0; i < 4; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPI_Type_free(&every_second);
}

static void counts(void)
{
    MPI_Win win;
    long *base;
    const MPI_Aint len = 64 + 64 * rank;
    MPI_Win_allocate(len, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); /* MADE here */
    MPI_Win_set_name(win, "counted");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    operate(win);
    MPI_Win_flush_all(win);
    MPI_Win_flush_local((rank + 1) % ranks, win);
    MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
    for (int i = 0; i < 300; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win); /* SITE lock */
        MPI_Win_unlock(rank, win);
    }
    MPI_Win_free(&win);
}

/* Extensions of the atomic operations, to the next rank. A list is one operation. */
static void atomics(void)
{
    int next = (rank + 1) % ranks;
    const long in[5] = {1, 2, 3, 4, 5};
    const MPI_Aint disps[5] = {4, 2, 4, 5, 2};
    long out[5];
    MPI_Request requests[2];
    MPI_Win win;
    long *base;
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    MPIX_Fetch_and_op_list(in, out, 5, MPI_LONG, next, disps, MPI_SUM, win); /* SITE list */
    MPIX_Fetch_and_op_list(in, out, 5, MPI_LONG, next, NULL, MPI_SUM, win);  /* refused */
    MPIX_Fetch_and_op_list(in, out, 0, MPI_LONG, next, NULL, MPI_SUM, win);
    MPIX_Compare_and_swap_128(in, in + 2, out, next, 6, win);
    MPIX_Rfetch_and_op(in, out, MPI_LONG, next, 0, MPI_SUM, win, &requests[0]);
    MPIX_Rcompare_and_swap(in, in + 1, out + 1, MPI_LONG, next, 1, win, &requests[1]);
    for (int i = 0; i < 2; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* --- persistent operations --- */

static void started(void)
{
    enum { STARTED = 5 };
    MPI_Win win;
    MPI_Request requests[STARTED];
    long *base, in[2] = {1, 2}, out[3];
    int next = (rank + 1) % ranks;
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPIX_Put_init(in, 2, MPI_LONG, next, 0, 2, MPI_LONG, win, &requests[0]);
    MPIX_Get_init(out, 1, MPI_LONG, next, 0, 1, MPI_LONG, win, &requests[1]);
    MPIX_Fetch_and_op_init(in, out + 1, MPI_LONG, next, 2, MPI_SUM, win, &requests[2]);
    MPIX_Put_init(in, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win, &requests[3]);
    MPIX_Compare_and_swap_init(in, in, out + 2, MPI_LONG, next, 3, win, &requests[4]);
    MPI_Start(&requests[0]); /* refused, and not counted */
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TIMES; i++) {
        MPI_Start(&requests[0]); /* SITE start */
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Startall(STARTED, requests); /* SITE start of all */
    for (int i = 0; i < STARTED; i++) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        MPI_Request_free(&requests[i]);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* --- extensions --- */

static void flushes(void)
{
    MPI_Win win;
    MPI_Request requests[2];
    long *base;
    long in = 1;
    int flag, next = (rank + 1) % ranks;
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    MPI_Put(&in, 1, MPI_LONG, next, 1, 1, MPI_LONG, win);
    MPIX_Win_order(next, win);
    MPI_Put(&in, 1, MPI_LONG, next, 0, 1, MPI_LONG, win);
    MPIX_Win_flush_list(1, &next, win);
    MPIX_Win_flush_windows(1, &win);
    MPIX_Win_iflush(next, win, &requests[0]); /* SITE flush with request */
    MPIX_Win_iflush_all(win, &requests[1]);
    for (int i = 0; i < 2; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPIX_Win_wait_until(win, 0, MPI_LONG, MPIX_CMP_EQ, &in); /* SITE wait for memory */
    MPIX_Win_test_until(win, 1, MPI_LONG, MPIX_CMP_EQ, &in, &flag);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* --- more call sites than a table has --- */

#define FOUR(call)    call call call call
#define SIXTEEN(call) FOUR(FOUR(call))

static void crowd(void)
{
    MPI_Win win;
    long *base;
    long in = 1;
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    SIXTEEN(SIXTEEN(MPI_Put(&in, 1, MPI_LONG, rank, 0, 1, MPI_LONG, win);)) /* SITE crowded put */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* --- waiting --- */

/* Synchronises these two ranks, independent of the others. */
static void meet(int a, int b)
{
    int other = rank == a ? b : a;
    if ((rank == a || rank == b) && a != b)
        MPI_Sendrecv(NULL, 0, MPI_INT, other, 0, NULL, 0, MPI_INT, other, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

static void late(void)
{
    MPI_Win win;
    MPI_Group world, others, last_one;
    long *base;
    int last = ranks - 1;
    int first_rank = 0;
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < TIMES; i++) {
        if (rank == last)
            nap();
        MPI_Win_fence(0, win); /* WAITS for the last */
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &first_rank, &others);
    MPI_Group_incl(world, 1, &last, &last_one);
    for (int i = 0; i <= TIMES; i++) { /* the last posts late, the first completes late */
        meet(0, last);
        if (rank == last && last != 0) {
            nap();
            MPI_Win_post(others, 0, win);
            if (i < TIMES)
                MPI_Win_wait(win); /* WAITS for the complete */
            for (int done = i < TIMES; !done;)
                MPI_Win_test(win, &done);
        }
        if (rank == 0 && last != 0) {
            MPI_Win_start(last_one, 0, win); /* WAITS for the post */
            nap();
            MPI_Win_complete(win);
        }
    }
    for (int i = 0; i < TIMES; i++) { /* rank 0 holds the lock that the last rank requests */
        if (rank == 0)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        meet(0, last);
        if (rank == 0) {
            nap();
            MPI_Win_unlock(0, win);
        } else if (rank == last) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win); /* WAITS for the lock */
            MPI_Win_unlock(0, win);
        }
        meet(0, last);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* no rank is late for MPI_Win_free */
    MPI_Group_free(&world);
    MPI_Group_free(&others);
    MPI_Group_free(&last_one);
    MPI_Win_free(&win);
}

/* --- notifications --- */

/* A window of this rank and the next or the one before, and the rank in it. */
static MPI_Win pair_window(MPI_Comm *pair, int *own)
{
    MPI_Win win;
    MPI_Info info;
    long *base;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "2");
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, pair);
    MPI_Comm_rank(*pair, own);
    MPI_Win_allocate(64, sizeof(long), info, *pair, &base, &win);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, win);
    base[1] = 0;
    MPI_Win_sync(win);
    MPI_Barrier(*pair);
    return win;
}

static void pair_window_free(MPI_Win *win, MPI_Comm *pair)
{
    MPI_Win_unlock_all(*win);
    MPI_Barrier(*pair);
    MPI_Comm_free(pair);
    MPI_Win_free(win);
}

/* In pairs of ranks the second notifies the first late. */
static void notified(void)
{
    MPI_Comm pair;
    long in[4] = {1, 2, 3, 4};
    int own, number = 1, flag = 0, index;
    MPI_Win win = pair_window(&pair, &own);
    for (int i = 0; i < TIMES && own == 1; i++) {
        nap();
        MPIX_Put_notify(in, 2, MPI_LONG, 0, 0, 2, MPI_LONG, 0, win); /* SITE notified put */
    }
    if (own == 1) {
        MPIX_Get_notify(in, 4, MPI_LONG, 0, 0, 4, MPI_LONG, 0, win);
        MPIX_Accumulate_notify(in, 3, MPI_LONG, 0, 0, 3, MPI_LONG, MPI_SUM, 1, win);
        MPIX_Put_notify(in, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, 0, win);
    } else if (rank < ranks - 1) {
        for (int i = 0; i < TIMES; i++)
            MPIX_Win_notify_wait(win, 0, 1); /* WAITS for the notification */
        MPIX_Win_notify_wait_any(win, 1, &number, &index);
        MPIX_Win_notify_test(win, 0, 1, &flag);
    }
    pair_window_free(&win, &pair);
}

/* The same for waits with a request, and for a value. */
static void awaited_by_requests(MPI_Win win)
{
    int index, found, flag;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    MPIX_Win_notify_init(win, 0, 1, &requests[1]);
    for (int i = 0; i < TIMES; i++) {
        MPI_Start(&requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* WAITS with a request */
    }
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, statuses); /* WAITS with several */
    MPI_Start(&requests[1]);
    MPI_Waitany(2, requests, &index, statuses);
    MPI_Start(&requests[1]);
    MPI_Waitsome(2, requests, &found, &index, statuses);
    MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE); /* inactive: not counted */
    MPI_Request_free(&requests[1]);
}

/* On two ranks. */
static void awaited(void)
{
    MPI_Comm pair;
    int own;
    MPI_Win win = pair_window(&pair, &own);
    for (int i = 0; i < TIMES + 3 && own == 1; i++) {
        nap();
        MPIX_Put_notify(NULL, 0, MPI_LONG, 0, 0, 0, MPI_LONG, 0, win);
    }
    if (own == 0)
        awaited_by_requests(win);
    for (long i = 1; i <= TIMES; i++) {
        if (own == 0) {
            MPIX_Win_wait_until(win, 1, MPI_LONG, MPIX_CMP_GE, &i); /* WAITS for a value */
            continue;
        }
        nap();
        MPI_Accumulate(&i, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_REPLACE, win);
        MPI_Win_flush(0, win);
    }
    pair_window_free(&win, &pair);
}

/* --- threads --- */

static MPI_Win shared_win;
static long *shared_base;
static pthread_barrier_t barrier_of_threads;

static void *put_often(void *own)
{
    long one = 1;
    MPI_Aint disp = (long *)own - shared_base;
    pthread_barrier_wait(&barrier_of_threads);
    for (int i = 0; i < OFTEN; i++) {
        MPI_Put(&one, 1, MPI_LONG, 0, disp, 1, MPI_LONG, shared_win);
        MPI_Win_flush(0, shared_win);
    }
    return NULL;
}

/* More threads than there are records for threads; each thread of each rank has an offset of its
 * own. */
static void threads(void)
{
    pthread_t ids[THREADS];
    MPI_Aint all_bytes = ranks * THREADS * (MPI_Aint)sizeof(long);
    MPI_Win_allocate(all_bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &shared_base,
                     &shared_win);
    MPI_Win_lock_all(0, shared_win);
    pthread_barrier_init(&barrier_of_threads, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, put_often, shared_base + rank * THREADS + i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&barrier_of_threads);
    MPI_Win_unlock_all(shared_win);
    MPI_Win_free(&shared_win);
}

/* --- windows of all sorts --- */

static void put_to_all(MPI_Win win)
{
    long one = 1;
    MPI_Win_fence(0, win);
    for (int i = 0; i < ranks; i++)
        MPI_Put(&one, 1, MPI_LONG, i, rank, 1, MPI_LONG, win);
    MPI_Win_fence(0, win);
}

static void sorts(void)
{
    MPI_Win win;
    long on_stack[64];
    long *on_heap = NULL;
    if (posix_memalign((void **)&on_heap, 1 << 16, 1 << 16) != 0)
        exit(1);
    memset(on_heap, 0, 1 << 16);
    MPI_Win_create(on_stack, sizeof on_stack, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, "stack");
    put_to_all(win);
    MPI_Win_free(&win);
    MPI_Win_create(on_heap, 1 << 16, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, "heap");
    put_to_all(win);
    MPI_Win_free(&win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, "dynamic");
    MPI_Win_attach(win, on_heap, 1 << 16);
    MPI_Aint *where = malloc((unsigned)ranks * sizeof *where);
    MPI_Get_address(on_heap, &where[rank]);
    MPI_Aint own = where[rank];
    MPI_Allgather(&own, 1, MPI_AINT, where, 1, MPI_AINT, MPI_COMM_WORLD);
    long one = 1;
    MPI_Win_fence(0, win);
    for (int i = 0; i < ranks; i++)
        MPI_Put(&one, 1, MPI_LONG, i, where[i] + 8 * rank, 1, MPI_LONG, win);
    MPI_Win_fence(0, win);
    MPI_Win_detach(win, on_heap);
    MPI_Win_free(&win);
    free(where);
    free(on_heap);
}

/* Rank 0 waits in the host, then in a fence of another window, while the others put. */
static void served(void)
{
    static const char *const names[2] = {"host", "fence"};
    MPI_Win win, other;
    long *on_heap = calloc(1 << 13, sizeof *on_heap);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    MPI_Win_fence(0, other);
    for (int i = 0; i < 2; i++) {
        MPI_Win_create(on_heap, sizeof *on_heap << 13, sizeof *on_heap, MPI_INFO_NULL,
                       MPI_COMM_WORLD, &win);
        MPI_Win_set_name(win, names[i]);
        MPI_Win_lock_all(0, win);
        for (long k = 0; rank != 0 && k < SERVED; k++) {
            MPI_Put(&k, 1, MPI_LONG, 0, rank, 1, MPI_LONG, win);
            MPI_Win_flush(0, win);
        }
        if (i == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        else
            MPI_Win_fence(0, other);
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, other);
    MPI_Win_free(&other);
    free(on_heap);
}

/* Copies that need another process's help. */
/* Stops this process, its agent included, for 100 ms. */
static void stop_briefly(void)
{
    pid_t process = getpid();
    if (fork() == 0) {
        kill(process, SIGSTOP);
        usleep(100000);
        kill(process, SIGCONT);
        _exit(0);
    }
    wait(NULL);
}

/* Rank 0 gets from rank 1 until one get has waited for the stopped target, at most 10 s. */
static void asked(void)
{
    MPI_Win win;
    long in;
    long *on_heap = calloc(PUTS, sizeof *on_heap);
    MPI_Win_create(on_heap, PUTS * sizeof *on_heap, sizeof *on_heap, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        stop_briefly();
    double longest_s = 0, start_s = MPI_Wtime();
    for (int i = 0; rank == 0 && longest_s < 0.02 && MPI_Wtime() - start_s < 10; i++) {
        double before_s = MPI_Wtime();
        MPI_Get(&in, 1, MPI_LONG, 1, i % PUTS, 1, MPI_LONG, win);
        MPI_Win_flush(1, win);
        longest_s = MPI_Wtime() - before_s > longest_s ? MPI_Wtime() - before_s : longest_s;
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(on_heap);
}

/* --- more windows than records; and one that stays open --- */

static void many(void)
{
    MPI_Win win, left;
    long *base;
    for (int i = 0; i < WINDOWS; i++) {
        MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_SELF, &base, &win);
        long one = 1;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        MPI_Win_unlock(0, win);
        MPI_Win_free(&win);
    }
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &left);
}

/* --- ending --- */

/* The last rank is late for MPI_Win_free, leaves it first, and overwrites all the memory that is
 * free again. */
static void ending(void)
{
    enum { BLOCKS = 200, LEAST_BYTES = 64, SIZES = 8 };
    for (int i = 0; i < TIMES; i++) {
        MPI_Win win;
        long *base;
        void *blocks[BLOCKS];
        MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        MPI_Win_fence(0, win);
        if (rank == ranks - 1)
            nap();
        MPI_Win_free(&win);
        for (int j = 0; j < BLOCKS && rank == ranks - 1; j++) {
            MPI_Alloc_mem(LEAST_BYTES << j % SIZES, MPI_INFO_NULL, &blocks[j]);
            memset(blocks[j], 0x7f, (size_t)LEAST_BYTES << j % SIZES);
        }
        for (int j = 0; j < BLOCKS && rank == ranks - 1; j++)
            MPI_Free_mem(blocks[j]);
    }
}

/* The last rank lends memory; its window has no other rank. */
static void opened(void)
{
    const int owner = ranks - 1;
    const long one = 1;
    long *memory;
    MPIX_Memory_handle handle;
    MPI_Win win, part;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win);
    if (rank == owner)
        MPIX_Win_memory_handle_create(win, 0, sizeof *memory, &handle);
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, owner, MPI_COMM_WORLD);
    MPIX_Win_memory_open(&handle, MPI_INFO_NULL, &part);
    MPI_Win_set_name(part, "opened");
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, part);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, part);
    MPI_Win_unlock(0, part);
    MPI_Win_free(&part);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

/* An erroneous call, which the observation passes on. */
static void none(void)
{
    int class = MPI_SUCCESS;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Win_free(NULL), &class);
    if (class != MPI_ERR_WIN)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {
        {"counts", counts},   {"late", late},       {"threads", threads},   {"sorts", sorts},
        {"served", served},   {"asked", asked},     {"many", many},         {"ending", ending},
        {"none", none},       {"crowd", crowd},     {"notified", notified}, {"awaited", awaited},
        {"atomics", atomics}, {"started", started}, {"flushes", flushes},   {"opened", opened}};
    const char *wanted = argc > 1 ? argv[1] : "";
    int has_threads = strcmp(wanted, "threads") == 0;
    int provided;
    if (has_threads)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(scenarios[i].name, wanted) == 0)
            scenarios[i].run();
    if (getenv("TEST_LATE_RANK") != NULL && atoi(getenv("TEST_LATE_RANK")) == rank)
        sleep(12);
    limit_file_bytes();
    MPI_Finalize();
    if (rank == 0)
        printf("ok %s\n", wanted);
    return 0;
}
