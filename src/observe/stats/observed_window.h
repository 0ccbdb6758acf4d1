/* The observed windows of this process, and the counting in their records, shared by all observing
 * entries. A thread looks up a window by its handle in its most recent window first, then in a
 * table. Private to observe/. */
#ifndef ORIEL_OBSERVE_STATS_OBSERVED_WINDOW_H
#define ORIEL_OBSERVE_STATS_OBSERVED_WINDOW_H

#include "base/tls_cache.h"
#include "observe/observe.h"
#include "observe/stats/record.h"
#include "observe/stats/site_table.h"
#include "observe/trace/trace.h"
#include "window/window.h"

#include <stdbool.h>

enum { ORIEL_COUNTING_THREADS = 16 };

/* One of this process's windows, Oriel's or the host's, as one thread counts it. If threads call
 * concurrently, each has its own. Threads beyond the first ORIEL_COUNTING_THREADS - 1 of the
 * process share the last. */
struct oriel_observed {
    struct oriel_observed *first; /* the one that describes the window: this or another thread's */
    /* of the first: by thread, NULL before the thread's first call */
    struct oriel_observed *of_thread[ORIEL_COUNTING_THREADS];
    struct oriel_window_record *record;
    struct oriel_site_table *sites; /* of the record */
    struct oriel_toward *toward;    /* n; in the record, except for windows that share one */
    struct oriel_window *window;    /* NULL: the host's */
    uint32_t n;
    /* of the first: the kinds of its calls that are traced (ORIEL_TRACE_KIND_BIT) */
    _Atomic uint64_t traced_kinds;
    bool by_many; /* threads count in it concurrently */
    /* none of its calls reach another node, an agent or the host: without waiting they take
     * nanoseconds */
    bool is_quick;
    /* n: path of operations on that target, enum oriel_counted_path or ORIEL_PATH_BY_PLACE */
    uint8_t paths[];
};
enum { ORIEL_PATH_BY_PLACE = 255 };

/* The previous table entries. */
extern struct oriel_api oriel_observe_before __attribute__((visibility("hidden")));

/* Whether statistics are written at the end. */
extern bool oriel_observe_gathers __attribute__((visibility("hidden")));

/* Whether threads may call concurrently. MPI_Init clears it where observation starts there. */
extern bool oriel_observe_threads __attribute__((visibility("hidden")));

/* Whether windows may exist that are observed from their next call on. */
extern _Atomic bool oriel_observe_began_late __attribute__((visibility("hidden")));

/* This thread's current call, for its waits. */
struct oriel_current_call {
    const struct oriel_observed *observed; /* NULL: no observed call */
    const struct oriel_counted_site *site;
    int32_t target;  /* -1: none, or all */
    int32_t blocker; /* of the lock it waits for, when the wait began */
    /* in MPI_Win_free: of the window's ranks, NULL for unknown ones */
    const struct oriel_window_record **others;
};
extern _Thread_local struct oriel_current_call oriel_current_call
    __attribute__((visibility("hidden")));

struct oriel_observed_recent {
    uint64_t generation;
    uint64_t key;
    struct oriel_observed *observed;
};
extern _Thread_local struct oriel_observed_recent oriel_observed_recent
    __attribute__((visibility("hidden")));

struct oriel_observed *oriel_observed_find_slow(MPI_Win win);

/* The same in a pause, for what is observed then. */
struct oriel_observed *oriel_observed_find_paused(MPI_Win win);

/* NULL: not observed, or in a pause (pause.h). */
static inline struct oriel_observed *oriel_observed_find(MPI_Win win)
{
    uint64_t generation = atomic_load_explicit(&oriel_tls_cache_generation, memory_order_relaxed);
    if (oriel_likely(oriel_observed_recent.generation == generation) &&
        oriel_likely(oriel_observed_recent.key == (uint64_t)(uintptr_t)win))
        return oriel_observed_recent.observed;
    return oriel_observed_find_slow(win);
}

/* With a single counting thread, a locked instruction would be most of the cost. */
static inline void oriel_count(const struct oriel_observed *observed, _Atomic uint64_t *word,
                               uint64_t more)
{
    if (oriel_unlikely(observed->by_many))
        atomic_fetch_add_explicit(word, more, memory_order_relaxed);
    else
        atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + more,
                              memory_order_relaxed);
}

static inline void oriel_count_most(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t known = atomic_load_explicit(word, memory_order_relaxed);
    while (known < value && !atomic_compare_exchange_weak_explicit(
                                word, &known, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* --- records.c --- */

/* The arguments of the creating call. */
struct oriel_observed_creation {
    enum oriel_flavour flavour;
    uint64_t size_bytes;
    int64_t disp_unit;
    MPI_Comm comm;
    const void *address; /* to which it returns */
    uint16_t place;      /* of the call (site_places.h) */
};

/* Starts to observe the window. If there is no room for its record, it is not observed: returns
 * NULL, and one warning is printed. */
struct oriel_observed *oriel_observed_add(MPI_Win win,
                                          const struct oriel_observed_creation *creation);

/* Its record stays. */
void oriel_observed_remove(MPI_Win win, struct oriel_observed *first);

/* The offset of the newest record in the memory file; 0: none. */
uint64_t oriel_records_newest(void);

/* Calls visit for each record, the newest first, while no record is added. Not in a forked child,
 * which has no memory file. */
void oriel_records_visit(void (*visit)(const struct oriel_window_record *record, void *context),
                         void *context);

/* --- trace_events.c --- */

struct oriel_observed_call;

/* Of the operations of a call site, one in that number is traced. */
extern uint32_t oriel_traced_sample __attribute__((visibility("hidden")));

/* Before the first window: what is traced of this rank. */
void oriel_traced_start(int32_t world_rank);

/* The same, for the trace's file. */
void oriel_traced_selection(struct oriel_trace_selection *out);

/* The window is new, or has a new name: which of its calls are traced. */
void oriel_traced_select(struct oriel_observed *first);

/* The site is new: which operation of a sampled trace is the first. */
void oriel_traced_site_start(struct oriel_counted_site *site);

/* Whether the operation with this number at its site is traced; then, which one is the next.
 * Threads that share the site may have one number. */
bool oriel_traced_site_advance(struct oriel_counted_site *site, uint64_t number);

/* A timed call that has ended. path and bytes are of operations. */
void oriel_traced_add(const struct oriel_observed_call *call, uint64_t duration_ns, int32_t target,
                      uint8_t path, uint64_t bytes);

/* A region or a pause that has ended. */
void oriel_traced_mark(const struct oriel_trace_mark *mark);

/* The window is new, or its description has changed. */
void oriel_traced_describe(struct oriel_window_record *record);

/* --- describe.c --- */

/* The path of other ranks to this rank's memory, and why there is no better one. */
void oriel_observed_set_path(struct oriel_observed *observed);

/* Of operations on a target's memory; NULL: the host's window. */
uint8_t oriel_observed_path_to(const struct oriel_window *window, int32_t target);

/* A group's ranks in MPI_COMM_WORLD; -1 for those outside it. */
void oriel_observed_world_ranks(MPI_Group group, int n, int32_t *ranks);

/* The id of a window of the host over these ranks, a different one per call. Not thread-safe. */
uint64_t oriel_observed_host_id(const int32_t *ranks, int n);

/* --- entries: each puts its functions into the table --- */
void oriel_observe_operations(struct oriel_api *table);
void oriel_observe_synchronisation(struct oriel_api *table);
void oriel_observe_requests(struct oriel_api *table);
void oriel_observe_creation(struct oriel_api *table);

/* --- wait_observer.c --- */
void oriel_waiting_start(void);

/* Publishes that this rank arrives at the window's next barrier (fence, free) now. */
void oriel_waiting_arrive(const struct oriel_observed *observed, uint64_t now_ns);

/* Before it arrives at the last one: the records of the window's ranks, from malloc; NULL if none
 * are needed. */
const struct oriel_window_record **oriel_waiting_find_others(const struct oriel_observed *observed);

/* --- merge_records.c: collective over the ranks that arrive --- */
void oriel_statistics_write(const char *file, uint64_t ran_ns);

#endif
