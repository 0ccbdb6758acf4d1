/* The contents of a datatype on a host with large counts. There every datatype supports the wide
 * query, and datatypes created with large counts support only that. */
#include <mpi.h>

#if MPI_VERSION >= 4
#include "host/contents.h"

#include "host/host.h"

#include <stdlib.h>

_Static_assert(sizeof(MPI_Aint) == sizeof(int64_t), "addresses are wide numbers");

/* Lengths of the wide query's four arrays. */
struct wide {
    MPI_Count integer_count, address_count, large_count, type_count;
};

typedef __typeof__(PMPI_Type_get_envelope_c) envelope;
typedef __typeof__(PMPI_Type_get_contents_c) contents_fn;

static enum oriel_status envelope_read(MPI_Datatype datatype, struct wide *out, int *combiner)
{
    envelope *query = (envelope *)oriel_host_symbol("PMPI_Type_get_envelope_c");
    *out = (struct wide){0};
    if (query == NULL || query(datatype, &out->integer_count, &out->address_count,
                               &out->large_count, &out->type_count, combiner) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the datatype is not valid");
    return ORIEL_OK;
}

enum oriel_status oriel_contents_combiner(MPI_Datatype datatype, int *combiner)
{
    struct wide wide;
    return envelope_read(datatype, &wide, combiner);
}

/* Number of integers that precede the large counts in argument order. Of a subarray that is ndims,
 * of a darray size, rank and ndims; of other constructors all. */
static MPI_Count leading_integer_count(const struct wide *wide, int combiner)
{
    return combiner == MPI_COMBINER_SUBARRAY ? 1
           : combiner == MPI_COMBINER_DARRAY ? 3
                                             : wide->integer_count;
}

/* All numbers of a datatype created with large counts, in argument order. NULL if there is no
 * memory. */
static int64_t *numbers_join(const struct wide *wide, int combiner, const int *integers,
                             const MPI_Count *large, const int64_t *addresses)
{
    const MPI_Count total = wide->integer_count + wide->large_count + wide->address_count;
    const MPI_Count first = leading_integer_count(wide, combiner);
    int64_t *numbers = malloc((size_t)(total + 1) * sizeof *numbers);
    int64_t *next = numbers;
    for (MPI_Count i = 0; numbers != NULL && i < first; i++)
        *next++ = integers[i];
    for (MPI_Count i = 0; numbers != NULL && i < wide->large_count; i++)
        *next++ = large[i];
    for (MPI_Count i = first; numbers != NULL && i < wide->integer_count; i++)
        *next++ = integers[i];
    for (MPI_Count i = 0; numbers != NULL && i < wide->address_count; i++)
        *next++ = addresses[i];
    return numbers;
}

#if ORIEL_HOST_IS_ABI
/* Through the standard ABI, Open MPI 6.0 returns its native values of these constants. None of them
 * is a value of the ABI. */
static const struct native {
    int64_t value, abi;
} orders[] = {{0, MPI_ORDER_C}, {1, MPI_ORDER_FORTRAN}},
  distributions[] = {{0, MPI_DISTRIBUTE_BLOCK},
                     {1, MPI_DISTRIBUTE_CYCLIC},
                     {2, MPI_DISTRIBUTE_NONE}},
  arguments[] = {{-1, MPI_DISTRIBUTE_DFLT_DARG}};

static void numbers_translate(struct oriel_contents *contents, int64_t first, int64_t count,
                              const struct native *natives, size_t natives_count)
{
    for (int64_t which = first; which < first + count; which++)
        for (size_t i = 0; i < natives_count; i++)
            if (oriel_contents_number(contents, which) == natives[i].value) {
                if (which < contents->integer_count)
                    contents->integers[which] = (int)natives[i].abi;
                else
                    contents->wide[which - contents->integer_count] = natives[i].abi;
                break;
            }
}

static void constants_translate(struct oriel_contents *contents)
{
    const bool is_darray = contents->combiner == MPI_COMBINER_DARRAY;
    if (!is_darray && contents->combiner != MPI_COMBINER_SUBARRAY)
        return;
    const int64_t n = oriel_contents_number(contents, is_darray ? 2 : 0);
    numbers_translate(contents, is_darray ? 3 + 4 * n : 1 + 3 * n, 1, orders, 2);
    if (is_darray) {
        numbers_translate(contents, 3 + n, n, distributions, 3);
        numbers_translate(contents, 3 + 2 * n, n, arguments, 1);
    }
}
#else
static void constants_translate(struct oriel_contents *contents)
{
    (void)contents;
}
#endif

enum oriel_status oriel_contents_query(MPI_Datatype datatype, struct oriel_contents *out)
{
    struct wide wide;
    enum oriel_status status = envelope_read(datatype, &wide, &out->combiner);
    if (status != ORIEL_OK)
        return status;
    out->integers = malloc(((size_t)wide.integer_count + 1) * sizeof *out->integers);
    out->wide = malloc(((size_t)wide.address_count + 1) * sizeof *out->wide);
    out->types = calloc((size_t)wide.type_count + 1, sizeof *out->types);
    MPI_Count *large = malloc(((size_t)wide.large_count + 1) * sizeof *large);
    contents_fn *query = (contents_fn *)oriel_host_symbol("PMPI_Type_get_contents_c");
    if (out->integers == NULL || out->wide == NULL || out->types == NULL || large == NULL ||
        query == NULL)
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a datatype's contents");
    else if (query(datatype, wide.integer_count, wide.address_count, wide.large_count,
                   wide.type_count, out->integers, (MPI_Aint *)out->wide, large,
                   out->types) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_TYPE, "the host does not return the datatype's contents");
    else
        out->type_count = wide.type_count;
    if (status == ORIEL_OK && wide.large_count > 0) {
        int64_t *all = numbers_join(&wide, out->combiner, out->integers, large, out->wide);
        free(out->wide);
        out->wide = all;
        if (all == NULL)
            status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a datatype's contents");
    } else {
        out->integer_count = wide.integer_count;
    }
    free(large);
    if (status == ORIEL_OK)
        constants_translate(out);
    return status;
}
#endif
