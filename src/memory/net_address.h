/* How processes of other machines reach this one: its net address, which lies in its memory file so that any process of its
 * machine can tell them.  Creation opens, finalisation closes; creation and the agent's service look up. */
#ifndef ORIEL_MEMORY_NET_ADDRESS_H
#define ORIEL_MEMORY_NET_ADDRESS_H

#include "memory/peer.h"
#include "transport/ucx/net.h"

/* In the owner's memory file; written before net_offset is. */
struct oriel_reached {
    uint64_t address_bytes;
    char address[ORIEL_NET_ADDRESS_BYTES];
};

/* Starts the net, if it does not run.  Statuses of oriel_net_start, and ORIEL_E_NO_MEM. */
enum oriel_status oriel_reached_open(const struct oriel_net_service *service);

void oriel_reached_close(void);

/* The address of a process of this machine; NULL where it has none. */
const struct oriel_reached *oriel_reached_of(const char *file_base);

#endif
