/* The longest time spans of a page, calls or epochs, up to a fixed number. */
#ifndef ORIEL_CLI_REPORT_HTML_SPANS_H
#define ORIEL_CLI_REPORT_HTML_SPANS_H

#include "cli/report/html_parts.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct oriel_html_span {
    uint64_t begin_ns, duration_ns, waiting_ns;
    uint64_t operations, bytes; /* 0 for a call that is not an operation */
    uint32_t window;            /* page window */
    uint32_t place;             /* of its call site, in the run; 0: unknown, or an epoch */
    int32_t rank, target, cause_rank;
    /* For a call, enum oriel_trace_kind; for an epoch, its index in oriel_html_epoch_kinds. */
    uint8_t kind;
    uint8_t path, cause;
};

struct oriel_html_spans {
    size_t most, count;
    uint64_t left_out;
    uint64_t longest_left_out_ns;
    /* A heap with the shortest first: no span is longer than those at 2i + 1 and 2i + 2. */
    struct oriel_html_span *spans;
};

void oriel_html_spans_init(struct oriel_html_spans *spans, size_t most);
void oriel_html_spans_add(struct oriel_html_spans *spans, const struct oriel_html_span *span);
/* Writes columns of equal length, sorted by rank and time. No span can be added after this. */
json_t *oriel_html_spans_json(struct oriel_html_spans *spans, const struct oriel_html_sites *sites);
void oriel_html_spans_free(struct oriel_html_spans *spans);

#endif
