/* Reads a file of statistics (docs/reference/file-formats.md). All numbers are bounded before they
 * are used: a file may have been edited, or be damaged. */
#include "cli/report/reported_run.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/report/json_file.h"
#include "cli/report/trace_reader.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = oriel_json_member_text(object, key);
    return text != NULL ? text : "";
}

static uint64_t amount_of(const json_t *object, const char *key)
{
    int64_t number;
    oriel_json_member_number(object, key, &number);
    return number > 0 ? (uint64_t)number : 0;
}

/* A rank in MPI_COMM_WORLD; -1 for one that is not in it. */
static int32_t rank_of(const json_t *object, const char *key)
{
    int64_t number;
    bool is_known = oriel_json_member_number(object, key, &number);
    return is_known && number >= 0 && number < ORIEL_TRACE_RANKS_MOST ? (int32_t)number : -1;
}

static uint8_t path_of(const json_t *member)
{
    for (int i = 0; i < ORIEL_COUNTED_PATHS; i++)
        if (strcmp(text_of(member, "path"), oriel_counted_paths[i].field) == 0)
            return (uint8_t)i;
    return ORIEL_PATH_host;
}

static uint32_t flavour_of(const json_t *window)
{
    uint32_t flavour = 0;
    while (strcmp(oriel_flavour_call(flavour), "?") != 0 &&
           strcmp(oriel_flavour_call(flavour), text_of(window, "flavour")) != 0)
        flavour++;
    return flavour;
}

static void members_read(const json_t *list, struct oriel_window_sum *window)
{
    for (int32_t i = 0; i < window->n; i++) {
        const json_t *from = json_array_get(list, (size_t)i);
        struct oriel_member_sum *member = &window->members[i];
        member->world_rank = rank_of(from, "rank");
        member->has_reported = oriel_json_member_text(from, "path") != NULL;
        member->path = path_of(from);
        member->size_bytes = amount_of(from, "size_bytes");
        member->reason = text_of(from, "reason");
    }
}

static void sums_read(const json_t *object, const struct oriel_counter *rows, int count,
                      struct oriel_sum *out)
{
    for (int i = 0; i < count; i++) {
        const json_t *from = json_object_get(object, rows[i].field);
        out[i] = (struct oriel_sum){.count = amount_of(from, "count"),
                                    .bytes = amount_of(from, "bytes"),
                                    .time_ns = amount_of(from, "time_ns"),
                                    .waited = amount_of(from, "waited")};
    }
}

static void calls_read(const json_t *object, struct oriel_time_sum *out)
{
    for (int i = 0; i < ORIEL_COUNTED_CALLS; i++) {
        const json_t *from = json_object_get(object, oriel_counted_calls[i].field);
        out[i] = (struct oriel_time_sum){.count = amount_of(from, "count"),
                                         .time_ns = amount_of(from, "time_ns"),
                                         .waiting_ns = amount_of(from, "waiting_ns"),
                                         .waited = amount_of(from, "waited"),
                                         .longest_ns = amount_of(from, "longest_ns"),
                                         .longest_rank = rank_of(from, "longest_rank")};
        if (out[i].waiting_ns > out[i].time_ns)
            out[i].waiting_ns = out[i].time_ns;
    }
}

/* The file lists the ranks in the window's order, so the search for the next one is short. */
static void cause_read(const json_t *object, int cause, struct oriel_window_sum *window)
{
    size_t i;
    int32_t at = 0;
    json_t *from;
    window->causes_ns[cause] = amount_of(object, "caused_ns");
    json_array_foreach(json_object_get(object, "ranks"), i, from)
    {
        int32_t rank = rank_of(from, "rank");
        while (at < window->n && window->members[at].world_rank != rank)
            at++;
        if (at == window->n)
            return;
        window->members[at++].caused_ns[cause] = amount_of(from, "caused_ns");
    }
}

static void pairs_read(const json_t *list, struct oriel_window_sum *window)
{
    for (size_t i = 0; i < ORIEL_PAIRS_SHOWN; i++) {
        const json_t *from = json_array_get(list, i);
        window->pairs[i] = (struct oriel_pair){.origin = rank_of(from, "origin"),
                                               .target = rank_of(from, "target"),
                                               .operations = amount_of(from, "count"),
                                               .bytes = amount_of(from, "bytes")};
    }
}

static void window_read(const json_t *from, struct oriel_job_sum *job)
{
    const json_t *members = json_object_get(from, "ranks");
    size_t n = json_array_size(members);
    struct oriel_window_sum *window = oriel_statistics_window_append(
        job, (int32_t)(n < ORIEL_TRACE_RANKS_MOST ? n : ORIEL_TRACE_RANKS_MOST));
    uint64_t windows = amount_of(from, "windows");
    window->name = text_of(from, "name");
    snprintf(window->site, sizeof window->site, "%s", text_of(from, "site"));
    window->flavour = flavour_of(from);
    window->freed = json_is_true(json_object_get(from, "freed"));
    window->shared_by = text_of(from, "flavour")[0] == '\0' ? windows : 0;
    members_read(members, window);
    for (int32_t i = 0; i < window->n; i++)
        window->reported += window->members[i].has_reported;
    sums_read(json_object_get(from, "operations"), oriel_counted_operations,
              ORIEL_COUNTED_OPERATIONS, window->operations);
    sums_read(json_object_get(from, "paths"), oriel_counted_paths, ORIEL_COUNTED_PATHS,
              window->paths);
    calls_read(json_object_get(from, "calls"), window->calls);
    const json_t *causes = json_object_get(from, "causes");
    for (int i = 0; i < ORIEL_COUNTED_CAUSES; i++)
        cause_read(json_object_get(causes, oriel_counted_causes[i].field), i, window);
    pairs_read(json_object_get(from, "busiest_pairs"), window);
}

/* False for a kind that does not exist. */
static bool kind_find(const char *name, uint8_t *out)
{
    for (*out = 0; *out < ORIEL_TRACE_KINDS; ++*out)
        if (oriel_kind_exists(*out) && strcmp(oriel_kind_name(*out), name) == 0)
            return true;
    return false;
}

static uint32_t place_read(const json_t *from, struct oriel_site_sums *sites)
{
    struct oriel_code_address place = {.line = (uint32_t)amount_of(from, "line"),
                                       .offset = amount_of(from, "offset")};
    snprintf(place.function, sizeof place.function, "%s", text_of(from, "function"));
    snprintf(place.file, sizeof place.file, "%s", text_of(from, "file"));
    snprintf(place.inlined, sizeof place.inlined, "%s", text_of(from, "inlined"));
    snprintf(place.module, sizeof place.module, "%s", text_of(from, "module"));
    return oriel_site_sums_place(sites, &place);
}

static void site_read(const json_t *from, struct oriel_job_sum *job)
{
    int64_t window;
    bool is_of_one = oriel_json_member_number(from, "window", &window);
    struct oriel_site_sum sum = {.count = amount_of(from, "count"),
                                 .bytes = amount_of(from, "bytes"),
                                 .time_ns = amount_of(from, "time_ns"),
                                 .waiting_ns = amount_of(from, "waiting_ns"),
                                 .waited = amount_of(from, "waited"),
                                 .longest_ns = amount_of(from, "longest_ns"),
                                 .longest_rank = rank_of(from, "longest_rank")};
    if (!kind_find(text_of(from, "call"), &sum.kind))
        return;
    sum.place = place_read(from, &job->sites);
    sum.window = is_of_one && window >= 0 && (size_t)window < job->windows_count
                     ? (uint32_t)window
                     : ORIEL_WINDOWS_SEVERAL;
    if (sum.waiting_ns > sum.time_ns)
        sum.waiting_ns = sum.time_ns;
    oriel_site_sums_add(&job->sites, &sum);
}

static void regions_read(const json_t *list, struct oriel_region_sums *sums)
{
    size_t i;
    json_t *from;
    json_array_foreach(list, i, from)
    {
        struct oriel_region_sum sum = {.count = amount_of(from, "count"),
                                       .time_ns = amount_of(from, "time_ns"),
                                       .calls_ns = amount_of(from, "calls_ns"),
                                       .waiting_ns = amount_of(from, "waiting_ns"),
                                       .operations = amount_of(from, "operations"),
                                       .bytes = amount_of(from, "bytes")};
        snprintf(sum.name, sizeof sum.name, "%s", text_of(from, "name"));
        oriel_region_sums_add(sums, &sum);
    }
    oriel_region_sums_finish(sums);
}

static void ranks_mark(const json_t *list, enum oriel_reported_state state,
                       struct oriel_reported_run *run)
{
    size_t i;
    json_t *rank;
    json_array_foreach(list, i, rank)
    {
        json_int_t number = json_integer_value(rank);
        if (json_is_integer(rank) && number >= 0 && number < run->head.ranks)
            run->sum.has_reported[number] = (uint8_t)state;
    }
}

bool oriel_statistics_file_is(const json_t *file)
{
    return strcmp(text_of(file, "format"), "oriel-statistics") == 0;
}

bool oriel_reported_run_of_file(const char *path, json_t *file, FILE *complaints,
                                struct oriel_reported_run *out)
{
    size_t i;
    json_t *window, *site;
    int32_t ranks = rank_of(file, "ranks");
    const char *problem = NULL;
    if (amount_of(file, "version") != 2)
        problem = "statistics of another version of oriel run";
    else if (ranks < 1 || !json_is_array(json_object_get(file, "windows")))
        problem = "it has no number of ranks, or no list of windows";
    if (problem != NULL) {
        fprintf(complaints, "oriel: %s: %s\n", path, problem);
        json_decref(file);
        return false;
    }
    memset(out, 0, sizeof *out);
    out->path = path;
    out->file = file;
    snprintf(out->head.program, sizeof out->head.program, "%s", text_of(file, "program"));
    snprintf(out->head.version, sizeof out->head.version, "%s", text_of(file, "oriel"));
    snprintf(out->head.host, sizeof out->head.host, "%s", text_of(file, "host"));
    snprintf(out->head.host_version, sizeof out->head.host_version, "%s",
             text_of(file, "host_version"));
    out->head.ranks = ranks;
    out->head.ran_ns = amount_of(file, "ran_ns");
    out->sum.head = &out->head;
    out->sum.is_traced = json_is_integer(json_object_get(file, "dropped_events"));
    out->sum.dropped = amount_of(file, "dropped_events");
    out->sum.events = amount_of(file, "events");
    out->sum.filter = text_of(file, "trace_filter");
    uint64_t sample = amount_of(file, "trace_sample");
    out->sum.sample = sample <= ORIEL_TRACE_SAMPLE_MOST ? (uint32_t)sample : 1;
    out->sum.paused_ns = amount_of(file, "paused_ns");
    uint64_t paused = amount_of(file, "paused_ranks");
    out->sum.paused_ranks = paused < (uint64_t)ranks ? (int32_t)paused : ranks;
    out->sum.has_reported = oriel_alloc((size_t)ranks);
    memset(out->sum.has_reported, ORIEL_REPORTED_ALL, (size_t)ranks);
    ranks_mark(json_object_get(file, "missing_ranks"), ORIEL_REPORTED_NOTHING, out);
    ranks_mark(json_object_get(file, "early_ranks"), ORIEL_REPORTED_EARLY, out);
    json_array_foreach(json_object_get(file, "windows"), i, window) window_read(window, &out->sum);
    oriel_site_sums_open(&out->sum.sites);
    oriel_region_sums_open(&out->sum.regions);
    json_array_foreach(json_object_get(file, "sites"), i, site) site_read(site, &out->sum);
    oriel_site_sums_finish(&out->sum.sites);
    regions_read(json_object_get(file, "regions"), &out->sum.regions);
    return true;
}
