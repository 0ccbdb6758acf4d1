/* Where an operation's bytes are, and which transport moves them.  put_get.c and accumulate.c call. */
#ifndef ORIEL_OPS_REMOTE_H
#define ORIEL_OPS_REMOTE_H

#include "transport/transport.h"
#include "window/window.h"

/* Own memory is loaded and stored whatever its mechanism says to others. */
static inline const struct oriel_transport *oriel_remote_find(const struct oriel_window *window, int32_t target,
                                                              uint64_t offset_bytes, struct oriel_remote *out)
{
    const struct oriel_target *there = &window->targets[target];
    if (there->mechanism == ORIEL_BY_ARENA) {
        out->direct = oriel_window_direct(window, target, offset_bytes);
        return &oriel_transport_shared;
    }
    out->address = there->address + offset_bytes;
    out->pid = window->group->peers[target]->identity.pid;
    out->direct = (void *)(uintptr_t)out->address;
    return target == window->rank ? &oriel_transport_shared : &oriel_transport_cma;
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
    return (struct oriel_remote){(char *)remote->direct + offset_bytes, remote->address + offset_bytes, remote->pid};
}

#endif
