/* Shared by the parts of the benchmark's program without MPI: a raw operation and a run of it. A
 * raw operation checks its data after each batch, as the patterns do. raw.c drives the operations
 * in the other files. */
#ifndef ORIEL_BENCH_RAW_H
#define ORIEL_BENCH_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data.h"

enum { RAW_SLOTS = 64, RAW_RANKS = 64 };

struct member; /* of a team of processes */
struct shape;

struct raw_run {
    const struct raw_operation *operation;
    size_t len_bytes;
    int ranks;       /* number of processes */
    char *from, *to; /* len_bytes of input and output; twice that in strided operations */
    char *seen;      /* another mapping of the pages of `to` when they are shared; otherwise `to` */
    uint64_t batch;
    uint64_t done;  /* operations in this batch */
    double timed_s; /* duration of the last repeat when it measures itself; otherwise 0 */
    bool wrong;
};

struct raw_operation {
    const char *name;
    bool shared; /* `to` is in pages of a memory file that are mapped twice */
    void (*prepare)(struct raw_run *run);
    void (*repeat)(struct raw_run *run, uint64_t count);
    void (*check)(struct raw_run *run);
    /* 0 for an operation of one process */
    int ranks_least;
    /* size of `from` and `to`; NULL: twice len_bytes */
    size_t (*span)(const struct raw_run *run);
    void (*shape)(struct shape *shape); /* of the hand-written loops */
    void (*move)(char *to, const char *from);
    /* Teams define one of the next two: all processes do `count` operations, */
    void (*together)(struct member *me, uint64_t count);
    /* or each does as many as it can. */
    void (*one)(struct member *me, uint64_t operation);
    /* each process of the team is in its own session */
    bool sessions;
};

/* Each ends with a row without a name. */
extern const struct raw_operation raw_words[], raw_bulk[], raw_pairs[], raw_shapes[],
    raw_elements[], raw_teams[];

/* Keeps the compiler from removing a loop: it must assume that memory is read here. */
static inline void raw_memory_used(void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

#endif
