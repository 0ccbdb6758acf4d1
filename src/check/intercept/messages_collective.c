/* The collectives with counts of int: the wrappers that messages.def describes. */
#include "check/intercept/messages_collective.h"

void oriel_uses_in(struct oriel_uses *uses, MPI_Comm comm, int root)
{
    const struct oriel_comm *entry = oriel_comm_find(comm);
    if (entry == NULL)
        return;
    uses->rank = entry->rank;
    uses->size = entry->size;
    uses->is_root = entry->rank == root;
}

#define Count                     int
#define Displ                     int
#define ORIEL_ROWS_WITHOUT_COUNTS 1

#define COLLECTIVE(name, parameters, arguments, flow, root, buffers)                               \
    ORIEL_COLLECTIVE(name, name, parameters, arguments, flow, root, buffers)
#define COLLECTIVE_REQUEST(name, parameters, arguments, flow, root, buffers)                       \
    ORIEL_COLLECTIVE_REQUEST(name, name, parameters, arguments, flow, root, buffers)
#include "check/intercept/messages.def"
