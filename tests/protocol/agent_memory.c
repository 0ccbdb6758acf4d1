/* The origin's and the target's side of requests to agents. Every failure ends the process. */
#include "agent_memory.h"

#include <string.h>
#include <sys/mman.h>

char *agent_memory;

/* Every process serves; its window has the address of its memory. */
void agent_memory_open(struct oriel_window *window)
{
    agent_memory = mmap(NULL, (size_t)window->n * SHARE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    team_expect(agent_memory != MAP_FAILED);
    team_expect(oriel_agent_open() == ORIEL_OK);
    window_memory(window, window->rank)[0] = (uint64_t)(uintptr_t)agent_memory;
    team_barrier();
}

/* This rank's share of a target's memory. */
struct oriel_remote agent_memory_share(const struct oriel_window *window, int32_t target)
{
    const struct oriel_peer *peer = window->group->peers[target];
    return (struct oriel_remote){
        .address = window_memory(window, target)[0] + (uint64_t)window->rank * SHARE_BYTES,
        .pid = peer->identity.pid,
        .agent = oriel_agent_of(peer),
    };
}

void agent_memory_fill(char *bytes, uint64_t len_bytes)
{
    uint64_t first = team_random();
    for (uint64_t i = 0; i < len_bytes; i++)
        bytes[i] = (char)(first + i * 7 + i / 251);
}

/* Most are short; some need many requests. */
static uint64_t some_length(void)
{
    switch (team_random() % 8) {
    case 0: return 1 + team_random() % SHARE_BYTES;
    case 1: return ORIEL_AGENT_DATA_BYTES - 1 + team_random() % 3;
    default: return 1 + team_random() % 64;
    }
}

void agent_memory_write_and_read(const struct oriel_remote *there)
{
    static char out[SHARE_BYTES];
    static char in[SHARE_BYTES];
    uint64_t len_bytes = some_length();
    agent_memory_fill(out, len_bytes);
    memset(in, 0, len_bytes);
    team_expect(oriel_transport_agent.write(there, out, len_bytes) == ORIEL_OK);
    team_expect(oriel_transport_agent.read(there, in, len_bytes) == ORIEL_OK);
    team_expect(memcmp(in, out, len_bytes) == 0);
}
