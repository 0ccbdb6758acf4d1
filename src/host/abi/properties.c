/* Properties of a host through MPI's standard ABI. It may be MPICH or Open MPI. */
#include "host/properties.h"

const struct oriel_host_properties oriel_host_properties = {
    .name = "abi",
    .node_ranks = {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    .scarce_windows = 1000};
