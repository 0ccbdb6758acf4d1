/* Selects the path of an operation: the address of its bytes and the transport that moves them. */
#ifndef ORIEL_RMA_PATH_SELECT_H
#define ORIEL_RMA_PATH_SELECT_H

#include "gpu/share.h"
#include "memory/agent_area.h"
#include "memory/polled_area.h"
#include "rma/region_lookup.h"
#include "transport/transport.h"
#include "window/window.h"

/* Set while this thread serves an origin on another node. */
extern _Thread_local bool oriel_path_serves_internode __attribute__((visibility("hidden")));

/* The same, where the kernel copies between processes. If the program has unmapped the memory, the
 * origin must get an error, and this process must not crash. So only the kernel touches memory that
 * is reached by copies. */
extern _Thread_local bool oriel_path_serves_by_kernel __attribute__((visibility("hidden")));

struct oriel_path {
    const struct oriel_transport *transport;
    struct oriel_remote remote;
    /* from every origin and the target, so atomics may be CPU instructions */
    bool cpu_reaches;
};

/* The bytes [offset, end) of a target's window that share one path from every origin and the
 * target. */
struct oriel_path_range {
    uint64_t end;
    bool cpu_reaches;
    char *base; /* this process's address of offset 0, if the CPU reaches it */
    const struct oriel_gpu_shared *device; /* NULL: not memory of a GPU */
};

static inline const struct oriel_gpu_shared *oriel_path_device(const struct oriel_window *window,
                                                               int32_t target, uint64_t offset)
{
    return offset == 0 ? NULL
                       : (const struct oriel_gpu_shared *)(window->control_bases[target] + offset);
}

static inline struct oriel_path_range oriel_path_range_at(const struct oriel_window *window,
                                                          int32_t target, uint64_t offset_bytes)
{
    const struct oriel_target *there = &window->targets[target];
    struct oriel_region_lookup region;
    if (there->placement == ORIEL_PLACEMENT_REGIONS) {
        if (!oriel_region_lookup_find(window, target, there->address + offset_bytes, &region))
            return (struct oriel_path_range){offset_bytes + 1, false, NULL, NULL};
        int64_t from_address = (int64_t)(region.offset - region.start + there->address);
        return (struct oriel_path_range){region.end - there->address, region.offset != 0,
                                         oriel_at(window->control_bases[target], from_address),
                                         oriel_path_device(window, target, region.device)};
    }
    if (there->placement == ORIEL_PLACEMENT_DEVICE)
        return (struct oriel_path_range){UINT64_MAX, false, NULL,
                                         oriel_path_device(window, target, there->offset)};
    if (offset_bytes - there->direct_low < there->direct_bytes)
        return (struct oriel_path_range){there->direct_low + there->direct_bytes, true,
                                         oriel_window_direct(window, target, 0), NULL};
    return (struct oriel_path_range){
        offset_bytes < there->direct_low ? there->direct_low : UINT64_MAX, false, NULL, NULL};
}

/* The path to memory of a GPU: its driver copies if this process can map it, else the target's
 * agent, which dynamic windows have not agreed on. */
struct oriel_path oriel_path_device_find(const struct oriel_window *window, int32_t target,
                                         const struct oriel_path_range *range,
                                         struct oriel_remote remote);

/* The path to the bytes from low_bytes to high_bytes around an offset in a target's window. A
 * process loads and stores its own memory, whatever its placement for others. */
static inline struct oriel_path oriel_path_find(const struct oriel_window *window, int32_t target,
                                                uint64_t offset_bytes, int64_t low_bytes,
                                                int64_t high_bytes)
{
    const struct oriel_target *there = &window->targets[target];
    if (there->placement == ORIEL_PLACEMENT_DIRECT)
        return (struct oriel_path){&oriel_transport_shared,
                                   {.direct = oriel_window_direct(window, target, offset_bytes)},
                                   true};
    const struct oriel_path_range alike =
        oriel_path_range_at(window, target, offset_bytes + (uint64_t)low_bytes);
    const struct oriel_peer *peer = window->group->peers[target];
    struct oriel_remote remote = {.address = there->address + offset_bytes,
                                  .pid = peer->identity.pid,
                                  .writers = oriel_file_remote_writers(peer->base)};
    if (alike.cpu_reaches && offset_bytes + (uint64_t)high_bytes <= alike.end) {
        remote.direct = oriel_at(alike.base, (int64_t)offset_bytes);
        return (struct oriel_path){&oriel_transport_shared, remote, true};
    }
    if (oriel_unlikely(alike.device != NULL))
        return oriel_path_device_find(window, target, &alike, remote);
    remote.direct = (void *)(uintptr_t)remote.address;
    if (target == window->rank && oriel_path_serves_by_kernel)
        return (struct oriel_path){&oriel_transport_cma, remote, false};
    if (target == window->rank)
        return (struct oriel_path){&oriel_transport_shared, remote, false};
    remote.polled = oriel_polled_of(peer);
    if (window->by_agent)
        remote.agent = oriel_agent_of(peer);
    return (struct oriel_path){window->by_agent ? &oriel_transport_agent : &oriel_transport_cma,
                               remote, false};
}

/* Moves a run of bytes by the fastest means: a request to the target if it polls, else the path's
 * transport. */
enum oriel_status oriel_path_write(const struct oriel_path *path, const void *here,
                                   uint64_t len_bytes);
enum oriel_status oriel_path_read(const struct oriel_path *path, void *here, uint64_t len_bytes);

/* Adds the rank to the message of a transport's failure: transports know only processes. */
enum oriel_status oriel_path_failed(enum oriel_status status, const struct oriel_window *window,
                                    int32_t target);

static inline enum oriel_status oriel_path_status(enum oriel_status status,
                                                  const struct oriel_window *window, int32_t target)
{
    return oriel_likely(status == ORIEL_OK) ? ORIEL_OK : oriel_path_failed(status, window, target);
}

/* The same address, advanced by offset_bytes. */
static inline struct oriel_remote oriel_remote_advance(const struct oriel_remote *remote,
                                                       uint64_t offset_bytes)
{
    return (struct oriel_remote){oriel_at(remote->direct, (int64_t)offset_bytes),
                                 remote->address + offset_bytes,
                                 remote->agent,
                                 remote->pid,
                                 remote->writers,
                                 remote->polled,
                                 NULL};
}

#endif
