/* Properties of MPICH. */
#include "host/host.h"

#include <stdlib.h>

const char *oriel_host_name(void)
{
    return "mpich";
}

const struct oriel_host_versions oriel_host_versions = {"MPICH ", 4, 4, "MPICH 4"};

uint32_t oriel_host_node_ranks(void)
{
    const char *ranks = getenv("MPI_LOCALNRANKS");
    return ranks != NULL ? (uint32_t)strtoul(ranks, NULL, 10) : 0;
}

/* MPICH has about 2,048 context ids and aborts the job if a window finds none. */
bool oriel_host_windows_scarce(uint32_t live_windows)
{
    return live_windows >= 1000;
}

/* MPICH has no such hook: api/mpich/progress_hook.c interposes a function that MPICH calls in each
 * turn. */
void oriel_host_progress_register(int (*turn)(void))
{
    (void)turn;
}
