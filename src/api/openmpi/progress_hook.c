/* Waiting in Open MPI: its ranks yield the processor, so the agent's thread serves other nodes
 * meanwhile. */
#include "api/progress_hook.h"

const struct oriel_host_calls *oriel_host_waits(void)
{
    return oriel_host();
}
