/* The target's side of requests (polled.h contains the argument). Any thread of the program
 * executes them while it waits. The library's own threads do not, because pages move without
 * stopping them. Other processes write the slots: each field that determines which memory is
 * accessed is read once and checked. */
#include "transport/polled/polled.h"

#include "base/delay.h"
#include "base/fork.h"
#include "base/wait.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 5.14; older kernels return EINVAL, and origins copy. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

_Atomic(struct oriel_polled *) oriel_polled_own;

/* --- mapped pages (P6) --- */

enum { PAGE_BYTES = 4096, PAIRS_BITS = 11 };

/* The page cache of one slot. The thread that executes a request in the slot uses it. */
static struct page_cache {
    uint64_t generation; /* pages of earlier generations are invalid; the first is 1 */
    uint32_t origin;     /* at the last request */
    uint32_t waits;      /* of that origin, at the last request */
    uint32_t own_waits;  /* of this process, at the last request */
    struct cached_page {
        uint64_t number;
        uint64_t found; /* generation times 2, plus 1 if the page was populated for writing */
    } pages[2 << PAIRS_BITS];
} page_caches[ORIEL_POLLED_SLOTS];
static _Atomic uint32_t own_waits; /* number of waits that have started in base/wait.h */

static void page_cache_refresh(struct page_cache *cache, const struct oriel_polled_slot *slot)
{
    const uint32_t waits = *(const volatile uint32_t *)&slot->waits;
    const uint32_t origin = *(const volatile uint32_t *)&slot->origin;
    const uint32_t local_waits = atomic_load_explicit(&own_waits, memory_order_relaxed);
    if (oriel_likely(cache->generation != 0 && cache->waits == waits && cache->origin == origin &&
                     cache->own_waits == local_waits))
        return;
    cache->generation++;
    cache->origin = origin;
    cache->waits = waits;
    cache->own_waits = local_waits;
}

/* The first of two entries. The upper bits of a product with the golden ratio spread pages at any
 * distance. */
static struct cached_page *page_cache_entry(struct page_cache *cache, uint64_t number)
{
    return &cache->pages[(number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PAIRS_BITS)) * 2];
}

static bool entry_matches(const struct cached_page *page, const struct page_cache *cache,
                          uint64_t number, bool writes)
{
    return page->number == number && page->found >> 1 == cache->generation &&
           ((page->found & 1) != 0 || !writes);
}

static bool page_is_cached(struct page_cache *cache, uint64_t number, bool writes)
{
    const struct cached_page *first = page_cache_entry(cache, number);
    return oriel_likely(entry_matches(first, cache, number, writes)) ||
           entry_matches(first + 1, cache, number, writes);
}

/* The previous page moves to the second entry. */
static void page_cache_insert(struct page_cache *cache, uint64_t number, bool writes)
{
    struct cached_page *first = page_cache_entry(cache, number);
    first[1] = first[0];
    first[0] = (struct cached_page){number, cache->generation << 1 | writes};
}

/* The raw system call: Oriel interposes libc's madvise. The kernel's pages may be larger. */
static bool pages_populate(uint64_t first, uint64_t last, bool writes)
{
    const int advice = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    const uint64_t start = first * PAGE_BYTES & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    int error = errno;
    bool is_there = syscall(SYS_madvise, start, (last + 1) * PAGE_BYTES - start, advice) == 0;
    errno = error;
    return is_there;
}

static bool pages_are_mapped(struct page_cache *cache, uint64_t address, uint32_t len_bytes,
                             bool writes)
{
    const uint64_t first = address / PAGE_BYTES, last = (address + len_bytes - 1) / PAGE_BYTES;
    if (oriel_likely(page_is_cached(cache, first, writes) &&
                     (first == last || page_is_cached(cache, last, writes))))
        return true;
    if (last < first || !pages_populate(first, last, writes))
        return false;
    for (uint64_t number = first; number <= last; number++)
        page_cache_insert(cache, number, writes);
    return true;
}

/* --- execution --- */

static char *addr_bytes(uint64_t address)
{
    return (char *)(uintptr_t)address;
}

/* A word is read and written as a whole. */
static void word_copy(char *to, const char *from, uint32_t len_bytes)
{
    if (len_bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, len_bytes);
}

static int polled_execute_update(struct page_cache *cache, struct oriel_polled_slot *slot,
                                 uint64_t address, uint32_t len_bytes)
{
    const uint8_t number = *(const volatile uint8_t *)&slot->kind;
    const uint8_t op = *(const volatile uint8_t *)&slot->operator;
    if (number >= ORIEL_KIND_COUNT || op >= ORIEL_OPERATOR_COUNT ||
        oriel_kinds[number].plain[op] == NULL || oriel_kinds[number].padded ||
        len_bytes % oriel_kinds[number].extent_bytes != 0)
        return EINVAL;
    if (!pages_are_mapped(cache, address, len_bytes, op != ORIEL_OPERATOR_NO_OP))
        return EFAULT;
    oriel_kinds[number].plain[op](addr_bytes(address), slot->data,
                                  slot->returns != 0 ? slot->data : NULL,
                                  len_bytes / oriel_kinds[number].extent_bytes);
    return 0;
}

static int polled_execute_swap(struct page_cache *cache, struct oriel_polled_slot *slot,
                               uint64_t address, uint32_t len_bytes)
{
    char found[ORIEL_POLLED_BYTES / 2];
    if (len_bytes > sizeof found)
        return EINVAL;
    if (!pages_are_mapped(cache, address, len_bytes, true))
        return EFAULT;
    word_copy(found, addr_bytes(address), len_bytes);
    if (memcmp(found, slot->data, len_bytes) == 0)
        word_copy(addr_bytes(address), slot->data + len_bytes, len_bytes);
    word_copy(slot->data, found, len_bytes);
    return 0;
}

static int polled_execute(struct page_cache *cache, struct oriel_polled_slot *slot)
{
    const uint32_t len_bytes = *(const volatile uint32_t *)&slot->len_bytes;
    const uint64_t address = *(const volatile uint64_t *)&slot->address;
    const uint8_t operation = *(const volatile uint8_t *)&slot->operation;
    if (len_bytes == 0 || len_bytes > ORIEL_POLLED_BYTES)
        return EINVAL;
    page_cache_refresh(cache, slot);
    if (operation == ORIEL_POLLED_UPDATE)
        return polled_execute_update(cache, slot, address, len_bytes);
    if (operation == ORIEL_POLLED_SWAP)
        return polled_execute_swap(cache, slot, address, len_bytes);
    if (operation != ORIEL_POLLED_WRITE && operation != ORIEL_POLLED_READ)
        return EINVAL;
    if (!pages_are_mapped(cache, address, len_bytes, operation == ORIEL_POLLED_WRITE))
        return EFAULT;
    if (operation == ORIEL_POLLED_WRITE)
        word_copy(addr_bytes(address), slot->data, len_bytes);
    else
        word_copy(slot->data, addr_bytes(address), len_bytes);
    return 0;
}

int oriel_polled_serve(struct oriel_polled *area)
{
    int answered = 0;
    uint32_t used = oriel_load_relaxed(&area->used);
    if (used == 0 || oriel_wait_is_internal)
        return 0;
    for (uint32_t i = 0; i < used && i < ORIEL_POLLED_SLOTS; i++) {
        struct oriel_polled_slot *slot = &area->slots[i];
        uint32_t asked = ORIEL_POLLED_ASKED;
        if (oriel_load_relaxed(&slot->state) != asked)
            continue;
        oriel_delay();
        if (!atomic_compare_exchange_strong_explicit(&slot->state, &asked, ORIEL_POLLED_TAKEN,
                                                     memory_order_acquire,
                                                     memory_order_relaxed)) /* T1, P1, P2 */
            continue;
        oriel_delay();
        slot->error = polled_execute(&page_caches[i], slot); /* T2 */
        oriel_delay();
        oriel_store_release(&slot->state, ORIEL_POLLED_DONE); /* T3 */
        answered++;
    }
    return answered;
}

/* --- start and stop --- */

static void polled_stop_in_child(void)
{
    atomic_store_explicit(&oriel_polled_own, NULL, memory_order_relaxed);
}

static bool polled_serve_wait(bool begins)
{
    if (begins)
        atomic_fetch_add_explicit(&own_waits, 1, memory_order_relaxed);
    return oriel_polled_poll() > 0;
}

void oriel_polled_install(void)
{
    oriel_wait_set_server(polled_serve_wait);
}

bool oriel_polled_start(struct oriel_polled *area)
{
    static _Atomic bool watches_forks;
    if (oriel_fork_register(&watches_forks, NULL, NULL, polled_stop_in_child) != ORIEL_OK)
        return false;
    atomic_store_explicit(&oriel_polled_own, area, memory_order_release);
    return true;
}

void oriel_polled_stop(void)
{
    atomic_store_explicit(&oriel_polled_own, NULL, memory_order_release);
}
