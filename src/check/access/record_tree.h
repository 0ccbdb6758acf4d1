/* The records of one history: a tree by first byte. Each record stores the last byte of its
 * subtree, so all records around some bytes are found in few steps. Records are in slabs of the
 * checker's shared memory. The tree refers to them by number; a record keeps its number until it is
 * freed. Under the history's lock. */
#ifndef ORIEL_CHECK_ACCESS_RECORD_TREE_H
#define ORIEL_CHECK_ACCESS_RECORD_TREE_H

#include "check/access/history.h"
#include "check/access/history_pages.h"
#include "check/access/strided_sets.h"

typedef uint32_t oriel_record_number; /* 0: none */

struct oriel_record {
    oriel_record_number left;
    oriel_record_number right;
    uint32_t priority; /* of a treap: no child's is above its parent's */
    uint32_t serial;   /* changes when the number is used again */
    int64_t most;      /* highest end of a record in the subtree */
    struct oriel_access_extent runs;
    struct oriel_access access;
    oriel_record_number previous; /* of pending records, in a lane; next also chains free records */
    oriel_record_number next;
    /* a search reads only the first line of each record that it passes */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct oriel_record, access) <= 64, "a search reads one line");

enum { ORIEL_RECORD_SLABS = 24, ORIEL_RECORD_SLAB_FIRST = 16 };

struct oriel_records {
    struct oriel_pages pages; /* of the history's memory; they count the records around them */
    oriel_record_number root;
    oriel_record_number unused; /* the first free record */
    uint32_t made;              /* the highest number so far */
    uint32_t live;
    uint32_t serial;
    uint32_t chance;
    /* from this struct to each one's first record; each is twice as large as the last */
    int64_t slabs[ORIEL_RECORD_SLABS];
    oriel_shm_offset places[ORIEL_RECORD_SLABS]; /* their allocations in the shared memory */
};

/* Makes the tree for a memory of about size_bytes. Returns false when the shared memory is full. */
bool oriel_records_init(struct oriel_records *records, uint64_t size_bytes);

/* Removes all records, whatever state they are in. */
void oriel_records_empty(struct oriel_records *records);
void oriel_records_free(struct oriel_records *records);

/* The shared memory that the slabs use. */
uint64_t oriel_records_bytes(const struct oriel_records *records);

static inline struct oriel_record *oriel_record_at(struct oriel_records *records,
                                                   oriel_record_number number)
{
    uint32_t which = (number - 1) / ORIEL_RECORD_SLAB_FIRST + 1;
    unsigned slab = 31u - (unsigned)__builtin_clz(which);
    uint32_t within = number - 1 - ORIEL_RECORD_SLAB_FIRST * ((1u << slab) - 1);
    return (struct oriel_record *)((char *)records + records->slabs[slab]) + within;
}

/* Returns a record that is not in the tree, zero except for priority and serial; 0 when the shared
 * memory is full. */
oriel_record_number oriel_record_make(struct oriel_records *records);

/* Frees a record that is not in the tree. */
void oriel_record_drop(struct oriel_records *records, oriel_record_number number);

/* marked: its bytes already have its mark (history_pages.h). */
void oriel_record_insert(struct oriel_records *records, oriel_record_number number, bool marked);
void oriel_record_remove(struct oriel_records *records, oriel_record_number number);

/* Changes the runs of a record that is in the tree. */
void oriel_record_change(struct oriel_records *records, oriel_record_number number,
                         const struct oriel_access_extent *runs);

enum { ORIEL_RECORD_HITS = 32 };

struct oriel_record_hits {
    size_t count;
    oriel_record_number numbers[ORIEL_RECORD_HITS];
};

/* Finds the records that have bytes, or holes between bytes, from low to high. They are in the
 * tree's order, and follow after (NULL: from the start). If hits is full, there may be more. */
void oriel_records_find(struct oriel_records *records, int64_t low, int64_t high,
                        const struct oriel_access_extent *after, oriel_record_number after_number,
                        struct oriel_record_hits *hits);

/* Removes from the tree, and frees, the records for which gone returns true. */
typedef bool oriel_record_gone_fn(const struct oriel_record *record, void *closure);
void oriel_records_sweep(struct oriel_records *records, oriel_record_gone_fn *gone, void *closure);

#endif
