/* General facts of a run and its windows for the page: program and host, what is missing in the
 * traces, the windows' attributes, and the path to each rank's memory, with reasons. */
#include "cli/report/html_facts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/counters.h"
#include "cli/json.h"

enum { LIST_MAX = 64 }; /* limit of reported ranks and of paths of a window */

static void counter_names_add(json_t *out, const char *key, const struct oriel_counter *rows,
                              size_t count)
{
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < count; i++)
        oriel_json_append(
            list, json_pack("{s:s, s:s}", "name", rows[i].name, "meaning", rows[i].meaning));
    oriel_json_set(out, key, list);
}

void oriel_html_names(json_t *out)
{
    counter_names_add(out, "operations", oriel_counted_operations, ORIEL_COUNTED_OPERATIONS);
    counter_names_add(out, "paths", oriel_counted_paths, ORIEL_COUNTED_PATHS);
    counter_names_add(out, "calls", oriel_counted_calls, ORIEL_COUNTED_CALLS);
    counter_names_add(out, "causes", oriel_counted_causes, ORIEL_COUNTED_CAUSES);
}

#define TEXT(field) oriel_json_text(field, sizeof(field))

static size_t nodes_count(const struct oriel_traces *traces)
{
    size_t count = 0;
    for (size_t i = 0; i < traces->ranks_count; i++) {
        size_t before = 0;
        while (before < i && memcmp(traces->ranks[before].header.node, traces->ranks[i].header.node,
                                    sizeof traces->ranks[i].header.node) != 0)
            before++;
        count += before == i;
    }
    return count;
}

/* A rank whose data is incomplete. */
static json_t *problem_rank_json(const struct oriel_traced_rank *rank)
{
    const char *problem = rank->problem != NULL ? rank->problem : "";
    return oriel_json_checked(json_pack("{s:i, s:I, s:I, s:b, s:o}", "rank", (int)rank->world_rank,
                                        "events", (json_int_t)rank->events, "dropped",
                                        (json_int_t)rank->dropped, "ended", (int)rank->ended,
                                        "problem", oriel_json_text(problem, strlen(problem))));
}

static void date_format(uint64_t real_ns, char out[32])
{
    time_t seconds = (time_t)(real_ns / 1000000000);
    struct tm parts;
    /* gmtime_r cannot fail: nanoseconds reach to the year 2554 */
    strftime(out, 32, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&seconds, &parts));
}

json_t *oriel_html_facts(const struct oriel_html_run *run)
{
    const struct oriel_traces *traces = run->traces;
    const struct oriel_trace_header *header = &traces->ranks[0].header;
    uint64_t events = 0, dropped = 0, error_ns = 0, incomplete = 0;
    json_t *list = oriel_json_checked(json_array());
    char began[32];
    date_format(header->begin_real_ns, began);
    for (size_t i = 0; i < traces->ranks_count; i++) {
        const struct oriel_traced_rank *rank = &traces->ranks[i];
        events += rank->events;
        dropped += rank->dropped;
        error_ns = rank->error_ns > error_ns ? rank->error_ns : error_ns;
        if ((!rank->ended || rank->dropped != 0 || rank->problem != NULL) &&
            ++incomplete <= LIST_MAX)
            oriel_json_append(list, problem_rank_json(rank));
    }
    json_t *out = oriel_json_checked(json_object());
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"ranks", run->ranks},
        {"traced", traces->ranks_counted},
        {"nodes", nodes_count(traces)},
        {"windows", traces->windows_count},
        {"events", events},
        {"dropped", dropped},
        {"sample", traces->sample},
        {"incomplete", incomplete},
        {"last_ns", (uint64_t)traces->last_ns},
    };
    oriel_json_set(out, "program", TEXT(header->program));
    oriel_json_set(out, "filter", oriel_json_text(traces->filter, strlen(traces->filter)));
    oriel_json_set(out, "host", TEXT(header->host));
    oriel_json_set(out, "host_version", TEXT(traces->host_version));
    oriel_json_set(out, "oriel", TEXT(header->oriel));
    oriel_json_set(out, "began", TEXT(began));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        oriel_json_set(out, numbers[i].key, json_integer((json_int_t)numbers[i].value));
    /* null: the clocks of some ranks were not compared */
    oriel_json_set(out, "clock_error_ns",
                   error_ns == UINT64_MAX ? json_null() : json_integer((json_int_t)error_ns));
    oriel_json_set(out, "incomplete_ranks", list);
    return out;
}

struct path_use {
    uint8_t path;
    const char *reason;
    uint64_t ranks;
};

/* The paths to the window's memory: each path and reason once, with the number of ranks, the most
 * common first. */
static json_t *window_paths_json(const struct oriel_traced_window *window)
{
    struct path_use found[LIST_MAX];
    size_t count = 0;
    for (int32_t i = 0; i < window->n; i++) {
        size_t at = 0;
        if (window->paths[i] >= ORIEL_COUNTED_PATHS)
            continue;
        while (at < count &&
               (found[at].path != window->paths[i] ||
                strncmp(found[at].reason, window->reasons[i], sizeof window->reasons[i]) != 0))
            at++;
        if (at == LIST_MAX)
            continue;
        if (at == count)
            found[count++] =
                (struct path_use){.path = window->paths[i], .reason = window->reasons[i]};
        found[at].ranks++;
        for (; at > 0 && found[at - 1].ranks < found[at].ranks; at--) {
            struct path_use other = found[at - 1];
            found[at - 1] = found[at];
            found[at] = other;
        }
    }
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < count; i++)
        oriel_json_append(list,
                          json_pack("{s:i, s:I, s:o}", "path", (int)found[i].path, "ranks",
                                    (json_int_t)found[i].ranks, "reason",
                                    oriel_json_text(found[i].reason, sizeof window->reasons[0])));
    return list;
}

/* The rows of the window's ranks. */
static json_t *window_rows_json(const struct oriel_html_run *run,
                                const struct oriel_traced_window *window)
{
    bool in[ORIEL_HTML_ROWS] = {false};
    json_t *list = oriel_json_checked(json_array());
    for (int32_t i = 0; i < window->n; i++)
        if (window->world_ranks[i] >= 0 && (uint32_t)window->world_ranks[i] < run->ranks)
            in[(uint32_t)window->world_ranks[i] / run->ranks_per_row] = true;
    for (uint32_t row = 0; row < run->rows; row++)
        if (in[row])
            oriel_json_append_number(list, row);
    return list;
}

json_t *oriel_html_window_facts(const struct oriel_html_run *run, uint32_t place)
{
    json_t *out = oriel_json_checked(json_object());
    if (run->window[place] == UINT32_MAX) {
        oriel_json_set(out, "others",
                       json_integer((json_int_t)(run->traces->windows_count - place)));
        return out;
    }
    const struct oriel_traced_window *window = &run->traces->windows[run->window[place]];
    uint64_t least = UINT64_MAX, most = 0, all = 0;
    for (int32_t i = 0; i < window->n; i++) {
        if (window->paths[i] == ORIEL_TRACED_PATH_UNKNOWN)
            continue;
        least = window->sizes_bytes[i] < least ? window->sizes_bytes[i] : least;
        most = window->sizes_bytes[i] > most ? window->sizes_bytes[i] : most;
        all += window->sizes_bytes[i];
    }
    oriel_json_set(out, "name", TEXT(window->name));
    oriel_json_set(out, "site", TEXT(window->site));
    const char *flavour = oriel_flavour_name(window->flavour, NULL);
    oriel_json_set(out, "flavour", flavour != NULL ? json_string(flavour) : json_null());
    oriel_json_set(out, "ranks", json_integer(window->n));
    oriel_json_set(out, "disp_unit", json_integer(window->disp_unit));
    least = least < most ? least : most;
    oriel_json_set(out, "size",
                   json_pack("[I, I, I]", (json_int_t)least, (json_int_t)most, (json_int_t)all));
    oriel_json_set(out, "memory_paths", window_paths_json(window));
    oriel_json_set(out, "rows", window_rows_json(run, window));
    return out;
}
