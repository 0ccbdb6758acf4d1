/* What the parts of the benchmark's program without MPI know of each other: a raw operation and a run of it.
 * A raw operation checks its data after each batch, as the patterns do.
 * Included by raw.c, which drives, and by the files with the operations. */
#ifndef ORIEL_BENCH_RAW_H
#define ORIEL_BENCH_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data.h"

enum { RAW_SLOTS = 64 };

struct raw_run {
    size_t len_bytes;
    char *from, *to; /* len_bytes of what the operation reads and writes, twice that in strided ones */
    char *seen;      /* `to` by another mapping of the same pages, where it is shared; else `to` */
    uint64_t batch;
    uint64_t done; /* operations in this batch */
    bool wrong;
};

struct raw_operation {
    const char *name;
    bool shared; /* `to` is in pages of a memory file that are mapped twice */
    void (*prepare)(struct raw_run *run);
    void (*repeat)(struct raw_run *run, uint64_t count);
    void (*check)(struct raw_run *run);
};

/* Each ends with a row without a name. */
extern const struct raw_operation raw_words[], raw_bulk[], raw_pairs[];

#endif
