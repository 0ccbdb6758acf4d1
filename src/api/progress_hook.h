/* The host's functions for where the program waits.  A file of each host's folder has them, completion.c calls. */
#ifndef ORIEL_API_PROGRESS_HOOK_H
#define ORIEL_API_PROGRESS_HOOK_H

#include "host/host.h"

/* The table of oriel_host, in which those that complete requests serve other machines while they wait, where a host needs that.
 * To be called where the program has called, never where something of Oriel's is held. */
const struct oriel_host_calls *oriel_host_waits(void);

#endif
