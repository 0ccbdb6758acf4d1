/* Properties of MPICH. It has about 2,048 context ids, and aborts the job if a window finds
 * none. */
#include "host/properties.h"

const struct oriel_host_properties oriel_host_properties = {
    .name = "mpich", .node_ranks = {"MPI_LOCALNRANKS"}, .scarce_windows = 1000};
