/* Matches the windows of two runs and orders what changed in them.
 *
 * The passes of the match, each for the entries that the earlier ones left:
 *   1. the same name, function and call site;
 *   2. the same name, if it has one, and function: its line has moved;
 *   3. the same name, function and calling function: only the line has moved;
 *   4. the same name and function, and both call sites are addresses: the program was built again.
 * Equal keys are matched in the order of creation. Entries that remain are of one run only. */
#include "cli/report/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/figures.h"
#include "cli/hosts.h"

enum match_pass { PASS_SITE, PASS_NAME, PASS_FUNCTION, PASS_ADDRESS, PASSES };

/* The windows of one run with the same name, function and call site. */
struct entry {
    const struct oriel_job_sum *job;
    const size_t *members; /* indices in job->windows, in the order of creation */
    size_t members_count;
    const struct oriel_window_sum *first;
    struct entry *match;
    bool is_matched;
};

struct entries {
    size_t *order; /* what members point into */
    struct entry *all;
    size_t count;
};

const char *const oriel_quantity_names[ORIEL_QUANTITIES] = {"count",      "bytes",    "time_ns",
                                                            "waiting_ns", "calls_ns", "operations"};

/* --- keys --- */

/* The length of "main" in "main at halo.c:42"; all of another text. */
static size_t function_len(const char *site)
{
    const char *at = strstr(site, " at ");
    return at != NULL ? (size_t)(at - site) : strlen(site);
}

static bool site_is_address(const char *site)
{
    return site[0] == '\0' || strstr(site, "+0x") != NULL;
}

static bool has_key(const struct oriel_window_sum *window, enum match_pass pass)
{
    return pass == PASS_NAME      ? window->name[0] != '\0'
           : pass == PASS_ADDRESS ? site_is_address(window->site)
                                  : true;
}

static int compare_functions(const char *one, const char *other)
{
    size_t one_len = function_len(one), other_len = function_len(other);
    return one_len != other_len ? (one_len < other_len ? -1 : 1) : memcmp(one, other, one_len);
}

static int compare_windows(const struct oriel_window_sum *one, const struct oriel_window_sum *other,
                           enum match_pass pass)
{
    int order = strcmp(one->name, other->name);
    if (order == 0)
        order = (one->flavour > other->flavour) - (one->flavour < other->flavour);
    if (order == 0 && pass == PASS_SITE)
        order = strcmp(one->site, other->site);
    if (order == 0 && pass == PASS_SITE)
        order = (one->shared_by > 0) - (other->shared_by > 0);
    if (order == 0 && pass == PASS_FUNCTION)
        order = compare_functions(one->site, other->site);
    return order;
}

/* --- the entries of a run --- */

static int compare_window_indices(const void *left, const void *right, void *context)
{
    const struct oriel_job_sum *job = context;
    size_t one = *(const size_t *)left, other = *(const size_t *)right;
    int order = compare_windows(&job->windows[one], &job->windows[other], PASS_SITE);
    return order != 0 ? order : (one > other) - (one < other);
}

static struct entries entries_make(const struct oriel_job_sum *job)
{
    size_t count = job->windows_count;
    struct entries entries = {.order = oriel_alloc((count + 1) * sizeof *entries.order),
                              .all = oriel_alloc((count + 1) * sizeof *entries.all)};
    for (size_t i = 0; i < count; i++)
        entries.order[i] = i;
    qsort_r(entries.order, count, sizeof *entries.order, compare_window_indices,
            (void *)(uintptr_t)job);
    for (size_t i = 0; i < count; i++) {
        const struct oriel_window_sum *window = &job->windows[entries.order[i]];
        if (i == 0 || compare_windows(&job->windows[entries.order[i - 1]], window, PASS_SITE) != 0)
            entries.all[entries.count++] =
                (struct entry){.job = job, .members = &entries.order[i], .first = window};
        entries.all[entries.count - 1].members_count++;
    }
    return entries;
}

static void entries_free(struct entries *entries)
{
    free(entries->order);
    free(entries->all);
}

/* --- the match --- */

static int compare_entries(const void *left, const void *right, void *context)
{
    const struct entry *one = *(struct entry *const *)left;
    const struct entry *other = *(struct entry *const *)right;
    int order = compare_windows(one->first, other->first, *(enum match_pass *)context);
    return order != 0 ? order : (one->first > other->first) - (one->first < other->first);
}

/* The entries without a match that have this pass's key, sorted by it. */
static struct entry **entries_left(const struct entries *entries, enum match_pass pass,
                                   size_t *count)
{
    struct entry **left = oriel_alloc((entries->count + 1) * sizeof(struct entry *));
    *count = 0;
    for (size_t i = 0; i < entries->count; i++)
        if (!entries->all[i].is_matched && has_key(entries->all[i].first, pass))
            left[(*count)++] = &entries->all[i];
    qsort_r(left, *count, sizeof(struct entry *), compare_entries, &pass);
    return left;
}

static void entries_match(struct entries *before, struct entries *after)
{
    for (enum match_pass pass = PASS_SITE; pass < PASSES; pass++) {
        size_t count, other_count, i = 0, j = 0;
        struct entry **left = entries_left(before, pass, &count);
        struct entry **other = entries_left(after, pass, &other_count);
        while (i < count && j < other_count) {
            int order = compare_windows(left[i]->first, other[j]->first, pass);
            if (order == 0) {
                left[i]->match = other[j];
                left[i]->is_matched = other[j]->is_matched = true;
            }
            i += order <= 0;
            j += order >= 0;
        }
        free(left);
        free(other);
    }
}

/* --- amounts --- */

static double change_of(const struct oriel_amounts *amounts, enum oriel_quantity quantity)
{
    return fabs(amounts->of[quantity][1] - amounts->of[quantity][0]);
}

bool oriel_quantity_is_time(enum oriel_quantity quantity)
{
    return quantity == ORIEL_TIME_NS || quantity == ORIEL_WAITING_NS || quantity == ORIEL_CALLS_NS;
}

bool oriel_amount_changed(const struct oriel_comparison *comparison,
                          const struct oriel_amounts *amounts, enum oriel_quantity quantity)
{
    double before = amounts->of[quantity][0], after = amounts->of[quantity][1];
    bool has_noise = comparison->is_per_rank || oriel_quantity_is_time(quantity);
    double noise = has_noise ? ORIEL_SAME_TIME * (after > before ? after : before) : 0;
    return fabs(after - before) > noise;
}

int oriel_amounts_order(const struct oriel_amounts *one, const struct oriel_amounts *other)
{
    static const enum oriel_quantity order[] = {ORIEL_TIME_NS, ORIEL_WAITING_NS, ORIEL_BYTES,
                                                ORIEL_COUNT};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        double first = change_of(one, order[i]), second = change_of(other, order[i]);
        if (first > second || first < second)
            return first < second ? 1 : -1;
    }
    return 0;
}

static int compare_rows(const void *left, const void *right)
{
    const struct oriel_compared_row *one = left, *other = right;
    if (one->table != other->table)
        return one->table < other->table ? -1 : 1;
    int order = oriel_amounts_order(&one->amounts, &other->amounts);
    return order != 0 ? order : (one->row > other->row) - (one->row < other->row);
}

static int compare_compared_windows(const void *left, const void *right)
{
    const struct oriel_compared_window *one = left, *other = right;
    int order = oriel_amounts_order(&one->total, &other->total);
    if (order != 0)
        return order;
    const struct oriel_window_sum *first = one->first[0] != NULL ? one->first[0] : one->first[1];
    const struct oriel_window_sum *second =
        other->first[0] != NULL ? other->first[0] : other->first[1];
    return compare_windows(first, second, PASS_SITE);
}

/* The rows of a window while amounts are added: all of each table of counters, then the ranks. */
static const int table_rows[] = {ORIEL_COUNTED_OPERATIONS, ORIEL_COUNTED_PATHS, ORIEL_COUNTED_CALLS,
                                 ORIEL_COUNTED_CAUSES};

static struct oriel_compared_row *rows_make(int32_t ranks, size_t *count)
{
    struct oriel_compared_row *rows = NULL;
    *count = (size_t)ranks;
    for (int table = 0; table < ORIEL_COMPARED_RANKS; table++)
        *count += (size_t)table_rows[table];
    struct oriel_compared_row *next = rows = oriel_alloc(*count * sizeof *rows);
    for (int table = 0; table < ORIEL_COMPARED_TABLES; table++)
        for (int row = 0; row < (table < ORIEL_COMPARED_RANKS ? table_rows[table] : ranks); row++)
            *next++ =
                (struct oriel_compared_row){.table = (enum oriel_compared_table)table, .row = row};
    return rows;
}

struct adding {
    struct oriel_compared_window *window;
    struct oriel_compared_row *next; /* row to add to */
    int side;
    double scale;
    bool has_operation_times;
};

static void amount_add(const struct adding *adding, enum oriel_quantity quantity, uint64_t amount)
{
    adding->next->amounts.of[quantity][adding->side] += adding->scale * (double)amount;
}

static void total_add(const struct adding *adding, enum oriel_quantity quantity, uint64_t amount)
{
    adding->window->total.of[quantity][adding->side] += adding->scale * (double)amount;
}

static void sums_add(struct adding *adding, const struct oriel_sum *sums, int count)
{
    for (int i = 0; i < count; i++, adding->next++) {
        amount_add(adding, ORIEL_COUNT, sums[i].count);
        amount_add(adding, ORIEL_BYTES, sums[i].bytes);
        if (adding->has_operation_times)
            amount_add(adding, ORIEL_TIME_NS, sums[i].time_ns);
    }
}

static void totals_add(const struct adding *adding, const struct oriel_window_sum *window)
{
    for (int i = 0; i < ORIEL_COUNTED_OPERATIONS; i++) {
        total_add(adding, ORIEL_COUNT, window->operations[i].count);
        total_add(adding, ORIEL_BYTES, window->operations[i].bytes);
        if (adding->has_operation_times)
            total_add(adding, ORIEL_TIME_NS, window->operations[i].time_ns);
    }
    for (int i = 0; i < ORIEL_COUNTED_CALLS; i++) {
        total_add(adding, ORIEL_TIME_NS, window->calls[i].time_ns);
        total_add(adding, ORIEL_WAITING_NS, window->calls[i].waiting_ns);
    }
}

static void window_amounts_add(struct adding *adding, const struct oriel_window_sum *window)
{
    totals_add(adding, window);
    adding->next = adding->window->rows;
    sums_add(adding, window->operations, ORIEL_COUNTED_OPERATIONS);
    sums_add(adding, window->paths, ORIEL_COUNTED_PATHS);
    for (int i = 0; i < ORIEL_COUNTED_CALLS; i++, adding->next++) {
        amount_add(adding, ORIEL_COUNT, window->calls[i].count);
        amount_add(adding, ORIEL_TIME_NS, window->calls[i].time_ns);
        amount_add(adding, ORIEL_WAITING_NS, window->calls[i].waiting_ns);
    }
    for (int i = 0; i < ORIEL_COUNTED_CAUSES; i++, adding->next++)
        amount_add(adding, ORIEL_WAITING_NS, window->causes_ns[i]);
    struct oriel_compared_row *ranks = adding->next;
    size_t ranks_count = adding->window->rows_count - (size_t)(ranks - adding->window->rows);
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_member_sum *member = &window->members[i];
        if (member->world_rank < 0 || (size_t)member->world_rank >= ranks_count)
            continue;
        adding->next = ranks + member->world_rank;
        for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++)
            amount_add(adding, ORIEL_WAITING_NS, member->caused_ns[cause]);
    }
}

static bool row_is_empty(const struct oriel_compared_row *row)
{
    for (int quantity = 0; quantity < ORIEL_QUANTITIES; quantity++)
        for (int side = 0; side < 2; side++)
            if (row->amounts.of[quantity][side] > 0)
                return false;
    return true;
}

/* Sorts the rows, without those that are 0 in both runs. */
static void rows_finish(struct oriel_compared_window *window)
{
    size_t kept = 0;
    for (size_t i = 0; i < window->rows_count; i++)
        if (!row_is_empty(&window->rows[i]))
            window->rows[kept++] = window->rows[i];
    qsort(window->rows, kept, sizeof *window->rows, compare_rows);
    window->rows = oriel_alloc_checked(realloc(window->rows, (kept + 1) * sizeof *window->rows));
    window->rows_count = kept;
}

/* --- all windows --- */

/* One more than the highest rank of the entry's windows. */
static int32_t entry_ranks(const struct entry *entry)
{
    int32_t most = -1;
    for (size_t i = 0; entry != NULL && i < entry->members_count; i++) {
        const struct oriel_window_sum *window = &entry->job->windows[entry->members[i]];
        for (int32_t rank = 0; rank < window->n; rank++)
            if (window->members[rank].world_rank > most)
                most = window->members[rank].world_rank;
    }
    return most + 1;
}

static void window_compare(struct oriel_comparison *comparison, const struct entry *before,
                           const struct entry *after)
{
    const struct entry *const entries[] = {before, after};
    struct oriel_compared_window *window = &comparison->windows[comparison->windows_count++];
    int32_t ranks = entry_ranks(before), ranks_after = entry_ranks(after);
    window->rows = rows_make(comparison->is_per_rank ? 0
                             : ranks > ranks_after   ? ranks
                                                     : ranks_after,
                             &window->rows_count);
    for (int side = 0; side < 2; side++) {
        const struct entry *entry = entries[side];
        if (entry == NULL)
            continue;
        struct adding adding = {.window = window,
                                .side = side,
                                .scale =
                                    comparison->is_per_rank ? 1.0 / entry->job->head->ranks : 1.0,
                                .has_operation_times = comparison->has_operation_times};
        window->first[side] = entry->first;
        for (size_t i = 0; i < entry->members_count; i++) {
            const struct oriel_window_sum *sum = &entry->job->windows[entry->members[i]];
            window->windows[side] += sum->shared_by > 0 ? sum->shared_by : 1;
            window_amounts_add(&adding, sum);
        }
    }
    rows_finish(window);
    for (int quantity = 0; quantity < ORIEL_QUANTITIES; quantity++)
        for (int side = 0; side < 2; side++)
            comparison->total.of[quantity][side] += window->total.of[quantity][side];
}

static void windows_compare(struct oriel_comparison *comparison)
{
    static const struct oriel_job_sum nothing;
    const struct oriel_reported_run *second = comparison->runs[1];
    struct entries before = entries_make(&comparison->runs[0]->sum);
    struct entries after = entries_make(second != NULL ? &second->sum : &nothing);
    entries_match(&before, &after);
    comparison->windows =
        oriel_alloc((before.count + after.count + 1) * sizeof *comparison->windows);
    for (size_t i = 0; i < before.count; i++)
        window_compare(comparison, &before.all[i], before.all[i].match);
    for (size_t i = 0; i < after.count; i++)
        if (!after.all[i].is_matched)
            window_compare(comparison, NULL, &after.all[i]);
    qsort(comparison->windows, comparison->windows_count, sizeof *comparison->windows,
          compare_compared_windows);
    entries_free(&before);
    entries_free(&after);
}

/* --- notes --- */

static void __attribute__((format(printf, 2, 3)))
note_add(struct oriel_comparison *comparison, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    comparison->notes = oriel_alloc_checked(
        reallocarray(comparison->notes, comparison->notes_count + 1, sizeof *comparison->notes));
    comparison->notes[comparison->notes_count++] = oriel_alloc_checked(len < 0 ? NULL : text);
}

/* Compares the names of the programs without folder and arguments. */
static bool same_program(const char *one, const char *other)
{
    size_t one_len = strcspn(one, " "), other_len = strcspn(other, " ");
    while (one_len > 0 && other_len > 0 && one[one_len - 1] == other[other_len - 1] &&
           one[one_len - 1] != '/') {
        one_len--;
        other_len--;
    }
    return (one_len == 0 || one[one_len - 1] == '/') &&
           (other_len == 0 || other[other_len - 1] == '/');
}

static void notes_of_both(struct oriel_comparison *comparison,
                          const struct oriel_reported_run *before,
                          const struct oriel_reported_run *after)
{
    char hosts[2][ORIEL_HOST_TEXT];
    if (!same_program(before->head.program, after->head.program))
        note_add(comparison,
                 "different programs, %s and %s: their windows of the same name and function are "
                 "compared, and may have nothing to do with each other",
                 before->head.program, after->head.program);
    if (comparison->is_per_rank)
        note_add(comparison,
                 "%d ranks before, %d after: all figures are means over the ranks of a run",
                 (int)before->head.ranks, (int)after->head.ranks);
    oriel_host_text(before->head.host, before->head.host_version, hosts[0]);
    oriel_host_text(after->head.host, after->head.host_version, hosts[1]);
    if (strcmp(hosts[0], hosts[1]) != 0)
        note_add(comparison, "the hosts differ: %s before, %s after", hosts[0], hosts[1]);
    if (before->sum.is_traced != after->sum.is_traced)
        note_add(comparison, "only the %s run was traced, and tracing takes longer than counting",
                 before->sum.is_traced ? "first" : "second");
}

static void notes_of_run(struct oriel_comparison *comparison, int side)
{
    const struct oriel_reported_run *run = comparison->runs[side];
    const char *which = side == 0 ? "first" : "second";
    int32_t missing = 0, early = 0;
    for (int32_t i = 0; i < run->head.ranks; i++) {
        missing += run->sum.has_reported[i] == ORIEL_REPORTED_NOTHING;
        early += run->sum.has_reported[i] == ORIEL_REPORTED_EARLY;
    }
    if (missing > 0)
        note_add(comparison, "the %s run: no figures of %d of %d ranks", which, (int)missing,
                 (int)run->head.ranks);
    if (early > 0)
        note_add(comparison, "the %s run: %d of %d ranks did not reach MPI_Finalize", which,
                 (int)early, (int)run->head.ranks);
    if (run->sum.paused_ns > 0)
        note_add(comparison,
                 "the %s run: %d of %d ranks paused (MPI_Pcontrol); the figures are those of the "
                 "rest",
                 which, (int)run->sum.paused_ranks, (int)(run->head.ranks - missing));
    if (run->sum.filter != NULL && run->sum.filter[0] != '\0')
        note_add(comparison,
                 "the %s run: only calls that --trace-filter \"%s\" selects were traced", which,
                 run->sum.filter);
    if (run->sum.sample > 1)
        note_add(comparison,
                 "the %s run: one in %" PRIu32 " operations was traced, so their figures are "
                 "estimates",
                 which, run->sum.sample);
    if (run->sum.dropped > 0)
        note_add(comparison, "the %s run dropped %" PRIu64 " event%s, so its figures are low",
                 which, run->sum.dropped, oriel_plural(run->sum.dropped));
}

void oriel_comparison_make(const struct oriel_reported_run *first,
                           const struct oriel_reported_run *second, struct oriel_comparison *out)
{
    *out = (struct oriel_comparison){
        .runs = {first, second},
        .is_per_rank = second != NULL && first->head.ranks != second->head.ranks,
        .has_operation_times = first->sum.is_traced && (second == NULL || second->sum.is_traced),
        .has_same_times = second == NULL || first->sum.is_traced == second->sum.is_traced};
    windows_compare(out);
    oriel_comparison_add_places(out);
    if (second == NULL)
        return;
    notes_of_both(out, first, second);
    for (int side = 0; side < 2; side++)
        notes_of_run(out, side);
}

void oriel_comparison_free(struct oriel_comparison *comparison)
{
    for (size_t i = 0; i < comparison->windows_count; i++)
        free(comparison->windows[i].rows);
    for (size_t i = 0; i < comparison->notes_count; i++)
        free(comparison->notes[i]);
    free(comparison->windows);
    free(comparison->sites);
    free(comparison->regions);
    free(comparison->notes);
}

const char *oriel_compared_table_name(enum oriel_compared_table table)
{
    static const char *const names[] = {"operations", "paths", "calls", "causes", "ranks"};
    return names[table];
}

const char *oriel_compared_row_name(const struct oriel_compared_row *row, char out[32])
{
    static const struct oriel_counter *const tables[] = {
        oriel_counted_operations, oriel_counted_paths, oriel_counted_calls, oriel_counted_causes};
    if (row->table < ORIEL_COMPARED_RANKS)
        snprintf(out, 32, "%s", tables[row->table][row->row].name);
    else
        snprintf(out, 32, "%d", (int)row->row);
    return out;
}
