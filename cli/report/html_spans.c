/* The longest spans, in a heap of bounded size with the shortest first: a longer span replaces
 * it. */
#include "cli/report/html_spans.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/json.h"

void oriel_html_spans_init(struct oriel_html_spans *spans, size_t most)
{
    *spans =
        (struct oriel_html_spans){.most = most, .spans = oriel_alloc(most * sizeof *spans->spans)};
}

void oriel_html_spans_free(struct oriel_html_spans *spans)
{
    free(spans->spans);
}

/* Inserts a span at index at, and moves it up or down to restore the heap order. */
static void heap_place(struct oriel_html_spans *spans, size_t at,
                       const struct oriel_html_span *span)
{
    struct oriel_html_span *all = spans->spans;
    while (at > 0 && all[(at - 1) / 2].duration_ns > span->duration_ns) {
        all[at] = all[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    for (size_t next; (next = 2 * at + 1) < spans->count; at = next) {
        if (next + 1 < spans->count && all[next + 1].duration_ns < all[next].duration_ns)
            next++;
        if (all[next].duration_ns >= span->duration_ns)
            break;
        all[at] = all[next];
    }
    all[at] = *span;
}

static void left_out_add(struct oriel_html_spans *spans, uint64_t duration_ns)
{
    spans->left_out++;
    if (duration_ns > spans->longest_left_out_ns)
        spans->longest_left_out_ns = duration_ns;
}

void oriel_html_spans_add(struct oriel_html_spans *spans, const struct oriel_html_span *span)
{
    if (spans->count < spans->most) {
        heap_place(spans, spans->count, span); /* not counted yet: it has no children */
        spans->count++;
    } else if (span->duration_ns <= spans->spans[0].duration_ns) {
        left_out_add(spans, span->duration_ns);
    } else {
        left_out_add(spans, spans->spans[0].duration_ns);
        heap_place(spans, 0, span);
    }
}

static int by_rank_and_time(const void *left, const void *right)
{
    const struct oriel_html_span *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

/* Drops all spans that are as long as one that was left out. Otherwise the order of arrival would
 * favour some ranks. */
static void ties_drop(struct oriel_html_spans *spans)
{
    size_t kept = 0;
    for (size_t i = 0; i < spans->count; i++)
        if (spans->left_out == 0 || spans->spans[i].duration_ns > spans->longest_left_out_ns)
            spans->spans[kept++] = spans->spans[i];
    spans->left_out += spans->count - kept;
    spans->count = kept;
}

json_t *oriel_html_spans_json(struct oriel_html_spans *spans, const struct oriel_html_sites *sites)
{
    static const char *const keys[] = {"rank",       "window", "kind",       "begin", "duration",
                                       "waiting",    "target", "cause_rank", "path",  "cause",
                                       "operations", "bytes",  "place"};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    json_t *columns[KEYS];
    json_t *out = oriel_json_checked(json_object());
    for (int key = 0; key < KEYS; key++)
        oriel_json_set(out, keys[key], columns[key] = oriel_json_checked(json_array()));
    ties_drop(spans);
    qsort(spans->spans, spans->count, sizeof *spans->spans, by_rank_and_time);
    for (size_t i = 0; i < spans->count; i++) {
        const struct oriel_html_span *span = &spans->spans[i];
        const int64_t row[KEYS] = {span->rank,
                                   span->window,
                                   span->kind,
                                   (int64_t)span->begin_ns,
                                   (int64_t)span->duration_ns,
                                   (int64_t)span->waiting_ns,
                                   span->target,
                                   span->cause_rank,
                                   span->path,
                                   span->cause,
                                   (int64_t)span->operations,
                                   (int64_t)span->bytes,
                                   oriel_html_sites_place(sites, span->place)};
        for (int key = 0; key < KEYS; key++)
            oriel_json_append(columns[key], json_integer(row[key]));
    }
    oriel_json_set(out, "left_out", json_integer((json_int_t)spans->left_out));
    oriel_json_set(out, "longest_left_out", json_integer((json_int_t)spans->longest_left_out_ns));
    return out;
}
