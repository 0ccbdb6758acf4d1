/* The pauses and the regions of a page: their times on the ranks, and the sums of the regions. Both
 * lists are bounded; the longest are kept. */
#include "cli/report/html_parts.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/region_sums.h"
#include "cli/report/html_spans.h"

enum { NAMES_MOST = 64 }; /* regions with other names have none */

struct html_pause {
    int32_t rank;
    uint64_t begin_ns;
};

struct oriel_html_marks {
    const struct oriel_traces *traces;
    char names[NAMES_MOST][64];
    uint32_t names_count; /* 0 is for the others */
    struct oriel_html_spans regions, pauses;
    struct html_pause *starts; /* of all pauses, in the order of ranks and times */
    size_t starts_count;
    size_t next; /* of starts */
};

/* Index of the name; 0 if there is no room. */
static uint32_t mark_name_index(struct oriel_html_marks *marks, const char *name)
{
    for (uint32_t i = 1; i < marks->names_count; i++)
        if (strcmp(marks->names[i], name) == 0)
            return i;
    if (name[0] == '\0' || marks->names_count == NAMES_MOST)
        return 0;
    snprintf(marks->names[marks->names_count], sizeof marks->names[0], "%s", name);
    return marks->names_count++;
}

static bool mark_add(const struct oriel_trace_mark_record *record, void *context)
{
    struct oriel_html_marks *marks = context;
    const struct oriel_trace_mark *mark = record->mark;
    bool is_pause = mark->kind == ORIEL_MARK_PAUSE;
    struct oriel_html_span span = {.begin_ns =
                                       record->begin_ns > 0 ? (uint64_t)record->begin_ns : 0,
                                   .duration_ns = mark->duration_ns,
                                   .waiting_ns = mark->waiting_ns,
                                   .operations = mark->operations,
                                   .bytes = mark->bytes,
                                   .window = is_pause ? 0 : mark_name_index(marks, record->name),
                                   .rank = marks->traces->ranks[record->rank].world_rank,
                                   .target = -1,
                                   .cause_rank = -1};
    oriel_html_spans_add(is_pause ? &marks->pauses : &marks->regions, &span);
    if (!is_pause)
        return true;
    marks->starts = oriel_alloc_checked(
        reallocarray(marks->starts, marks->starts_count + 1, sizeof *marks->starts));
    marks->starts[marks->starts_count++] = (struct html_pause){span.rank, span.begin_ns};
    return true;
}

struct oriel_html_marks *oriel_html_marks_new(const struct oriel_traces *traces)
{
    struct oriel_html_marks *marks = oriel_alloc(sizeof *marks);
    marks->traces = traces;
    marks->names_count = 1;
    oriel_html_spans_init(&marks->regions, ORIEL_HTML_MARKS);
    oriel_html_spans_init(&marks->pauses, ORIEL_HTML_MARKS);
    oriel_traces_marks_each(traces, mark_add, marks);
    return marks;
}

bool oriel_html_marks_pause_passed(struct oriel_html_marks *marks, int32_t rank, uint64_t at_ns)
{
    bool passed = false;
    while (marks->next < marks->starts_count && marks->starts[marks->next].rank < rank)
        marks->next++;
    for (; marks->next < marks->starts_count && marks->starts[marks->next].rank == rank &&
           marks->starts[marks->next].begin_ns <= at_ns;
         marks->next++)
        passed = true;
    return passed;
}

void oriel_html_marks_json(struct oriel_html_marks *marks, const struct oriel_html_sites *sites,
                           json_t *out)
{
    json_t *names = oriel_json_checked(json_array());
    for (uint32_t i = 0; i < marks->names_count; i++)
        oriel_json_append(names, json_string(oriel_region_title(i == 0 ? "" : marks->names[i])));
    oriel_json_set(out, "region_names", names);
    oriel_json_set(out, "regions", oriel_html_spans_json(&marks->regions, sites));
    oriel_json_set(out, "pauses", oriel_html_spans_json(&marks->pauses, sites));
}

void oriel_html_marks_free(struct oriel_html_marks *marks)
{
    oriel_html_spans_free(&marks->regions);
    oriel_html_spans_free(&marks->pauses);
    free(marks->starts);
    free(marks);
}
