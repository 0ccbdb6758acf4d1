/* Converts observed calls and windows to events and descriptions of the trace (trace.h). */
#include "observe/stats/observed_call.h"

#include "memory/file.h"

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
