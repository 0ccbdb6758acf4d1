/* Sums a run's calls by call site, for the summary. */
#include "cli/report/report.h"

static bool site_add_event(const struct oriel_trace_record *traced, void *context)
{
    const struct oriel_trace_event *event = traced->event;
    oriel_site_sums_add(context, &(struct oriel_site_sum){.place = traced->place,
                                                          .kind = event->kind,
                                                          .window = traced->window,
                                                          .count = 1,
                                                          .bytes = event->bytes,
                                                          .time_ns = event->duration_ns,
                                                          .waiting_ns = event->waiting_ns,
                                                          .waited = event->waiting_ns != 0,
                                                          .longest_ns = event->waiting_ns,
                                                          .longest_rank = -1});
    return true;
}

void oriel_report_sites(const struct oriel_traces *traces, struct oriel_site_sums *out)
{
    oriel_site_sums_open(out);
    for (size_t i = 1; i < traces->sites.places_count; i++)
        oriel_site_sums_place(out, &traces->sites.places[i]); /* in the same order: same indices */
    oriel_traces_each(traces, site_add_event, out);
    oriel_site_sums_finish(out);
}
