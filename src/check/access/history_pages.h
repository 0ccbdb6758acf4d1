/* The memory of a history, by pages of 4 KiB. A page's bucket counts the records of the tree around
 * it. Its cells, one for each 64 bytes, store small accesses. A page is made when first needed, and
 * is freed with the history. A process finds it by its number without a lock. The contents of a
 * cell are under the cell's lock. */
#ifndef ORIEL_CHECK_ACCESS_HISTORY_PAGES_H
#define ORIEL_CHECK_ACCESS_HISTORY_PAGES_H

#include "check/shm/shm.h"

#include <stdatomic.h>

enum {
    ORIEL_PAGE_SHIFT = 12,
    ORIEL_CELL_SHIFT = 6,
    ORIEL_CELL_BYTES = 1 << ORIEL_CELL_SHIFT,
    ORIEL_PAGE_CELLS = 1 << (ORIEL_PAGE_SHIFT - ORIEL_CELL_SHIFT),
    ORIEL_CELL_ENTRIES = 7,
};

/* An access; cell_store.h defines its two words. */
struct oriel_cell_entry {
    _Atomic uint64_t ticks;
    uint64_t what; /* 0: no bytes */
};

struct oriel_cell {
    _Atomic uint64_t owner; /* a word lock of the shared memory */
    oriel_shm_offset next;  /* further parts of the same cell; their owners are unused */
    struct oriel_cell_entry entries[ORIEL_CELL_ENTRIES];
};
_Static_assert(sizeof(struct oriel_cell) == 128, "a cell is two lines");

struct oriel_page {
    oriel_shm_offset next;  /* of the same bucket */
    uint64_t number;        /* offset >> ORIEL_PAGE_SHIFT */
    _Atomic uint64_t used;  /* bits of the cells that ever had an entry */
    oriel_shm_offset block; /* allocation in the shared memory that contains the page */
    uint64_t unused[4];
    struct oriel_cell cells[ORIEL_PAGE_CELLS];
};
_Static_assert(offsetof(struct oriel_page, cells) == 64, "cells begin lines");

struct oriel_page_bucket {
    _Atomic oriel_shm_offset first;
    /* records around its pages, and accesses that are about to become records */
    _Atomic uint32_t wide;
    uint32_t unused;
};

struct oriel_pages {
    oriel_shm_offset place; /* of the buckets */
    uint64_t count;         /* of them, a power of 2 */
};

/* Makes the buckets for a memory of about size_bytes (0: unknown). Returns false when the shared
 * memory is full. */
bool oriel_pages_make(struct oriel_pages *pages, uint64_t size_bytes);
void oriel_pages_free(struct oriel_pages *pages);

static inline struct oriel_page_bucket *oriel_page_bucket(const struct oriel_pages *pages,
                                                          uint64_t number)
{
    return (struct oriel_page_bucket *)(void *)(oriel_shm_base + pages->place) +
           (number & (pages->count - 1));
}

/* The page of this number in the chain that starts at place. */
static inline struct oriel_page *oriel_page_next(oriel_shm_offset place, uint64_t number)
{
    while (place != 0) {
        struct oriel_page *page = oriel_shm_at(place);
        if (page->number == number)
            return page;
        place = page->next;
    }
    return NULL;
}

/* NULL: no small access has used the page yet. */
static inline struct oriel_page *oriel_page_in(const struct oriel_page_bucket *bucket,
                                               uint64_t number)
{
    return oriel_page_next(atomic_load_explicit(&bucket->first, memory_order_acquire), number);
}

static inline struct oriel_page *oriel_page_find(const struct oriel_pages *pages, uint64_t number)
{
    return oriel_page_in(oriel_page_bucket(pages, number), number);
}

/* The same, but makes a missing page. NULL: the shared memory is full. */
struct oriel_page *oriel_page_make(const struct oriel_pages *pages, uint64_t number);

/* Adds `by` to the count of records around the bytes from low to high. Under the history's lock.
 * After new marks the caller needs a full fence before it scans cells (cell_store.c, S2). */
void oriel_pages_mark(const struct oriel_pages *pages, int64_t low, int64_t high, int by);

/* Sets all counts of records to 0. */
void oriel_pages_unmark_all(const struct oriel_pages *pages);

/* Counts the entries that have bytes, and the shared memory that the pages use. */
void oriel_pages_size(const struct oriel_pages *pages, uint64_t *entries, uint64_t *bytes);

#endif
