/* The records of one history: a tree by first byte that knows the last byte of each subtree, so that all records around some
 * bytes are found in few steps.  Records have numbers, which stay while they live, and lie in slabs of the board beside each
 * other; the tree refers to them by number.  history.c calls, under the history's lock. */
#ifndef ORIEL_CHECK_ACCESS_RECORD_TREE_H
#define ORIEL_CHECK_ACCESS_RECORD_TREE_H

#include "check/access/history.h"
#include "check/access/history_pages.h"
#include "check/access/strided_sets.h"

typedef uint32_t oriel_record_number; /* 0: none */

struct oriel_record {
    oriel_record_number left;
    oriel_record_number right;
    uint32_t priority; /* a treap: no child's is above its parent's */
    uint32_t serial;   /* another one when the number is used again */
    int64_t most;      /* the end of what lies highest in the subtree */
    struct oriel_access_extent runs;
    struct oriel_access access;
    oriel_record_number before; /* pending ones of a lane; behind also chains free ones */
    oriel_record_number behind;
} __attribute__((aligned(
    64))); /* a search looks at the first line of each record that it passes, and no other */
_Static_assert(offsetof(struct oriel_record, access) <= 64, "what a search looks at is one line");

enum { ORIEL_RECORD_SLABS = 24, ORIEL_RECORD_SLAB_FIRST = 16 };

struct oriel_records {
    struct oriel_pages pages; /* of their memory: they know where records lie */
    oriel_record_number root;
    oriel_record_number unused; /* the first of the free ones */
    uint32_t made;              /* numbers that were ever given out */
    uint32_t live;
    uint32_t serial;
    uint32_t chance;
    int64_t slabs
        [ORIEL_RECORD_SLABS]; /* from this struct to each one's first record; each is twice as large as the last */
    oriel_shm_offset places[ORIEL_RECORD_SLABS]; /* what the board gave for them */
};

/* Of a memory of about so many bytes; false when the board is full. */
bool oriel_records_init(struct oriel_records *records, uint64_t size_bytes);

/* Forgets all records, whatever state they are in. */
void oriel_records_empty(struct oriel_records *records);
void oriel_records_free(struct oriel_records *records);

/* What they take in the board. */
uint64_t oriel_records_bytes(const struct oriel_records *records);

static inline struct oriel_record *oriel_record_at(struct oriel_records *records,
                                                   oriel_record_number number)
{
    uint32_t which = (number - 1) / ORIEL_RECORD_SLAB_FIRST + 1;
    unsigned slab = 31u - (unsigned)__builtin_clz(which);
    uint32_t within = number - 1 - ORIEL_RECORD_SLAB_FIRST * ((1u << slab) - 1);
    return (struct oriel_record *)((char *)records + records->slabs[slab]) + within;
}

/* A record that is not in the tree yet, zeroed but for its serial; 0 when the board is full. */
oriel_record_number oriel_record_make(struct oriel_records *records);

/* Of one that is not in the tree. */
void oriel_record_drop(struct oriel_records *records, oriel_record_number number);

/* marked: its bytes are marked already, once for it (history_pages.h). */
void oriel_record_insert(struct oriel_records *records, oriel_record_number number, bool marked);
void oriel_record_remove(struct oriel_records *records, oriel_record_number number);

/* Changes the runs of one that is in the tree. */
void oriel_record_change(struct oriel_records *records, oriel_record_number number,
                         const struct oriel_access_extent *runs);

enum { ORIEL_RECORD_HITS = 32 };

struct oriel_record_hits {
    size_t count;
    oriel_record_number numbers[ORIEL_RECORD_HITS];
};

/* The records that have bytes, or holes between bytes, from low to high, in the tree's order, behind after (NULL: from the
 * start); as many as there is room for.  Full: there may be more. */
void oriel_records_find(struct oriel_records *records, int64_t low, int64_t high,
                        const struct oriel_access_extent *after, oriel_record_number after_number,
                        struct oriel_record_hits *hits);

/* Takes those out of the tree, and drops them, of which gone says so. */
typedef bool oriel_record_gone_fn(const struct oriel_record *record, void *closure);
void oriel_records_sweep(struct oriel_records *records, oriel_record_gone_fn *gone, void *closure);

#endif
