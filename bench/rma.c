/* The benchmark's MPI program: times one-sided patterns, each in its own window, and verifies their data.
 * A time is printed only when every rank saw the right data; otherwise the line says WRONG.
 * Run by bench/run, or by hand: `mpiexec -n 2 rma put-8:allocate fence:create`; it knows nothing of Oriel.
 *
 * Output of rank 0, one line each: `library TEXT`, then for each pattern `begin PATTERN MEMORY` and
 * `PATTERN MEMORY NANOSECONDS` (or WRONG): the time of one operation in the best batch. */
#define _POSIX_C_SOURCE 200809L
#include "rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With more ranks than processors a batch outlasts the scheduler's slices, in which order comes back after a wait. */
static const double batch_s = 0.01, batch_many_s = 0.1, budget_s = 1.5, compute_s = 1.0;
static const char *const memory_names[RMA_MEMORIES] = {"local", "allocate", "create", "dynamic"};
enum { BATCHES = 10, BATCHES_LEAST = 2 };

static void fail(const char *what)
{
    fprintf(stderr, "rma: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void *zeroed(size_t len_bytes)
{
    void *block = aligned_alloc(4096, (len_bytes + 4095) / 4096 * 4096);
    if (!block)
        fail("out of memory");
    memset(block, 0, len_bytes);
    return block;
}

/* ---- windows ---- */

void rma_window_open(struct rma_run *run, size_t len_bytes)
{
    run->block = NULL;
    memset(run->begin, 0, sizeof run->begin);
    if (run->memory == RMA_DYNAMIC) {
        MPI_Aint address;
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &run->win);
        MPI_Alloc_mem((MPI_Aint)len_bytes, MPI_INFO_NULL, &run->mine);
        memset(run->mine, 0, len_bytes);
        MPI_Win_attach(run->win, run->mine, (MPI_Aint)len_bytes);
        MPI_Get_address(run->mine, &address);
        MPI_Allgather(&address, 1, MPI_AINT, run->begin, 1, MPI_AINT, MPI_COMM_WORLD);
        return;
    }
    if (run->memory == RMA_ALLOCATE) {
        MPI_Win_allocate((MPI_Aint)len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &run->mine, &run->win);
        return;
    }
    run->block = zeroed(len_bytes);
    run->mine = run->block;
    MPI_Win_create(run->mine, (MPI_Aint)len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &run->win);
}

void rma_window_close(struct rma_run *run)
{
    if (run->memory == RMA_DYNAMIC)
        MPI_Win_detach(run->win, run->mine);
    MPI_Win_free(&run->win);
    if (run->memory == RMA_DYNAMIC)
        MPI_Free_mem(run->mine);
    free(run->block);
}

static bool is_raw(const struct rma_pattern *pattern)
{
    return pattern->kind == RMA_RAW || pattern->kind == RMA_RAW_PAIR;
}

/* Memory of rank 0 that all ranks have mapped: the host's help ends with it. */
static void shared_open(struct rma_run *run)
{
    MPI_Aint len_bytes;
    int unit;

    MPI_Win_allocate_shared(run->rank == 0 ? 4096 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &run->mine, &run->win);
    MPI_Win_shared_query(run->win, 0, &len_bytes, &unit, &run->mine);
    if (run->rank == 0)
        memset(run->mine, 0, (size_t)len_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void run_open(struct rma_run *run, const struct rma_pattern *pattern, enum rma_memory memory)
{
    MPI_Group all;

    *run = (struct rma_run){.memory = memory, .len_bytes = pattern->len_bytes};
    MPI_Comm_rank(MPI_COMM_WORLD, &run->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run->ranks);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &(int){run->rank == 0}, &run->peer);
    MPI_Group_free(&all);
    run->buffer = zeroed(RMA_WINDOW_BYTES);
    if (pattern->kind == RMA_RAW_PAIR) {
        shared_open(run);
        return;
    }
    if (is_raw(pattern)) {
        run->block = run->mine = zeroed(RMA_WINDOW_BYTES);
        if (pattern->prepare)
            pattern->prepare(run);
        return;
    }
    rma_window_open(run, RMA_WINDOW_BYTES);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, run->rank, 0, run->win);
    memset(run->mine, 0, RMA_WINDOW_BYTES);
    if (pattern->prepare)
        pattern->prepare(run);
    MPI_Win_unlock(run->rank, run->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void run_close(struct rma_run *run, const struct rma_pattern *pattern)
{
    if (pattern->kind == RMA_RAW_PAIR)
        MPI_Win_free(&run->win);
    else if (is_raw(pattern))
        free(run->block);
    else
        rma_window_close(run);
    MPI_Group_free(&run->peer);
    free(run->buffer);
}

/* ---- timing ---- */

/* What rank 0 decides between two batches: double the count until a batch is long enough, then keep the best. */
struct schedule {
    uint64_t count; /* of the next batch; 0: no more */
    double batch_s; /* how long a batch takes at least */
    double best_s;  /* of one operation */
    double spent_s;
    int batches; /* that counted */
};

static void schedule_advance(struct schedule *plan, double elapsed_s)
{
    double each_s = elapsed_s / (double)plan->count;

    plan->spent_s += elapsed_s;
    if (plan->batches == 0 && elapsed_s < plan->batch_s && plan->spent_s < budget_s) {
        plan->count *= 2;
        return;
    }
    if (plan->batches == 0 || each_s < plan->best_s)
        plan->best_s = each_s;
    plan->batches++;
    if (plan->batches >= BATCHES || (plan->batches >= BATCHES_LEAST && plan->spent_s > budget_s))
        plan->count = 0;
}

/* Together, an untimed operation stands before and after each batch, so that while rank 0's clock runs nobody is
 * still, or already, in the host's collective: it may spin there and keep the others from the processor. */
static double measure_batches(struct rma_run *run, const struct rma_pattern *pattern, bool together)
{
    struct schedule plan = {.count = 1, .batch_s = run->ranks > 2 ? batch_many_s : batch_s};

    for (;;) {
        if (together)
            MPI_Bcast(&plan.count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (plan.count == 0)
            return plan.best_s;
        pattern->repeat(run, together);
        double start_s = MPI_Wtime();
        pattern->repeat(run, plan.count);
        double elapsed_s = MPI_Wtime() - start_s;
        pattern->repeat(run, together);
        if (run->rank == 0)
            schedule_advance(&plan, elapsed_s);
    }
}

static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* How long rank 0's lock, put, unlock takes while rank 1 computes and calls nothing of MPI, not even its clock. */
static double measure_busy(struct rma_run *run, const struct rma_pattern *pattern)
{
    double elapsed_s = 0;

    if (pattern->kind == RMA_BUSY_AGAIN && run->rank == 0)
        pattern->repeat(run, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    double start_s = clock_s();
    if (run->rank == 1)
        while (clock_s() - start_s < compute_s)
            continue;
    if (run->rank == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* rank 1 is computing by now */
        start_s = clock_s();
        pattern->repeat(run, 1);
        elapsed_s = clock_s() - start_s;
    }
    return elapsed_s;
}

static double measure(struct rma_run *run, const struct rma_pattern *pattern)
{
    double best_s = 0;

    switch (pattern->kind) {
    case RMA_RAW_PAIR:
    case RMA_ACTIVE: return measure_batches(run, pattern, true);
    case RMA_BUSY:
    case RMA_BUSY_AGAIN: return measure_busy(run, pattern);
    case RMA_PASSIVE:
        if (run->rank != 0)
            return 0;
        MPI_Win_lock_all(0, run->win);
        best_s = measure_batches(run, pattern, false);
        MPI_Win_unlock_all(run->win);
        return best_s;
    case RMA_RAW:
    case RMA_LOCKING: return run->rank == 0 ? measure_batches(run, pattern, false) : 0;
    }
    return best_s;
}

/* ---- checking ---- */

/* True when no rank saw a wrong datum. */
static bool verify(struct rma_run *run, const struct rma_pattern *pattern)
{
    bool passive = !is_raw(pattern) && pattern->kind != RMA_ACTIVE;

    MPI_Bcast(&run->done, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (pattern->check && (pattern->kind != RMA_RAW || run->rank == 0)) {
        if (passive)
            MPI_Win_lock(MPI_LOCK_SHARED, run->rank, 0, run->win);
        pattern->check(run);
        if (passive)
            MPI_Win_unlock(run->rank, run->win);
    }
    int wrong = run->wrong;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !wrong;
}

/* ---- the command line ---- */

static const struct rma_pattern *pattern_find(const char *name, size_t len)
{
    for (size_t i = 0; i < rma_patterns_len; i++)
        if (strlen(rma_patterns[i].name) == len && memcmp(rma_patterns[i].name, name, len) == 0)
            return &rma_patterns[i];
    return NULL;
}

/* An argument is PATTERN:MEMORY; false when there is no such thing. */
static bool argument_parse(const char *text, const struct rma_pattern **pattern, enum rma_memory *memory)
{
    const char *colon = strchr(text, ':');

    *pattern = colon ? pattern_find(text, (size_t)(colon - text)) : NULL;
    for (*memory = RMA_LOCAL; *memory < RMA_MEMORIES; (*memory)++)
        if (colon && strcmp(colon + 1, memory_names[*memory]) == 0)
            break;
    return *pattern && *memory < RMA_MEMORIES && is_raw(*pattern) == (*memory == RMA_LOCAL);
}

static void print_library(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int len;

    MPI_Get_library_version(text, &len);
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    printf("library %s\n", text);
}

/* True when the data were right. */
static bool run_one(const char *argument)
{
    const struct rma_pattern *pattern;
    enum rma_memory memory;
    struct rma_run run;

    if (!argument_parse(argument, &pattern, &memory))
        fail("no such pattern and memory");
    run_open(&run, pattern, memory);
    if (run.rank == 0) {
        printf("begin %s %s\n", pattern->name, memory_names[memory]);
        fflush(stdout);
    }
    double best_s = measure(&run, pattern);
    bool good = verify(&run, pattern);
    if (run.rank == 0 && good)
        printf("%s %s %.2f\n", pattern->name, memory_names[memory], best_s * 1e9);
    else if (run.rank == 0)
        printf("%s %s WRONG\n", pattern->name, memory_names[memory]);
    fflush(stdout);
    run_close(&run, pattern);
    return good;
}

int main(int argc, char **argv)
{
    int rank, ranks, status = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2)
        fail("at least two ranks are needed");
    if (rank == 0)
        print_library();
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; rank == 0 && i < rma_patterns_len; i++)
            printf("%s%s\n", rma_patterns[i].name, is_raw(&rma_patterns[i]) ? " local" : " allocate create dynamic");
    } else {
        for (int i = 1; i < argc; i++)
            status |= !run_one(argv[i]);
    }
    MPI_Finalize();
    return status;
}
