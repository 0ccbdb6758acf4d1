/* Properties of Open MPI. */
#include "host/host.h"

#include <stdatomic.h>
#include <stdlib.h>

const char *oriel_host_name(void)
{
    return "openmpi";
}

const struct oriel_host_versions oriel_host_versions = {"Open MPI v", 4, 4, "Open MPI 4"};

uint32_t oriel_host_node_ranks(void)
{
    const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    return ranks != NULL ? (uint32_t)strtoul(ranks, NULL, 10) : 0;
}

bool oriel_host_windows_scarce(uint32_t live_windows)
{
    (void)live_windows; /* window handles are ordinary memory */
    return false;
}

/* Open MPI calls registered functions in each turn of its progress. */
void oriel_host_progress_register(int (*turn)(void))
{
    static atomic_flag is_done = ATOMIC_FLAG_INIT;
    int (*add)(int (*)(void)) = NULL;
    if (atomic_flag_test_and_set(&is_done))
        return;
    *(void **)&add = oriel_host_symbol("opal_progress_register");
    if (add != NULL)
        (void)add(turn);
}
