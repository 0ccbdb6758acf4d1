/* The probe of the network (memory/probe.h says what probes are): UCX's transports and devices that windows over several machines
 * would use, or why there are none. */
#ifndef ORIEL_MEMORY_NET_PROBE_H
#define ORIEL_MEMORY_NET_PROBE_H

#include "memory/probe.h"

void oriel_probe_network(struct oriel_probe *out);

#endif
