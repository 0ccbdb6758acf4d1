/* The memory of a history, by pages of 4 KiB: how many records of the tree are around each, and its
 * cells, one for each 64 bytes, which store small accesses. A page is made when first needed and
 * stays with the history. A process that has its number finds it without a lock. The contents of a
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

/* An access; cell_store.h says how its two words are read. */
struct oriel_cell_entry {
    _Atomic uint64_t ticks;
    uint64_t what; /* 0: no bytes */
};

struct oriel_cell {
    _Atomic uint64_t owner; /* a board word lock */
    oriel_shm_offset next;  /* more of the same cell; their owners are of no account */
    struct oriel_cell_entry entries[ORIEL_CELL_ENTRIES];
};
_Static_assert(sizeof(struct oriel_cell) == 128, "a cell is two lines");

struct oriel_page {
    oriel_shm_offset next;  /* of the same bucket */
    uint64_t number;        /* offset >> ORIEL_PAGE_SHIFT */
    _Atomic uint64_t used;  /* bits of the cells that ever had an entry */
    oriel_shm_offset block; /* of the board, in which the page lies */
    uint64_t unused[4];
    struct oriel_cell cells[ORIEL_PAGE_CELLS];
};
_Static_assert(offsetof(struct oriel_page, cells) == 64, "cells begin lines");

struct oriel_page_bucket {
    _Atomic oriel_shm_offset first;
    _Atomic uint32_t
        wide; /* records around its pages, and accesses that are about to become some */
    uint32_t unused;
};

struct oriel_pages {
    oriel_shm_offset place; /* of the buckets */
    uint64_t count;         /* of them, a power of 2 */
};

/* Of a memory of about so many bytes (0: nobody knows).  False when the board is full. */
bool oriel_pages_make(struct oriel_pages *pages, uint64_t size_bytes);
void oriel_pages_free(struct oriel_pages *pages);

static inline struct oriel_page_bucket *oriel_page_bucket(const struct oriel_pages *pages,
                                                          uint64_t number)
{
    return (struct oriel_page_bucket *)(void *)(oriel_shm_base + pages->place) +
           (number & (pages->count - 1));
}

/* The page of this number in the chain that begins at place. */
static inline struct oriel_page *oriel_page_behind(oriel_shm_offset place, uint64_t number)
{
    while (place != 0) {
        struct oriel_page *page = oriel_shm_at(place);
        if (page->number == number)
            return page;
        place = page->next;
    }
    return NULL;
}

/* NULL: nothing was small there yet. */
static inline struct oriel_page *oriel_page_in(const struct oriel_page_bucket *bucket,
                                               uint64_t number)
{
    return oriel_page_behind(atomic_load_explicit(&bucket->first, memory_order_acquire), number);
}

static inline struct oriel_page *oriel_page_find(const struct oriel_pages *pages, uint64_t number)
{
    return oriel_page_in(oriel_page_bucket(pages, number), number);
}

/* The same, made when it is not there; NULL: the board is full. */
struct oriel_page *oriel_page_make(const struct oriel_pages *pages, uint64_t number);

/* by more records lie around the bytes from low to high.  Under the history's lock; of marks that are new a full fence has to follow
 * before cells are looked into (cell_store.c, S2). */
void oriel_pages_mark(const struct oriel_pages *pages, int64_t low, int64_t high, int by);

/* No record lies anywhere. */
void oriel_pages_unmark_all(const struct oriel_pages *pages);

/* Entries with bytes, and what all of it takes in the board. */
void oriel_pages_size(const struct oriel_pages *pages, uint64_t *entries, uint64_t *bytes);

#endif
