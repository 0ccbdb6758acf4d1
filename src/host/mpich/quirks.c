/* What is so on MPICH alone.  Called by host/ only. */
#include "host/host.h"

#include <stdlib.h>
#include <string.h>

const char *oriel_host_name(void)
{
    return "mpich";
}

/* MPICH has about 2,048 context ids and aborts the job when a window finds none. */
bool oriel_host_windows_scarce(uint32_t live_windows)
{
    return live_windows >= 1000;
}

bool oriel_host_is_alone(void)
{
    const char *here = getenv("MPI_LOCALNRANKS"); /* as its launcher says; others say nothing */
    return here != NULL && strcmp(here, "1") == 0;
}
