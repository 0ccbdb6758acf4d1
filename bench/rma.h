/* What the benchmark's harness (rma.c) and its patterns (patterns.c) know of each other.
 * A pattern changes the window's data in a way that its check can foretell from the number of operations done.
 * Only the two files include it. */
#ifndef ORIEL_BENCH_RMA_H
#define ORIEL_BENCH_RMA_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RMA_SLOTS = 64, RMA_DOUBLES = 4096, RMA_LARGEST_BYTES = 1 << 20, RMA_WINDOW_BYTES = RMA_LARGEST_BYTES + 4096, RMA_RANKS = 64 };

enum rma_memory { RMA_LOCAL, RMA_ALLOCATE, RMA_CREATE, RMA_DYNAMIC, RMA_MEMORIES };

/* How a pattern is driven. */
enum rma_kind {
    RMA_RAW,       /* rank 0 alone, no window */
    RMA_RAW_PAIR,  /* both ranks, on memory that they share; no window of the program's */
    RMA_PASSIVE,   /* rank 0 alone, inside lock_all */
    RMA_LOCKING,   /* rank 0 alone, it opens and closes its own epochs */
    RMA_ACTIVE,    /* all ranks call, each in its part */
    RMA_BUSY,      /* once: rank 0 waits for a rank 1 that computes; nobody used the window before */
    RMA_BUSY_AGAIN /* the same after a first operation to rank 1 */
};

struct rma_run {
    MPI_Win win;
    MPI_Group peer;      /* ranks 0 and 1: the other of the two */
    char *mine, *buffer; /* this rank's window memory; origin buffer of the same size */
    void *block;         /* what has to be freed after the window */
    MPI_Aint begin[RMA_RANKS]; /* displacement of each rank's memory: an address in a dynamic window, else 0 */
    size_t len_bytes;    /* of one operation, where the pattern has a length */
    uint64_t done;       /* operations so far, the same on all ranks when a check runs */
    int rank, ranks;
    enum rma_memory memory;
    bool wrong; /* a datum was not what it should be on this rank */
};

struct rma_pattern {
    const char *name;
    enum rma_kind kind;
    size_t len_bytes;
    void (*prepare)(struct rma_run *run); /* every rank, its own window memory and buffer; may be NULL */
    void (*repeat)(struct rma_run *run, uint64_t count);
    void (*check)(struct rma_run *run); /* every rank, after all have met; may be NULL */
};

extern const struct rma_pattern rma_patterns[];
extern const size_t rma_patterns_len;

/* Makes the window and its memory on all ranks; rma_window_close undoes it. */
void rma_window_open(struct rma_run *run, size_t len_bytes);
void rma_window_close(struct rma_run *run);

#endif
