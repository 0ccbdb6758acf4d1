/* What the parts of the benchmark's program without MPI know of each other: a raw operation and a run of it.
 * A raw operation checks its data after each batch, as the patterns do.
 * Included by raw.c, which drives, and by the files with the operations. */
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
    int ranks; /* processes that take part */
    char *from, *to; /* len_bytes of what the operation reads and writes, twice that in strided ones */
    char *seen;      /* `to` by another mapping of the same pages, where it is shared; else `to` */
    uint64_t batch;
    uint64_t done;  /* operations in this batch */
    double timed_s; /* that the last repeat took, where it says so itself; else 0 */
    bool wrong;
};

struct raw_operation {
    const char *name;
    bool shared; /* `to` is in pages of a memory file that are mapped twice */
    void (*prepare)(struct raw_run *run);
    void (*repeat)(struct raw_run *run, uint64_t count);
    void (*check)(struct raw_run *run);
    int ranks_least;                                             /* 0: it is one process's */
    size_t (*span)(const struct raw_run *run);                   /* of `from` and `to`; NULL: twice len_bytes */
    void (*shape)(struct shape *shape);                          /* of the loops by hand */
    void (*move)(char *to, const char *from);
    void (*together)(struct member *me, uint64_t count);         /* of the teams, one of these two: each does as many, */
    void (*one)(struct member *me, uint64_t operation);          /* or each as many as it comes to */
    bool sessions;                                               /* each of a team in one of its own */
};

/* Each ends with a row without a name. */
extern const struct raw_operation raw_words[], raw_bulk[], raw_pairs[], raw_shapes[],
    raw_elements[], raw_teams[];

/* What the compiler may not take out of a loop: the memory may be looked at here. */
static inline void raw_memory_used(void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

#endif
