/* Pages in buckets by their numbers. A page is filled before it is linked, and never unlinked while
 * its history exists. So chains are read without a lock. */
#include "check/access/history_pages.h"

#include "base/atomic.h"
#include "base/delay.h"

#include <string.h>

enum { BUCKETS_LEAST = 64, BUCKETS_UNKNOWN = 1 << 12, BUCKETS_MOST = 1 << 16 };

static size_t page_bytes(void)
{
    return sizeof(struct oriel_page) + ORIEL_CACHE_LINE;
}

/* Pages start at cache lines, allocations of the shared memory do not; each page stores its
 * allocation. */
static struct oriel_page *page_in_block(oriel_shm_offset block)
{
    return (struct oriel_page *)(((uintptr_t)oriel_shm_at(block) + ORIEL_CACHE_LINE - 1) /
                                 ORIEL_CACHE_LINE * ORIEL_CACHE_LINE);
}

bool oriel_pages_make(struct oriel_pages *pages, uint64_t size_bytes)
{
    uint64_t count = size_bytes == 0 ? BUCKETS_UNKNOWN : BUCKETS_LEAST;
    while (count < BUCKETS_MOST && count << ORIEL_PAGE_SHIFT < size_bytes)
        count *= 2;
    pages->count = count;
    pages->place = oriel_shm_allocate(count * sizeof(struct oriel_page_bucket));
    return pages->place != 0;
}

static void free_cell_chain(oriel_shm_offset place)
{
    while (place != 0) {
        oriel_shm_offset next = ((struct oriel_cell *)oriel_shm_at(place))->next;
        oriel_shm_free(place, sizeof(struct oriel_cell));
        place = next;
    }
}

static void free_page(struct oriel_page *page)
{
    for (int i = 0; i < ORIEL_PAGE_CELLS; i++)
        if (page->used >> i & 1)
            free_cell_chain(page->cells[i].next);
    oriel_shm_free(page->block, page_bytes());
}

void oriel_pages_free(struct oriel_pages *pages)
{
    for (uint64_t i = 0; i < pages->count; i++) {
        oriel_shm_offset place = oriel_page_bucket(pages, i)->first;
        while (place != 0) {
            struct oriel_page *page = oriel_shm_at(place);
            place = page->next;
            free_page(page);
        }
    }
    oriel_shm_free(pages->place, pages->count * sizeof(struct oriel_page_bucket));
}

/* The chain is searched from the same element before which the new page is then linked. So no other
 * process has linked a page of this number in between. */
struct oriel_page *oriel_page_make(const struct oriel_pages *pages, uint64_t number)
{
    struct oriel_page_bucket *bucket = oriel_page_bucket(pages, number);
    struct oriel_page *page = oriel_page_find(pages, number);
    if (oriel_likely(page != NULL))
        return page;
    oriel_shm_offset block = oriel_shm_allocate(page_bytes());
    if (block == 0)
        return NULL;
    page = page_in_block(block);
    page->number = number;
    page->block = block;
    page->next = atomic_load(&bucket->first);
    do {
        oriel_delay();
        struct oriel_page *other = oriel_page_next(page->next, number);
        if (other != NULL) {
            oriel_shm_free(block, page_bytes());
            return other;
        }
    } while (!atomic_compare_exchange_strong(&bucket->first, &page->next, oriel_shm_place(page)));
    return page;
}

/* Only the holder of the history's lock changes the count, so no locked instruction is needed. */
static void mark_bucket(struct oriel_page_bucket *bucket, uint32_t by)
{
    uint32_t wide = atomic_load_explicit(&bucket->wide, memory_order_relaxed);
    atomic_store_explicit(&bucket->wide, wide + by, memory_order_relaxed);
}

/* A long range has more pages than there are buckets. Each bucket then gets one mark per
 * page that maps to it. */
void oriel_pages_mark(const struct oriel_pages *pages, int64_t low, int64_t high, int by)
{
    uint64_t number = (uint64_t)low >> ORIEL_PAGE_SHIFT;
    uint64_t last = (uint64_t)(high - 1) >> ORIEL_PAGE_SHIFT;
    uint64_t turns = last < number ? 0 : (last - number) / pages->count;
    for (uint64_t i = 0; i < pages->count && turns > 0; i++)
        mark_bucket(oriel_page_bucket(pages, i), (uint32_t)by * (uint32_t)turns);
    for (number += turns * pages->count; number <= last; number++)
        mark_bucket(oriel_page_bucket(pages, number), (uint32_t)by);
}

void oriel_pages_unmark_all(const struct oriel_pages *pages)
{
    for (uint64_t i = 0; i < pages->count; i++)
        atomic_store(&oriel_page_bucket(pages, i)->wide, 0);
}

void oriel_pages_size(const struct oriel_pages *pages, uint64_t *entries, uint64_t *bytes)
{
    *entries = 0;
    *bytes = pages->count * sizeof(struct oriel_page_bucket);
    for (uint64_t i = 0; i < pages->count; i++)
        for (oriel_shm_offset place = oriel_page_bucket(pages, i)->first; place != 0;) {
            const struct oriel_page *page = oriel_shm_at(place);
            for (int k = 0; k < ORIEL_PAGE_CELLS; k++)
                for (const struct oriel_cell *cell = &page->cells[k]; cell != NULL;
                     cell = oriel_shm_at(cell->next)) {
                    for (int e = 0; e < ORIEL_CELL_ENTRIES; e++)
                        *entries += cell->entries[e].what != 0;
                    *bytes += cell == &page->cells[k] ? 0 : sizeof *cell;
                }
            *bytes += page_bytes();
            place = page->next;
        }
}
