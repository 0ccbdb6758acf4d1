/* The benchmark of device memory: rank 0 copies to and from the GPU memory of rank 1, and each time
 * is compared with that of the driver's own calls in one process. Both ranks have the same GPU
 * unless CUDA_VISIBLE_DEVICES names several. The data of every operation are verified.
 *
 * Rank 0 prints a table in Markdown; a figure that misses its target is no failure. Status 1: wrong
 * data. Status 77: no driver, or no Oriel. `mpiexec -n 2 oriel run build/bench/mpich/gpu` */
#define _POSIX_C_SOURCE 200809L
#include "data.h"
#include "schedule.h"

#include "../tests/gpu/device.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 64 << 20, WORD = 8, DOUBLES = 1 << 20, SKIP = 77 };
/* a vector of 4,096 blocks of 1 KiB, with gaps of the same length */
enum { BLOCKS = 4096, BLOCK = 1024, VECTOR = BLOCKS * BLOCK };
enum { MINE = 1, THEIRS = 2 }; /* seeds of the data of rank 0 and of rank 1 */

static int rank;
static MPI_Win win;
static MPI_Datatype vector;
static char *memory; /* on the device: of the window */
static char *buffer; /* on the device: of origin and result */
static char *other;  /* on the device: the target of rank 0's own copies */
static char *host;
static uint64_t done; /* operations since the memory was filled */

/* ---- the operations, each complete at its end ---- */

static void put_large(void)
{
    MPI_Put(buffer, LARGE, MPI_BYTE, 1, 0, LARGE, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void get_large(void)
{
    MPI_Get(buffer, LARGE, MPI_BYTE, 1, 0, LARGE, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void put_word(void)
{
    MPI_Put(buffer, WORD, MPI_BYTE, 1, 0, WORD, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void put_from_host(void)
{
    MPI_Put(host, LARGE, MPI_BYTE, 1, 0, LARGE, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void put_vector(void)
{
    MPI_Put(buffer, 1, vector, 1, 0, VECTOR, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void add_word(void)
{
    MPI_Fetch_and_op(buffer, other, MPI_DOUBLE, 1, 0, MPI_SUM, win);
    MPI_Win_flush(1, win);
}

static void add_doubles(void)
{
    MPI_Accumulate(buffer, DOUBLES, MPI_DOUBLE, 1, 0, DOUBLES, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(1, win);
}

static void copy_large(void)
{
    device_copy(other, buffer, LARGE);
}

static void copy_word(void)
{
    device_copy(other, buffer, WORD);
}

static void copy_from_host(void)
{
    device_write(other, host, LARGE);
}

static void copy_vector(void)
{
    device_copy(other, buffer, VECTOR);
}

static void copy_doubles(void)
{
    device_copy(other, buffer, DOUBLES * sizeof(double));
}

/* ---- whether the data are right: rank 1 examines its memory, rank 0 its buffer ---- */

static bool holds(const char *device, size_t len_bytes, uint64_t seed)
{
    device_read(host, device, len_bytes);
    return data_holds(host, len_bytes, seed);
}

static bool check_put_large(void)
{
    return rank == 0 || holds(memory, LARGE, MINE);
}

static bool check_get(void)
{
    return rank != 0 || holds(buffer, LARGE, THEIRS);
}

static bool check_put_word(void)
{
    return rank == 0 || holds(memory, WORD, MINE);
}

static bool check_put_vector(void)
{
    if (rank == 0)
        return true;
    device_read(host, memory, VECTOR);
    for (size_t i = 0; i < BLOCKS; i++)
        if (!data_holds_from(host + i * BLOCK, i * 2 * BLOCK, BLOCK, MINE))
            return false;
    return true;
}

/* Each operation has added the origin's values once. */
static bool check_sums(size_t count)
{
    if (rank == 0)
        return true;
    device_read(host, memory, count * sizeof(double));
    return data_holds_sums(host, 0, count, THEIRS, MINE, done);
}

static bool check_add_word(void)
{
    return check_sums(1);
}

static bool check_add_doubles(void)
{
    return check_sums(DOUBLES);
}

/* ---- the figures ---- */

/* What the ratio is: how many times as fast, or how many times as long. */
enum ratio { SPEED, DURATION };

static const struct figure {
    const char *what;
    const char *against;
    void (*operation)(void);
    void (*raw)(void);
    bool (*check)(void);
    enum ratio ratio;
    /* bytes that the operation moves in the GPU's memory, divided by those of the raw one */
    double work;
    double target; /* SPEED: at least; DURATION: at most; 0: none */
    bool is_sum;
} figures[] = {
    {"put, 64 MiB", "copy of 64 MiB", put_large, copy_large, check_put_large, SPEED, 1, 0.9, false},
    {"get, 64 MiB", "copy of 64 MiB", get_large, copy_large, check_get, SPEED, 1, 0.9, false},
    {"put, 8 B", "copy of 8 B", put_word, copy_word, check_put_word, DURATION, 1, 2, false},
    {"fetch_and_op", "copy of 8 B", add_word, copy_word, check_add_word, DURATION, 1, 3, true},
    /* two reads and a write, against a read and a write */
    {"accumulate, 1,048,576 doubles", "bandwidth of a copy of 8 MiB", add_doubles, copy_doubles,
     check_add_doubles, SPEED, 1.5, 0.5, true},
    {"put, 64 MiB from host memory", "copy of 64 MiB from host memory", put_from_host,
     copy_from_host, check_put_large, SPEED, 1, 0, false},
    {"put, 4,096 blocks of 1 KiB", "copy of 4 MiB", put_vector, copy_vector, check_put_vector,
     SPEED, 1, 0, false},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

/* Of one operation, the least of several batches. */
static double seconds_of(void (*operation)(void))
{
    const struct schedule_limits limits = {
        .batch_s = 0.01, .budget_s = 0.5, .batches = 10, .least = 1};
    struct schedule plan;
    operation(); /* the first use */
    done++;
    for (schedule_start(&plan, &limits, 1); plan.count > 0;) {
        const double start_s = schedule_clock_s();
        for (uint64_t i = 0; i < plan.count; i++)
            operation();
        done += plan.count;
        schedule_advance(&plan, schedule_clock_s() - start_s);
    }
    return plan.best_s;
}

static void row_print(const struct figure *figure, double took_s, double raw_s, bool is_right)
{
    const double ratio =
        figure->ratio == SPEED ? figure->work * raw_s / took_s : took_s / (figure->work * raw_s);
    const bool is_met = figure->ratio == SPEED ? ratio >= figure->target : ratio <= figure->target;
    printf("| %s | %.2f us | %s: %.2f us | ", figure->what, took_s * 1e6, figure->against,
           raw_s * 1e6);
    if (!is_right)
        printf("WRONG data | | |\n");
    else if (figure->target == 0)
        printf("%.2f | | |\n", ratio);
    else
        printf("%.2f | %s %g | %s |\n", ratio, figure->ratio == SPEED ? "at least" : "at most",
               figure->target, is_met ? "met" : "missed");
    fflush(stdout);
}

static void fill(const struct figure *figure)
{
    if (figure->is_sum)
        data_fill_doubles(host, LARGE, rank == 0 ? MINE : THEIRS);
    else
        data_fill(host, LARGE, rank == 0 ? MINE : THEIRS);
    device_write(rank == 0 ? buffer : memory, host, LARGE);
    done = 0;
}

/* Collective. Returns false if data were wrong. */
static bool measure(const struct figure *figure)
{
    double took_s = 0, raw_s = 0;
    fill(figure);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        took_s = seconds_of(figure->operation);
        MPI_Win_unlock_all(win);
    }
    MPI_Bcast(&done, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    int is_right = rank > 1 || figure->check();
    MPI_Win_unlock(rank, win);
    MPI_Allreduce(MPI_IN_PLACE, &is_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) {
        raw_s = seconds_of(figure->raw);
        row_print(figure, took_s, raw_s, is_right);
    }
    return is_right;
}

/* The reason why nothing is measured, or NULL. Collective. */
static const char *refusal(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int len, ranks, is_there = device_exists();
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_library_version(library, &len);
    MPI_Allreduce(MPI_IN_PLACE, &is_there, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return ranks < 2                          ? "two ranks are needed"
           : strstr(library, "Oriel") == NULL ? "device memory needs `oriel run`"
           : !is_there                        ? "no libcuda.so.1 with a GPU"
                                              : NULL;
}

int main(int argc, char **argv)
{
    bool is_right = true;
    setenv("CUDA_VISIBLE_DEVICES", "0", 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *reason = refusal();
    if (reason != NULL) {
        if (rank == 0)
            printf("skipped: %s\n", reason);
        MPI_Finalize();
        return SKIP;
    }
    host = malloc(LARGE);
    memory = device_alloc(LARGE);
    buffer = device_alloc(LARGE);
    other = device_alloc(LARGE);
    MPI_Type_vector(BLOCKS, BLOCK, 2 * BLOCK, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    MPI_Win_create(memory, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0)
        printf("| operation and flush, to the GPU memory of rank 1 | Oriel | the driver in one "
               "process | ratio | target | |\n|---|---:|---:|---:|---|---|\n");
    for (int i = 0; i < FIGURES; i++)
        is_right = measure(&figures[i]) && is_right;
    MPI_Win_free(&win);
    MPI_Type_free(&vector);
    device_free(other);
    device_free(buffer);
    device_free(memory);
    free(host);
    MPI_Finalize();
    return !is_right;
}
