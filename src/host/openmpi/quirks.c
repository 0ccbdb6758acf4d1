/* What is so on Open MPI alone.  Called by host/ only. */
#include "host/host.h"

const char *oriel_host_name(void)
{
    return "openmpi";
}

bool oriel_host_windows_scarce(uint32_t live_windows)
{
    (void)live_windows; /* window handles are ordinary memory */
    return false;
}
