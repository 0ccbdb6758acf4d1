/* Reads and frees a datatype's contents. Handles in the contents are new and must be freed, unless
 * they are predefined (MPI-4.1, 5.1.13). */
#include "host/contents.h"

#include "host/host.h"

#include <stdlib.h>

bool oriel_contents_is_leaf(int combiner)
{
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

enum oriel_status oriel_contents_open(MPI_Datatype datatype, struct oriel_contents *out)
{
    *out = (struct oriel_contents){0};
    enum oriel_status status = oriel_contents_combiner(datatype, &out->combiner);
    if (status != ORIEL_OK || out->combiner == MPI_COMBINER_NAMED)
        return status;
    status = oriel_contents_query(datatype, out);
    if (status != ORIEL_OK)
        oriel_contents_close(out);
    return status;
}

void oriel_contents_close(struct oriel_contents *contents)
{
    int combiner;
    for (int64_t i = 0; contents->types != NULL && i < contents->type_count; i++)
        if (oriel_contents_combiner(contents->types[i], &combiner) == ORIEL_OK &&
            !oriel_contents_is_leaf(combiner))
            oriel_host()->Type_free(&contents->types[i]);
    free(contents->integers);
    free(contents->wide);
    free(contents->types);
}
