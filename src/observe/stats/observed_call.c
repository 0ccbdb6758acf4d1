/* The slow parts of counting a call: a new call site, and times. */
#include "observe/stats/observed_call.h"

#include "observe/stats/site_places.h"
#include "observe/trace/trace_filter.h"

enum { CLOCKS_TRIED = 100 };

static _Atomic uint64_t clock_ns; /* between two readings */

struct oriel_counted_site *oriel_observed_site_elsewhere(const struct oriel_observed *observed,
                                                         enum oriel_trace_kind kind,
                                                         const void *address)
{
    struct oriel_site_place place = oriel_site_place_find(address);
    uint64_t key = oriel_site_key(place.address, kind);
    struct oriel_counted_site *site = oriel_site_table_find(observed->sites, key);
    if (site != NULL)
        return site;
    site = oriel_site_table_add(observed->sites, key, place.number, kind);
    oriel_traced_site_start(site);
    return site;
}

bool oriel_observed_is_traced(const struct oriel_observed *observed,
                              struct oriel_counted_site *site, uint64_t number)
{
    uint64_t kinds = atomic_load_explicit(&observed->first->traced_kinds, memory_order_relaxed);
    if ((kinds & ORIEL_TRACE_KIND_BIT(site->kind)) == 0)
        return false;
    if (site->kind >= ORIEL_TRACE_CALL || oriel_traced_sample == 1)
        return true;
    return oriel_traced_site_advance(site, number);
}

static void count_times(const struct oriel_observed_call *call, uint64_t time_ns,
                        uint64_t waiting_ns)
{
    oriel_count(call->observed, &call->site->time_ns, time_ns);
    oriel_program_region_count_time(time_ns, waiting_ns);
    if (waiting_ns == 0)
        return;
    oriel_count(call->observed, &call->site->waiting_ns, waiting_ns);
    oriel_count(call->observed, &call->site->waited, 1);
    oriel_count_most(&call->site->longest_ns, waiting_ns);
}

/* The number of calls for which the working time of one counts. */
static uint64_t calls_represented(const struct oriel_observed_call *call, bool is_sampled)
{
    bool is_sampled_trace = oriel_traced_sample > 1 && call->site->kind < ORIEL_TRACE_CALL;
    if (!is_sampled || call->site->count < ORIEL_CALL_SAMPLE ||
        ((call->timed & ORIEL_TIMED_TRACED) != 0 && !is_sampled_trace))
        return 1;
    return (call->timed & ORIEL_TIMED_DUE) != 0 ? ORIEL_CALL_SAMPLE : 0;
}

void oriel_observed_call_times(const struct oriel_observed_call *call, bool is_sampled,
                               int32_t target, uint8_t path, uint64_t bytes)
{
    uint64_t waiting_ns = oriel_thread_waits.total_ns - call->waited_ns;
    uint64_t took_ns = call->timed != 0 ? oriel_now_ns() - call->begin_ns : waiting_ns;
    uint64_t spent_ns = waiting_ns + atomic_load_explicit(&clock_ns, memory_order_relaxed);
    uint64_t working_ns = took_ns > spent_ns ? took_ns - spent_ns : 0;
    uint64_t calls = calls_represented(call, is_sampled);
    count_times(call, oriel_sampled_ns(working_ns, bytes, calls) + waiting_ns, waiting_ns);
    if ((call->timed & ORIEL_TIMED_TRACED) != 0)
        oriel_traced_add(call, working_ns + waiting_ns, target, path, bytes);
}

bool oriel_observed_call_whole(const struct oriel_observed_call *call, uint64_t time_ns)
{
    count_times(call, time_ns, oriel_thread_waits.total_ns - call->waited_ns);
    oriel_count(call->observed, &call->site->count, 1);
    bool is_traced = oriel_tracing && oriel_observed_is_traced(call->observed, call->site, 0);
    if (is_traced)
        oriel_traced_add(call, time_ns, -1, 0, 0);
    return is_traced;
}

void oriel_observed_call_start(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < CLOCKS_TRIED; i++) {
        uint64_t begin_ns = oriel_now_ns();
        uint64_t took_ns = oriel_now_ns() - begin_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    atomic_store_explicit(&clock_ns, least_ns, memory_order_relaxed);
}
