/* Signal handlers that order threads, and an allocator that does, interrupt the checker anywhere:
 * the program ends, and has no findings. A timer's handler counts in an atomic word, and in the
 * window's memory, while the first thread sends and puts. calloc and free lock a mutex, as some
 * allocators do. Compiled with -fsanitize=thread. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/time.h>

enum { EVERY_US = 100, ROUNDS = 50, SIGNALS = 10, TAG = 1 };

/* --- the allocator --- */

void *__libc_calloc(size_t count, size_t len_bytes);
void __libc_free(void *at);

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;

void *calloc(size_t count, size_t len_bytes)
{
    pthread_mutex_lock(&heap);
    void *at = __libc_calloc(count, len_bytes);
    pthread_mutex_unlock(&heap);
    return at;
}

void free(void *at)
{
    pthread_mutex_lock(&heap);
    __libc_free(at);
    pthread_mutex_unlock(&heap);
}

/* --- the handler --- */

enum { COUNTED, PUT, WORDS };

static _Atomic int signals;
static int *memory;

static void count(int signal)
{
    (void)signal;
    atomic_fetch_add(&signals, 1);
    memory[COUNTED]++;
}

static void interrupt_every(int us)
{
    const struct itimerval every = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &every, NULL);
}

/* --- threads --- */

static _Atomic int ended;

static void *read_signals(void *unused)
{
    (void)unused;
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    while (!atomic_load(&ended))
        (void)atomic_load(&signals);
    return NULL;
}

/* Until some signals have arrived. */
static void round_run(int rank, MPI_Win win)
{
    int before = atomic_load(&signals), in, out = rank;
    MPI_Request request;
    while (atomic_load(&signals) < before + SIGNALS) {
        MPI_Irecv(&in, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD, &request);
        MPI_Send(&out, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Put(&out, 1, MPI_INT, rank, PUT, 1, MPI_INT, win);
        MPI_Win_flush(rank, win);
    }
}

int main(int argc, char **argv)
{
    int provided, rank;
    MPI_Win win;
    pthread_t reader;
    const struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(WORDS * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    pthread_create(&reader, NULL, read_signals, NULL);
    sigaction(SIGALRM, &action, NULL);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ROUNDS; i++) {
        interrupt_every(EVERY_US);
        round_run(rank, win);
        interrupt_every(0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    atomic_store(&ended, 1);
    pthread_join(reader, NULL);
    MPI_Win_free(&win);
    MPI_Finalize();
}
