/* Open MPI's functions serve no other nodes: a rank that waits in them yields the processor, so the
 * agent's thread serves. */
#include "api/progress_hook.h"

const struct oriel_host_calls *oriel_host_waits(void)
{
    return oriel_host();
}
