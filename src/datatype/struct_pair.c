/* Recognises pairs by the arguments of their constructor (struct_pair.h). */
#include "datatype/struct_pair.h"

#include "datatype/flatten.h"
#include "host/contents.h"

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
