/* Recognises and makes struct datatypes (struct_types.h). */
#include "datatype/struct_types.h"

#include "datatype/flatten.h"
#include "host/host.h"

/* The displacement of no bytes that marks 16-bit reals: "oriel" in ASCII. */
#define HALF_MARK INT64_C(0x6f7269656c)

static enum oriel_kind pair_of_value(enum oriel_kind value)
{
    switch (value) {
    case ORIEL_KIND_FLOAT: return ORIEL_KIND_FLOAT_INT64;
    case ORIEL_KIND_DOUBLE: return ORIEL_KIND_DOUBLE_INT64;
    case ORIEL_KIND_LONG_DOUBLE: return ORIEL_KIND_LONG_DOUBLE_INT64;
    case ORIEL_KIND_INT16: return ORIEL_KIND_INT16_INT64;
    case ORIEL_KIND_INT32: return ORIEL_KIND_INT32_INT64;
    case ORIEL_KIND_INT64: return ORIEL_KIND_INT64_INT64;
    default: return ORIEL_KIND_NONE;
    }
}

/* numbers: count, lengths, displacements. */
static enum oriel_kind pair_of_struct(const struct oriel_contents *contents)
{
    if (oriel_contents_number(contents, 0) != 2 || oriel_contents_number(contents, 1) != 1 ||
        oriel_contents_number(contents, 2) != 1 || oriel_contents_number(contents, 3) != 0 ||
        oriel_type_predefined(contents->types[1]) != ORIEL_KIND_INT64)
        return ORIEL_KIND_NONE;
    const enum oriel_kind pair = pair_of_value(oriel_type_predefined(contents->types[0]));
    return pair != ORIEL_KIND_NONE &&
                   oriel_contents_number(contents, 4) == (int64_t)oriel_kinds[pair].index_offset
               ? pair
               : ORIEL_KIND_NONE;
}

enum oriel_kind oriel_struct_pair_find(MPI_Datatype datatype)
{
    struct oriel_contents contents;
    enum oriel_kind pair = ORIEL_KIND_NONE;
    if (oriel_contents_open(datatype, &contents) != ORIEL_OK)
        return ORIEL_KIND_NONE;
    if (contents.combiner == MPI_COMBINER_STRUCT)
        pair = pair_of_struct(&contents);
    else if (contents.combiner == MPI_COMBINER_DUP || contents.combiner == MPI_COMBINER_RESIZED)
        pair = oriel_struct_pair_find(contents.types[0]);
    oriel_contents_close(&contents);
    return pair;
}

enum oriel_status oriel_struct_half_create(int parts, MPI_Datatype *out)
{
    const struct oriel_host_calls *host = oriel_host();
    const int lengths[2] = {parts, 0};
    const MPI_Aint displacements[2] = {0, HALF_MARK};
    const MPI_Datatype types[2] = {MPI_INT16_T, MPI_BYTE};
    MPI_Datatype created;
    if (host->Type_create_struct(2, lengths, displacements, types, &created) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the host cannot make a datatype");
    if (host->Type_commit(&created) != MPI_SUCCESS) {
        host->Type_free(&created);
        return oriel_fail(ORIEL_E_TYPE, "the host cannot commit a datatype");
    }
    *out = created;
    return ORIEL_OK;
}

enum oriel_kind oriel_struct_half_of(const struct oriel_contents *contents)
{
    if (contents->combiner != MPI_COMBINER_STRUCT || oriel_contents_number(contents, 0) != 2 ||
        oriel_contents_number(contents, 2) != 0 || oriel_contents_number(contents, 4) != HALF_MARK)
        return ORIEL_KIND_NONE;
    return oriel_contents_number(contents, 1) == 1 ? ORIEL_KIND_HALF : ORIEL_KIND_HALF_COMPLEX;
}

enum oriel_kind oriel_struct_half_find(MPI_Datatype datatype)
{
    struct oriel_contents contents;
    if (oriel_contents_open(datatype, &contents) != ORIEL_OK)
        return ORIEL_KIND_NONE;
    const enum oriel_kind kind = oriel_struct_half_of(&contents);
    oriel_contents_close(&contents);
    return kind;
}
