/* Which pages of the process hold anything that a load or store could be in conflict with: a table that the entry points of
 * -fsanitize=thread look into before anything else.  Nobody asks, nobody pays: the table is made when the library of these entry
 * points asks for it, and local_accesses.c, which knows the memory, keeps it.  local_accesses.c and tsan/ call. */
#ifndef ORIEL_CHECK_LOCAL_WATCHED_PAGES_H
#define ORIEL_CHECK_LOCAL_WATCHED_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What the two libraries share: tsan/ finds oriel_check_watch by its name in liboriel_check.so. */
struct oriel_watched_pages {
    _Atomic uint8_t *pages; /* 0: nothing there; NULL: nobody watches */
    unsigned shift;         /* of addresses, to pages */
    uint64_t count;         /* of pages; addresses behind them hold nothing */
    /* A load or store of bytes that may be of interest, by the instruction at address_of_call; atomic ones order. */
    void (*accessed)(const void *address, uint64_t len_bytes, bool writes, bool atomic,
                     const void *address_of_call);
};

const struct oriel_watched_pages *oriel_check_watch(void) __attribute__((visibility("default")));
typedef const struct oriel_watched_pages *oriel_check_watch_fn(void);

static inline bool oriel_watched_pages_sees(const struct oriel_watched_pages *watch,
                                            uint64_t address, uint64_t len_bytes)
{
    uint64_t page = address >> watch->shift;
    uint64_t last = (address + len_bytes - 1) >> watch->shift;
    if (last >= watch->count || page > last)
        return false;
    while (atomic_load_explicit(&watch->pages[page], memory_order_relaxed) == 0)
        if (page++ == last)
            return false;
    return true;
}

/* --- for local_accesses.c, under its lock --- */

extern struct oriel_watched_pages oriel_watched_pages_now __attribute__((visibility("hidden")));

/* Makes the table; false when there is no room for addresses at all. */
bool oriel_watched_pages_start(void);

/* Something lies there, once more; and once less. */
void oriel_watched_pages_add(uint64_t low, uint64_t high);
void oriel_watched_pages_remove(uint64_t low, uint64_t high);

#endif
