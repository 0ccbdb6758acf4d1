/* The host's functions that complete requests, in a form that also serves other nodes while they
 * wait. */
#ifndef ORIEL_API_PROGRESS_HOOK_H
#define ORIEL_API_PROGRESS_HOOK_H

#include "host/host.h"

/* The table of oriel_host. Where a host needs it, the functions in it that complete requests serve
 * other nodes while they wait. Call it only in the program's own calls, never with a lock of Oriel
 * held. */
const struct oriel_host_calls *oriel_host_waits(void);

#endif
