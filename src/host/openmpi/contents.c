/* The contents of a datatype on a host without large counts.  host/contents.c calls. */
#include "host/contents.h"

#include "host/host.h"

#include <stdlib.h>

enum oriel_status oriel_contents_combiner(MPI_Datatype datatype, int *combiner)
{
    int integers, addresses, types;
    if (oriel_host()->Type_get_envelope(datatype, &integers, &addresses, &types, combiner) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the datatype is not valid");
    return ORIEL_OK;
}

/* The integers, then the addresses: for every constructor the order of its arguments. */
enum oriel_status oriel_contents_query(MPI_Datatype datatype, struct oriel_contents *out)
{
    int integer_count = 0, address_count = 0, type_count = 0;
    oriel_host()->Type_get_envelope(datatype, &integer_count, &address_count, &type_count, &out->combiner);
    int *integers = calloc((size_t)(unsigned)integer_count + 1, sizeof *integers);
    MPI_Aint *addresses = calloc((size_t)(unsigned)address_count + 1, sizeof *addresses);
    out->numbers = calloc((size_t)(unsigned)integer_count + (unsigned)address_count + 1, sizeof *out->numbers);
    out->types = calloc((size_t)(unsigned)type_count + 1, sizeof(MPI_Datatype));
    enum oriel_status status = ORIEL_OK;
    if (integers == NULL || addresses == NULL || out->numbers == NULL || out->types == NULL)
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a datatype's contents");
    else if (oriel_host()->Type_get_contents(datatype, integer_count, address_count, type_count, integers, addresses,
                                             out->types) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_TYPE, "the host cannot tell the datatype's contents");
    else
        out->type_count = type_count;
    for (int i = 0; status == ORIEL_OK && i < integer_count + address_count; i++)
        out->numbers[i] = i < integer_count ? integers[i] : addresses[i - integer_count];
    free(integers);
    free(addresses);
    return status;
}
