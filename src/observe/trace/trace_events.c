/* Converts observed calls and windows to events and descriptions of the trace (trace.h), and
 * selects the calls that are traced.
 *
 * Operations are sampled for each call site: of each N consecutive ones, one is traced, which is
 * drawn. So the number of traced operations times N differs from the number of operations by less
 * than N for each site and thread, and no period of the program's loops favours some of its
 * operations. */
#include "observe/stats/observed_call.h"
#include "observe/trace/trace_filter.h"

#include "base/log.h"
#include "base/options.h"
#include "memory/file.h"

#include <string.h>

uint32_t oriel_traced_sample = 1;

static struct oriel_trace_filter filter = {.kinds = ~UINT64_C(0)};
static bool is_rank_traced;

void oriel_traced_start(int32_t world_rank)
{
    char problem[ORIEL_TRACE_FILTER_PROBLEM];
    const struct oriel_options *options = oriel_options();
    if (!oriel_trace_filter_read(options->trace_filter, &filter, problem)) {
        filter = (struct oriel_trace_filter){.kinds = ~UINT64_C(0)};
        if (world_rank == 0)
            oriel_warn_job("ORIEL_TRACE_FILTER: %s: all calls are traced", problem);
    }
    oriel_traced_sample =
        (uint32_t)(options->trace_sample < ORIEL_TRACE_SAMPLE_MOST ? options->trace_sample
                                                                   : ORIEL_TRACE_SAMPLE_MOST);
    is_rank_traced = oriel_trace_filter_has_rank(&filter, world_rank);
}

void oriel_traced_selection(struct oriel_trace_selection *out)
{
    memset(out, 0, sizeof *out);
    out->sample = oriel_traced_sample;
    if (filter.spec != NULL)
        snprintf(out->filter, sizeof out->filter, "%s", filter.spec);
}

void oriel_traced_select(struct oriel_observed *first)
{
    const struct oriel_window_record *record = first->record;
    bool is_traced = oriel_tracing && is_rank_traced &&
                     oriel_trace_filter_has_window(&filter, record->name, record->traced + 1);
    atomic_store_explicit(&first->traced_kinds, is_traced ? filter.kinds : 0, memory_order_relaxed);
}

/* --- samples --- */

/* The number of the operation that is traced of a block of ORIEL_TRACE_SAMPLE ones. */
static uint32_t drawn_number(const struct oriel_counted_site *site, uint64_t block)
{
    uint64_t key = atomic_load_explicit(&site->key, memory_order_relaxed) + site->kind;
    uint64_t drawn = (key ^ block * UINT64_C(0xff51afd7ed558ccd)) * UINT64_C(0x9e3779b97f4a7c15);
    drawn = (drawn ^ drawn >> 32) * UINT64_C(0xff51afd7ed558ccd) >> 33;
    return (uint32_t)(block * oriel_traced_sample + drawn % oriel_traced_sample);
}

void oriel_traced_site_start(struct oriel_counted_site *site)
{
    if (atomic_load_explicit(&site->count, memory_order_relaxed) == 0)
        atomic_store_explicit(&site->next_traced, drawn_number(site, 0), memory_order_relaxed);
}

/* Threads that count at one site share numbers and leave others out. So an operation may stand for
 * the block before its own, which then still has one to come. */
bool oriel_traced_site_advance(struct oriel_counted_site *site, uint64_t number)
{
    uint32_t next = atomic_load_explicit(&site->next_traced, memory_order_relaxed);
    uint32_t late = (uint32_t)number - next;
    if ((int32_t)late < 0)
        return false;
    uint64_t block = number / oriel_traced_sample + (late <= number % oriel_traced_sample);
    return atomic_compare_exchange_strong_explicit(&site->next_traced, &next,
                                                   drawn_number(site, block), memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* --- events --- */

void oriel_traced_mark(const struct oriel_trace_mark *mark)
{
    struct oriel_trace_event event;
    memcpy(&event, mark, sizeof event);
    if (oriel_tracing && is_rank_traced)
        oriel_trace_add(&event);
}

void oriel_traced_describe(struct oriel_window_record *record)
{
    const int32_t *ranks =
        record->ranks != 0 ? (const int32_t *)(oriel_file_base() + record->ranks) : NULL;
    if (oriel_tracing)
        record->traced = oriel_trace_window(record, record->disp_unit, ranks);
}

void oriel_traced_add(const struct oriel_observed_call *call, uint64_t duration_ns, int32_t target,
                      uint8_t path, uint64_t bytes)
{
    uint64_t waiting_ns = oriel_thread_waits.total_ns - call->waited_ns;
    struct oriel_trace_event entry = {
        .begin_ns = call->begin_ns,
        .duration_ns = duration_ns,
        .waiting_ns = waiting_ns,
        .bytes = bytes,
        .target = target,
        .cause_rank = waiting_ns > 0 ? oriel_thread_waits.rank : -1,
        .window = (uint16_t)call->observed->first->record->traced,
        .site = call->site->place,
        .kind = call->site->kind,
        .path = path,
        .cause = waiting_ns > 0 ? oriel_thread_waits.cause : 0,
    };
    oriel_thread_waits.longest_ns = 0;
    oriel_trace_add(&entry);
}
