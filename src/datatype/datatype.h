/* Maps an MPI_Datatype to its description. The datatype that a thread used last is found in its
 * cache (base/tls_cache.h), without a call. The description is created once per datatype and freed
 * when the program frees the datatype, or at the stop, unless it is retained. */
#ifndef ORIEL_DATATYPE_DATATYPE_H
#define ORIEL_DATATYPE_DATATYPE_H

#include "base/status.h"
#include "base/tls_cache.h"
#include "datatype/layout.h"

#include <mpi.h>

struct oriel_type {
    enum oriel_kind kind; /* of all elements; ORIEL_KIND_NONE if they differ */
    bool dense;        /* one run of elements that starts at displacement 0 and fills the extent */
    bool predefined;   /* by name or by F90 parameters: one element */
    uint64_t elements; /* in one item of the datatype */
    uint64_t size_bytes;  /* that move, per item */
    int64_t extent_bytes; /* distance between items */
    int64_t plain_bytes;  /* the extent if an item is dense and has no padding, else INT64_MAX */
    struct oriel_node *layout;
    struct oriel_type
        *as_pair; /* the same items as pairs of a COMPOSED kind; NULL: they are none */
    _Atomic uint32_t references; /* the table's and those of oriel_type_retain */
};

/* Fills the table of predefined datatypes, before any lookup. Adds all of them, or none and returns
 * ORIEL_E_NO_MEM. */
enum oriel_status oriel_type_start(void);

/* Frees the descriptions of all datatypes, before the host is finalised. */
void oriel_type_stop(void);

/* Returns ORIEL_E_TYPE for MPI_DATATYPE_NULL and for a datatype that is not committed. */
enum oriel_status oriel_type_find_slow(MPI_Datatype datatype, const struct oriel_type **out);

static inline uint64_t oriel_type_key(MPI_Datatype datatype)
{
    return (uint64_t)(uintptr_t)datatype;
}

static inline enum oriel_status oriel_type_find(MPI_Datatype datatype,
                                                const struct oriel_type **out)
{
    if (oriel_unlikely(!oriel_tls_cache_is_valid() ||
                       oriel_tls_cache.type_key != oriel_type_key(datatype)))
        return oriel_type_find_slow(datatype, out);
    *out = oriel_tls_cache.type;
    return ORIEL_OK;
}

/* A handle of 16-bit reals (parts 1) or complex numbers of them (2): the host's, or one of Oriel's
 * for all of the job. Returns ORIEL_E_TYPE if the host cannot make one. */
enum oriel_status oriel_type_half(int parts, MPI_Datatype *out);
/* Keeps the description after the program frees the datatype, until the release. */
void oriel_type_retain(const struct oriel_type *type);
void oriel_type_release(const struct oriel_type *type);

/* ORIEL_OPERATOR_NONE for a user-defined operator. */
enum oriel_operator oriel_operator_find(MPI_Op op);

#endif
