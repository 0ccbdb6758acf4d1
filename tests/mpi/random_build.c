/* The host's datatype constructors, one call for each plan, in the form with int or, on hosts of
 * MPI-4, with MPI_Count. A plan's numbers are small enough for both forms. */
#include "random_plan.h"

#if MPI_VERSION >= 4
static void build_wide(const struct random_plan *p, MPI_Datatype *out)
{
    MPI_Datatype old = p->olds[0];
    switch (p->combiner) {
    case MPI_COMBINER_CONTIGUOUS: MPI_Type_contiguous_c(p->lengths[0], old, out); return;
    case MPI_COMBINER_VECTOR: MPI_Type_vector_c(p->parts, p->length, p->stride, old, out); return;
    case MPI_COMBINER_HVECTOR:
        MPI_Type_create_hvector_c(p->parts, p->length, p->stride, old, out);
        return;
    case MPI_COMBINER_INDEXED:
        MPI_Type_indexed_c(p->parts, p->lengths, p->displs, old, out);
        return;
    case MPI_COMBINER_HINDEXED:
        MPI_Type_create_hindexed_c(p->parts, p->lengths, p->displs, old, out);
        return;
    case MPI_COMBINER_INDEXED_BLOCK:
        MPI_Type_create_indexed_block_c(p->parts, p->length, p->displs, old, out);
        return;
    case MPI_COMBINER_HINDEXED_BLOCK:
        MPI_Type_create_hindexed_block_c(p->parts, p->length, p->displs, old, out);
        return;
    case MPI_COMBINER_STRUCT:
        MPI_Type_create_struct_c(p->parts, p->lengths, p->displs, p->olds, out);
        return;
    case MPI_COMBINER_SUBARRAY:
        MPI_Type_create_subarray_c(p->dimensions, p->sizes, p->subsizes, p->starts, p->order, old,
                                   out);
        return;
    case MPI_COMBINER_DARRAY:
        MPI_Type_create_darray_c(p->grid_size, p->grid_rank, p->dimensions, p->sizes,
                                 p->distributions, p->arguments, p->processes, p->order, old, out);
        return;
    case MPI_COMBINER_RESIZED: MPI_Type_create_resized_c(old, p->low, p->extent, out); return;
    default: MPI_Type_dup(old, out);
    }
}
#endif

static void to_ints(int count, const MPI_Count *from, int *to)
{
    for (int i = 0; i < count; i++)
        to[i] = (int)from[i];
}

static void build_narrow(const struct random_plan *p, MPI_Datatype *out)
{
    int length = (int)p->length, lengths[RANDOM_PARTS], displs[RANDOM_PARTS];
    int sizes[RANDOM_DIMENSIONS], subsizes[RANDOM_DIMENSIONS], starts[RANDOM_DIMENSIONS];
    MPI_Aint bytes[RANDOM_PARTS];
    MPI_Datatype old = p->olds[0];
    to_ints(p->parts, p->lengths, lengths);
    to_ints(p->parts, p->displs, displs);
    to_ints(p->dimensions, p->sizes, sizes);
    to_ints(p->dimensions, p->subsizes, subsizes);
    to_ints(p->dimensions, p->starts, starts);
    for (int i = 0; i < p->parts; i++)
        bytes[i] = p->displs[i];
    switch (p->combiner) {
    case MPI_COMBINER_CONTIGUOUS: MPI_Type_contiguous(lengths[0], old, out); return;
    case MPI_COMBINER_VECTOR: MPI_Type_vector(p->parts, length, (int)p->stride, old, out); return;
    case MPI_COMBINER_HVECTOR:
        MPI_Type_create_hvector(p->parts, length, p->stride, old, out);
        return;
    case MPI_COMBINER_INDEXED: MPI_Type_indexed(p->parts, lengths, displs, old, out); return;
    case MPI_COMBINER_HINDEXED:
        MPI_Type_create_hindexed(p->parts, lengths, bytes, old, out);
        return;
    case MPI_COMBINER_INDEXED_BLOCK:
        MPI_Type_create_indexed_block(p->parts, length, displs, old, out);
        return;
    case MPI_COMBINER_HINDEXED_BLOCK:
        MPI_Type_create_hindexed_block(p->parts, length, bytes, old, out);
        return;
    case MPI_COMBINER_STRUCT:
        MPI_Type_create_struct(p->parts, lengths, bytes, p->olds, out);
        return;
    case MPI_COMBINER_SUBARRAY:
        MPI_Type_create_subarray(p->dimensions, sizes, subsizes, starts, p->order, old, out);
        return;
    case MPI_COMBINER_DARRAY:
        MPI_Type_create_darray(p->grid_size, p->grid_rank, p->dimensions, sizes, p->distributions,
                               p->arguments, p->processes, p->order, old, out);
        return;
    case MPI_COMBINER_RESIZED: MPI_Type_create_resized(old, p->low, p->extent, out); return;
    default: MPI_Type_dup(old, out);
    }
}

void random_plan_build(const struct random_plan *plan, struct random *random, MPI_Datatype *out)
{
    bool wide = random_below(random, 3) == 0;
#if MPI_VERSION >= 4
    if (wide) {
        build_wide(plan, out);
        return;
    }
#endif
    (void)wide;
    build_narrow(plan, out);
}

/* Open MPI 4.1 treats a stride of -1 byte as "contiguous". */
bool random_host_strides(MPI_Aint stride_bytes)
{
#ifdef OPEN_MPI
    return stride_bytes != -1;
#else
    (void)stride_bytes;
    return true;
#endif
}
