/* The longest time spans of a page, calls or epochs, up to a fixed number. */
#ifndef ORIEL_CLI_REPORT_HTML_SPANS_H
#define ORIEL_CLI_REPORT_HTML_SPANS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct oriel_page_span {
    uint64_t begin_ns, duration_ns, waiting_ns;
    uint64_t operations, bytes; /* 0 for a call that is not an operation */
    uint32_t window;            /* page window */
    int32_t rank, target, cause_rank;
    uint8_t
        /* For a call, enum oriel_trace_kind; for an epoch, its index in oriel_page_epoch_kinds. */
        kind;
    uint8_t path, cause;
};

struct oriel_page_spans {
    size_t most, count;
    uint64_t left_out;
    uint64_t longest_left_out_ns;
    struct oriel_page_span
        /* A heap with the shortest first: no span is longer than those at 2i + 1 and 2i + 2. */
        *spans;
};

void oriel_page_spans_init(struct oriel_page_spans *spans, size_t most);
void oriel_page_spans_add(struct oriel_page_spans *spans, const struct oriel_page_span *span);
/* Writes columns of equal length, sorted by rank and time. No span can be added after this. */
json_t *oriel_page_spans_json(struct oriel_page_spans *spans);
void oriel_page_spans_stop(struct oriel_page_spans *spans);

#endif
