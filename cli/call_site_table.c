#include "cli/call_site_table.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/figures.h"
#include "cli/text_style.h"

enum { SITES_SHOWN = 20, FIGURES = 49 /* columns */, INDENT = 8 };

/* "fence in main at app.c:40, \"halo\"", to be freed; without the window where there is one. */
static char *site_title(const struct oriel_job_sum *job, const struct oriel_site_sum *sum)
{
    char place[ORIEL_CODE_ADDRESS_TEXT];
    const char *call = oriel_kind_name(sum->kind);
    oriel_site_sums_text(&job->sites, sum, place);
    if (job->windows_count < 2)
        return oriel_format("%s in %s", call, place);
    if (sum->window == ORIEL_WINDOWS_SEVERAL)
        return oriel_format("%s in %s, several windows", call, place);
    if (job->windows[sum->window].name[0] != '\0')
        return oriel_format("%s in %s, \"%s\"", call, place, job->windows[sum->window].name);
    return oriel_format("%s in %s, window %u", call, place, sum->window + 1);
}

static void print_figures(const struct oriel_site_sum *sum, uint64_t all_ns, bool is_padded,
                          FILE *out)
{
    char share[ORIEL_FIGURE], time[ORIEL_FIGURE], waiting[ORIEL_FIGURE], count[ORIEL_FIGURE];
    char bytes[ORIEL_FIGURE];
    fprintf(out, "  %5s %9s %9s %11s", oriel_share_text(share, sum->time_ns, all_ns),
            oriel_time_text(time, sum->time_ns), oriel_time_text(waiting, sum->waiting_ns),
            oriel_count_text(count, sum->count));
    if (sum->bytes > 0)
        fprintf(out, " %9s", oriel_bytes_text(bytes, sum->bytes));
    else if (is_padded)
        fprintf(out, " %9s", "");
}

void oriel_call_site_table_print(const struct oriel_job_sum *job, int width, const char *all,
                                 FILE *out)
{
    const struct oriel_site_sums *sites = &job->sites;
    const size_t shown = sites->count < SITES_SHOWN ? sites->count : SITES_SHOWN;
    uint64_t all_ns = oriel_site_sums_time_ns(sites);
    char more[ORIEL_FIGURE], *titles[SITES_SHOWN];
    bool fits = true;
    if (shown == 0)
        return;
    for (size_t i = 0; i < shown; i++) {
        titles[i] = site_title(job, &sites->list[i]);
        fits = fits && FIGURES + 2 + strlen(titles[i]) <= (size_t)width;
    }
    fprintf(out, "call sites\n  %5s %9s %9s %11s %9s\n", "share", "time", "waiting", "calls",
            "moved");
    for (size_t i = 0; i < shown; i++) {
        print_figures(&sites->list[i], all_ns, fits, out);
        fprintf(out, "%s%*s", fits ? "" : "\n", fits ? 2 : INDENT, "");
        oriel_text_wrap(out, titles[i], fits ? FIGURES + 2 : INDENT, INDENT, width);
        free(titles[i]);
    }
    if (sites->count > shown)
        fprintf(out, "  and %s more; %s has all\n", oriel_count_text(more, sites->count - shown),
                all);
}
