/* Properties of Open MPI. Its window handles are ordinary memory. */
#include "host/properties.h"

const struct oriel_host_properties oriel_host_properties = {
    .name = "openmpi", .node_ranks = {"OMPI_COMM_WORLD_LOCAL_SIZE"}};
