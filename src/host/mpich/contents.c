/* The contents of a datatype on a host with large counts, where every datatype answers the wide query and those made with
 * large counts answer no other.  host/contents.c calls. */
#include "host/contents.h"

#include "host/host.h"

#include <stdlib.h>

/* The wide query's four arrays. */
struct wide {
    MPI_Count integer_count, address_count, large_count, type_count;
    int *integers;
    MPI_Aint *addresses;
    MPI_Count *large;
};

typedef __typeof__(PMPI_Type_get_envelope_c) envelope;
typedef __typeof__(PMPI_Type_get_contents_c) contents;

static enum oriel_status open_envelope(MPI_Datatype datatype, struct wide *out, int *combiner)
{
    envelope *query = (envelope *)oriel_host_symbol("PMPI_Type_get_envelope_c");
    *out = (struct wide){0};
    if (query == NULL || query(datatype, &out->integer_count, &out->address_count, &out->large_count, &out->type_count,
                               combiner) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the datatype is not valid");
    return ORIEL_OK;
}

enum oriel_status oriel_contents_combiner(MPI_Datatype datatype, int *combiner)
{
    struct wide wide;
    return open_envelope(datatype, &wide, combiner);
}

/* How many integers stand before the large counts: all but the order of a subarray, three of a darray. */
static MPI_Count leading(const struct wide *wide, int combiner)
{
    if (wide->large_count == 0)
        return wide->integer_count;
    return combiner == MPI_COMBINER_SUBARRAY ? 1 : combiner == MPI_COMBINER_DARRAY ? 3 : wide->integer_count;
}

static void join(const struct wide *wide, int combiner, int64_t *numbers)
{
    MPI_Count used = 0;
    MPI_Count first = leading(wide, combiner);
    for (MPI_Count i = 0; i < first; i++)
        numbers[used++] = wide->integers[i];
    for (MPI_Count i = 0; i < wide->large_count; i++)
        numbers[used++] = wide->large[i];
    for (MPI_Count i = first; i < wide->integer_count; i++)
        numbers[used++] = wide->integers[i];
    for (MPI_Count i = 0; i < wide->address_count; i++)
        numbers[used++] = wide->addresses[i];
}

enum oriel_status oriel_contents_query(MPI_Datatype datatype, struct oriel_contents *out)
{
    struct wide wide;
    enum oriel_status status = open_envelope(datatype, &wide, &out->combiner);
    if (status != ORIEL_OK)
        return status;
    size_t total = (size_t)(wide.integer_count + wide.address_count + wide.large_count);
    wide.integers = calloc((size_t)wide.integer_count + 1, sizeof *wide.integers);
    wide.addresses = calloc((size_t)wide.address_count + 1, sizeof *wide.addresses);
    wide.large = calloc((size_t)wide.large_count + 1, sizeof *wide.large);
    out->numbers = calloc(total + 1, sizeof *out->numbers);
    out->types = calloc((size_t)wide.type_count + 1, sizeof *out->types);
    contents *query = (contents *)oriel_host_symbol("PMPI_Type_get_contents_c");
    if (wide.integers == NULL || wide.addresses == NULL || wide.large == NULL || out->numbers == NULL || out->types == NULL)
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a datatype's contents");
    else if (query(datatype, wide.integer_count, wide.address_count, wide.large_count, wide.type_count, wide.integers,
                   wide.addresses, wide.large, out->types) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_TYPE, "the host cannot tell the datatype's contents");
    else
        out->type_count = wide.type_count;
    if (status == ORIEL_OK)
        join(&wide, out->combiner, out->numbers);
    free(wide.integers);
    free(wide.addresses);
    free(wide.large);
    return status;
}
