/* The observing entries of synchronisation: each calls the previous entry, and counts it with its
 * time and the waiting part of that.
 *
 * Reading the clock takes longer than a flush. So calls that may return at once (flush, sync, lock,
 * unlock, test) on fast windows are sampled. After the first SAMPLE of a kind, one in SAMPLE is
 * timed, and its time counts SAMPLE times. Their waiting time is known for each (wait_observer.c)
 * and counts in full. The clock's own time is subtracted. A call of AT_ONCE_NS or more was
 * interrupted, and counts once. Traced calls are always timed. */
#include "observe/stats/observed_window.h"

#include "base/wait.h"

enum { SAMPLE = 64, AT_ONCE_NS = 10000, CLOCKS_TRIED = 100 };

static uint64_t clock_ns; /* between two readings */

/* A call in progress. */
struct call {
    struct oriel_observed *observed;
    uint64_t begin_ns; /* 0: not timed */
    uint64_t waited_ns;
    unsigned weight;
    int32_t target;
};

static inline struct call call_begin(struct oriel_observed *observed, enum oriel_counted_call kind,
                                     int target, bool may_be_short)
{
    struct call call = {.observed = observed,
                        .waited_ns = oriel_thread_waits.total_ns,
                        .weight = 1,
                        .target = target};
    oriel_current_call.observed = observed;
    oriel_current_call.target = target;
    oriel_current_call.call = (uint8_t)kind;
    uint64_t before =
        atomic_load_explicit(&observed->record->calls[kind].count, memory_order_relaxed);
    if (may_be_short && observed->is_quick && before >= SAMPLE && oriel_likely(!oriel_tracing)) {
        call.weight = SAMPLE;
        if (oriel_likely(before % SAMPLE != 0))
            return call;
    }
    call.begin_ns = oriel_now_ns();
    return call;
}

static __attribute__((noinline)) void count_time(const struct call *call,
                                                 enum oriel_counted_call kind)
{
    struct oriel_timed *timed = &call->observed->record->calls[kind];
    uint64_t waiting_ns = oriel_thread_waits.total_ns - call->waited_ns;
    uint64_t took_ns = call->begin_ns != 0 ? oriel_now_ns() - call->begin_ns : waiting_ns;
    uint64_t working_ns = took_ns > waiting_ns + clock_ns ? took_ns - waiting_ns - clock_ns : 0;
    oriel_count(call->observed, &timed->time_ns,
                working_ns * (working_ns < AT_ONCE_NS ? call->weight : 1) + waiting_ns);
    if (oriel_tracing && call->begin_ns != 0)
        oriel_traced_add(call->observed, &(struct oriel_traced){call->begin_ns, call->waited_ns},
                         &(struct oriel_traced_event){(uint8_t)(ORIEL_TRACE_CALL + kind), 0,
                                                      call->target, 0, 0});
    if (waiting_ns == 0)
        return;
    oriel_count(call->observed, &timed->waiting_ns, waiting_ns);
    oriel_count(call->observed, &timed->waited, 1);
    oriel_count_most(&timed->longest_ns, waiting_ns);
}

static inline int call_end(const struct call *call, enum oriel_counted_call kind, int code)
{
    oriel_current_call.observed = NULL;
    oriel_count(call->observed, &call->observed->record->calls[kind].count, 1);
    if (oriel_unlikely(call->begin_ns != 0) ||
        oriel_unlikely(oriel_thread_waits.total_ns != call->waited_ns))
        count_time(call, kind);
    return code;
}

#define ENTRY(name, kind, target, may_be_short, parameters, arguments)                             \
    static int observe_##name parameters                                                           \
    {                                                                                              \
        struct oriel_observed *observed = oriel_observed_find(win);                                \
        if (oriel_unlikely(observed == NULL))                                                      \
            return oriel_observe_before.name arguments;                                            \
        struct call call = call_begin(observed, ORIEL_CALL_OF_##kind, target, may_be_short);       \
        return call_end(&call, ORIEL_CALL_OF_##kind, oriel_observe_before.name arguments);         \
    }

ENTRY(Win_post, post, -1, false, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
ENTRY(Win_start, start, -1, false, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
ENTRY(Win_complete, complete, -1, false, (MPI_Win win), (win))
ENTRY(Win_wait, wait, -1, false, (MPI_Win win), (win))
ENTRY(Win_test, test, -1, true, (MPI_Win win, int *flag), (win, flag))
ENTRY(Win_lock, lock, rank, true, (int lock_type, int rank, int assert, MPI_Win win),
      (lock_type, rank, assert, win))
ENTRY(Win_unlock, unlock, rank, true, (int rank, MPI_Win win), (rank, win))
ENTRY(Win_lock_all, lock_all, -1, true, (int assert, MPI_Win win), (assert, win))
ENTRY(Win_unlock_all, unlock_all, -1, true, (MPI_Win win), (win))
ENTRY(Win_flush, flush, rank, true, (int rank, MPI_Win win), (rank, win))
ENTRY(Win_flush_all, flush, -1, true, (MPI_Win win), (win))
ENTRY(Win_flush_local, flush, rank, true, (int rank, MPI_Win win), (rank, win))
ENTRY(Win_flush_local_all, flush, -1, true, (MPI_Win win), (win))
ENTRY(Win_sync, sync, -1, true, (MPI_Win win), (win))

/* Publishes this rank's arrival time (wait_observer.c). */
static int observe_Win_fence(int assert, MPI_Win win)
{
    struct oriel_observed *observed = oriel_observed_find(win);
    if (oriel_unlikely(observed == NULL))
        return oriel_observe_before.Win_fence(assert, win);
    struct call call = call_begin(observed, ORIEL_CALL_OF_fence, -1, false);
    oriel_waiting_arrive(observed, call.begin_ns);
    return call_end(&call, ORIEL_CALL_OF_fence, oriel_observe_before.Win_fence(assert, win));
}

static void measure_clock(void)
{
    clock_ns = UINT64_MAX;
    for (int i = 0; i < CLOCKS_TRIED; i++) {
        uint64_t begin_ns = oriel_now_ns();
        uint64_t took_ns = oriel_now_ns() - begin_ns;
        clock_ns = took_ns < clock_ns ? took_ns : clock_ns;
    }
}

void oriel_observe_synchronisation(struct oriel_api *table)
{
    measure_clock();
    table->Win_fence = observe_Win_fence;
    table->Win_post = observe_Win_post;
    table->Win_start = observe_Win_start;
    table->Win_complete = observe_Win_complete;
    table->Win_wait = observe_Win_wait;
    table->Win_test = observe_Win_test;
    table->Win_lock = observe_Win_lock;
    table->Win_unlock = observe_Win_unlock;
    table->Win_lock_all = observe_Win_lock_all;
    table->Win_unlock_all = observe_Win_unlock_all;
    table->Win_flush = observe_Win_flush;
    table->Win_flush_all = observe_Win_flush_all;
    table->Win_flush_local = observe_Win_flush_local;
    table->Win_flush_local_all = observe_Win_flush_local_all;
    table->Win_sync = observe_Win_sync;
}
