/* The network probe (memory/probe.h defines probes): UCX's transports and devices that internode
 * windows would use, or why there are none. */
#ifndef ORIEL_MEMORY_NET_PROBE_H
#define ORIEL_MEMORY_NET_PROBE_H

#include "memory/probe.h"

void oriel_probe_network(struct oriel_probe *out);

#endif
