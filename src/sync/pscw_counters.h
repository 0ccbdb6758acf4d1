/* The counters of a process for each peer that it has had an epoch with: entries in tables of its
 * own memory file, one per partner. The peers find them and wait at them (pscw_counters.c has the
 * argument). An entry never moves and lives as long as the window. */
#ifndef ORIEL_SYNC_PSCW_COUNTERS_H
#define ORIEL_SYNC_PSCW_COUNTERS_H

#include "base/wait.h"
#include "window/window.h"

/* This process's entry for a rank; NULL while there is none. */
struct oriel_pscw_counter *oriel_pscw_counters_own(const struct oriel_window *window,
                                                   int32_t win_rank);

/* The same; creates it if there is none. ORIEL_E_NO_MEM: nothing has changed. Thread-safe. */
enum oriel_status oriel_pscw_counters_make(struct oriel_window *window, int32_t win_rank,
                                           struct oriel_pscw_counter **own);

static inline int32_t oriel_pscw_counter_rank(const struct oriel_pscw_counter *own)
{
    return (int32_t)oriel_load_relaxed(&own->peer) - 1;
}

/* The entry for this process of the peer that own counts for; NULL while there is none. */
struct oriel_pscw_counter *oriel_pscw_counters_theirs(const struct oriel_window *window,
                                                      struct oriel_pscw_counter *own);

/* The same; waits for it if it has not been found yet. */
enum oriel_status
oriel_pscw_counters_look(const struct oriel_window *window, struct oriel_pscw_counter *own,
                         const struct oriel_watch *watch, struct oriel_pscw_counter **theirs)
    __attribute__((cold));

static inline enum oriel_status oriel_pscw_counters_await(const struct oriel_window *window,
                                                          struct oriel_pscw_counter *own,
                                                          const struct oriel_watch *watch,
                                                          struct oriel_pscw_counter **theirs)
{
    uint64_t offset = atomic_load_explicit(&own->theirs, memory_order_acquire);
    if (oriel_unlikely(offset == 0))
        return oriel_pscw_counters_look(window, own, watch, theirs);
    *theirs =
        (struct oriel_pscw_counter *)(window->control_bases[oriel_pscw_counter_rank(own)] + offset);
    return ORIEL_OK;
}

/* As make; a process with one partner searches only once. */
static inline enum oriel_status oriel_pscw_counters_recall(struct oriel_window *window,
                                                           int32_t win_rank,
                                                           struct oriel_pscw_counter **own)
{
    *own = atomic_load_explicit(&window->recent_pscw_counter, memory_order_acquire);
    if (oriel_likely(*own != NULL && oriel_pscw_counter_rank(*own) == win_rank))
        return ORIEL_OK;
    enum oriel_status status = oriel_pscw_counters_make(window, win_rank, own);
    if (status == ORIEL_OK)
        atomic_store_explicit(&window->recent_pscw_counter, *own, memory_order_release);
    return status;
}

/* Frees all tables, when no peer reads them any more. */
void oriel_pscw_counters_close(struct oriel_window *window);

#endif
