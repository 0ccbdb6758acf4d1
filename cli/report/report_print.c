/* The text summary of `oriel report`: the run, its missing parts, and each window's operations,
 * paths, waits and busiest pairs. Times are sums over all ranks. */
#include "cli/report/report.h"

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/call_site_table.h"
#include "cli/text_style.h"
#include "cli/verdict.h"
#include "cli/figures.h"
#include "cli/hosts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAIRS_SHOWN = 5,
    TEXT = ORIEL_FIGURE,
    REASONS_SHOWN = 3,
    RANKS_SHOWN = 5,
    BILLION = 1000000000
};

/* --- the run --- */

static void print_dates(const struct oriel_traces *traces, FILE *out)
{
    char date[64];
    char took[TEXT];
    time_t begin = (time_t)(traces->ranks[0].header.begin_real_ns / BILLION);
    struct tm parts;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", localtime_r(&begin, &parts));
    bool has_ended = false;
    for (size_t i = 0; i < traces->ranks_count; i++)
        has_ended |= traces->ranks[i].ended;
    fprintf(out, "  began %s; %s from MPI_Init to %s\n", date,
            oriel_time_text(took, (uint64_t)traces->last_ns),
            has_ended ? "MPI_Finalize" : "the last event");
}

static bool same_node(const struct oriel_traced_rank *one, const struct oriel_traced_rank *other)
{
    return memcmp(one->header.node, other->header.node, sizeof one->header.node) == 0;
}

/* Prints the number of clocks, and how precisely they are aligned. */
static void print_clocks(const struct oriel_traces *traces, FILE *out)
{
    size_t nodes = 0;
    size_t unknown = 0;
    uint64_t error_ns = 0;
    char text[TEXT];
    for (size_t i = 0; i < traces->ranks_count; i++) {
        const struct oriel_traced_rank *rank = &traces->ranks[i];
        size_t first = 0;
        while (!same_node(&traces->ranks[first], rank))
            first++;
        nodes += first == i;
        unknown += rank->error_ns == UINT64_MAX;
        if (rank->error_ns != UINT64_MAX && rank->error_ns > error_ns)
            error_ns = rank->error_ns;
    }
    if (nodes == 1 && unknown == 0)
        fprintf(out, "  all ranks on one clock\n");
    else if (nodes > 1)
        fprintf(out, "  %zu clocks, aligned to within %s\n", nodes,
                oriel_time_text(text, error_ns));
    if (unknown > 0)
        fprintf(out,
                "  the clocks of %zu rank%s were not compared: their times are as precise as the "
                "system dates\n",
                unknown, oriel_plural(unknown));
}

/* The first ranks for which holds is true, "3" or "3, 5 and 12 more"; NULL for none. The caller
 * frees it. */
static char *ranks_text(const struct oriel_traces *traces,
                        bool (*holds)(const struct oriel_traced_rank *rank))
{
    char *text = NULL;
    size_t len_bytes;
    size_t count = 0;
    FILE *out = oriel_alloc_checked(open_memstream(&text, &len_bytes));
    for (size_t i = 0; i < traces->ranks_count; i++)
        if (holds(&traces->ranks[i]) && count++ < RANKS_SHOWN)
            fprintf(out, "%s%d", count == 1 ? "" : ", ", (int)traces->ranks[i].world_rank);
    if (count > RANKS_SHOWN)
        fprintf(out, " and %zu more", count - RANKS_SHOWN);
    fclose(out);
    if (count > 0)
        return text;
    free(text);
    return NULL;
}

static bool has_not_ended(const struct oriel_traced_rank *rank)
{
    return !rank->ended;
}

static bool has_dropped(const struct oriel_traced_rank *rank)
{
    return rank->dropped > 0;
}

static void print_losses(const struct oriel_traces *traces, FILE *out)
{
    uint64_t events = 0;
    uint64_t dropped = 0;
    char text[TEXT];
    for (size_t i = 0; i < traces->ranks_count; i++) {
        events += traces->ranks[i].events;
        dropped += traces->ranks[i].dropped;
    }
    fprintf(out, "  %s event%s", oriel_count_text(text, events), oriel_plural(events));
    if (dropped == 0) {
        fprintf(out, ", none dropped\n");
    } else {
        char *who = ranks_text(traces, has_dropped);
        fprintf(out, ", and %s dropped (", oriel_count_text(text, dropped));
        fprintf(out, "%s of all), by rank%s %s: the writer was too slow, or no space was left\n",
                oriel_share_text(text, dropped, events + dropped),
                strchr(who, ',') == NULL ? "" : "s", who);
        free(who);
    }
    char *open = ranks_text(traces, has_not_ended);
    if (open != NULL)
        fprintf(out, "  ranks that did not reach MPI_Finalize: %s\n", open);
    free(open);
}

static void print_run(const struct oriel_traces *traces, FILE *out)
{
    char host[ORIEL_HOST_TEXT];
    const struct oriel_trace_header *header = &traces->ranks[0].header;
    fprintf(out, "%s\n", header->program);
    fprintf(out, "  %d rank%s, traces of %zu of them", (int)header->world_size,
            oriel_plural((uint64_t)header->world_size), traces->ranks_counted);
    if (traces->filter[0] != '\0' && traces->ranks_counted < (size_t)header->world_size)
        fprintf(out, " (filter %s)", traces->filter);
    fprintf(out, "; %s, Oriel %s\n", oriel_host_text(header->host, traces->host_version, host),
            header->oriel);
    print_dates(traces, out);
    print_clocks(traces, out);
    print_losses(traces, out);
}

/* --- a window --- */

/* Of the ranks that described their memory. */
static void print_sizes(const struct oriel_traced_window *window, FILE *out)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    int32_t unknown = 0;
    char text[TEXT];
    for (int32_t i = 0; i < window->n; i++) {
        if (window->paths[i] == ORIEL_TRACED_PATH_UNKNOWN) {
            unknown++;
            continue;
        }
        least = window->sizes_bytes[i] < least ? window->sizes_bytes[i] : least;
        most = window->sizes_bytes[i] > most ? window->sizes_bytes[i] : most;
    }
    if (least < most)
        fprintf(out, "%s to ", oriel_bytes_text(text, least));
    if (unknown < window->n)
        fprintf(out, "%s each", oriel_bytes_text(text, most));
    if (unknown > 0)
        fprintf(out, "%sunknown on %d", unknown < window->n ? ", " : "", (int)unknown);
}

static void print_window_head(const struct oriel_traces *traces, uint32_t index, int width,
                              FILE *out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *line = oriel_alloc_checked(open_memstream(&text, &len));
    const struct oriel_traced_window *window = &traces->windows[index];
    fprintf(line, "Window %u", index + 1);
    if (window->name[0] != '\0')
        fprintf(line, " \"%s\"", window->name);
    fprintf(line, ": %s, %d rank%s, ", oriel_flavour_name(window->flavour, "window"),
            (int)window->n, oriel_plural(window->n));
    print_sizes(window, line);
    if (window->site[0] != '\0')
        fprintf(line, ", created in %s", window->site);
    fclose(line);
    fputc('\n', out);
    oriel_text_wrap(out, text, 0, 4, width);
    free(text);
}

/* Prints the path to each rank's memory that has a reason, which means that it is not the fastest
 * path. */
static void print_reasons(const struct oriel_traced_window *window, int width, FILE *out)
{
    unsigned shown = 0;
    for (int32_t i = 0; i < window->n; i++) {
        if (window->reasons[i][0] == '\0')
            continue;
        bool is_new = true;
        int32_t like = 0;
        for (int32_t j = 0; j < window->n && is_new; j++) {
            bool same = strcmp(window->reasons[i], window->reasons[j]) == 0;
            is_new = !same || j >= i;
            like += same;
        }
        if (!is_new || shown++ >= REASONS_SHOWN)
            continue;
        char *line = oriel_format("    %s to the memory of %d rank%s: %s",
                                  oriel_counted_paths[window->paths[i]].name, (int)like,
                                  oriel_plural(like), window->reasons[i]);
        oriel_text_wrap(out, line, 0, 6, width);
        free(line);
    }
}

static bool any_count(const struct oriel_report_sum *sums, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sums[i].count > 0)
            return true;
    return false;
}

static void print_operations(const struct oriel_window_sums *sums,
                             const struct oriel_traced_window *window, bool is_sampled, int width,
                             FILE *out)
{
    char a[TEXT], b[TEXT], c[TEXT], d[TEXT];
    if (!any_count(sums->operations, ORIEL_COUNTED_OPERATIONS))
        return;
    const char *estimated = is_sampled ? " (est.)" : "";
    fprintf(out, "  operation%-9s %11s %9s %9s %11s\n", estimated, "count", "bytes", "mean size",
            "mean time");
    for (int i = 0; i < ORIEL_COUNTED_OPERATIONS; i++) {
        const struct oriel_report_sum *sum = &sums->operations[i];
        if (sum->count > 0)
            fprintf(out, "  %-18s %11s %9s %9s %11s\n", oriel_counted_operations[i].name,
                    oriel_count_text(a, sum->count), oriel_bytes_text(b, sum->bytes),
                    oriel_bytes_text(c, sum->bytes / sum->count),
                    oriel_time_text(d, sum->time_ns / sum->count));
    }
    fprintf(out, "  path%-14s %11s %9s %9s %11s\n", estimated, "count", "bytes", "", "mean time");
    for (int i = 0; i < ORIEL_COUNTED_PATHS; i++) {
        const struct oriel_report_sum *sum = &sums->paths[i];
        if (sum->count > 0)
            fprintf(out, "  %-18s %11s %9s %9s %11s\n", oriel_counted_paths[i].name,
                    oriel_count_text(a, sum->count), oriel_bytes_text(b, sum->bytes), "",
                    oriel_time_text(d, sum->time_ns / sum->count));
    }
    print_reasons(window, width, out);
}

static void print_calls(const struct oriel_window_sums *sums, FILE *out)
{
    char a[TEXT], b[TEXT], c[TEXT], d[TEXT], e[TEXT];
    if (!any_count(sums->calls, ORIEL_COUNTED_CALLS))
        return;
    fprintf(out, "  %-18s %11s %9s %9s %11s %12s\n", "call", "count", "time", "waiting",
            "of the time", "longest wait");
    for (int i = 0; i < ORIEL_COUNTED_CALLS; i++) {
        const struct oriel_report_sum *sum = &sums->calls[i];
        if (sum->count > 0)
            fprintf(out, "  %-18s %11s %9s %9s %11s %12s\n", oriel_counted_calls[i].name,
                    oriel_count_text(a, sum->count), oriel_time_text(b, sum->time_ns),
                    oriel_time_text(c, sum->waiting_ns),
                    oriel_share_text(d, sum->waiting_ns, sum->time_ns),
                    oriel_time_text(e, sum->longest_ns));
    }
}

/* "0", or "[0]" for a win_rank whose rank in MPI_COMM_WORLD is unknown. */
static const char *rank_text(char text[TEXT], const struct oriel_traces *traces, uint32_t window,
                             int32_t win_rank)
{
    int32_t world_rank = oriel_world_rank(traces, window, win_rank);
    snprintf(text, TEXT,
             win_rank < 0      ? "several"
             : world_rank >= 0 ? "%d"
                               : "[%d]",
             (int)(world_rank >= 0 ? world_rank : win_rank));
    return text;
}

static void print_causes(const struct oriel_traces *traces, uint32_t index,
                         const struct oriel_window_sums *sums, FILE *out)
{
    char a[TEXT], b[TEXT], c[TEXT], d[TEXT];
    if (sums->waits.count == 0)
        return;
    fprintf(out, "  %-18s %11s %9s %9s %11s %12s\n", "waited for", "times", "", "waiting",
            "mean wait", "longest wait");
    for (int i = 0; i < ORIEL_COUNTED_CAUSES; i++) {
        const struct oriel_report_sum *sum = &sums->causes[i];
        if (sum->count > 0)
            fprintf(out, "  %-18s %11s %9s %9s %11s %12s\n", oriel_counted_causes[i].name,
                    oriel_count_text(a, sum->count), "", oriel_time_text(b, sum->waiting_ns),
                    oriel_time_text(c, sum->waiting_ns / sum->count),
                    oriel_time_text(d, sum->longest_ns));
    }
    fprintf(out, "  most waiting:\n");
    for (size_t i = 0; i < sums->waits.count && i < PAIRS_SHOWN; i++) {
        const struct oriel_report_pair *pair = &sums->waits.pairs[i];
        fprintf(out, "    %s: rank %s for %s%s (%s)\n", oriel_time_text(a, pair->sum.waiting_ns),
                rank_text(b, traces, index, pair->from), pair->to < 0 ? "" : "rank ",
                rank_text(c, traces, index, pair->to), oriel_counted_causes[pair->cause].name);
    }
}

static void print_busiest(const struct oriel_traces *traces, uint32_t index,
                          const struct oriel_window_sums *sums, FILE *out)
{
    char a[TEXT], b[TEXT], c[TEXT], d[TEXT];
    if (sums->busy.count == 0)
        return;
    fprintf(out, "  busiest pairs, of %s:\n", oriel_count_text(a, sums->busy.count));
    for (size_t i = 0; i < sums->busy.count && i < PAIRS_SHOWN; i++) {
        const struct oriel_report_pair *pair = &sums->busy.pairs[i];
        fprintf(out, "    %s -> %s: %s in %s operation%s\n",
                rank_text(a, traces, index, pair->from), rank_text(b, traces, index, pair->to),
                oriel_bytes_text(c, pair->sum.bytes), oriel_count_text(d, pair->sum.count),
                oriel_plural(pair->sum.count));
    }
}

static bool is_complete(const struct oriel_traces *traces)
{
    bool is_whole = true;
    for (size_t i = 0; i < traces->ranks_count; i++)
        is_whole &= traces->ranks[i].ended && traces->ranks[i].dropped == 0;
    return is_whole;
}

void oriel_report_print(const struct oriel_reported_run *run, int width, FILE *out)
{
    char text[TEXT];
    const struct oriel_traces *traces = run->traces;
    struct oriel_window_sums *sums = oriel_sums_compute(traces);
    print_run(traces, out);
    fputc('\n', out);
    if (traces->windows_count == 0 && is_complete(traces))
        fprintf(out, "No window was created.\n");
    else
        oriel_verdict_print(&run->sum, width, out);
    for (uint32_t i = 0; i < traces->windows_count && i < ORIEL_WINDOWS_SHOWN; i++) {
        print_window_head(traces, i, width, out);
        print_operations(&sums[i], &traces->windows[i], traces->sample > 1, width, out);
        print_calls(&sums[i], out);
        print_causes(traces, i, &sums[i], out);
        print_busiest(traces, i, &sums[i], out);
    }
    if (traces->windows_count > ORIEL_WINDOWS_SHOWN)
        fprintf(out, "\nand %s more window%s; --json has all\n",
                oriel_count_text(text, traces->windows_count - ORIEL_WINDOWS_SHOWN),
                oriel_plural(traces->windows_count - ORIEL_WINDOWS_SHOWN));
    if (run->sum.regions.count > 0)
        fputc('\n', out);
    oriel_region_sums_print(&run->sum.regions, width, out);
    if (run->sum.sites.count > 0)
        fputc('\n', out);
    oriel_call_site_table_print(&run->sum, width, "--json", out);
    oriel_sums_free(sums, traces);
}
