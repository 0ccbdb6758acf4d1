/* The table of ORIEL_STATS. For each window: its operations, paths, time in calls, and which ranks
 * others waited for. Ranks are those of MPI_COMM_WORLD. */
#include "cli/statistics.h"

#include <inttypes.h>
#include <string.h>

#include "cli/counters.h"
#include "cli/figures.h"
#include "cli/hosts.h"
#include "cli/verdict.h"

enum { TEXT = 32, SITES_SHOWN = 20, RANKS_SHOWN = 5 };

static const char *scaled(uint64_t number, double step, const char *const units[], char out[TEXT])
{
    double value = (double)number;
    size_t unit = 0;
    for (; value >= step && units[unit + 1] != NULL; unit++)
        value /= step;
    snprintf(out, TEXT, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

static const char *bytes_text(uint64_t bytes, char out[TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};
    return scaled(bytes, 1024, units, out);
}

static const char *time_text(uint64_t ns, char out[TEXT])
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    return scaled(ns, 1000, units, out);
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
    char bytes[TEXT];
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (sums[i].count == 0)
            continue;
        if (!any)
            fprintf(out, "  %-18s %12s %12s\n", title, "operations", "moved");
        any = true;
        fprintf(out, "    %-16s %12" PRIu64 " %12s\n", rows[i].name, sums[i].count,
                bytes_text(sums[i].bytes, bytes));
    }
}

/* Why a rank's memory uses a slow path: each reason once, with the ranks whose memory it is. */
static void print_reasons(FILE *out, const struct oriel_window_sum *window)
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
        fprintf(out, "    %s to %s", oriel_counted_paths[member->path].name,
                rank_text(member->world_rank, rank));
        if (others > 0)
            fprintf(out, " and %d other%s", (int)others, others == 1 ? "" : "s");
        fprintf(out, ": %s\n", member->reason);
    }
}

static void print_calls(FILE *out, const struct oriel_window_sum *window)
{
    char working[TEXT], waiting[TEXT], longest[TEXT];
    fprintf(out, "  %-18s %12s %12s %12s %10s %12s\n", "calls", "count", "working", "waiting",
            "waited", "longest");
    for (int i = 0; i < ORIEL_COUNTED_CALLS; i++) {
        const struct oriel_time_sum *sum = &window->calls[i];
        if (sum->count == 0)
            continue;
        fprintf(out, "    %-16s %12" PRIu64 " %12s %12s %10" PRIu64, oriel_counted_calls[i].name,
                sum->count, time_text(sum->time_ns - sum->waiting_ns, working),
                time_text(sum->waiting_ns, waiting), sum->waited);
        if (sum->waited > 0)
            fprintf(out, " %12s, rank %d", time_text(sum->longest_ns, longest),
                    (int)sum->longest_rank);
        fputc('\n', out);
    }
}

static void print_contention(FILE *out, const struct oriel_window_sum *window)
{
    char waiting[TEXT];
    const struct oriel_time_sum *lock = &window->calls[ORIEL_CALL_OF_lock];
    const struct oriel_time_sum *lock_all = &window->calls[ORIEL_CALL_OF_lock_all];
    uint64_t count = lock->count + lock_all->count;
    uint64_t waited = lock->waited + lock_all->waited;
    if (waited == 0)
        return;
    fprintf(out, "  contended locks: %" PRIu64 " of %" PRIu64 " (%.0f %%) waited, %s each\n",
            waited, count, 100.0 * (double)waited / (double)count,
            time_text((lock->waiting_ns + lock_all->waiting_ns) / waited, waiting));
}

/* The ranks that others waited for longest, in descending order. */
static void print_cause(FILE *out, const struct oriel_window_sum *window, int cause)
{
    char time[TEXT], rank[TEXT];
    uint64_t last_ns = UINT64_MAX;
    int32_t last = -1;
    fprintf(out, "    %-16s", oriel_counted_causes[cause].name);
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
        fprintf(out, "%s %s %s", shown == 0 ? "" : ",",
                rank_text(window->members[most].world_rank, rank), time_text(last_ns, time));
    }
    fputc('\n', out);
}

static void print_causes(FILE *out, const struct oriel_window_sum *window)
{
    bool any = false;
    for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++) {
        if (window->causes_ns[cause] == 0)
            continue;
        if (!any)
            fprintf(out, "  waited for\n");
        any = true;
        print_cause(out, window, cause);
    }
}

static void print_pairs(FILE *out, const struct oriel_window_sum *window)
{
    char bytes[TEXT], pair_text[TEXT];
    if (window->pairs[0].operations > 0)
        fprintf(out, "  %-18s %12s %12s\n", "busiest pairs", "operations", "moved");
    for (int i = 0; i < ORIEL_PAIRS_SHOWN && window->pairs[i].operations > 0; i++) {
        const struct oriel_pair *pair = &window->pairs[i];
        if (pair->target < 0)
            snprintf(pair_text, sizeof pair_text, "%d -> other world", (int)pair->origin);
        else
            snprintf(pair_text, sizeof pair_text, "%d -> %d", (int)pair->origin, (int)pair->target);
        fprintf(out, "    %-16s %12" PRIu64 " %12s\n", pair_text, pair->operations,
                bytes_text(pair->bytes, bytes));
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
        fprintf(out, ", %s each", bytes_text(most, most_text));
    else
        fprintf(out, ", %s to %s each", bytes_text(least, least_text), bytes_text(most, most_text));
}

static void print_window(FILE *out, const struct oriel_job_sum *job, size_t number)
{
    const struct oriel_window_sum *window = &job->windows[number - 1];
    if (window->shared_by != 0) {
        fprintf(out, "%" PRIu64 " more windows, which were created after the first %d\n",
                window->shared_by, ORIEL_RECORDS_MOST);
    } else {
        fprintf(out, "window %zu %s%s%sof %s, %d rank%s", number,
                window->name[0] == '\0' ? "" : "\"", window->name,
                window->name[0] == '\0' ? "" : "\" ", oriel_flavour_call(window->flavour),
                (int)window->n, window->n == 1 ? "" : "s");
        if (window->flavour != 3)
            print_size(out, window);
        fprintf(out, ", created in %s%s\n", window->site[0] == '\0' ? "?" : window->site,
                window->freed ? "" : ", never freed");
        if (window->reported < window->n)
            fprintf(out, "  statistics of %d of its ranks are missing\n",
                    (int)(window->n - window->reported));
    }
    print_sums(out, "operation", oriel_counted_operations, window->operations,
               ORIEL_COUNTED_OPERATIONS);
    print_sums(out, "path", oriel_counted_paths, window->paths, ORIEL_COUNTED_PATHS);
    print_reasons(out, window);
    print_calls(out, window);
    print_contention(out, window);
    print_causes(out, window);
    print_pairs(out, window);
}

/* --- call sites --- */

static void print_site_window(FILE *out, const struct oriel_job_sum *job, uint32_t index)
{
    if (index == ORIEL_WINDOWS_SEVERAL)
        fputs(", several windows", out);
    else if (job->windows[index].name[0] != '\0')
        fprintf(out, ", \"%s\"", job->windows[index].name);
    else if (job->windows_count > 1)
        fprintf(out, ", window %u", index + 1);
}

static void print_site(FILE *out, const struct oriel_job_sum *job, const struct oriel_site_sum *sum,
                       uint64_t all_ns)
{
    char bytes[TEXT] = "", working[TEXT], waiting[TEXT], place[ORIEL_CODE_ADDRESS_TEXT];
    if (sum->bytes > 0)
        bytes_text(sum->bytes, bytes);
    oriel_site_sums_text(&job->sites, sum, place);
    fprintf(out, "  %4.0f %% %10s %10s %10" PRIu64 " %10s  %s in %s",
            all_ns == 0 ? 0 : 100.0 * (double)sum->time_ns / (double)all_ns,
            time_text(sum->waiting_ns, waiting), time_text(sum->time_ns - sum->waiting_ns, working),
            sum->count, bytes, oriel_kind_name(sum->kind), place);
    print_site_window(out, job, sum->window);
    fputc('\n', out);
}

/* Those with most time first. */
static void print_sites(FILE *out, const struct oriel_job_sum *job)
{
    const struct oriel_site_sums *sites = &job->sites;
    uint64_t all_ns = oriel_site_sums_time_ns(sites);
    if (sites->count > 0)
        fprintf(out, "call sites\n  %6s %10s %10s %10s %10s\n", "share", "waiting", "working",
                "calls", "moved");
    for (size_t i = 0; i < sites->count && i < SITES_SHOWN; i++)
        print_site(out, job, &sites->list[i], all_ns);
    if (sites->count > SITES_SHOWN)
        fprintf(out, "  and %zu more; --stats=FILE.json has all\n", sites->count - SITES_SHOWN);
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
    char text[TEXT];
    const char *slash = strrchr(job->head->program, '/');
    const bool is_abi = strcmp(job->head->host, "abi") == 0; /* of which MPI? */
    fprintf(out, "oriel: statistics of %s, %d rank%s on %s%s%s\n",
            slash == NULL ? job->head->program : slash + 1, (int)job->head->ranks,
            job->head->ranks == 1 ? "" : "s", oriel_host_title(job->head->host), is_abi ? ", " : "",
            is_abi ? job->head->host_version : "");
    print_ranks(out, job, ORIEL_REPORTED_NOTHING, "oriel: no statistics from rank ",
                ": it has no ORIEL_STATS or no Oriel, or did not reach MPI_Finalize within 10 s\n");
    print_ranks(out, job, ORIEL_REPORTED_EARLY,
                "oriel: not all ranks reached MPI_Finalize within 10 s: statistics so far of rank ",
                "\n");
    if (job->windows_count > 0 || job->paused_ns > 0)
        oriel_verdict_print(job, width, out);
    for (size_t i = 0; i < job->windows_count && i < ORIEL_WINDOWS_SHOWN; i++)
        print_window(out, job, i + 1);
    if (job->windows_count > ORIEL_WINDOWS_SHOWN)
        fprintf(out, "and %s more windows; --stats=FILE.json has all\n",
                oriel_count_text(text, job->windows_count - ORIEL_WINDOWS_SHOWN));
    oriel_region_sums_print(&job->regions, out);
    print_sites(out, job);
    if (job->windows_count == 0)
        fprintf(out, "oriel: the program created no windows\n");
}
