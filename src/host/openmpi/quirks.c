/* What is so on Open MPI alone.  Called by host/ only. */
#include "host/host.h"

#include <stdlib.h>
#include <string.h>

const char *oriel_host_name(void)
{
    return "openmpi";
}

bool oriel_host_windows_scarce(uint32_t live_windows)
{
    (void)live_windows; /* window handles are ordinary memory */
    return false;
}

bool oriel_host_is_alone(void)
{
    const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"); /* as its launcher says; others say nothing */
    return here != NULL && strcmp(here, "1") == 0;
}
