/* This process's request area (transport/polled/polled.h), and how to find a peer's area. The first
 * window memory that peers reach by copies opens it. */
#ifndef ORIEL_MEMORY_POLLED_AREA_H
#define ORIEL_MEMORY_POLLED_AREA_H

#include "memory/peer.h"
#include "transport/polled/polled.h"

/* Makes this process's threads serve requests while they wait; no effect if they already do.
 * Returns false on failure: peers then copy. */
bool oriel_polled_open(void);

/* Stops serving requests. The area can be opened again. */
void oriel_polled_close(void);

/* A peer's area, or NULL if it has none. */
static inline struct oriel_polled *oriel_polled_of(const struct oriel_peer *peer)
{
    const struct oriel_file_header *header = (const struct oriel_file_header *)peer->base;
    uint64_t offset = atomic_load_explicit(&header->polled_offset, memory_order_acquire);
    return offset != 0 ? (struct oriel_polled *)(peer->base + offset) : NULL;
}

#endif
