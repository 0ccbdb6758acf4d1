/* Where an operation's bytes are, and which transport moves them.  put_get.c and accumulate.c call. */
#ifndef ORIEL_OPS_REMOTE_H
#define ORIEL_OPS_REMOTE_H

#include "memory/agent.h"
#include "transport/transport.h"
#include "window/window.h"

struct oriel_way {
    const struct oriel_transport *by;
    struct oriel_remote there;
    bool cpu_reaches; /* from every origin, the target included: atomics are its instructions where it has them */
};

/* The part of a target's window that every origin's CPU reaches, the target's own included, as offsets: a range that is the
 * same for all.  base is where this process has offset 0. */
struct oriel_direct {
    uint64_t low;
    uint64_t len_bytes;
    char *base;
};

static inline struct oriel_direct oriel_remote_direct(const struct oriel_window *window, int32_t target)
{
    const struct oriel_target *there = &window->targets[target];
    const struct oriel_peer *peer = window->group->peers[target];
    if (there->mechanism == ORIEL_BY_ADDRESS) /* offsets are addresses, and the part is the target's memory file */
        return (struct oriel_direct){peer->owner_address, peer->reserve_bytes,
                                     oriel_at(peer->base, -(int64_t)peer->owner_address)};
    return (struct oriel_direct){there->direct_low, there->direct_bytes, oriel_window_direct(window, target, 0)};
}

/* The way to the bytes from low_bytes to high_bytes around a place in a target's window.  Own memory is loaded and stored
 * whatever its mechanism says to others. */
static inline struct oriel_way oriel_remote_find(const struct oriel_window *window, int32_t target, uint64_t offset_bytes,
                                                 int64_t low_bytes, int64_t high_bytes)
{
    const struct oriel_target *there = &window->targets[target];
    if (there->mechanism == ORIEL_BY_ARENA)
        return (struct oriel_way){&oriel_transport_shared, {.direct = oriel_window_direct(window, target, offset_bytes)},
                                  true};
    const struct oriel_direct direct = oriel_remote_direct(window, target);
    const struct oriel_peer *peer = window->group->peers[target];
    struct oriel_remote remote = {.address = there->address + offset_bytes, .pid = peer->identity.pid};
    uint64_t inside = offset_bytes + (uint64_t)low_bytes - direct.low;
    uint64_t len_bytes = (uint64_t)high_bytes - (uint64_t)low_bytes;
    if (inside < direct.len_bytes && len_bytes <= direct.len_bytes - inside) {
        remote.direct = oriel_at(direct.base, (int64_t)offset_bytes);
        return (struct oriel_way){&oriel_transport_shared, remote, true};
    }
    remote.direct = (void *)(uintptr_t)remote.address;
    if (target == window->rank)
        return (struct oriel_way){&oriel_transport_shared, remote, false};
    if (window->by_agent)
        remote.agent = oriel_agent_of(peer);
    return (struct oriel_way){window->by_agent ? &oriel_transport_agent : &oriel_transport_cma, remote, false};
}

/* A transport knows processes only: says which rank has died. */
static inline enum oriel_status oriel_remote_status(enum oriel_status status, const struct oriel_window *window,
                                                    int32_t target)
{
    if (oriel_likely(status != ORIEL_E_PEER))
        return status;
    return oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died", (int)target,
                      (int)window->group->peers[target]->identity.pid);
}

/* The same place offset_bytes further on. */
static inline struct oriel_remote oriel_remote_advance(const struct oriel_remote *remote, uint64_t offset_bytes)
{
    return (struct oriel_remote){oriel_at(remote->direct, (int64_t)offset_bytes), remote->address + offset_bytes,
                                 remote->agent, remote->pid};
}

#endif
