/* What is so on Open MPI alone.  Called by host/ only. */
#include "host/host.h"

#include <stdlib.h>

const char *oriel_host_name(void)
{
    return "openmpi";
}

uint32_t oriel_host_ranks_here(void)
{
    const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    return ranks != NULL ? (uint32_t)strtoul(ranks, NULL, 10) : 0;
}

bool oriel_host_windows_scarce(uint32_t live_windows)
{
    (void)live_windows; /* window handles are ordinary memory */
    return false;
}
