/* The text of a comparison: the runs, what to know before reading, the totals, the amounts that
 * changed, by window, and the call sites and regions that changed. A time that changed by little of
 * its window's time, or of that of all windows for a call site or a region, is left out. */
#include "cli/report/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/hosts.h"
#include "cli/figures.h"

enum { TEXT = ORIEL_FIGURE, WINDOWS_SHOWN = 10, RANKS_SHOWN = 5, PLACES_SHOWN = 10 };

static const double little = 0.01;

static const char *amount_text(char text[TEXT], double amount, enum oriel_quantity quantity)
{
    uint64_t whole = amount < 1e18 ? (uint64_t)(amount + 0.5) : UINT64_MAX;
    if (quantity == ORIEL_BYTES)
        return oriel_bytes_text(text, whole);
    if (oriel_quantity_is_time(quantity))
        return oriel_time_text(text, whole);
    if (amount < 100 && fabs(amount - (double)whole) > 0.05)
        snprintf(text, TEXT, "%.1f", amount); /* a mean over the ranks */
    else
        oriel_count_text(text, whole);
    return text;
}

/* "2.4", "50", "1,234". */
static const char *factor_text(char text[TEXT], double factor)
{
    if (factor < 9.95)
        snprintf(text, TEXT, "%.1f", factor);
    else
        oriel_count_text(text, factor < 1e18 ? (uint64_t)(factor + 0.5) : UINT64_MAX);
    return text;
}

struct change_words {
    const char *much_more, *more, *less, *much_less;
};

static const struct change_words amount_words = {"%s times", "+%.*f %%", "-%.*f %%",
                                                 "%s times less"};
static const struct change_words time_words = {"%s times as long", "%.*f %% longer",
                                               "%.*f %% shorter", "%s times faster"};

/* Below a factor of 2 as a percentage. */
static const char *change_text(char text[TEXT], double before, double after,
                               const struct change_words *words)
{
    char factor[TEXT];
    double percent = before > 0 ? 100 * fabs(after / before - 1) : 0;
    int digits = percent < 9.5;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (before <= 0)
        snprintf(text, TEXT, "new");
    else if (after <= 0)
        snprintf(text, TEXT, "gone");
    else if (after >= 2 * before)
        snprintf(text, TEXT, words->much_more, factor_text(factor, after / before));
    else if (before >= 2 * after)
        snprintf(text, TEXT, words->much_less, factor_text(factor, before / after));
    else
        snprintf(text, TEXT, after > before ? words->more : words->less, digits, percent);
#pragma GCC diagnostic pop
    return text;
}

/* --- the runs --- */

static void print_run(const char *when, const struct oriel_reported_run *run, FILE *out)
{
    char host[ORIEL_HOST_TEXT];
    const char *program = run->head.program;
    fprintf(out, "%s %s: %s, %d rank%s on %s, Oriel %s, %s\n", when, run->path,
            program[0] == '\0' ? "unknown program" : program, (int)run->head.ranks,
            oriel_plural(run->head.ranks),
            oriel_host_text(run->head.host, run->head.host_version, host), run->head.version,
            run->sum.is_traced ? "traced" : "counted");
}

static void print_total(const struct oriel_comparison *comparison, enum oriel_quantity quantity,
                        const char *what, const struct change_words *words, FILE *out)
{
    char before[TEXT], after[TEXT];
    const double *total = comparison->total.of[quantity];
    if (total[0] <= 0 && total[1] <= 0)
        return;
    fprintf(out, "%s: %s before, %s after: ", what, amount_text(before, total[0], quantity),
            amount_text(after, total[1], quantity));
    if (oriel_amount_changed(comparison, &comparison->total, quantity))
        fprintf(out, "%s\n", change_text(before, total[0], total[1], words));
    else if (total[0] < total[1] || total[1] < total[0])
        fprintf(out, "the same, within %.0f %%\n", 100 * ORIEL_SAME_TIME);
    else
        fprintf(out, "the same\n");
}

/* --- a window --- */

static const struct oriel_window_sum *window_of(const struct oriel_compared_window *window)
{
    return window->first[1] != NULL ? window->first[1] : window->first[0];
}

static void print_window_name(const struct oriel_compared_window *window, FILE *out)
{
    const struct oriel_window_sum *sum = window_of(window);
    if (sum->shared_by > 0)
        fprintf(out, "later windows");
    else if (sum->name[0] != '\0')
        fprintf(out, "window \"%s\" of %s", sum->name, oriel_flavour_call(sum->flavour));
    else
        fprintf(out, "window of %s", oriel_flavour_call(sum->flavour));
    if (sum->site[0] != '\0')
        fprintf(out, ", created in %s", sum->site);
    if (window->first[0] != NULL && strcmp(window->first[0]->site, sum->site) != 0)
        fprintf(out, ", before in %s", window->first[0]->site);
}

/* A window of one run has nothing to be compared with. */
static void print_single_window(const struct oriel_compared_window *window, FILE *out)
{
    char text[TEXT];
    int side = window->first[0] == NULL;
    double amounts[ORIEL_QUANTITIES];
    for (int i = 0; i < ORIEL_QUANTITIES; i++)
        amounts[i] = window->total.of[i][side];
    fprintf(out, "\n%s: ", side == 0 ? "Gone" : "New");
    print_window_name(window, out);
    if (window->windows[side] > 1)
        fprintf(out, ", %s times", oriel_count_text(text, window->windows[side]));
    amount_text(text, amounts[ORIEL_COUNT], ORIEL_COUNT);
    fprintf(out, "\n  %s operation%s", text, strcmp(text, "1") == 0 ? "" : "s");
    fprintf(out, ", %s moved", amount_text(text, amounts[ORIEL_BYTES], ORIEL_BYTES));
    fprintf(out, ", %s", amount_text(text, amounts[ORIEL_TIME_NS], ORIEL_TIME_NS));
    fprintf(out, " in calls, %s waiting\n",
            amount_text(text, amounts[ORIEL_WAITING_NS], ORIEL_WAITING_NS));
}

static bool amount_is_shown(const struct oriel_comparison *comparison,
                            const struct oriel_amounts *total, const struct oriel_amounts *amounts,
                            enum oriel_quantity quantity)
{
    const double *of = amounts->of[quantity], *whole = total->of[ORIEL_TIME_NS];
    return oriel_amount_changed(comparison, amounts, quantity) &&
           !(oriel_quantity_is_time(quantity) &&
             fabs(of[1] - of[0]) < little * (whole[0] + whole[1]));
}

static bool row_is_shown(const struct oriel_comparison *comparison,
                         const struct oriel_amounts *total, const struct oriel_amounts *amounts)
{
    bool shown = false;
    for (int quantity = 0; quantity < ORIEL_QUANTITIES; quantity++)
        shown |= amount_is_shown(comparison, total, amounts, (enum oriel_quantity)quantity);
    return shown;
}

/* names: what the quantities are called. */
static void print_amounts(const struct oriel_comparison *comparison,
                          const struct oriel_amounts *total, const struct oriel_amounts *amounts,
                          const char *table, const char *label,
                          const char *const names[ORIEL_QUANTITIES], FILE *out)
{
    char before[TEXT], after[TEXT], change[TEXT];
    for (int i = 0; i < ORIEL_QUANTITIES; i++) {
        enum oriel_quantity quantity = (enum oriel_quantity)i;
        const double *of = amounts->of[i];
        if (!amount_is_shown(comparison, total, amounts, quantity))
            continue;
        fprintf(out, "  %-10s %-16s %-10s %12s %12s  %s\n", table, label, names[i],
                amount_text(before, of[0], quantity), amount_text(after, of[1], quantity),
                change_text(change, of[0], of[1], &amount_words));
        table = label = "";
    }
}

static void print_row(const struct oriel_comparison *comparison,
                      const struct oriel_compared_window *window,
                      const struct oriel_compared_row *row, bool is_first, FILE *out)
{
    static const char *const names[ORIEL_QUANTITIES] = {"count", "bytes", "time", "waiting"};
    static const char *const rank_names[ORIEL_QUANTITIES] = {"", "", "", "waited for"};
    char name[TEXT];
    print_amounts(comparison, &window->total, &row->amounts,
                  is_first ? oriel_compared_table_name(row->table) : "",
                  oriel_compared_row_name(row, name),
                  row->table == ORIEL_COMPARED_RANKS ? rank_names : names, out);
}

static void print_window(const struct oriel_comparison *comparison,
                         const struct oriel_compared_window *window, FILE *out)
{
    enum oriel_compared_table table = ORIEL_COMPARED_TABLES;
    size_t ranks = 0;
    fprintf(out, "\nChanged: ");
    print_window_name(window, out);
    fprintf(out, "\n  %-10s %-16s %-10s %12s %12s  %s\n", "", "", "", "before", "after", "change");
    if (window->windows[0] != window->windows[1])
        fprintf(out, "  %-10s %-16s %-10s %12" PRIu64 " %12" PRIu64 "\n", "windows", "", "count",
                window->windows[0], window->windows[1]);
    for (size_t i = 0; i < window->rows_count; i++) {
        const struct oriel_compared_row *row = &window->rows[i];
        if (!row_is_shown(comparison, &window->total, &row->amounts))
            continue;
        ranks += row->table == ORIEL_COMPARED_RANKS;
        if (ranks > RANKS_SHOWN)
            continue;
        print_row(comparison, window, row, row->table != table, out);
        table = row->table;
    }
    if (ranks > RANKS_SHOWN)
        fprintf(out, "  %-10s and %zu more rank%s\n", "", ranks - RANKS_SHOWN,
                oriel_plural(ranks - RANKS_SHOWN));
}

static bool window_is_shown(const struct oriel_comparison *comparison,
                            const struct oriel_compared_window *window)
{
    bool shown = window->windows[0] != window->windows[1];
    for (size_t i = 0; i < window->rows_count && !shown; i++)
        shown = row_is_shown(comparison, &window->total, &window->rows[i].amounts);
    return shown;
}

/* --- call sites and regions --- */

static void print_site_name(const struct oriel_comparison *comparison,
                            const struct oriel_compared_site *site, FILE *out)
{
    char place[2][ORIEL_CODE_ADDRESS_TEXT];
    int side = site->first[1] != NULL;
    oriel_compared_site_text(comparison, site, side, place[side]);
    fprintf(out, "  %s in %s", oriel_kind_name(site->first[side]->kind), place[side]);
    if (side == 1 && site->first[0] != NULL) {
        oriel_compared_site_text(comparison, site, 0, place[0]);
        if (strcmp(place[0], place[1]) != 0)
            fprintf(out, ", before in %s", place[0]);
    }
    fputc('\n', out);
}

/* Returns whether to print the next one, of which this is the number of the changed ones so far. */
static bool place_begin(const char *what, size_t changed, FILE *out)
{
    if (changed == 0)
        fprintf(out, "\nChanged: %ss%*s %12s %12s  %s\n", what, 31 - (int)strlen(what), "",
                "before", "after", "change");
    return changed < PLACES_SHOWN;
}

static void places_end(const char *what, size_t changed, FILE *out)
{
    char text[TEXT];
    if (changed > PLACES_SHOWN)
        fprintf(out, "  and %s more %s%s; --json and --csv have all\n",
                oriel_count_text(text, changed - PLACES_SHOWN), what,
                oriel_plural(changed - PLACES_SHOWN));
}

static void print_compared_sites(const struct oriel_comparison *comparison, FILE *out)
{
    static const char *const names[ORIEL_QUANTITIES] = {"calls", "bytes", "time", "waiting"};
    size_t changed = 0;
    for (size_t i = 0; i < comparison->sites_count; i++) {
        const struct oriel_compared_site *site = &comparison->sites[i];
        if (!row_is_shown(comparison, &comparison->total, &site->amounts) ||
            !place_begin("call site", changed++, out))
            continue;
        print_site_name(comparison, site, out);
        print_amounts(comparison, &comparison->total, &site->amounts, "", "", names, out);
    }
    places_end("call site", changed, out);
}

static void print_compared_regions(const struct oriel_comparison *comparison, FILE *out)
{
    static const char *const names[ORIEL_QUANTITIES] = {"count",   "bytes",    "time",
                                                        "waiting", "in calls", "operations"};
    size_t changed = 0;
    for (size_t i = 0; i < comparison->regions_count; i++) {
        const struct oriel_compared_region *region = &comparison->regions[i];
        if (!row_is_shown(comparison, &comparison->total, &region->amounts) ||
            !place_begin("region", changed++, out))
            continue;
        fprintf(out, "  %s\n", oriel_region_title(region->name));
        print_amounts(comparison, &comparison->total, &region->amounts, "", "", names, out);
    }
    places_end("region", changed, out);
}

void oriel_comparison_print(const struct oriel_comparison *comparison, FILE *out)
{
    size_t changed = 0, same = 0;
    print_run("before:", comparison->runs[0], out);
    print_run("after: ", comparison->runs[1], out);
    for (size_t i = 0; i < comparison->notes_count; i++)
        fprintf(out, "note: %s\n", comparison->notes[i]);
    fputc('\n', out);
    print_total(comparison, ORIEL_TIME_NS, "Time in window calls", &time_words, out);
    print_total(comparison, ORIEL_WAITING_NS, "Waiting in them", &time_words, out);
    print_total(comparison, ORIEL_COUNT, "Operations", &amount_words, out);
    print_total(comparison, ORIEL_BYTES, "Moved", &amount_words, out);
    for (size_t i = 0; i < comparison->windows_count; i++) {
        const struct oriel_compared_window *window = &comparison->windows[i];
        if (!window_is_shown(comparison, window))
            same++;
        else if (changed++ >= WINDOWS_SHOWN)
            continue;
        else if (window->first[0] != NULL && window->first[1] != NULL)
            print_window(comparison, window, out);
        else
            print_single_window(window, out);
    }
    if (changed > WINDOWS_SHOWN)
        fprintf(out, "\n%zu more window%s changed; --json and --csv have all\n",
                changed - WINDOWS_SHOWN, oriel_plural(changed - WINDOWS_SHOWN));
    print_compared_sites(comparison, out);
    print_compared_regions(comparison, out);
    if (same > 0)
        fprintf(out, "\nUnchanged: %zu window%s\n", same, oriel_plural(same));
    if (changed + same == 0)
        fprintf(out, "The programs created no windows.\n");
}
