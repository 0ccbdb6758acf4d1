/* Writes a page. It reads the events of a run once and passes them to the page's parts. Their
 * results and the findings are inserted as JSON into the page that the build made
 * (share/oriel/report.html). A page has at most about 10 MB: the limits are in html_parts.h. */
#include "cli/report/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check/check_rules.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/report/html_facts.h"
#include "cli/report/html_parts.h"
#include "cli/report/json_file.h"
#include "cli/verdict.h"

enum { COMPARED_WINDOWS = 200, COMPARED_RANKS = 10 };

static const char data_marker[] = "@DATA@"; /* the position of the data in the built page */

/* The total time of each window's calls, plus a little for each call. Windows with many short calls
 * then rank above idle ones. */
static bool event_weight_add(const struct oriel_trace_record *event, void *context)
{
    uint64_t *weights = context;
    weights[event->window] += event->event->duration_ns + 100;
    return true;
}

struct weight {
    uint64_t weight;
    uint32_t window;
};

static int compare_weights(const void *left, const void *right)
{
    const struct weight *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->window < b->window ? -1 : 1;
}

/* Gives the windows with the largest weights an index on the page, in the order of the run's
 * windows, and all others the last index. */
static void windows_select(struct oriel_html_run *run)
{
    uint32_t all = (uint32_t)run->traces->windows_count;
    uint64_t *weights = oriel_alloc((all + 1) * sizeof *weights);
    struct weight *order = oriel_alloc((all + 1) * sizeof *order);
    oriel_traces_each(run->traces, event_weight_add, weights);
    for (uint32_t i = 0; i < all; i++)
        order[i] = (struct weight){.weight = weights[i], .window = i};
    qsort(order, all, sizeof *order, compare_weights);

    uint32_t own = all <= ORIEL_HTML_WINDOWS + 1 ? all : ORIEL_HTML_WINDOWS;
    run->windows = own < all ? own + 1 : own;
    run->window = oriel_alloc((run->windows + 1) * sizeof *run->window);
    run->place = oriel_alloc((all + 1) * sizeof *run->place);
    for (uint32_t i = 0; i < all; i++)
        run->place[i] = UINT32_MAX;
    for (uint32_t i = 0; i < own; i++)
        run->place[order[i].window] = 0;
    uint32_t place = 0;
    for (uint32_t i = 0; i < all; i++) {
        if (run->place[i] == 0) {
            run->window[place] = i;
            run->place[i] = place++;
        } else {
            run->place[i] = own;
        }
    }
    if (own < all)
        run->window[own] = UINT32_MAX;
    free(order);
    free(weights);
}

static void rows_arrange(struct oriel_html_run *run)
{
    int32_t ranks = 1;
    /* each is less than its own file's size */
    for (size_t i = 0; i < run->traces->ranks_count; i++)
        if (run->traces->ranks[i].header.world_size > ranks)
            ranks = run->traces->ranks[i].header.world_size;
    run->ranks = (uint32_t)ranks;
    run->ranks_per_row = (run->ranks + ORIEL_HTML_ROWS - 1) / ORIEL_HTML_ROWS;
    run->rows = (run->ranks + run->ranks_per_row - 1) / run->ranks_per_row;
}

static int32_t member_world_rank(const struct oriel_html_run *run,
                                 const struct oriel_traced_window *window, int32_t win_rank)
{
    if (win_rank < 0 || win_rank >= window->n)
        return -1;
    int32_t rank = window->world_ranks[win_rank];
    return rank >= 0 && (uint32_t)rank < run->ranks ? rank : -1;
}

struct reading {
    struct oriel_html_run *run;
    uint32_t rank; /* index of the rank whose events are being read */
};

static void rank_finish(const struct reading *reading)
{
    if (reading->rank != UINT32_MAX)
        oriel_html_time_rank_end(reading->run->time,
                                 reading->run->traces->ranks[reading->rank].world_rank);
}

static bool event_add(const struct oriel_trace_record *traced, void *context)
{
    struct reading *reading = context;
    struct oriel_html_run *run = reading->run;
    const struct oriel_trace_event *event = traced->event;
    const struct oriel_traced_window *window = &run->traces->windows[traced->window];
    if (traced->rank != reading->rank) {
        rank_finish(reading);
        reading->rank = traced->rank;
    }
    struct oriel_html_event made = {
        .begin_ns = traced->begin_ns > 0 ? (uint64_t)traced->begin_ns : 0,
        .duration_ns = event->duration_ns,
        .waiting_ns =
            event->waiting_ns < event->duration_ns ? event->waiting_ns : event->duration_ns,
        .bytes = event->bytes,
        .window = run->place[traced->window],
        .place = traced->place,
        .weight = traced->weight,
        .time_ns = traced->time_ns,
        .rank = run->traces->ranks[traced->rank].world_rank,
        .target = member_world_rank(run, window, event->target),
        .cause_rank = member_world_rank(run, window, event->cause_rank),
        .operation = event->kind < ORIEL_COUNTED_OPERATIONS ? event->kind : -1,
        .call = event->kind >= ORIEL_TRACE_CALL ? event->kind - ORIEL_TRACE_CALL : -1,
        .kind = event->kind,
        .path = event->path < ORIEL_COUNTED_PATHS ? event->path : 0,
        .cause = event->waiting_ns != 0 && event->cause < ORIEL_COUNTED_CAUSES ? event->cause : 0,
    };
    if (made.operation < 0 && (made.call < 0 || made.call >= ORIEL_COUNTED_CALLS))
        return true; /* a kind that this version does not know */
    oriel_html_sums_add(run->sums, &made);
    oriel_html_sites_add(run->sites, &made);
    oriel_html_pairs_add(run->pairs, &made);
    oriel_html_time_add(run->time, &made);
    return true;
}

static void run_json_add(const struct oriel_traces *traces, json_t *out)
{
    struct oriel_html_run run = {.traces = traces};
    windows_select(&run);
    rows_arrange(&run);
    run.sums = oriel_html_sums_new(run.windows);
    run.sites = oriel_html_sites_new(&run);
    run.pairs = oriel_html_pairs_new(&run);
    run.marks = oriel_html_marks_new(traces);
    run.time = oriel_html_time_new(&run);
    struct reading reading = {.run = &run, .rank = UINT32_MAX};
    oriel_traces_each(traces, event_add, &reading);
    rank_finish(&reading);
    oriel_html_sites_fit(run.sites);

    oriel_json_set(out, "run", oriel_html_facts(&run));
    oriel_json_set(out, "places", oriel_html_places_json(run.sites));
    oriel_json_set(out, "pairs_ranks_per_row", json_integer(oriel_html_pairs_fit(run.pairs)));
    oriel_html_time_json(run.time, out);
    oriel_html_marks_json(run.marks, run.sites, out);
    json_t *windows = oriel_json_checked(json_array());
    for (uint32_t i = 0; i < run.windows; i++) {
        json_t *window = oriel_html_window_facts(&run, i);
        oriel_html_sums_json(run.sums, i, window);
        oriel_html_sites_json(run.sites, i, window);
        oriel_html_pairs_json(run.pairs, i, window);
        oriel_html_time_window_json(run.time, i, window);
        oriel_json_append(windows, window);
    }
    oriel_json_set(out, "windows", windows);
    oriel_html_sums_free(run.sums);
    oriel_html_sites_free(run.sites);
    oriel_html_pairs_free(run.pairs);
    oriel_html_time_free(run.time);
    oriel_html_marks_free(run.marks);
    free(run.window);
    free(run.place);
}

static char *file_read_text(FILE *file)
{
    long len;
    if (fseek(file, 0, SEEK_END) != 0 || (len = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
        return NULL;
    char *text = oriel_alloc((size_t)len + 1);
    text[fread(text, 1, (size_t)len, file)] = '\0';
    return text;
}

/* The built page; NULL, with a line on complaints, when there is none. */
static char *template_read(FILE *complaints)
{
    /* bin/oriel and share/oriel have the same parent, in the build folder and when installed. */
    char *folder = oriel_format("%s", oriel_executable_path());
    for (int up = 0; up < 2; up++)
        *strrchr(folder, '/') = '\0';
    char *path = oriel_format("%s/share/oriel/report.html", folder);
    free(folder);
    char *text = NULL;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(complaints,
                "oriel: this build has no HTML pages: %s: %s; in Oriel's sources, run "
                "scripts/install-deps pages and build again [O28]\n",
                path, strerror(errno));
    } else {
        text = file_read_text(file);
        fclose(file);
    }
    if (file != NULL && (text == NULL || strstr(text, data_marker) == NULL)) {
        fprintf(complaints, "oriel: %s is not the page of this build\n", path);
        free(text);
        text = NULL;
    }
    free(path);
    return text;
}

/* Writes ASCII JSON that is safe inside a script element: '<' occurs only in strings and is
 * escaped. */
static int json_escaped_write(const char *text, size_t len, void *context)
{
    FILE *out = context;
    for (size_t from = 0; from < len;) {
        const char *less = memchr(text + from, '<', len - from);
        size_t part = less == NULL ? len - from : (size_t)(less - text) - from;
        if (fwrite(text + from, 1, part, out) != part ||
            (less != NULL && fputs("\\u003c", out) < 0))
            return -1;
        from += part + (less != NULL);
    }
    return 0;
}

static bool page_file_write(const char *path, char *page, const json_t *data, FILE *complaints)
{
    char *rest = strstr(page, data_marker);
    *rest = '\0';
    errno = 0;
    FILE *out = fopen(path, "we");
    bool fine = out != NULL;
    if (fine) {
        fine = fputs(page, out) >= 0 &&
               json_dump_callback(data, json_escaped_write, out,
                                  JSON_COMPACT | JSON_ENSURE_ASCII) == 0 &&
               fputs(rest + sizeof data_marker - 1, out) >= 0;
        fine = fclose(out) == 0 && fine;
    }
    if (!fine) {
        int error = errno;
        fprintf(complaints, "oriel: the page could not be written: %s: %s\n", path,
                error != 0 ? strerror(error) : "the write was incomplete");
        if (out != NULL)
            oriel_file_discard(path);
    }
    return fine;
}

/* The explanations of the rules that the findings name. */
static json_t *rules_json(json_t *findings)
{
    size_t i;
    json_t *finding;
    json_t *out = oriel_json_checked(json_object());
    json_array_foreach(findings, i, finding)
    {
        const char *number = oriel_json_member_text(finding, "rule");
        for (size_t rule = 0; rule < ORIEL_CHECK_RULES; rule++)
            if (strcmp(oriel_check_rules[rule].number, number) == 0)
                oriel_json_set(out, number,
                               json_pack("{s:s, s:s, s:s}", "text", oriel_check_rules[rule].text,
                                         "example", oriel_check_rules[rule].example, "remedy",
                                         oriel_check_rules[rule].remedy));
    }
    return out;
}

bool oriel_html_write(const char *path, const struct oriel_reported_run *run,
                      const struct oriel_findings_file *found,
                      const struct oriel_comparison *comparison, FILE *complaints)
{
    char *page = template_read(complaints);
    if (page == NULL)
        return false;
    json_t *data = oriel_json_checked(json_object());
    oriel_html_names(data);
    if (run != NULL) {
        run_json_add(run->traces, data);
        oriel_json_set(data, "verdict", oriel_verdict_json(&run->sum));
        oriel_json_set(data, "region_sums", oriel_region_sums_json(&run->sum.regions));
    }
    if (found != NULL) {
        oriel_json_set(data, "check", json_incref(found->job));
        oriel_json_set(data, "rules", rules_json(json_object_get(found->job, "findings")));
    }
    if (comparison != NULL)
        oriel_json_set(data, "comparison",
                       oriel_comparison_json(comparison, COMPARED_WINDOWS, COMPARED_RANKS));
    bool fine = page_file_write(path, page, data, complaints);
    json_decref(data);
    free(page);
    return fine;
}
