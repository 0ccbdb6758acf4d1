/* A clock is assumed to run evenly between two measurements, and at the same rate before and after
 * them. With a single measurement its rate is unknown. The error bound then grows by DRIFT_PPM,
 * which is more than the drift of computer clocks. */
#include "cli/report/trace_clock.h"

enum { DRIFT_PPM = 100, MILLION = 1000000, BEST_APART_NS = 1000000 };

void oriel_trace_alignment_add(struct oriel_trace_alignment *alignment,
                               const struct oriel_trace_parsed *file)
{
    for (uint32_t i = 0; i < file->clocks_count; i++) {
        const struct oriel_trace_clock *clock = &file->clocks[i];
        if (!alignment->is_known || clock->own_ns < alignment->first.own_ns)
            alignment->first = *clock;
        if (!alignment->is_known || clock->own_ns > alignment->last.own_ns)
            alignment->last = *clock;
        alignment->is_known = true;
    }
}

/* Two measurements count as one when they are too close together, or give a rate that no clock
 * has. */
static bool has_pace(const struct oriel_trace_alignment *alignment)
{
    int64_t own_ns = (int64_t)(alignment->last.own_ns - alignment->first.own_ns);
    int64_t zero_ns = (int64_t)(alignment->last.zero_ns - alignment->first.zero_ns);
    int64_t off_ns = zero_ns > own_ns ? zero_ns - own_ns : own_ns - zero_ns;
    return own_ns > BEST_APART_NS && zero_ns > 0 && off_ns < own_ns / 100;
}

int64_t oriel_trace_aligned_ns(const struct oriel_trace_alignment *alignment, uint64_t own_ns)
{
    const struct oriel_trace_clock *first = &alignment->first;
    int64_t since_ns = (int64_t)(own_ns - first->own_ns);
    if (has_pace(alignment)) {
        long double pace = (long double)(alignment->last.zero_ns - first->zero_ns) /
                           (long double)(alignment->last.own_ns - first->own_ns);
        since_ns = (int64_t)((long double)since_ns * pace);
    }
    return (int64_t)first->zero_ns + since_ns;
}

uint64_t oriel_trace_alignment_error_ns(const struct oriel_trace_alignment *alignment,
                                        uint64_t last_ns)
{
    const struct oriel_trace_clock *first = &alignment->first;
    const struct oriel_trace_clock *last = &alignment->last;
    if (has_pace(alignment))
        return first->error_ns > last->error_ns ? first->error_ns : last->error_ns;
    if (first->error_ns == 0 || last_ns < first->own_ns)
        return first->error_ns; /* rank 0's own clock */
    return first->error_ns + (last_ns - first->own_ns) / MILLION * DRIFT_PPM;
}
