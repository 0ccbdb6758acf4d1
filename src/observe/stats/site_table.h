/* A table of the counters of a window's calls by call site, in the memory file beside the window's
 * record (record.h). Open addressing: a site is in one of ORIEL_SITE_LOOKS consecutive slots. When
 * other sites have these, it counts in the row of its kind in `others`. Slots are never freed, so
 * the sums over all rows of a kind are those of all calls of that kind.
 *
 * A slot is filled in before its key is published. One thread at a time adds sites. This header
 * does not need mpi.h. */
#ifndef ORIEL_OBSERVE_STATS_SITE_TABLE_H
#define ORIEL_OBSERVE_STATS_SITE_TABLE_H

#include "observe/stats/record.h"
#include "observe/trace/trace_format.h"

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIEL_SITES = 128, /* first slots; a power of two */
    ORIEL_SITE_LOOKS = 8,
    ORIEL_SITE_SLOTS = ORIEL_SITES + ORIEL_SITE_LOOKS - 1,
    ORIEL_SITE_KINDS = ORIEL_COUNTED_OPERATIONS + ORIEL_COUNTED_CALLS,
    ORIEL_SITE_ROWS = ORIEL_SITE_SLOTS + ORIEL_SITE_KINDS
};

/* Calls of one kind from one place. */
struct oriel_counted_site {
    _Atomic uint64_t key; /* oriel_site_key; 0: free */
    _Atomic uint64_t count;
    _Atomic uint64_t bytes;      /* of operations */
    _Atomic uint64_t time_ns;    /* in the calls; estimated from samples where they are short */
    _Atomic uint64_t waiting_ns; /* the part spent waiting for other ranks, spinning or asleep */
    _Atomic uint64_t waited;     /* calls that waited at all */
    _Atomic uint64_t longest_ns; /* of one call's waiting */
    uint16_t place;              /* number in the process's list (site_places.h); 0: others */
    uint8_t kind;                /* enum oriel_trace_kind */
    uint8_t reserved;
    /* of a sampled trace: the count, modulo 2^32, of the next operation that is traced */
    _Atomic uint32_t next_traced;
};
_Static_assert(sizeof(struct oriel_counted_site) == 64, "a site has a cache line");

struct oriel_site_table {
    struct oriel_counted_site sites[ORIEL_SITE_SLOTS];
    struct oriel_counted_site others[ORIEL_SITE_KINDS];
};

/* Addresses of programs have less than 56 bits. */
static inline uint64_t oriel_site_key(uint64_t address, enum oriel_trace_kind kind)
{
    return address | (uint64_t)(kind + 1) << 56;
}

static inline struct oriel_counted_site *oriel_site_first(struct oriel_site_table *table,
                                                          uint64_t key)
{
    return &table->sites[(key ^ key >> 7) % ORIEL_SITES];
}

/* The row of the key; NULL: none yet. */
static inline struct oriel_counted_site *oriel_site_table_find(struct oriel_site_table *table,
                                                               uint64_t key)
{
    struct oriel_counted_site *first = oriel_site_first(table, key);
    for (struct oriel_counted_site *site = first; site < first + ORIEL_SITE_LOOKS; site++)
        if (oriel_likely(atomic_load_explicit(&site->key, memory_order_acquire) == key))
            return site;
    return NULL;
}

/* Adds a row for the key and returns it, or the row that has it already, or the kind's row in
 * `others`. */
struct oriel_counted_site *oriel_site_table_add(struct oriel_site_table *table, uint64_t key,
                                                uint16_t place, enum oriel_trace_kind kind);

/* Copies the rows with calls to out, which has room for ORIEL_SITE_ROWS. Returns their number. */
uint32_t oriel_site_table_copy(const struct oriel_site_table *table,
                               struct oriel_counted_site *out);

#endif
