/* RDMA access to this process's memory of a window (transport/ucx/rdma.c). Only host memory of
 * MPI_Win_allocate is exposed: it is in the memory file and does not move, while promotion and its
 * end move the program's own pages. UCX sees no device memory. The first request for a key exposes
 * the memory. It is withdrawn when all ranks have left the window. Agent's thread only, except for
 * the end. */
#include "internode/origin/origin_sync.h"

void oriel_internode_reply_key(struct oriel_window *window, const struct oriel_net_requester *asker)
{
    struct oriel_internode *internode = window->internode;
    struct iovec text = {NULL, 0};
    if (internode->exposed == NULL && !internode->is_refused &&
        window->flavour == ORIEL_FLAVOUR_ALLOCATE && window->device_memory == NULL)
        internode->exposed =
            oriel_net_expose(window->base, window->targets[window->rank].size_bytes);
    internode->is_refused = internode->exposed == NULL;
    if (internode->exposed != NULL)
        text.iov_base = (void *)(uintptr_t)oriel_net_exposed_key(internode->exposed, &text.iov_len);
    oriel_internode_reply_ok(asker, &text, text.iov_len > 0 ? 1 : 0);
}

void oriel_internode_rdma_withdraw(struct oriel_internode *internode)
{
    if (internode->exposed != NULL)
        oriel_net_unexpose(internode->exposed);
    internode->exposed = NULL;
}
