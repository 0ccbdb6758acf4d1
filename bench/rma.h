/* What the parts of the benchmark's MPI program know of each other: a pattern, a run of it, windows and timing.
 * A pattern's data change from batch to batch and follow from the batch's number and the operations done in it.
 * Included by the program's files only: rma.c reads the command line, timing.c drives, window.c makes windows, the
 * other files hold the patterns, a table for each group. */
#ifndef ORIEL_BENCH_RMA_H
#define ORIEL_BENCH_RMA_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data.h"
#include "schedule.h"

enum { RMA_RANKS = 64, RMA_SLOTS = 64, RMA_GUARD_BYTES = 64, RMA_LEAST_BYTES = (1 << 20) + 4096, RMA_HUGE_BYTES = 1 << 21 };

enum rma_memory { RMA_ALLOCATE, RMA_CREATE, RMA_DYNAMIC, RMA_SHARED, RMA_MEMORIES };

/* How a pattern is driven. */
enum rma_kind {
    RMA_PASSIVE,     /* rank 0 alone, inside lock_all; rank 1 is the target */
    RMA_LOCKING,     /* rank 0 alone, it opens and closes its own epochs */
    RMA_ALL_PASSIVE, /* every rank, inside lock_all, each as often as it comes to it */
    RMA_ALL_LOCKING, /* the same, each opens and closes its own epochs */
    RMA_ACTIVE,      /* every rank, and no rank is done before its neighbours have begun */
    RMA_BUSY,        /* once: rank 0 waits for a rank 1 that computes; nobody used the window before */
    RMA_BUSY_AGAIN   /* the same after a first operation to rank 1 */
};

/* Where window memory that a pattern uses begins: so many bytes after a multiple of RMA_HUGE_BYTES. */
struct rma_place {
    const char *name;
    int offset_bytes;
};

struct rma_run {
    const struct rma_pattern *pattern;
    const struct rma_place *place; /* NULL: where MPI puts it; else operations use one area, which lies there */
    enum rma_memory memory;
    size_t len_bytes; /* of one operation */
    int in_flight;    /* operations before one flush */
    int rank, ranks;

    MPI_Win win;
    size_t span_bytes; /* that the pattern uses of window memory and of the buffer, the guard not included */
    char *mine;        /* this rank's window memory */
    char *buffer;      /* origin buffer, as long */
    void *base;        /* what MPI gave for the window, `mine` lies in it */
    void *block;       /* what has to be freed after the window */
    void *buffer_block;
    MPI_Aint begin[RMA_RANKS]; /* displacement of each rank's `mine`: an address in a dynamic window */

    MPI_Datatype origin_type, target_type; /* of the datatype patterns */
    MPI_Group to, from;                    /* of the active patterns: whom this rank starts, whom it posts to */
    MPI_Request requests[RMA_SLOTS];

    uint64_t batch; /* its number: data derive from it */
    uint64_t done;  /* operations so far in this batch; when a check runs also those of the rank that did them */
    uint64_t part;    /* operations between two looks; 0: a sixteenth of a batch */
    uint64_t looked;  /* operations before the last look */
    uint64_t renewed; /* the first operation after the renewal, when a check runs */
    uint64_t heads[RMA_SLOTS];   /* what gets find at the beginning of each area */
    uint64_t done_by[RMA_RANKS]; /* each rank's, when a check runs, where all work without waiting for each other */
    bool wrong;     /* a datum was not what it should be on this rank */
};

struct rma_pattern {
    const char *name;
    enum rma_kind kind;
    size_t (*span)(const struct rma_run *run);            /* NULL: RMA_SLOTS words */
    void (*setup)(struct rma_run *run);                   /* once, after the window is made; may be NULL */
    void (*finish)(struct rma_run *run);                  /* once, before the window is freed; may be NULL */
    void (*prepare)(struct rma_run *run);                 /* before each batch, every rank, its own memory and buffer */
    void (*repeat)(struct rma_run *run, uint64_t count);  /* what is timed; counts run->done */
    void (*check)(struct rma_run *run);                   /* after each batch, every rank */
    void (*renew)(struct rma_run *run);                   /* before the last operations of rank 0, there; may be NULL */
    void (*look)(struct rma_run *run);                    /* RMA_PASSIVE: now and then within a batch, at rank 0; may be NULL */
    bool placeable;                                       /* also run at each place, as NAME-at-PLACE */
};

/* Each ends with a row without a name. */
extern const struct rma_pattern rma_contiguous[], rma_atomics[], rma_datatypes[], rma_elements[],
    rma_epochs[], rma_active[], rma_requests[], rma_creation[], rma_short[];

/* The data of a batch: what origins send, what lies in window memory before, and what rank 0's last operations find. */
uint64_t rma_origin_seed(const struct rma_run *run, int rank);
uint64_t rma_target_seed(const struct rma_run *run, int rank);
uint64_t rma_renewed_seed(const struct rma_run *run);

/* Makes the run's window of len_bytes for each rank: mine, base, block, win. Collective; close undoes it. */
void rma_window_open(struct rma_run *run, size_t len_bytes);

/* Tells all where memory begins in the window: begin. Collective. */
void rma_window_tell(struct rma_run *run);
void rma_window_close(struct rma_run *run);

/* Everything that the pattern needs, and its end. Collective. */
void rma_run_open(struct rma_run *run);
void rma_run_close(struct rma_run *run);

/* Prints how the window's memory is reached, where its info tells; rank 0 prints rank 1's. */
void rma_way_print(const struct rma_run *run, const char *name);

/* Times and checks the pattern; the seconds of one operation count on rank 0. Collective. True: no datum was wrong. */
bool rma_measure(struct rma_run *run, const struct schedule_limits *limits, double *best_s_out);

_Noreturn void rma_fail(const char *what);

#endif
