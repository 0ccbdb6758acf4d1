/* The contents of a datatype on a host without large counts. */
#include <mpi.h>

#if MPI_VERSION < 4
#include "host/contents.h"

#include "host/host.h"

#include <stdlib.h>

enum oriel_status oriel_contents_combiner(MPI_Datatype datatype, int *combiner)
{
    int integers, addresses, types;
    if (oriel_host()->Type_get_envelope(datatype, &integers, &addresses, &types, combiner) !=
        MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the datatype is not valid");
    return ORIEL_OK;
}

_Static_assert(sizeof(MPI_Aint) == sizeof(int64_t), "addresses are wide numbers");

/* The integers, then the addresses: that is the argument order of every constructor. */
enum oriel_status oriel_contents_query(MPI_Datatype datatype, struct oriel_contents *out)
{
    int integer_count = 0, address_count = 0, type_count = 0;
    oriel_host()->Type_get_envelope(datatype, &integer_count, &address_count, &type_count,
                                    &out->combiner);
    out->integers = malloc(((size_t)(unsigned)integer_count + 1) * sizeof *out->integers);
    out->wide = malloc(((size_t)(unsigned)address_count + 1) * sizeof *out->wide);
    out->types = calloc((size_t)(unsigned)type_count + 1, sizeof(MPI_Datatype));
    if (out->integers == NULL || out->wide == NULL || out->types == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a datatype's contents");
    if (oriel_host()->Type_get_contents(datatype, integer_count, address_count, type_count,
                                        out->integers, (MPI_Aint *)out->wide,
                                        out->types) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the host does not return the datatype's contents");
    out->integer_count = integer_count;
    out->type_count = type_count;
    return ORIEL_OK;
}
#endif
