/* The limits of copies: MPI_Put and MPI_Get of a derived datatype against a hand-written loop, and
 * long ones against memcpy, over the same addresses in one process, in turn.  Rank 0 copies to and
 * from memory of rank 1 that it has mapped. Both end with a publication of the data (a flush, a
 * full fence), and their results are compared. Run by hand: `mpiexec -n 2 oriel run copies
 * [SHAPE]...`; `copies --memory allocate` and `--memory create` omit the loops. */
#define _POSIX_C_SOURCE 200809L
#include "copies.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AREA_BYTES = 4 << 20, TARGET = 1, BATCHES = 15 };
static const double batch_s = 0.0015;

struct run {
    MPI_Win win;
    char *there; /* rank 1's memory, or NULL when rank 0 cannot load and store it */
    char *here;
    bool wrong;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum method { HAND_PUT, MPI_PUT, HAND_GET, MPI_GET, METHODS };

static void once(struct run *run, const struct copies_shape *shape, enum method method)
{
    const int count = shape->bytes != 0 ? shape->bytes : 1;
    switch (method) {
    case HAND_PUT:
        shape->put(run->there, run->here);
        atomic_thread_fence(memory_order_seq_cst);
        break;
    case HAND_GET:
        shape->get(run->here, run->there);
        atomic_thread_fence(memory_order_seq_cst);
        break;
    case MPI_PUT:
        MPI_Put(run->here, count, shape->origin, TARGET, 0, count, shape->target, run->win);
        MPI_Win_flush(TARGET, run->win);
        break;
    default:
        MPI_Get(run->here, count, shape->origin, TARGET, 0, count, shape->target, run->win);
        MPI_Win_flush(TARGET, run->win);
    }
}

static double batch(struct run *run, const struct copies_shape *shape, enum method method,
                    long count)
{
    double start_s = now_s();
    for (long i = 0; i < count; i++)
        once(run, shape, method);
    return (now_s() - start_s) / (double)count;
}

static void fill(char *area, unsigned chance)
{
    for (int i = 0; i < AREA_BYTES; i++) {
        chance = chance * 1664525u + 1013904223u;
        area[i] = (char)(chance >> 24);
    }
}

/* Checks that MPI and the loop produce the same bytes in both buffers. */
static void verify(struct run *run, const struct copies_shape *shape)
{
    char *kept = malloc(AREA_BYTES);
    for (enum method hand = HAND_PUT; hand < METHODS && kept != NULL;
         hand = (enum method)(hand + 2)) {
        char *sink = hand == HAND_PUT ? run->there : run->here;
        fill(run->here, 1);
        fill(run->there, 2);
        once(run, shape, hand);
        memcpy(kept, sink, AREA_BYTES);
        fill(run->here, 1);
        fill(run->there, 2);
        once(run, shape, (enum method)(hand + 1));
        run->wrong |= memcmp(kept, sink, AREA_BYTES) != 0;
    }
    free(kept);
}

static void measure(struct run *run, const struct copies_shape *shape)
{
    double best_s[METHODS] = {0};
    long count = 1;
    if (run->there != NULL)
        verify(run, shape);
    while (batch(run, shape, MPI_PUT, count) * (double)count < batch_s)
        count *= 2;
    for (int i = 0; i < BATCHES; i++)
        for (int method = run->there != NULL ? HAND_PUT : MPI_PUT; method < METHODS;
             method += run->there != NULL ? 1 : 2) {
            double each_s = batch(run, shape, (enum method)method, count);
            if (i == 0 || each_s < best_s[method])
                best_s[method] = each_s;
        }
    printf("%-26s", shape->name);
    if (run->there != NULL)
        printf(" by hand %9.1f %9.1f ns ", 1e9 * best_s[HAND_PUT], 1e9 * best_s[HAND_GET]);
    printf(" put %9.1f  get %9.1f ns", 1e9 * best_s[MPI_PUT], 1e9 * best_s[MPI_GET]);
    if (run->there != NULL)
        printf("  speed of the loop's: put %.2f  get %.2f%s", best_s[HAND_PUT] / best_s[MPI_PUT],
               best_s[HAND_GET] / best_s[MPI_GET], run->wrong ? "  WRONG" : "");
    printf("\n");
    fflush(stdout);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 0;
}

static void *page_aligned(void)
{
    void *block = aligned_alloc(4096, AREA_BYTES);
    if (block == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 2);
        exit(2);
    }
    memset(block, 0, AREA_BYTES);
    return block;
}

/* Creates the window; sets `there` when the memory's address is available.  Returns the memory to
 * free after it. */
static void *window_make(struct run *run, const char *memory)
{
    MPI_Aint len_bytes;
    int unit;
    char *mine;
    void *block = NULL;
    if (strcmp(memory, "create") == 0) {
        block = page_aligned();
        MPI_Win_create(block, AREA_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &run->win);
    } else if (strcmp(memory, "allocate") == 0) {
        MPI_Win_allocate(AREA_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &run->win);
    } else {
        MPI_Win_allocate_shared(AREA_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &run->win);
        MPI_Win_shared_query(run->win, TARGET, &len_bytes, &unit, &run->there);
    }
    return block;
}

int main(int argc, char **argv)
{
    struct run run = {.there = NULL};
    int rank, ranks;
    bool named = argc > 2 && strcmp(argv[1], "--memory") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        fprintf(stderr, "copies: two ranks are needed\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    void *block = window_make(&run, named ? argv[2] : "shared");
    run.here = page_aligned();
    copies_shapes_make();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, run.win);
    for (int i = 0; i < copies_shapes_len && rank == 0; i++)
        if (is_wanted(copies_shapes[i].name, argc - (named ? 3 : 1), argv + (named ? 3 : 1)))
            measure(&run, &copies_shapes[i]);
    MPI_Win_unlock_all(run.win);
    MPI_Barrier(MPI_COMM_WORLD);
    copies_shapes_free();
    MPI_Win_free(&run.win);
    free(block);
    free(run.here);
    MPI_Finalize();
    return run.wrong;
}
