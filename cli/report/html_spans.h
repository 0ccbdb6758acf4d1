/* Spans of time of which a page keeps the longest: calls, and epochs.  How many it keeps is bounded.
 * Only page*.c include this. */
#ifndef ORIEL_CLI_REPORT_HTML_SPANS_H
#define ORIEL_CLI_REPORT_HTML_SPANS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct oriel_page_span {
    uint64_t begin_ns, duration_ns, waiting_ns;
    uint64_t operations, bytes; /* 0 operations: a call that is none */
    uint32_t window;            /* of the page */
    int32_t rank, target, cause_rank;
    uint8_t
        kind; /* of a call: enum oriel_trace_kind; of an epoch: its place in oriel_page_epoch_kinds */
    uint8_t path, cause;
};

struct oriel_page_spans {
    size_t most, count;
    uint64_t left_out;
    uint64_t longest_left_out_ns;
    struct oriel_page_span
        *spans; /* the shortest is first: no span is longer than the ones at 2i + 1 and 2i + 2 */
};

void oriel_page_spans_init(struct oriel_page_spans *spans, size_t most);
void oriel_page_spans_add(struct oriel_page_spans *spans, const struct oriel_page_span *span);
/* Columns of equal length, by rank and then by time; no span can be added after this. */
json_t *oriel_page_spans_json(struct oriel_page_spans *spans);
void oriel_page_spans_stop(struct oriel_page_spans *spans);

#endif
