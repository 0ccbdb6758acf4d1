/* The call sites of a job: the calls of one kind from one line, summed over the ranks, their
 * threads and windows. Addresses may become lines at the end: a loop that the compiler unrolled has
 * several for one. */
#ifndef ORIEL_CLI_SITE_SUMS_H
#define ORIEL_CLI_SITE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/code_address.h"
#include "base/hash_table.h"
#include "observe/trace/trace_format.h"

/* Place 0: call sites for which there was no room, or that are unknown; its fields are empty. */
enum { ORIEL_PLACE_OTHERS = 0 };
#define ORIEL_WINDOWS_SEVERAL UINT32_MAX

struct oriel_site_sum {
    uint32_t place;
    uint8_t kind;    /* enum oriel_trace_kind, one that exists */
    uint32_t window; /* index, or ORIEL_WINDOWS_SEVERAL */
    uint64_t count, bytes, time_ns, waiting_ns, waited, longest_ns;
    int32_t longest_rank; /* whose call waited longest_ns */
};

struct oriel_site_sums {
    struct oriel_code_address *places;
    size_t places_count;
    uint32_t (*of_kind)[ORIEL_TRACE_KINDS]; /* by place: index in list, plus 1 */
    struct oriel_hash_table known;          /* from a digest of a place to its index, plus 1 */
    struct oriel_site_sum *list;
    size_t count;
};

void oriel_site_sums_open(struct oriel_site_sums *sums);
void oriel_site_sums_close(struct oriel_site_sums *sums);

/* The index of the place; equal places have one. Removes control characters from its texts. */
uint32_t oriel_site_sums_place(struct oriel_site_sums *sums,
                               const struct oriel_code_address *place);

/* Adds calls to the row of their place and kind. */
void oriel_site_sums_add(struct oriel_site_sums *sums, const struct oriel_site_sum *more);

/* When the lines of all places are known as far as possible: joins rows of one line and kind, and
 * sorts the list, the most time first. Indices of places stay valid. */
void oriel_site_sums_finish(struct oriel_site_sums *sums);

/* The time of all calls. */
uint64_t oriel_site_sums_time_ns(const struct oriel_site_sums *sums);

/* "main at app.c:40", or that these are others. */
void oriel_site_sums_text(const struct oriel_site_sums *sums, const struct oriel_site_sum *sum,
                          char out[ORIEL_CODE_ADDRESS_TEXT]);

#endif
