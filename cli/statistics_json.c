/* Writes the statistics as one JSON object; docs/reference/file-formats.md describes it. */
#include "cli/statistics.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/json.h"
#include "cli/verdict.h"

static json_t *count_json(uint64_t number)
{
    return oriel_json_checked(json_integer((json_int_t)number));
}

static json_t *sums_json(const struct oriel_counter *rows, const struct oriel_sum *sums,
                         int rows_count)
{
    json_t *object = oriel_json_checked(json_object());
    for (int i = 0; i < rows_count; i++) {
        json_t *sum = json_pack("{s:o, s:o}", "count", count_json(sums[i].count), "bytes",
                                count_json(sums[i].bytes));
        if (sums[i].time_ns > 0)
            oriel_json_set(sum, "time_ns", count_json(sums[i].time_ns));
        if (sums[i].waited > 0)
            oriel_json_set(sum, "waited", count_json(sums[i].waited));
        oriel_json_set(object, rows[i].field, sum);
    }
    return object;
}

static json_t *calls_json(const struct oriel_window_sum *window)
{
    json_t *object = oriel_json_checked(json_object());
    for (int i = 0; i < ORIEL_COUNTED_CALLS; i++) {
        const struct oriel_time_sum *sum = &window->calls[i];
        json_t *longest_rank =
            oriel_json_checked(sum->waited == 0 ? json_null() : json_integer(sum->longest_rank));
        json_object_set_new(
            object, oriel_counted_calls[i].field,
            oriel_json_checked(json_pack(
                "{s:o, s:o, s:o, s:o, s:o, s:o}", "count", count_json(sum->count), "time_ns",
                count_json(sum->time_ns), "waiting_ns", count_json(sum->waiting_ns), "waited",
                count_json(sum->waited), "longest_ns", count_json(sum->longest_ns), "longest_rank",
                longest_rank)));
    }
    return object;
}

static json_t *causes_json(const struct oriel_window_sum *window)
{
    json_t *object = oriel_json_checked(json_object());
    for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++) {
        json_t *ranks = oriel_json_checked(json_array());
        for (int32_t i = 0; i < window->n; i++)
            if (window->members[i].caused_ns[cause] > 0)
                json_array_append_new(
                    ranks, oriel_json_checked(json_pack(
                               "{s:i, s:o}", "rank", (int)window->members[i].world_rank,
                               "caused_ns", count_json(window->members[i].caused_ns[cause]))));
        json_object_set_new(
            object, oriel_counted_causes[cause].field,
            oriel_json_checked(json_pack("{s:o, s:o}", "caused_ns",
                                         count_json(window->causes_ns[cause]), "ranks", ranks)));
    }
    return object;
}

/* Path and size of each rank's memory. */
static json_t *members_json(const struct oriel_window_sum *window)
{
    json_t *list = oriel_json_checked(json_array());
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_member_sum *member = &window->members[i];
        json_t *size =
            member->has_reported ? count_json(member->size_bytes) : oriel_json_checked(json_null());
        json_t *path = oriel_json_checked(member->has_reported
                                              ? json_string(oriel_counted_paths[member->path].field)
                                              : json_null());
        json_array_append_new(list, oriel_json_checked(json_pack(
                                        "{s:i, s:o, s:o, s:o}", "rank", (int)member->world_rank,
                                        "size_bytes", size, "path", path, "reason",
                                        oriel_json_text(member->reason, strlen(member->reason)))));
    }
    return list;
}

static json_t *pairs_json(const struct oriel_window_sum *window)
{
    json_t *list = oriel_json_checked(json_array());
    for (int i = 0; i < ORIEL_PAIRS_SHOWN && window->pairs[i].operations > 0; i++) {
        const struct oriel_pair *pair = &window->pairs[i];
        json_array_append_new(
            list, oriel_json_checked(json_pack("{s:i, s:i, s:o, s:o}", "origin", (int)pair->origin,
                                               "target", (int)pair->target, "count",
                                               count_json(pair->operations), "bytes",
                                               count_json(pair->bytes))));
    }
    return list;
}

static json_t *window_json(const struct oriel_window_sum *window)
{
    return oriel_json_checked(json_pack(
        "{s:o, s:s, s:o, s:b, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
        oriel_json_text(window->name, strlen(window->name)), "flavour",
        window->shared_by != 0 ? "" : oriel_flavour_call(window->flavour), "site",
        oriel_json_text(window->site, strlen(window->site)), "freed", (int)window->freed, "windows",
        count_json(window->shared_by != 0 ? window->shared_by : 1), "ranks_reported",
        (int)window->reported, "ranks", members_json(window), "operations",
        sums_json(oriel_counted_operations, window->operations, ORIEL_COUNTED_OPERATIONS), "paths",
        sums_json(oriel_counted_paths, window->paths, ORIEL_COUNTED_PATHS), "calls",
        calls_json(window), "causes", causes_json(window), "busiest_pairs", pairs_json(window)));
}

static json_t *text_json(const char *text)
{
    return oriel_json_text(text, strlen(text));
}

/* A call site. Fields that are unknown are null. */
static json_t *site_json(const struct oriel_site_sums *sums, const struct oriel_site_sum *sum)
{
    const struct oriel_code_address *place = &sums->places[sum->place];
    return oriel_json_checked(json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "function",
        text_json(place->function), "file", text_json(place->file), "line",
        place->file[0] != '\0' ? count_json(place->line) : oriel_json_checked(json_null()),
        "inlined", text_json(place->inlined), "module", text_json(place->module), "offset",
        place->offset != 0 ? count_json(place->offset) : oriel_json_checked(json_null()), "call",
        oriel_json_checked(json_string(oriel_kind_name(sum->kind))), "window",
        sum->window == ORIEL_WINDOWS_SEVERAL ? oriel_json_checked(json_null())
                                             : count_json(sum->window),
        "count", count_json(sum->count), "bytes", count_json(sum->bytes), "time_ns",
        count_json(sum->time_ns), "waiting_ns", count_json(sum->waiting_ns), "waited",
        count_json(sum->waited), "longest_ns", count_json(sum->longest_ns), "longest_rank",
        oriel_json_checked(sum->waited == 0 ? json_null() : json_integer(sum->longest_rank))));
}

static json_t *sites_json(const struct oriel_site_sums *sums)
{
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < sums->count; i++)
        oriel_json_append(list, site_json(sums, &sums->list[i]));
    return list;
}

json_t *oriel_statistics_json(const struct oriel_job_sum *job)
{
    const struct oriel_statistics_head *head = job->head;
    json_t *missing = oriel_json_checked(json_array());
    json_t *early = oriel_json_checked(json_array());
    json_t *windows = oriel_json_checked(json_array());
    for (int32_t i = 0; i < head->ranks; i++)
        if (job->has_reported[i] != ORIEL_REPORTED_ALL)
            json_array_append_new(job->has_reported[i] == ORIEL_REPORTED_EARLY ? early : missing,
                                  oriel_json_checked(json_integer(i)));
    for (size_t i = 0; i < job->windows_count; i++)
        json_array_append_new(windows, window_json(&job->windows[i]));
    json_t *object = oriel_json_checked(json_pack(
        "{s:s, s:i, s:o, s:s, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "format",
        "oriel-statistics", "version", 2, "oriel",
        oriel_json_text(head->version, sizeof head->version), "host", head->host, "host_version",
        oriel_json_text(head->host_version, sizeof head->host_version), "program",
        oriel_json_text(head->program, sizeof head->program), "ranks", (int)head->ranks, "ran_ns",
        count_json(head->ran_ns), "verdict", oriel_verdict_json(job), "missing_ranks", missing,
        "early_ranks", early, "windows", windows, "sites", sites_json(&job->sites)));
    oriel_json_set(object, "regions", oriel_region_sums_json(&job->regions));
    oriel_json_set(object, "paused_ns", count_json(job->paused_ns));
    oriel_json_set(object, "paused_ranks", count_json((uint64_t)job->paused_ranks));
    if (job->is_traced) {
        const char *filter = job->filter == NULL ? "" : job->filter;
        oriel_json_set(object, "events", count_json(job->events));
        oriel_json_set(object, "dropped_events", count_json(job->dropped));
        oriel_json_set(object, "trace_filter", text_json(filter));
        oriel_json_set(object, "trace_sample", count_json(job->sample > 1 ? job->sample : 1));
        oriel_json_set(object, "estimated", json_boolean(job->sample > 1));
    }
    return object;
}

char *oriel_statistics_dump(const struct oriel_job_sum *job, const char *path)
{
    json_t *object = oriel_statistics_json(job);
    char *problem = oriel_json_write(path, object);
    json_decref(object);
    return problem;
}
