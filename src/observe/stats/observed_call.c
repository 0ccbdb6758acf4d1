/* The slow parts of counting a call: a new call site, and times. */
#include "observe/stats/observed_call.h"

#include "observe/stats/site_places.h"

enum { CLOCKS_TRIED = 100 };

static _Atomic uint64_t clock_ns; /* between two readings */

struct oriel_counted_site *oriel_observed_site_elsewhere(const struct oriel_observed *observed,
                                                         enum oriel_trace_kind kind,
                                                         const void *address)
{
    struct oriel_site_place place = oriel_site_place_find(address);
    uint64_t key = oriel_site_key(place.address, kind);
    struct oriel_counted_site *site = oriel_site_table_find(observed->sites, key);
    return site != NULL ? site : oriel_site_table_add(observed->sites, key, place.number, kind);
}

static void count_times(const struct oriel_observed_call *call, uint64_t time_ns,
                        uint64_t waiting_ns)
{
    oriel_count(call->observed, &call->site->time_ns, time_ns);
    if (waiting_ns == 0)
        return;
    oriel_count(call->observed, &call->site->waiting_ns, waiting_ns);
    oriel_count(call->observed, &call->site->waited, 1);
    oriel_count_most(&call->site->longest_ns, waiting_ns);
}

void oriel_observed_call_times(const struct oriel_observed_call *call, bool is_sampled,
                               int32_t target, uint8_t path, uint64_t bytes)
{
    uint64_t waiting_ns = oriel_thread_waits.total_ns - call->waited_ns;
    uint64_t took_ns = call->begin_ns != 0 ? oriel_now_ns() - call->begin_ns : waiting_ns;
    uint64_t spent_ns = waiting_ns + atomic_load_explicit(&clock_ns, memory_order_relaxed);
    uint64_t working_ns = took_ns > spent_ns ? took_ns - spent_ns : 0;
    bool is_one_of_many = is_sampled && !oriel_tracing && call->site->count >= ORIEL_CALL_SAMPLE &&
                          working_ns < ORIEL_CALL_AT_ONCE_NS + bytes;
    count_times(call, working_ns * (is_one_of_many ? ORIEL_CALL_SAMPLE : 1) + waiting_ns,
                waiting_ns);
    if (oriel_tracing && call->begin_ns != 0)
        oriel_traced_add(call, took_ns, target, path, bytes);
}

void oriel_observed_call_whole(const struct oriel_observed_call *call, uint64_t time_ns)
{
    count_times(call, time_ns, oriel_thread_waits.total_ns - call->waited_ns);
    oriel_count(call->observed, &call->site->count, 1);
    if (oriel_tracing)
        oriel_traced_add(call, time_ns, -1, 0, 0);
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
