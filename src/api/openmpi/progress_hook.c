/* Waiting in Open MPI: its ranks leave the processor to others, so the agent's thread serves other machines meanwhile.
 * completion.c calls. */
#include "api/progress_hook.h"

const struct oriel_host_calls *oriel_host_waits(void)
{
    return oriel_host();
}
