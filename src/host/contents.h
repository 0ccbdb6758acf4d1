/* The constructor arguments of a datatype, in one form for all hosts and for both widths of
 * counts. */
#ifndef ORIEL_HOST_CONTENTS_H
#define ORIEL_HOST_CONTENTS_H

#include "base/status.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* The constructor's counts, block lengths and displacements in argument order: the first
 * integer_count are in integers, the others in wide. There may be very many, so they stay in the
 * arrays that the host filled. For subarray: ndims, sizes, subsizes, starts, order. For darray:
 * size, rank, ndims, gsizes, distribs, dargs, psizes, order. For a parameterised real or complex:
 * precision and range, in digits. */
struct oriel_contents {
    int combiner;
    int *integers;
    int64_t integer_count;
    int64_t *wide;
    MPI_Datatype *types;
    int64_t type_count;
};

static inline int64_t oriel_contents_number(const struct oriel_contents *contents, int64_t which)
{
    return which < contents->integer_count ? contents->integers[which]
                                           : contents->wide[which - contents->integer_count];
}

/* Returns ORIEL_E_TYPE if the host does not know the datatype. A named type has no contents. */
enum oriel_status oriel_contents_open(MPI_Datatype datatype, struct oriel_contents *out);

/* Frees the arrays and the handles that the host returned. */
void oriel_contents_close(struct oriel_contents *contents);

/* True if a handle of this combiner is predefined: it has no component types and must not be
 * freed. */
bool oriel_contents_is_leaf(int combiner);

/* The host's own queries (contents_large.c or contents_small.c): only the combiner, and the
 * contents of a datatype that is not named. */
enum oriel_status oriel_contents_combiner(MPI_Datatype datatype, int *combiner);
enum oriel_status oriel_contents_query(MPI_Datatype datatype, struct oriel_contents *out);

#endif
