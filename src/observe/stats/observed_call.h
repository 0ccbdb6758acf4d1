/* A call in progress, as the observing entries count it: its call site, and its time.
 *
 * Reading the clock takes longer than a flush. So calls that may return at once (operations; flush,
 * sync, lock, unlock, test on fast windows) are sampled. After the first ORIEL_CALL_SAMPLE from a
 * call site, one in ORIEL_CALL_SAMPLE is timed, and its time counts for all of them
 * (sampled_time.h). Their waiting time is known for each (wait_observer.c) and counts in full. The
 * clock's own time is subtracted. Traced calls are always timed. If all operations of a site are
 * traced, each counts for itself; if they are sampled, their times do not count, except for those
 * timed anyway. Private to observe/. */
#ifndef ORIEL_OBSERVE_STATS_OBSERVED_CALL_H
#define ORIEL_OBSERVE_STATS_OBSERVED_CALL_H

#include "observe/stats/observed_window.h"
#include "observe/stats/program_region.h"
#include "observe/stats/sampled_time.h"

#include "base/wait.h"

/* Why a call is timed. */
enum oriel_timed { ORIEL_TIMED_DUE = 1 /* also without a trace */, ORIEL_TIMED_TRACED = 2 };

struct oriel_observed_call {
    struct oriel_observed *observed;
    struct oriel_counted_site *site;
    uint64_t begin_ns;  /* of a timed call */
    uint64_t waited_ns; /* this thread's waiting time until then */
    uint64_t timed;     /* 0, or enum oriel_timed; bytes would stall the copy of the structure */
};

/* The counters of a call whose site is not in the table by the address. */
struct oriel_counted_site *oriel_observed_site_elsewhere(const struct oriel_observed *observed,
                                                         enum oriel_trace_kind kind,
                                                         const void *address);

/* The counters of the call that returns to the address. */
static inline struct oriel_counted_site *oriel_observed_site(const struct oriel_observed *observed,
                                                             enum oriel_trace_kind kind,
                                                             const void *address)
{
    struct oriel_counted_site *site =
        oriel_site_table_find(observed->sites, oriel_site_key((uint64_t)(uintptr_t)address, kind));
    return oriel_likely(site != NULL) ? site
                                      : oriel_observed_site_elsewhere(observed, kind, address);
}

/* Whether a call of a traced process is traced. number: of the call at its site, from 0. */
bool oriel_observed_is_traced(const struct oriel_observed *observed,
                              struct oriel_counted_site *site, uint64_t number)
    __attribute__((cold));

/* address: to which the exported function returns. */
static inline struct oriel_observed_call oriel_observed_call_begin(struct oriel_observed *observed,
                                                                   enum oriel_trace_kind kind,
                                                                   const void *address, int target,
                                                                   bool is_sampled)
{
    struct oriel_observed_call call;
    call.observed = observed;
    call.site = oriel_observed_site(observed, kind, address);
    call.waited_ns = oriel_thread_waits.total_ns;
    oriel_current_call.observed = observed;
    oriel_current_call.site = call.site;
    oriel_current_call.target = target;
    uint64_t before = atomic_load_explicit(&call.site->count, memory_order_relaxed);
    call.timed = !is_sampled || before < ORIEL_CALL_SAMPLE || oriel_call_is_drawn(before)
                     ? ORIEL_TIMED_DUE
                     : 0;
    if (oriel_unlikely(oriel_tracing) && oriel_observed_is_traced(observed, call.site, before))
        call.timed |= ORIEL_TIMED_TRACED;
    if (call.timed != 0)
        call.begin_ns = oriel_now_ns();
    /* cppcheck-suppress uninitvar; begin_ns is read of timed calls only */
    return call;
}

/* Counts the times of a call that was timed or waited, and traces it. */
void oriel_observed_call_times(const struct oriel_observed_call *call, bool is_sampled,
                               int32_t target, uint8_t path, uint64_t bytes);

/* After the call. */
static inline void oriel_observed_call_end(const struct oriel_observed_call *call, bool is_sampled,
                                           int32_t target, uint8_t path, uint64_t bytes)
{
    if (oriel_unlikely(call->timed != 0) ||
        oriel_unlikely(oriel_thread_waits.total_ns != call->waited_ns))
        oriel_observed_call_times(call, is_sampled, target, path, bytes);
    oriel_count(call->observed, &call->site->count, 1);
}

/* After a call that synchronises, with its code, which it returns. */
static inline int oriel_observed_call_return(const struct oriel_observed_call *call, int target,
                                             bool is_sampled, int code)
{
    oriel_current_call.observed = NULL;
    oriel_observed_call_end(call, is_sampled, target, 0, 0);
    return code;
}

/* Counts and traces the creation or the end of a window, of which all times are known. Returns
 * whether it is in the trace. */
bool oriel_observed_call_whole(const struct oriel_observed_call *call, uint64_t time_ns);

/* Measures the clock, before the first call. */
void oriel_observed_call_start(void);

#endif
