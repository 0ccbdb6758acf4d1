/* From MPI_Datatype to what Oriel needs of it.  A description is found in two loads like a window, is made once per datatype
 * and goes when the program frees it.  ops/ and api/ call. */
#ifndef ORIEL_OPS_DATATYPE_H
#define ORIEL_OPS_DATATYPE_H

#include "base/recent.h"
#include "base/status.h"
#include "ops/kind.h"

#include <mpi.h>

/* A datatype that is a run of elements of one kind, each extent behind the one before, starting at displacement 0. */
struct oriel_type {
    enum oriel_kind kind;
    bool padded;            /* only the fields of each element move */
    uint64_t elements;      /* in one item of the datatype */
    uint64_t extent_bytes;  /* of one item: elements times the kind's extent */
    int64_t plain_bytes;    /* the same where an item is nothing but its bytes, INT64_MAX for padded ones */
};

/* Fills the table of predefined datatypes, before any lookup. */
void oriel_type_start(void);

/* Forgets every datatype; the host is about to end. */
void oriel_type_stop(void);

/* ORIEL_E_TYPE for MPI_DATATYPE_NULL, ORIEL_E_UNSUPPORTED for a layout with holes. */
enum oriel_status oriel_type_find_slow(MPI_Datatype datatype, const struct oriel_type **out);

static inline uint64_t oriel_type_key(MPI_Datatype datatype)
{
    return (uint64_t)(uintptr_t)datatype;
}

static inline enum oriel_status oriel_type_find(MPI_Datatype datatype, const struct oriel_type **out)
{
    if (oriel_unlikely(!oriel_recent_is_valid() || oriel_recent.type_key != oriel_type_key(datatype)))
        return oriel_type_find_slow(datatype, out);
    *out = oriel_recent.type;
    return ORIEL_OK;
}

/* ORIEL_OPERATOR_NONE for an operator of the user's. */
enum oriel_operator oriel_operator_find(MPI_Op op);

#endif
