/* From MPI_Datatype to what Oriel needs of it.  A description is found in two loads like a window, is made once per datatype
 * and goes when the program frees it.  ops/ and api/ call. */
#ifndef ORIEL_OPS_DATATYPE_H
#define ORIEL_OPS_DATATYPE_H

#include "base/atomic.h"
#include "base/status.h"
#include "ops/kind.h"

#include <mpi.h>
#include <stddef.h>

/* A datatype that is a run of elements of one kind, each extent behind the one before, starting at displacement 0. */
struct oriel_type {
    enum oriel_kind kind;
    bool padded;            /* only the fields of each element move */
    uint64_t elements;      /* in one item of the datatype */
    uint64_t extent_bytes;  /* of one item: elements times the kind's extent */
    uint64_t plain_bytes;   /* the same where an item is nothing but its bytes, UINT64_MAX for padded ones */
};

struct oriel_type_cache {
    uint64_t key;
    uint64_t generation;
    const struct oriel_type *type;
};
extern _Thread_local struct oriel_type_cache oriel_type_cache;
extern _Atomic uint64_t oriel_type_generation;

/* Fills the table of predefined datatypes, before any lookup. */
void oriel_type_start(void);

/* Forgets every datatype; the host is about to end. */
void oriel_type_stop(void);

/* ORIEL_E_TYPE for MPI_DATATYPE_NULL, ORIEL_E_UNSUPPORTED for a layout with holes. */
enum oriel_status oriel_type_find_slow(MPI_Datatype datatype, const struct oriel_type **out);

/* The type if this thread used it last, else NULL. */
static inline const struct oriel_type *oriel_type_recent(MPI_Datatype datatype)
{
    bool recent = oriel_type_cache.key == (uint64_t)(uintptr_t)datatype &&
                  oriel_type_cache.generation == atomic_load_explicit(&oriel_type_generation, memory_order_relaxed);
    return oriel_likely(recent) ? oriel_type_cache.type : NULL;
}

static inline enum oriel_status oriel_type_find(MPI_Datatype datatype, const struct oriel_type **out)
{
    *out = oriel_type_recent(datatype);
    if (oriel_likely(*out != NULL))
        return ORIEL_OK;
    return oriel_type_find_slow(datatype, out);
}

/* ORIEL_OPERATOR_NONE for an operator of the user's. */
enum oriel_operator oriel_operator_find(MPI_Op op);

#endif
