/* Which pages of the process contain bytes that a load or store could conflict with. The entry
 * points of -fsanitize=thread look into this table first. It is created when the library of these
 * entry points asks for it, so other programs do not pay for it. local_accesses.c, which knows the
 * memory, fills it. */
#ifndef ORIEL_CHECK_LOCAL_WATCHED_PAGES_H
#define ORIEL_CHECK_LOCAL_WATCHED_PAGES_H

#include "check/order/thread_hooks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Data that the two libraries share: src/check/tsan finds oriel_check_watch by its name in
 * liboriel_check.so. */
struct oriel_watched_pages {
    _Atomic uint8_t *pages; /* counter 0: nothing to watch; NULL: not watched */
    unsigned shift;         /* from addresses to pages */
    uint64_t count;         /* of pages; addresses after them are not watched */
    /* Called for a load or store that may matter, by the instruction at address_of_call; atomic
     * ones order. */
    void (*accessed)(const void *address, uint64_t len_bytes, bool writes, bool atomic,
                     const void *address_of_call);
    /* what src/check/tsan reports of the order of threads */
    const struct oriel_thread_hooks *threads;
};

/* Whether an address is in certain code. */
typedef bool oriel_code_fn(const void *address);

/* is_instrumented: the code that was compiled with -fsanitize=thread; is_watcher: the library of
 * its entry points. Copies ask, with locks held: neither may call a function of libc. */
const struct oriel_watched_pages *oriel_check_watch(oriel_code_fn *is_instrumented,
                                                    oriel_code_fn *is_watcher)
    __attribute__((visibility("default")));
typedef const struct oriel_watched_pages *oriel_check_watch_fn(oriel_code_fn *is_instrumented,
                                                               oriel_code_fn *is_watcher);

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

/* --- changes, under local_accesses.c's lock --- */

extern struct oriel_watched_pages oriel_watched_pages_now __attribute__((visibility("hidden")));

/* Creates the table. False: no room for any page size. */
bool oriel_watched_pages_start(void);

/* Increment and decrement the counters of the pages of an address range. */
void oriel_watched_pages_add(uint64_t low, uint64_t high);
void oriel_watched_pages_remove(uint64_t low, uint64_t high);

#endif
