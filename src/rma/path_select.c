/* Moves runs of bytes to and from a target, and reports failures of transports. */
#include "rma/path_select.h"

#include "rma/device_maps.h"

#include <stdio.h>
#include <time.h>

enum { DYING_MS = 1000 };

_Thread_local bool oriel_path_serves_internode;
_Thread_local bool oriel_path_serves_by_kernel;

/* The last process that this thread found alive without memory. */
static _Thread_local struct oriel_identity without_memory;

/* The kernel frees a dying process's memory first. It reports the death when the last of its
 * threads has ended, on a busy node some time later. This waits for that, once for each process: a
 * process that is still alive then has lost only its main thread. */
static bool has_died(const struct oriel_identity *who)
{
    if (oriel_identity_equal(who, &without_memory))
        return !oriel_identity_alive(who);
    for (int waited_ms = 0; waited_ms < DYING_MS; waited_ms++) {
        if (!oriel_identity_alive(who))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    without_memory = *who;
    return false;
}

struct oriel_path oriel_path_device_find(const struct oriel_window *window, int32_t target,
                                         const struct oriel_path_range *range,
                                         struct oriel_remote remote)
{
    remote.direct = oriel_device_maps_find(window, target, range->device, remote.address);
    if (remote.direct != NULL)
        return (struct oriel_path){&oriel_transport_gpu, remote, false};
    remote.agent = oriel_agent_find(window->group->peers[target]);
    return (struct oriel_path){&oriel_transport_agent, remote, false};
}

enum oriel_status oriel_path_write(const struct oriel_path *path, const void *here,
                                   uint64_t len_bytes)
{
    const struct oriel_polled_request wanted = {
        .operation = ORIEL_POLLED_WRITE, .in = here, .len_bytes = len_bytes};
    enum oriel_status status;
    return oriel_polled_submit(&path->remote, &wanted, &status)
               ? status
               : path->transport->write(&path->remote, here, len_bytes);
}

enum oriel_status oriel_path_read(const struct oriel_path *path, void *here, uint64_t len_bytes)
{
    const struct oriel_polled_request wanted = {
        .operation = ORIEL_POLLED_READ, .out = here, .len_bytes = len_bytes};
    enum oriel_status status;
    return oriel_polled_submit(&path->remote, &wanted, &status)
               ? status
               : path->transport->read(&path->remote, here, len_bytes);
}

enum oriel_status oriel_path_failed(enum oriel_status status, const struct oriel_window *window,
                                    int32_t target)
{
    char reason[400];
    if (status == ORIEL_E_PEER) {
        const struct oriel_identity *who = &window->group->peers[target]->identity;
        if (has_died(who))
            return oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died [O18]", (int)target,
                              (int)who->pid);
        return oriel_fail(ORIEL_E_OTHER,
                          "the main thread of rank %d (process %d) has ended, so the kernel "
                          "cannot copy its memory",
                          (int)target, (int)who->pid);
    }
    if (oriel_path_serves_internode) /* the origin adds it */
        return status;
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    return oriel_fail(status, "access to rank %d: %s", (int)target, reason);
}
