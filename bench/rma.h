/* Shared by the parts of the benchmark's MPI program: a pattern, a run of it, windows and timing. A
 * pattern's data change from batch to batch, and follow from the batch's number and the number of
 * operations in it. rma.c reads the command line, timing.c drives, window.c makes windows; the
 * other files hold a table of patterns for each group. */
#ifndef ORIEL_BENCH_RMA_H
#define ORIEL_BENCH_RMA_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data.h"
#include "schedule.h"

enum {
    RMA_RANKS = 64,
    RMA_SLOTS = 64,
    RMA_GUARD_BYTES = 64,
    RMA_LEAST_BYTES = (1 << 20) + 4096,
    RMA_HUGE_BYTES = 1 << 21
};

enum rma_memory { RMA_ALLOCATE, RMA_CREATE, RMA_DYNAMIC, RMA_SHARED, RMA_MEMORIES };

/* How a pattern is driven. */
enum rma_kind {
    RMA_PASSIVE,     /* rank 0 alone, inside lock_all; rank 1 is the target */
    RMA_LOCKING,     /* rank 0 alone; it opens and closes its own epochs */
    RMA_ALL_PASSIVE, /* every rank, inside lock_all, each as often as it can */
    RMA_ALL_LOCKING, /* the same; each rank opens and closes its own epochs */
    RMA_ACTIVE,      /* every rank; no rank finishes before its neighbours have started */
    RMA_BUSY,        /* once: rank 0 waits for a computing rank 1; the window is unused before */
    RMA_BUSY_AGAIN   /* the same after a first operation to rank 1 */
};

/* Alignment of a pattern's window memory: it begins offset_bytes after a multiple of
 * RMA_HUGE_BYTES. */
struct rma_place {
    const char *name;
    int offset_bytes;
};

struct rma_run {
    const struct rma_pattern *pattern;
    /* NULL: where MPI allocates it; otherwise operations use one area at this alignment */
    const struct rma_place *place;
    enum rma_memory memory;
    size_t len_bytes; /* of one operation */
    int in_flight;    /* number of operations before a flush */
    int rank, ranks;

    MPI_Win win;
    /* bytes of window memory and of the buffer that the pattern uses, without the guard */
    size_t span_bytes;
    char *mine;   /* this rank's window memory */
    char *buffer; /* origin buffer of the same length */
    void *base;   /* the window's memory from MPI; `mine` is inside it */
    void *block;  /* freed after the window */
    void *buffer_block;
    /* displacement of each rank's `mine`: an address in a dynamic window */
    MPI_Aint begin[RMA_RANKS];

    MPI_Datatype origin_type, target_type; /* of the datatype patterns */
    /* Groups of the active patterns: the ranks that this rank starts, and those it posts to. */
    MPI_Group to, from;
    MPI_Request requests[RMA_SLOTS];

    uint64_t batch; /* number of the batch, from which its data derive */
    /* Operations so far in this batch. During a check, also those of the rank that did them. */
    uint64_t done;
    uint64_t part;             /* operations between two inspections; 0: a sixteenth of a batch */
    uint64_t looked;           /* operations before the last inspection */
    uint64_t renewed;          /* during a check: the first operation after the renewal */
    uint64_t heads[RMA_SLOTS]; /* the values that gets find at the beginning of each area */
    /* During a check of ranks that do not wait for each other: operations of each rank. */
    uint64_t done_by[RMA_RANKS];
    bool wrong; /* this rank found wrong data */
};

struct rma_pattern {
    const char *name;
    enum rma_kind kind;
    size_t (*span)(const struct rma_run *run); /* NULL: RMA_SLOTS words */
    /* once, after the window is created; may be NULL */
    void (*setup)(struct rma_run *run);
    /* once, before the window is freed; may be NULL */
    void (*finish)(struct rma_run *run);
    /* before each batch, on every rank, for its own memory and buffer */
    void (*prepare)(struct rma_run *run);
    /* the timed part; adds count to run->done */
    void (*repeat)(struct rma_run *run, uint64_t count);
    void (*check)(struct rma_run *run); /* after each batch, on every rank */
    /* on rank 0, before its last operations; may be NULL */
    void (*renew)(struct rma_run *run);
    /* RMA_PASSIVE: at times within a batch, on rank 0; may be NULL */
    void (*look)(struct rma_run *run);
    /* also run at each alignment, as NAME-at-PLACE */
    bool placeable;
    int counters; /* number of counters of notifications in its window */
};

/* Each ends with a row without a name. */
extern const struct rma_pattern rma_contiguous[], rma_atomics[], rma_datatypes[], rma_elements[],
    rma_epochs[], rma_active[], rma_requests[], rma_creation[], rma_short[], rma_notified[];

/* The seeds of a batch: of the data that origins send, of the initial window memory, and of the
 * data for rank 0's last operations. */
uint64_t rma_origin_seed(const struct rma_run *run, int rank);
uint64_t rma_target_seed(const struct rma_run *run, int rank);
uint64_t rma_renewed_seed(const struct rma_run *run);

/* Creates the run's window of len_bytes on each rank: sets mine, base, block and win. Collective;
 * close undoes it. */
void rma_window_open(struct rma_run *run, size_t len_bytes);

/* Exchanges the displacements: sets begin. Collective. */
void rma_window_exchange(struct rma_run *run);
void rma_window_close(struct rma_run *run);

/* Set up and remove everything that the pattern needs. Collective. */
void rma_run_open(struct rma_run *run);
void rma_run_close(struct rma_run *run);

/* A group of these ranks of MPI_COMM_WORLD. */
MPI_Group rma_group_make(const int *ranks, int count);

/* Prints the path to the window's memory when its info has it; rank 0 prints rank 1's. */
void rma_path_print(const struct rma_run *run, const char *name);

/* Times and checks the pattern; rank 0 determines the seconds of one operation. Collective. Returns
 * true when all data were right. */
bool rma_measure(struct rma_run *run, const struct schedule_limits *limits, double *best_s_out);

_Noreturn void rma_fail(const char *what);

#endif
