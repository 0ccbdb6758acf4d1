/* What devices of other machines reach of a window's own memory (transport/ucx/rdma.c): that of MPI_Win_allocate alone, which
 * lies in the memory file and stays where it is, while pages of the program move when they are promoted and given back.  It is
 * exposed when somebody asks first, and withdrawn when all have left the window.  In the agent's thread, but for the end. */
#include "internode/origin/origin_sync.h"

void oriel_internode_tell_key(struct oriel_window *window, const struct oriel_net_asker *asker)
{
    struct oriel_internode *far = window->far;
    struct iovec text = {NULL, 0};
    if (far->exposed == NULL && !far->is_refused && window->flavour == ORIEL_FLAVOUR_ALLOCATE)
        far->exposed = oriel_net_expose(window->base, window->targets[window->rank].size_bytes);
    far->is_refused = far->exposed == NULL;
    if (far->exposed != NULL)
        text.iov_base = (void *)(uintptr_t)oriel_net_exposed_text(far->exposed, &text.iov_len);
    oriel_internode_answer_well(asker, &text, text.iov_len > 0 ? 1 : 0);
}

void oriel_internode_withdraw(struct oriel_internode *far)
{
    if (far->exposed != NULL)
        oriel_net_withdraw(far->exposed);
    far->exposed = NULL;
}
