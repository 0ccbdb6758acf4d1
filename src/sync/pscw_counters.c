/* The tables of partners: open addressing by the peer's rank, at most half full. A full table stays
 * unchanged and a larger one is put in front of it. So an entry never moves: its owner counts in
 * it, and peers keep its address and sleep at it, while others are created.
 *
 * The owner P creates its entry for Q, under a mutex of its own:
 *
 *   N1: if the newest table is half full, adds a larger one that points to the one before: newest
 *       := its offset (release)
 *   N2: a free entry's peer := Q + 1 (release)
 *   N3: made += 1, wakes
 *
 * Q searches for it:
 *
 *   F1: v := made (acquire)
 *   F2: starting with newest (acquire), in each table: from the peer's first slot to its entry, or
 *       to a free one (acquire)
 *   F3: not found: waits until made is not v, then F1
 *
 * P1, none is missed: if F2 finds no entry, N2 is not before F2. Then N3 is not before F1, whose
 * acquire would have ordered N2 before F2. So made changes after F1, and F3 does not sleep through
 * it. made grows once for each pair of ranks and does not wrap.
 *
 * P2, none is found wrong: a used entry is never given to another peer, nor freed, so the slots
 * that a search passes stay used. A table that is half empty ends every search.
 *
 * P3, none exists twice: the mutex; the owner's threads search without it, and once more with it.
 *
 * P4: counters of a new entry are 0, since free memory is; a thread that finds the entry sees that
 *     by N2.
 *
 * Internode. The entry for an internode peer points from its creation to the counters of the peer's
 * messages (internode/origin/origin_peers.c), by an address of this process, and the peer's base is
 * NULL.
 *
 * Death: a waiter at F3 watches P. An entry without its N3 belongs to a dead P. */
#include "sync/pscw_counters.h"

#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "memory/file.h"

#include <pthread.h>

enum { LEAST_CAPACITY = 8, GROWTH = 4 };

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* The peer's entry in a table, or the free one for it. */
static struct oriel_pscw_counter *counter_slot(struct oriel_pscw_counter_table *table, int32_t peer)
{
    uint64_t first = (uint64_t)(uint32_t)peer * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    for (uint64_t i = first;; i++) {
        struct oriel_pscw_counter *entry = &table->entries[i & (table->capacity - 1)];
        uint32_t taken = oriel_load_acquire(&entry->peer);
        if (oriel_likely(taken == (uint32_t)peer + 1) || taken == 0)
            return entry;
    }
}

/* F2; NULL: not found. */
static struct oriel_pscw_counter *counter_find(const struct oriel_window *window, int32_t owner,
                                               int32_t peer)
{
    char *base = window->control_bases[owner];
    uint64_t offset = atomic_load_explicit(&oriel_window_control(window, owner)->partners.newest,
                                           memory_order_acquire);
    while (offset != 0) {
        struct oriel_pscw_counter_table *table = (struct oriel_pscw_counter_table *)(base + offset);
        struct oriel_pscw_counter *entry = counter_slot(table, peer);
        if (oriel_likely(oriel_load_acquire(&entry->peer) == (uint32_t)peer + 1))
            return entry;
        oriel_delay();
        offset = table->older;
    }
    return NULL;
}

struct oriel_pscw_counter *oriel_pscw_counters_own(const struct oriel_window *window,
                                                   int32_t win_rank)
{
    return counter_find(window, window->rank, win_rank);
}

static struct oriel_pscw_counter_table *own_table(uint64_t offset)
{
    return offset == 0 ? NULL : (struct oriel_pscw_counter_table *)(oriel_file_base() + offset);
}

/* N1. */
static enum oriel_status table_add(struct oriel_pscw_counters *partners,
                                   struct oriel_pscw_counter_table **newest)
{
    uint64_t capacity = *newest == NULL ? LEAST_CAPACITY : GROWTH * (*newest)->capacity;
    uint64_t offset;
    enum oriel_status status =
        oriel_file_alloc(sizeof **newest + capacity * sizeof(struct oriel_pscw_counter),
                         2 * ORIEL_CACHE_LINE, &offset);
    if (status != ORIEL_OK)
        return ORIEL_E_NO_MEM; /* the host cannot take over an existing window */
    struct oriel_pscw_counter_table *table = own_table(offset);
    table->capacity = capacity;
    table->older = atomic_load_explicit(&partners->newest, memory_order_relaxed);
    atomic_store_explicit(&partners->newest, offset, memory_order_release);
    oriel_delay();
    *newest = table;
    return ORIEL_OK;
}

static enum oriel_status counter_create(struct oriel_window *window, int32_t peer,
                                        struct oriel_pscw_counter **own)
{
    struct oriel_pscw_counters *partners = &window->control->partners;
    struct oriel_pscw_counter_table *newest =
        own_table(atomic_load_explicit(&partners->newest, memory_order_relaxed));
    *own = counter_find(window, window->rank, peer);
    if (*own != NULL)
        return ORIEL_OK;
    enum oriel_status status = ORIEL_OK;
    if (newest == NULL || 2 * (newest->count + 1) > newest->capacity)
        status = table_add(partners, &newest);
    if (status != ORIEL_OK)
        return status;
    bool is_far = window->internode != NULL && oriel_is_internode(window, peer);
    struct oriel_pscw_counter *theirs = is_far ? oriel_internode_partner(window, peer) : NULL;
    if (is_far && theirs == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for epochs with rank %d", (int)peer);
    newest->count++;
    *own = counter_slot(newest, peer);
    atomic_store_explicit(&(*own)->theirs, (uint64_t)(uintptr_t)theirs, memory_order_relaxed);
    oriel_store_release(&(*own)->peer, (uint32_t)peer + 1); /* N2 */
    oriel_delay();
    oriel_event_signal(&partners->made); /* N3 */
    return ORIEL_OK;
}

enum oriel_status oriel_pscw_counters_make(struct oriel_window *window, int32_t win_rank,
                                           struct oriel_pscw_counter **own)
{
    *own = oriel_pscw_counters_own(window, win_rank);
    if (oriel_likely(*own != NULL))
        return ORIEL_OK;
    pthread_mutex_lock(&making);
    enum oriel_status status = counter_create(window, win_rank, own);
    pthread_mutex_unlock(&making);
    return status;
}

struct oriel_pscw_counter *oriel_pscw_counters_theirs(const struct oriel_window *window,
                                                      struct oriel_pscw_counter *own)
{
    int32_t win_rank = oriel_pscw_counter_rank(own);
    char *base = window->control_bases[win_rank];
    uint64_t offset = atomic_load_explicit(&own->theirs, memory_order_acquire);
    if (oriel_likely(offset != 0))
        return (struct oriel_pscw_counter *)(base + offset);
    struct oriel_pscw_counter *theirs = counter_find(window, win_rank, window->rank);
    if (theirs != NULL)
        atomic_store_explicit(&own->theirs, (uint64_t)((char *)theirs - base),
                              memory_order_release);
    return theirs;
}

enum oriel_status oriel_pscw_counters_look(const struct oriel_window *window,
                                           struct oriel_pscw_counter *own,
                                           const struct oriel_watch *watch,
                                           struct oriel_pscw_counter **theirs)
{
    struct oriel_event *made =
        &oriel_window_control(window, oriel_pscw_counter_rank(own))->partners.made;
    for (;;) {
        uint32_t v = oriel_load_acquire(&made->value); /* F1 */
        oriel_delay();
        *theirs = oriel_pscw_counters_theirs(window, own);
        if (*theirs != NULL)
            return ORIEL_OK;
        enum oriel_status status =
            oriel_wait(&made->value, &made->sleepers, ORIEL_WAIT_NOT_EQUAL, v, watch); /* F3 */
        if (status != ORIEL_OK)
            return status;
    }
}

void oriel_pscw_counters_close(struct oriel_window *window)
{
    uint64_t offset = atomic_load_explicit(&window->control->partners.newest, memory_order_relaxed);
    while (offset != 0) {
        uint64_t older = own_table(offset)->older;
        oriel_file_free(offset);
        offset = older;
    }
}
