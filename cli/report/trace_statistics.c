/* Sums the traces of a run like the records of a counted one (cli/statistics.c). The row of a rank
 * is finished when the events of the next one begin. */
#include "cli/report/reported_run.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

struct summing {
    struct oriel_reported_run *run;
    uint32_t rank;    /* whose events are being read; an index in traces->ranks */
    bool *has_events; /* of that rank, by window */
};

static void window_describe(const struct oriel_traced_window *traced,
                            struct oriel_window_sum *window)
{
    window->id = traced->window_id;
    window->name = traced->name;
    window->freed = traced->is_freed;
    window->place = traced->place;
    memcpy(window->site, traced->site, sizeof window->site);
    window->flavour = traced->flavour;
    for (int32_t i = 0; i < traced->n; i++) {
        struct oriel_member_sum *member = &window->members[i];
        member->world_rank = traced->world_ranks[i];
        member->has_reported = traced->paths[i] != ORIEL_TRACED_PATH_UNKNOWN;
        member->path = member->has_reported ? traced->paths[i] : 0;
        member->size_bytes = traced->sizes_bytes[i];
        member->reason = traced->reasons[i];
        window->reported += member->has_reported;
    }
}

static void head_fill(const struct oriel_traces *traces, struct oriel_reported_run *run)
{
    const struct oriel_trace_header *header = &traces->ranks[0].header;
    snprintf(run->head.program, sizeof run->head.program, "%s", header->program);
    snprintf(run->head.version, sizeof run->head.version, "%s", header->oriel);
    snprintf(run->head.host, sizeof run->head.host, "%s", header->host);
    snprintf(run->head.host_version, sizeof run->head.host_version, "%s", traces->host_version);
    run->head.ranks = header->world_size;
    run->head.ran_ns = (uint64_t)traces->last_ns;
    run->sum.head = &run->head;
    run->sum.is_traced = true;
    run->sum.filter = traces->filter;
    run->sum.sample = traces->sample;
    run->sum.has_reported = oriel_alloc((size_t)header->world_size + 1);
    for (size_t i = 0; i < traces->ranks_count; i++) {
        const struct oriel_traced_rank *rank = &traces->ranks[i];
        run->sum.events += rank->events;
        run->sum.dropped += rank->dropped;
        run->sum.paused_ns += rank->paused_ns;
        run->sum.paused_ranks += rank->paused_ns > 0;
        if (rank->is_counted && rank->world_rank < header->world_size)
            run->sum.has_reported[rank->world_rank] =
                rank->ended ? ORIEL_REPORTED_ALL : ORIEL_REPORTED_EARLY;
    }
}

static void sum_add(struct oriel_sum *sum, const struct oriel_trace_record *record)
{
    const struct oriel_trace_event *event = record->event;
    sum->count += record->weight;
    sum->bytes += event->bytes * record->weight;
    sum->time_ns += record->time_ns;
    sum->waited += event->waiting_ns > 0 ? record->weight : 0;
}

static void call_add(struct oriel_window_sum *window, const struct oriel_trace_event *event,
                     int32_t world_rank)
{
    int call = event->kind - ORIEL_TRACE_CALL;
    struct oriel_time_sum *sum = &window->calls[call];
    uint64_t waiting_ns =
        event->waiting_ns < event->duration_ns ? event->waiting_ns : event->duration_ns;
    window->freed |= call == ORIEL_CALL_OF_free;
    sum->count++;
    sum->time_ns += event->duration_ns;
    sum->waiting_ns += waiting_ns;
    sum->waited += waiting_ns > 0;
    if (waiting_ns > sum->longest_ns) {
        sum->longest_ns = waiting_ns;
        sum->longest_rank = world_rank;
    }
}

static void rank_finish(const struct summing *summing)
{
    struct oriel_reported_run *run = summing->run;
    for (size_t i = 0; i < run->sum.windows_count; i++)
        if (summing->has_events[i]) {
            oriel_statistics_row_finish(&run->sum.windows[i],
                                        run->traces->ranks[summing->rank].world_rank);
            summing->has_events[i] = false;
        }
}

static void site_add(struct oriel_site_sums *sites, const struct oriel_trace_record *record,
                     int32_t world_rank)
{
    const struct oriel_trace_event *event = record->event;
    uint64_t weight = record->weight;
    oriel_site_sums_add(sites,
                        &(struct oriel_site_sum){.place = record->place,
                                                 .kind = event->kind,
                                                 .window = record->window,
                                                 .count = weight,
                                                 .bytes = event->bytes * weight,
                                                 .time_ns = record->time_ns,
                                                 .waiting_ns = event->waiting_ns * weight,
                                                 .waited = event->waiting_ns != 0 ? weight : 0,
                                                 .longest_ns = event->waiting_ns,
                                                 .longest_rank = world_rank});
}

static bool event_sum(const struct oriel_trace_record *record, void *context)
{
    struct summing *summing = context;
    const struct oriel_trace_event *event = record->event;
    struct oriel_window_sum *window = &summing->run->sum.windows[record->window];
    int32_t world_rank = summing->run->traces->ranks[record->rank].world_rank;
    if (record->rank != summing->rank)
        rank_finish(summing);
    summing->rank = record->rank;
    summing->has_events[record->window] = true;
    site_add(&summing->run->sum.sites, record, world_rank);
    if (event->kind < ORIEL_TRACE_CALL) {
        sum_add(&window->operations[event->kind], record);
        sum_add(&window->paths[event->path], record);
        if (event->target >= 0 && event->target < window->n)
            sum_add(&window->row[event->target], record);
    } else {
        call_add(window, event, world_rank);
    }
    if (event->waiting_ns != 0 && event->cause_rank >= 0 && event->cause_rank < window->n) {
        uint64_t caused_ns = event->waiting_ns * record->weight;
        window->causes_ns[event->cause] += caused_ns;
        window->members[event->cause_rank].caused_ns[event->cause] += caused_ns;
    }
    return true;
}

static bool region_sum(const struct oriel_trace_mark_record *record, void *context)
{
    struct oriel_region_sums *sums = context;
    const struct oriel_trace_mark *mark = record->mark;
    struct oriel_region_sum sum = {.count = 1,
                                   .time_ns = mark->duration_ns - record->paused_ns,
                                   .calls_ns =
                                       (uint64_t)mark->calls_ns_high << 32 | mark->calls_ns_low,
                                   .waiting_ns = mark->waiting_ns,
                                   .operations = mark->operations,
                                   .bytes = mark->bytes};
    snprintf(sum.name, sizeof sum.name, "%s", record->name);
    if (mark->kind == ORIEL_MARK_REGION)
        oriel_region_sums_add(sums, &sum);
    return true;
}

void oriel_reported_run_of_traces(const char *path, struct oriel_traces *traces,
                                  struct oriel_reported_run *out)
{
    memset(out, 0, sizeof *out);
    out->path = path;
    out->traces = traces;
    head_fill(traces, out);
    oriel_site_sums_open(&out->sum.sites);
    oriel_region_sums_open(&out->sum.regions);
}

void oriel_reported_run_sum(struct oriel_reported_run *run)
{
    const struct oriel_traces *traces = run->traces;
    if (traces == NULL)
        return;
    for (size_t i = 0; i < traces->windows_count; i++)
        window_describe(&traces->windows[i],
                        oriel_statistics_window_append(&run->sum, traces->windows[i].n));
    for (size_t i = 1; i < traces->sites.places_count; i++)
        oriel_site_sums_place(&run->sum.sites, &traces->sites.places[i]); /* the same indices */
    struct summing summing = {.run = run, .has_events = oriel_alloc(traces->windows_count + 1)};
    oriel_traces_each(traces, event_sum, &summing);
    rank_finish(&summing);
    oriel_site_sums_finish(&run->sum.sites);
    oriel_traces_marks_each(traces, region_sum, &run->sum.regions);
    oriel_region_sums_finish(&run->sum.regions);
    free(summing.has_events);
}

void oriel_reported_run_close(struct oriel_reported_run *run)
{
    oriel_statistics_free(&run->sum);
    if (run->traces != NULL)
        oriel_traces_close(run->traces);
    json_decref(run->file);
}
