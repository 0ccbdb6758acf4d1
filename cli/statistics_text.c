/* The table of ORIEL_STATS. For each window: its operations, paths, time in calls, and which ranks
 * others waited for. Ranks are those of MPI_COMM_WORLD. */
#include "cli/statistics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/figures.h"
#include "cli/hosts.h"
#include "cli/call_site_table.h"
#include "cli/text_style.h"
#include "cli/verdict.h"

enum { TEXT = ORIEL_FIGURE, RANKS_SHOWN = 5, LABELS = 20 /* columns */ };

/* Prints a line, which it frees, wrapped to width. */
static void print_line(FILE *out, char *line, int indent, int width)
{
    oriel_text_wrap(out, line, 0, indent, width);
    free(line);
}

/* A window may include ranks of another MPI_COMM_WORLD, which have no number here. */
static const char *rank_text(int32_t world_rank, char out[TEXT])
{
    snprintf(out, TEXT, world_rank < 0 ? "other world" : "rank %d", (int)world_rank);
    return out;
}

static void print_sums(FILE *out, const char *title, const struct oriel_counter *rows,
                       const struct oriel_sum *sums, int count)
{
    char count_text[TEXT], bytes[TEXT];
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (sums[i].count == 0)
            continue;
        if (!any)
            fprintf(out, "  %-18s %11s %9s\n", title, "operations", "moved");
        any = true;
        fprintf(out, "    %-16s %11s %9s\n", rows[i].name,
                oriel_count_text(count_text, sums[i].count),
                oriel_bytes_text(bytes, sums[i].bytes));
    }
}

/* Why a rank's memory uses a slow path: each reason once, with the ranks whose memory it is. */
static void print_reasons(FILE *out, const struct oriel_window_sum *window, int width)
{
    char rank[TEXT];
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_member_sum *member = &window->members[i];
        bool shown = member->reason[0] == '\0';
        int32_t others = 0;
        for (int32_t j = 0; j < window->n && !shown; j++) {
            bool same = window->members[j].path == member->path &&
                        strcmp(window->members[j].reason, member->reason) == 0;
            shown = j < i && same;
            others += j > i && same;
        }
        if (shown)
            continue;
        char and_others[TEXT] = "";
        if (others > 0)
            snprintf(and_others, TEXT, " and %d other%s", (int)others, oriel_plural(others));
        print_line(out,
                   oriel_format("    %s to %s%s: %s", oriel_counted_paths[member->path].name,
                                rank_text(member->world_rank, rank), and_others, member->reason),
                   6, width);
    }
}

static void print_calls(FILE *out, const struct oriel_window_sum *window)
{
    char count[TEXT], time[TEXT], waiting[TEXT], waited[TEXT], longest[TEXT];
    fprintf(out, "  %-15s %11s %9s %9s %11s %9s\n", "calls", "count", "time", "waiting", "waited",
            "longest");
    for (int i = 0; i < ORIEL_COUNTED_CALLS; i++) {
        const struct oriel_time_sum *sum = &window->calls[i];
        if (sum->count == 0)
            continue;
        fprintf(out, "    %-13s %11s %9s %9s %11s", oriel_counted_calls[i].name,
                oriel_count_text(count, sum->count), oriel_time_text(time, sum->time_ns),
                oriel_time_text(waiting, sum->waiting_ns), oriel_count_text(waited, sum->waited));
        if (sum->waited > 0)
            fprintf(out, " %9s  rank %d", oriel_time_text(longest, sum->longest_ns),
                    (int)sum->longest_rank);
        fputc('\n', out);
    }
}

static void print_contention(FILE *out, const struct oriel_window_sum *window)
{
    char waited_text[TEXT], count_text[TEXT], share[TEXT], waiting[TEXT];
    const struct oriel_time_sum *lock = &window->calls[ORIEL_CALL_OF_lock];
    const struct oriel_time_sum *lock_all = &window->calls[ORIEL_CALL_OF_lock_all];
    uint64_t count = lock->count + lock_all->count;
    uint64_t waited = lock->waited + lock_all->waited;
    if (waited == 0)
        return;
    fprintf(out, "  contended locks: %s of %s (%s) waited, %s each\n",
            oriel_count_text(waited_text, waited), oriel_count_text(count_text, count),
            oriel_share_text(share, waited, count),
            oriel_time_text(waiting, (lock->waiting_ns + lock_all->waiting_ns) / waited));
}

/* The ranks that others waited for longest, in descending order. */
static void print_cause(FILE *out, const struct oriel_window_sum *window, int cause, int width)
{
    char time[TEXT], rank[TEXT];
    uint64_t last_ns = UINT64_MAX;
    int32_t last = -1;
    char *text = NULL;
    size_t len = 0;
    FILE *ranks = oriel_alloc_checked(open_memstream(&text, &len));
    for (int shown = 0; shown < RANKS_SHOWN; shown++) {
        int32_t most = -1;
        for (int32_t i = 0; i < window->n; i++) {
            uint64_t ns = window->members[i].caused_ns[cause];
            bool is_next = ns < last_ns || (ns == last_ns && i > last);
            if (ns > 0 && is_next && (most < 0 || ns > window->members[most].caused_ns[cause]))
                most = i;
        }
        if (most < 0)
            break;
        last = most;
        last_ns = window->members[most].caused_ns[cause];
        fprintf(ranks, "%s %s %s", shown == 0 ? "" : ",",
                rank_text(window->members[most].world_rank, rank), oriel_time_text(time, last_ns));
    }
    fclose(ranks);
    fprintf(out, "    %-16s", oriel_counted_causes[cause].name);
    oriel_text_wrap(out, text, LABELS, LABELS + 1, width);
    free(text);
}

static void print_causes(FILE *out, const struct oriel_window_sum *window, int width)
{
    bool any = false;
    for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++) {
        if (window->causes_ns[cause] == 0)
            continue;
        if (!any)
            fprintf(out, "  waited for\n");
        any = true;
        print_cause(out, window, cause, width);
    }
}

static void print_pairs(FILE *out, const struct oriel_window_sum *window)
{
    char count[TEXT], bytes[TEXT], pair_text[TEXT];
    if (window->pairs[0].operations > 0)
        fprintf(out, "  %-18s %11s %9s\n", "busiest pairs", "operations", "moved");
    for (int i = 0; i < ORIEL_PAIRS_SHOWN && window->pairs[i].operations > 0; i++) {
        const struct oriel_pair *pair = &window->pairs[i];
        if (pair->target < 0)
            snprintf(pair_text, sizeof pair_text, "%d -> other world", (int)pair->origin);
        else
            snprintf(pair_text, sizeof pair_text, "%d -> %d", (int)pair->origin, (int)pair->target);
        fprintf(out, "    %-16s %11s %9s\n", pair_text, oriel_count_text(count, pair->operations),
                oriel_bytes_text(bytes, pair->bytes));
    }
}

static void print_size(FILE *out, const struct oriel_window_sum *window)
{
    char least_text[TEXT], most_text[TEXT];
    uint64_t least = UINT64_MAX, most = 0;
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_member_sum *member = &window->members[i];
        if (!member->has_reported)
            continue;
        least = member->size_bytes < least ? member->size_bytes : least;
        most = member->size_bytes > most ? member->size_bytes : most;
    }
    if (least == most)
        fprintf(out, ", %s each", oriel_bytes_text(most_text, most));
    else
        fprintf(out, ", %s to %s each", oriel_bytes_text(least_text, least),
                oriel_bytes_text(most_text, most));
}

/* "window 1 of MPI_Win_allocate, 4 ranks, 64 B each, created in main at app.c:12" */
static void print_head(FILE *out, const struct oriel_window_sum *window, size_t number, int width)
{
    char *text = NULL;
    size_t len = 0;
    FILE *line = oriel_alloc_checked(open_memstream(&text, &len));
    fprintf(line, "window %zu %s%s%sof %s, %d rank%s", number, window->name[0] == '\0' ? "" : "\"",
            window->name, window->name[0] == '\0' ? "" : "\" ", oriel_flavour_call(window->flavour),
            (int)window->n, oriel_plural(window->n));
    if (window->flavour != 3)
        print_size(line, window);
    if (window->site[0] != '\0')
        fprintf(line, ", created in %s", window->site);
    fputs(window->freed ? "" : ", never freed", line);
    fclose(line);
    print_line(out, text, 4, width);
}

static void print_window(FILE *out, const struct oriel_job_sum *job, size_t number, int width)
{
    char count[TEXT], most[TEXT];
    const struct oriel_window_sum *window = &job->windows[number - 1];
    if (window->shared_by != 0) {
        fprintf(out, "%s more window%s, created after the first %s\n",
                oriel_count_text(count, window->shared_by), oriel_plural(window->shared_by),
                oriel_count_text(most, ORIEL_RECORDS_MOST));
    } else {
        print_head(out, window, number, width);
        if (window->reported < window->n)
            fprintf(out, "  statistics of %d of its ranks are missing\n",
                    (int)(window->n - window->reported));
    }
    print_sums(out, "operation", oriel_counted_operations, window->operations,
               ORIEL_COUNTED_OPERATIONS);
    print_sums(out, "path", oriel_counted_paths, window->paths, ORIEL_COUNTED_PATHS);
    print_reasons(out, window, width);
    print_calls(out, window);
    print_contention(out, window);
    print_causes(out, window, width);
    print_pairs(out, window);
}

static void print_ranks(FILE *out, const struct oriel_job_sum *job, enum oriel_reported_state what,
                        const char *before, const char *after)
{
    int found = 0;
    for (int32_t i = 0; i < job->head->ranks; i++) {
        if (job->has_reported[i] != what)
            continue;
        found++;
        if (found <= 2 * RANKS_SHOWN)
            fprintf(out, "%s%d", found == 1 ? before : ", ", (int)i);
    }
    if (found > 2 * RANKS_SHOWN)
        fprintf(out, " and %d more", found - 2 * RANKS_SHOWN);
    if (found > 0)
        fputs(after, out);
}

void oriel_statistics_print(const struct oriel_job_sum *job, int width, FILE *out)
{
    char text[TEXT], host[ORIEL_HOST_TEXT];
    const char *slash = strrchr(job->head->program, '/');
    fprintf(out, "oriel: statistics of %s, %d rank%s on %s\n",
            slash == NULL ? job->head->program : slash + 1, (int)job->head->ranks,
            oriel_plural(job->head->ranks),
            oriel_host_text(job->head->host, job->head->host_version, host));
    print_ranks(out, job, ORIEL_REPORTED_NOTHING, "oriel: no statistics from rank ",
                ": it has no ORIEL_STATS or no Oriel, or did not reach MPI_Finalize within 10 s\n");
    print_ranks(out, job, ORIEL_REPORTED_EARLY,
                "oriel: not all ranks reached MPI_Finalize within 10 s: statistics so far of rank ",
                "\n");
    if (job->windows_count > 0 || job->paused_ns > 0)
        oriel_verdict_print(job, width, out);
    for (size_t i = 0; i < job->windows_count && i < ORIEL_WINDOWS_SHOWN; i++)
        print_window(out, job, i + 1, width);
    if (job->windows_count > ORIEL_WINDOWS_SHOWN)
        fprintf(out, "and %s more window%s; --stats=FILE.json has all\n",
                oriel_count_text(text, job->windows_count - ORIEL_WINDOWS_SHOWN),
                oriel_plural(job->windows_count - ORIEL_WINDOWS_SHOWN));
    oriel_region_sums_print(&job->regions, width, out);
    oriel_call_site_table_print(job, width, "--stats=FILE.json", out);
    if (job->windows_count == 0)
        fprintf(out, "oriel: the program created no windows\n");
}
