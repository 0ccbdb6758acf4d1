/* The output of `oriel top`, as text and as JSON. */
#ifndef ORIEL_CLI_TOP_TOP_H
#define ORIEL_CLI_TOP_TOP_H

#include <jansson.h>

#include "cli/text_style.h"
#include "cli/waits.h"

/* The order of ranks: by rank, or the longest wait or the highest rate first. */
enum oriel_top_order {
    ORIEL_TOP_BY_RANK,
    ORIEL_TOP_BY_WAIT,
    ORIEL_TOP_BY_OPERATIONS,
    ORIEL_TOP_BY_BYTES,
    ORIEL_TOP_ORDERS
};
extern const char *const oriel_top_orders[ORIEL_TOP_ORDERS]; /* "rank", "wait", ... */

/* A window of a job whose operations are counted. */
struct oriel_top_window {
    uint64_t window_id;
    const char *name; /* or "" */
    uint32_t flavour;
    size_t ranks; /* on this node */
    double operations_rate, bytes_rate;
};

/* Lists the windows that exist, the busiest first. Returns their number; the caller frees the list.
 * It is valid until the processes are read again. */
size_t oriel_top_windows(const struct oriel_waits *waits, struct oriel_top_window **out);

/* Prints one job: its title, its deadlocks, its busiest windows, and each rank. */
void oriel_top_print(const struct oriel_waits *waits, enum oriel_top_order order,
                     const struct oriel_text_style *style, FILE *out);

/* Prints the job's title without a newline. */
void oriel_top_title(const struct oriel_waits *waits, FILE *out);

json_t *oriel_top_json(const struct oriel_waits *waits);

#endif
