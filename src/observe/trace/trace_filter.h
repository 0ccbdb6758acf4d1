/* ORIEL_TRACE_FILTER: which calls are traced.
 *
 *     SPEC = TERM [";" TERM]...   TERM = KEY "=" VALUE ["," VALUE]...
 *
 * A call is traced if it has one of the values of each key that SPEC has. Keys: window (names, with
 * * and ?, or numbers of the rank's windows, counted from 1), call (names, with * and ?) and rank
 * (numbers and ranges in MPI_COMM_WORLD). A key that occurs twice has the values of both terms. The
 * library filters, and the command checks its option. This header does not need mpi.h. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_FILTER_H
#define ORIEL_OBSERVE_TRACE_TRACE_FILTER_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORIEL_TRACE_FILTER_PROBLEM = 400 };

/* A set of kinds of calls: a bit for each enum oriel_trace_kind. */
#define ORIEL_TRACE_KIND_BIT(kind)                                                                 \
    (UINT64_C(1) << ((kind) < ORIEL_TRACE_CALL ? (kind) : 32 + (kind)-ORIEL_TRACE_CALL))

struct oriel_trace_filter {
    const char *spec; /* NULL: no filter. It must outlive the filter. */
    uint64_t kinds;   /* of the calls that it selects */
    bool has_windows, has_ranks;
};

/* Checks SPEC, of which NULL and "" select everything. Returns false with the mistake in
 * problem, without a full stop. */
bool oriel_trace_filter_read(const char *spec, struct oriel_trace_filter *out,
                             char problem[ORIEL_TRACE_FILTER_PROBLEM]);

bool oriel_trace_filter_has_rank(const struct oriel_trace_filter *filter, int32_t world_rank);

/* number: from 1. */
bool oriel_trace_filter_has_window(const struct oriel_trace_filter *filter, const char *name,
                                   uint32_t number);

#endif
