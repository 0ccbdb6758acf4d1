/* The timeline of a page: for each bin of time and row of ranks, the shares of operations,
 * synchronisation and waiting, window by window; and the longest calls and epochs. Bins are as fine
 * as memory and the page's limits allow. A row of bins is allocated at its first event. At the end,
 * pairs of bins are merged until the non-empty ones fit. */
#include "cli/report/html_parts.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/report/html_epochs.h"
#include "cli/report/html_spans.h"

enum { CELLS_IN_MEMORY = 1 << 21, BINS_LEAST = 8 };

struct bin {
    uint64_t operating_ns, working_ns, epoch_ns;
    uint64_t waiting_ns[ORIEL_COUNTED_CAUSES];
    uint64_t operations, calls;
};

struct oriel_html_time {
    const struct oriel_html_run *run;
    uint64_t bin_ns;
    uint32_t bins;
    struct oriel_html_spans events, epochs;
    struct oriel_html_epochs *finder;
    struct bin *rows[]; /* windows x rows arrays of bins, or NULL without events */
};

struct oriel_html_time *oriel_html_time_new(const struct oriel_html_run *run)
{
    size_t rows = (size_t)run->windows * run->rows;
    struct oriel_html_time *time = oriel_alloc(sizeof *time + rows * sizeof time->rows[0]);
    time->run = run;
    time->bins = ORIEL_HTML_BINS;
    while (time->bins > BINS_LEAST && rows * time->bins > CELLS_IN_MEMORY)
        time->bins /= 2;
    time->bin_ns = (uint64_t)run->traces->last_ns / time->bins + 1;
    time->finder = oriel_html_epochs_new(run->windows);
    oriel_html_spans_init(&time->events, ORIEL_HTML_EVENTS);
    oriel_html_spans_init(&time->epochs, ORIEL_HTML_EPOCHS);
    return time;
}

void oriel_html_time_free(struct oriel_html_time *time)
{
    for (size_t i = 0; i < (size_t)time->run->windows * time->run->rows; i++)
        free(time->rows[i]);
    oriel_html_spans_free(&time->events);
    oriel_html_spans_free(&time->epochs);
    oriel_html_epochs_free(time->finder);
    free(time);
}

static struct bin *bin_row_get(struct oriel_html_time *time, uint32_t window, int32_t rank)
{
    struct bin **row =
        &time->rows[(size_t)window * time->run->rows + (uint32_t)rank / time->run->ranks_per_row];
    if (*row == NULL)
        *row = oriel_alloc(time->bins * sizeof **row);
    return *row;
}

/* The length of the part of [begin_ns, end_ns) that is in the bin. */
static uint64_t bin_overlap_ns(const struct oriel_html_time *time, uint64_t bin, uint64_t begin_ns,
                               uint64_t end_ns)
{
    uint64_t from = bin * time->bin_ns, to = from + time->bin_ns;
    from = begin_ns > from ? begin_ns : from;
    to = end_ns < to ? end_ns : to;
    return to > from ? to - from : 0;
}

static void epoch_add(void *context, const struct oriel_html_span *epoch)
{
    struct oriel_html_time *time = context;
    struct bin *row = bin_row_get(time, epoch->window, epoch->rank);
    uint64_t end_ns = epoch->begin_ns + epoch->duration_ns;
    for (uint64_t bin = epoch->begin_ns / time->bin_ns;
         bin < time->bins && bin * time->bin_ns < end_ns; bin++)
        row[bin].epoch_ns += bin_overlap_ns(time, bin, epoch->begin_ns, end_ns);
    /* The combined window has no epochs: its calls belong to several windows. */
    if (time->run->window[epoch->window] != UINT32_MAX)
        oriel_html_spans_add(&time->epochs, epoch);
}

void oriel_html_time_add(struct oriel_html_time *time, const struct oriel_html_event *event)
{
    struct bin *row = bin_row_get(time, event->window, event->rank);
    if (oriel_html_marks_pause_passed(time->run->marks, event->rank, event->begin_ns))
        oriel_html_time_rank_end(time, event->rank); /* the calls that end them may be missing */
    uint64_t end_ns = event->begin_ns + event->duration_ns, first = event->begin_ns / time->bin_ns;
    double waiting =
        event->duration_ns == 0 ? 0 : (double)event->waiting_ns / (double)event->duration_ns;
    if (first < time->bins) {
        row[first].operations += event->operation >= 0 ? event->weight : 0;
        row[first].calls += event->weight;
    }
    for (uint64_t bin = first; bin < time->bins && bin * time->bin_ns < end_ns; bin++) {
        uint64_t ns = bin_overlap_ns(time, bin, event->begin_ns, end_ns),
                 waiting_ns = (uint64_t)((double)ns * waiting);
        row[bin].waiting_ns[event->cause] += waiting_ns;
        *(event->operation >= 0 ? &row[bin].operating_ns : &row[bin].working_ns) += ns - waiting_ns;
    }
    oriel_html_spans_add(&time->events,
                         &(struct oriel_html_span){.begin_ns = event->begin_ns,
                                                   .duration_ns = event->duration_ns,
                                                   .waiting_ns = event->waiting_ns,
                                                   .operations = event->operation >= 0,
                                                   .bytes = event->bytes,
                                                   .window = event->window,
                                                   .rank = event->rank,
                                                   .target = event->target,
                                                   .cause_rank = event->cause_rank,
                                                   .place = event->place,
                                                   .kind = event->kind,
                                                   .path = event->path,
                                                   .cause = event->cause});
    oriel_html_epochs_add(time->finder, event, epoch_add, time);
}

void oriel_html_time_rank_end(struct oriel_html_time *time, int32_t rank)
{
    oriel_html_epochs_rank_end(time->finder, rank, epoch_add, time);
}

static bool bin_is_empty(const struct bin *bin)
{
    unsigned cause;
    return bin->calls == 0 && bin->operating_ns == 0 && bin->working_ns == 0 &&
           bin->epoch_ns == 0 && oriel_html_waiting(bin->waiting_ns, &cause) == 0;
}

static void bin_merge(struct bin *into, const struct bin *from)
{
    into->operating_ns += from->operating_ns;
    into->working_ns += from->working_ns;
    into->epoch_ns += from->epoch_ns;
    into->operations += from->operations;
    into->calls += from->calls;
    for (unsigned i = 0; i < ORIEL_COUNTED_CAUSES; i++)
        into->waiting_ns[i] += from->waiting_ns[i];
}

static size_t filled_bins_count(const struct oriel_html_time *time)
{
    size_t count = 0;
    for (size_t i = 0; i < (size_t)time->run->windows * time->run->rows; i++)
        for (uint32_t bin = 0; time->rows[i] != NULL && bin < time->bins; bin++)
            count += !bin_is_empty(&time->rows[i][bin]);
    return count;
}

static void bins_fit(struct oriel_html_time *time)
{
    while (time->bins > BINS_LEAST && filled_bins_count(time) > ORIEL_HTML_CELLS) {
        time->bins /= 2;
        time->bin_ns *= 2;
        for (size_t i = 0; i < (size_t)time->run->windows * time->run->rows; i++)
            for (uint32_t bin = 0; time->rows[i] != NULL && bin < time->bins; bin++) {
                struct bin both = time->rows[i][2 * bin];
                bin_merge(&both, &time->rows[i][2 * bin + 1]);
                time->rows[i][bin] = both;
            }
    }
}

void oriel_html_time_json(struct oriel_html_time *time, json_t *out)
{
    bins_fit(time);
    json_t *timeline = oriel_json_checked(json_object()), *kinds = oriel_json_checked(json_array());
    oriel_json_set(timeline, "bin_ns", json_integer((json_int_t)time->bin_ns));
    oriel_json_set(timeline, "bins", json_integer(time->bins));
    oriel_json_set(timeline, "rows", json_integer(time->run->rows));
    oriel_json_set(timeline, "ranks_per_row", json_integer(time->run->ranks_per_row));
    oriel_json_set(out, "timeline", timeline);
    oriel_json_set(out, "events", oriel_html_spans_json(&time->events, time->run->sites));
    oriel_json_set(out, "epochs", oriel_html_spans_json(&time->epochs, time->run->sites));
    for (const char *const *kind = oriel_html_epoch_kinds; *kind != NULL; kind++)
        oriel_json_append(kinds, json_string(*kind));
    oriel_json_set(out, "epoch_kinds", kinds);
}

/* Thousandths of the time that the ranks of a row have in a bin. A non-zero time gives at least
 * 1. */
static uint64_t share_thousandths(const struct oriel_html_time *time, uint64_t ns)
{
    double whole = (double)time->bin_ns * time->run->ranks_per_row;
    uint64_t thousandths = (uint64_t)((double)ns * 1000 / whole + 0.5);
    return ns != 0 && thousandths == 0 ? 1 : thousandths;
}

void oriel_html_time_window_json(const struct oriel_html_time *time, uint32_t window, json_t *out)
{
    static const char *const keys[] = {"row",   "bin",   "operating",  "working", "waiting",
                                       "cause", "epoch", "operations", "calls"};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    json_t *columns[KEYS], *bins = oriel_json_checked(json_object());
    for (int key = 0; key < KEYS; key++)
        oriel_json_set(bins, keys[key], columns[key] = oriel_json_checked(json_array()));
    for (uint32_t row = 0; row < time->run->rows; row++) {
        const struct bin *at = time->rows[(size_t)window * time->run->rows + row];
        for (uint32_t i = 0; at != NULL && i < time->bins; i++) {
            unsigned cause;
            uint64_t waiting_ns = oriel_html_waiting(at[i].waiting_ns, &cause);
            const uint64_t values[KEYS] = {row,
                                           i,
                                           share_thousandths(time, at[i].operating_ns),
                                           share_thousandths(time, at[i].working_ns),
                                           share_thousandths(time, waiting_ns),
                                           cause,
                                           share_thousandths(time, at[i].epoch_ns),
                                           at[i].operations,
                                           at[i].calls};
            for (int key = 0; !bin_is_empty(&at[i]) && key < KEYS; key++)
                oriel_json_append_number(columns[key], values[key]);
        }
    }
    oriel_json_set(out, "bins", bins);
}
