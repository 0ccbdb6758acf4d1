/* Arithmetic on sets of runs at equal distances: what two have in common, one within the other, two that are one, one without the
 * other.  All of it is exact, and takes a time that does not depend on how many runs there are.  record_tree.c and history.c call. */
#ifndef ORIEL_CHECK_ACCESS_STRIDED_SETS_H
#define ORIEL_CHECK_ACCESS_STRIDED_SETS_H

#include "check/access/history.h"

enum { ORIEL_RUNS_PIECES = 4 };

/* As few runs as can be, from low to high: what the others expect of their arguments.  False when no byte is in it. */
bool oriel_byte_runs_tidy(const struct oriel_access_extent *extent,
                          struct oriel_access_extent *out);

static inline int64_t oriel_byte_runs_end(const struct oriel_access_extent *runs)
{
    return runs->offset + (int64_t)(runs->count - 1) * runs->stride_bytes +
           (int64_t)runs->len_bytes;
}

/* The first bytes that are in both, as far as they go on without a hole; false when there are none. */
bool oriel_byte_runs_meet(const struct oriel_access_extent *a, const struct oriel_access_extent *b,
                          int64_t *offset, uint64_t *len_bytes);

/* Whether each byte of inner is one of outer.  May say no of a few shapes where it is so. */
bool oriel_byte_runs_contain(const struct oriel_access_extent *outer,
                             const struct oriel_access_extent *inner);

/* All bytes of both as one set; false when they are none of this form. */
bool oriel_byte_runs_join(const struct oriel_access_extent *a, const struct oriel_access_extent *b,
                          struct oriel_access_extent *out);

/* The bytes of from that are not in hole, a single run, as at most ORIEL_RUNS_PIECES sets; how many. */
size_t oriel_byte_runs_subtract(const struct oriel_access_extent *from,
                                const struct oriel_access_extent *hole,
                                struct oriel_access_extent pieces[ORIEL_RUNS_PIECES]);

#endif
