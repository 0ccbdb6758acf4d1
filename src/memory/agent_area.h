/* This process's agent and where those of its peers are: the thread that copies for others where the kernel lets them not
 * (transport/agent/agent.h).  Creation opens, finalisation closes, rma/ looks up. */
#ifndef ORIEL_MEMORY_AGENT_AREA_H
#define ORIEL_MEMORY_AGENT_AREA_H

#include "memory/peer.h"
#include "memory/probe.h"
#include "transport/agent/agent.h"

/* Whether this process's agent runs. */
bool oriel_agent_is_open(void);

/* Starts it, if it does not run, in the memory file, which has been started.  ORIEL_E_NO_MEM or ORIEL_E_OTHER with the reason
 * when that cannot be. */
enum oriel_status oriel_agent_open(void);

/* Serves what was asked and ends the thread; it can be opened again. */
void oriel_agent_close(void);

/* Starts it, has a child process ask it for one page, and ends it. */
void oriel_probe_agent(struct oriel_probe *out);

/* A peer's agent, once creation has agreed that it runs. */
static inline struct oriel_agent *oriel_agent_of(const struct oriel_peer *peer)
{
    const struct oriel_file_header *header = (const struct oriel_file_header *)peer->base;
    return (struct oriel_agent *)(peer->base + atomic_load_explicit(&header->agent_offset,
                                                                    memory_order_relaxed));
}

#endif
