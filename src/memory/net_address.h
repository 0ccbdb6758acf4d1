/* How processes of other nodes reach this process: its net address. The address is in the memory
 * file, so any process of this node can pass it on. */
#ifndef ORIEL_MEMORY_NET_ADDRESS_H
#define ORIEL_MEMORY_NET_ADDRESS_H

#include "memory/peer.h"
#include "transport/ucx/net.h"

/* In the owner's memory file; written before net_offset. */
struct oriel_net_address_area {
    uint64_t address_bytes;
    char address[ORIEL_NET_ADDRESS_BYTES];
};

/* Starts the net unless it is running. Returns the statuses of oriel_net_start, and
 * ORIEL_E_NO_MEM. */
enum oriel_status oriel_net_address_open(const struct oriel_net_service *service);

void oriel_net_address_close(void);

/* The address of a process of this node, or NULL if it has none. */
const struct oriel_net_address_area *oriel_net_address_of(const char *file_base);

#endif
