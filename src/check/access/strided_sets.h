/* Arithmetic on sets of runs at equal distances: intersection, containment, union, difference. The
 * time does not depend on the number of runs. Results are exact unless stated otherwise. */
#ifndef ORIEL_CHECK_ACCESS_STRIDED_SETS_H
#define ORIEL_CHECK_ACCESS_STRIDED_SETS_H

#include "check/access/history.h"

enum { ORIEL_RUNS_PIECES = 4 };

/* Writes the same bytes with as few runs as possible, from low to high. The other functions require
 * this form. Returns false if there are no bytes. */
bool oriel_byte_runs_tidy(const struct oriel_access_extent *extent,
                          struct oriel_access_extent *out);

static inline int64_t oriel_byte_runs_end(const struct oriel_access_extent *runs)
{
    return runs->offset + (int64_t)(runs->count - 1) * runs->stride_bytes +
           (int64_t)runs->len_bytes;
}

/* The first bytes that are in both, up to the first hole. Returns false if there are none. */
bool oriel_byte_runs_meet(const struct oriel_access_extent *a, const struct oriel_access_extent *b,
                          int64_t *offset, uint64_t *len_bytes);

/* Whether each byte of inner is one of outer. Returns false for a few shapes where it is so. */
bool oriel_byte_runs_contain(const struct oriel_access_extent *outer,
                             const struct oriel_access_extent *inner);

/* All bytes of both as one set. Returns false if they do not form one. */
bool oriel_byte_runs_join(const struct oriel_access_extent *a, const struct oriel_access_extent *b,
                          struct oriel_access_extent *out);

/* Writes the bytes of from that are not in hole, a single run, as at most ORIEL_RUNS_PIECES sets.
 * Returns their number. */
size_t oriel_byte_runs_subtract(const struct oriel_access_extent *from,
                                const struct oriel_access_extent *hole,
                                struct oriel_access_extent pieces[ORIEL_RUNS_PIECES]);

#endif
