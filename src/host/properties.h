/* What differs between hosts and no standard function reports. src/host/<host>/properties.c has the
 * values. Only this folder includes this header. */
#ifndef ORIEL_HOST_PROPERTIES_H
#define ORIEL_HOST_PROPERTIES_H

#include "host/host.h"

struct oriel_host_properties {
    const char *name; /* as in `oriel run --host` */
    /* variables in which its launcher passes the number of ranks on this node */
    const char *node_ranks[2];
    /* From this number of live windows on, handles may run out; 0: never. */
    uint32_t scarce_windows;
};

extern const struct oriel_host_properties oriel_host_properties;

#endif
