/* The table of watched pages: one counter for each page of the address space, in a mapping whose
 * untouched parts use no memory. A counter that reaches its maximum stays there. The lock of
 * local_accesses.c protects changes; readers need none. */
#include "check/local/watched_pages.h"

#include <stddef.h>
#include <sys/mman.h>

enum { ADDRESS_BITS = 47, FULL = UINT8_MAX };

struct oriel_watched_pages oriel_watched_pages_now;

bool oriel_watched_pages_start(void)
{
    static const unsigned shifts[] = {12, 16, 21}; /* 32 GiB, 2 GiB or 64 MiB of addresses */
    for (size_t i = 0;
         oriel_watched_pages_now.pages == NULL && i < sizeof shifts / sizeof shifts[0]; i++) {
        uint64_t count = UINT64_C(1) << (ADDRESS_BITS - shifts[i]);
        void *pages = mmap(NULL, count, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED)
            continue;
        oriel_watched_pages_now.shift = shifts[i];
        oriel_watched_pages_now.count = count;
        oriel_watched_pages_now.pages = pages;
    }
    return oriel_watched_pages_now.pages != NULL;
}

static void page_counters_change(uint64_t low, uint64_t high, bool more)
{
    if (oriel_watched_pages_now.pages == NULL || low >= high ||
        (high - 1) >> oriel_watched_pages_now.shift >= oriel_watched_pages_now.count)
        return;
    for (uint64_t page = low >> oriel_watched_pages_now.shift;
         page <= (high - 1) >> oriel_watched_pages_now.shift; page++) {
        _Atomic uint8_t *counter = &oriel_watched_pages_now.pages[page];
        uint8_t count = atomic_load_explicit(counter, memory_order_relaxed);
        if (count != FULL)
            atomic_store_explicit(counter, (uint8_t)(more ? count + 1 : count - 1),
                                  memory_order_relaxed);
    }
}

void oriel_watched_pages_add(uint64_t low, uint64_t high)
{
    page_counters_change(low, high, true);
}

void oriel_watched_pages_remove(uint64_t low, uint64_t high)
{
    page_counters_change(low, high, false);
}
