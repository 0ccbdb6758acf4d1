/* This process's agent, and how to find a peer's agent. An agent is a thread that copies for other
 * processes where the kernel does not let them copy (transport/agent/agent.h). */
#ifndef ORIEL_MEMORY_AGENT_AREA_H
#define ORIEL_MEMORY_AGENT_AREA_H

#include "memory/peer.h"
#include "memory/probe.h"
#include "transport/agent/agent.h"

/* Whether this process's agent is running. */
bool oriel_agent_is_open(void);

/* Starts the agent unless it is running. The memory file must have been started. Returns
 * ORIEL_E_NO_MEM or ORIEL_E_OTHER with the reason on failure. */
enum oriel_status oriel_agent_open(void);

/* Before peers access memory of a GPU through the agent: it gets the process's descriptors. */
void oriel_agent_serve_devices(void);

/* Serves the outstanding requests, then ends the thread. The agent can be opened again. */
void oriel_agent_close(void);

/* Starts the agent, has a child process request one page from it, and stops it. */
void oriel_probe_agent(struct oriel_probe *out);

/* Returns a peer's agent. Valid only after window creation has agreed that the agent runs. */
static inline struct oriel_agent *oriel_agent_of(const struct oriel_peer *peer)
{
    const struct oriel_file_header *header = (const struct oriel_file_header *)peer->base;
    return (struct oriel_agent *)(peer->base + atomic_load_explicit(&header->agent_offset,
                                                                    memory_order_relaxed));
}

/* A peer's agent if it runs, else NULL: also where no window has agreed on agents. */
static inline struct oriel_agent *oriel_agent_find(const struct oriel_peer *peer)
{
    struct oriel_agent *agent = oriel_agent_of(peer);
    return (char *)agent != peer->base && oriel_load_acquire(&agent->state) == ORIEL_AGENT_RUNNING
               ? agent
               : NULL;
}

#endif
