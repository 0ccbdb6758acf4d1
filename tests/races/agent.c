/* As remote_accesses.c, for the agent of transport/agent/: its accesses count as those of another
 * process on this node. */
#include "remote_accesses.h"

#include "transport/agent/agent.h"

FOR_OTHERS_IF(true, int, oriel_agent_execute,
              (struct oriel_agent * agent, struct oriel_agent_slot *slot, int fd, uint64_t offset),
              (agent, slot, fd, offset))
