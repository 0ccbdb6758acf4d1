/* This process's area for requests (transport/polled/polled.h) and where those of its peers are.  The first window memory that
 * peers reach by copies opens it, finalisation closes it, rma/ looks up. */
#ifndef ORIEL_MEMORY_POLLED_AREA_H
#define ORIEL_MEMORY_POLLED_AREA_H

#include "memory/peer.h"
#include "transport/polled/polled.h"

/* Has this process's threads serve requests while they wait; nothing where they do already.  False where that cannot be: peers
 * then copy. */
bool oriel_polled_open(void);

/* No thread serves any more; it can be opened again. */
void oriel_polled_close(void);

/* A peer's area; NULL where it has none. */
static inline struct oriel_polled *oriel_polled_of(const struct oriel_peer *peer)
{
    const struct oriel_file_header *header = (const struct oriel_file_header *)peer->base;
    uint64_t offset = atomic_load_explicit(&header->polled_offset, memory_order_acquire);
    return offset != 0 ? (struct oriel_polled *)(peer->base + offset) : NULL;
}

#endif
