/* The owner's side of memory handles that processes of other nodes open. For each such opening the
 * owner makes a window that only its agent's thread uses. Its ranks are the owner (0) and that
 * process (1). It is made as if the owner itself had opened the handle (memory_open.c): it has an
 * entry in the handle's area, the control words of the handle's window, and its gate.
 *
 * The process's messages name this window, whose id is random, and come from rank 1. So the checks
 * and functions of any window on several nodes serve them. Those that lock take the steps of a
 * holder besides (internode/target/target_sync.c), and an operation needs an open epoch
 * (target_rma.c). P1 to P4 of sync/holder_epochs.c therefore hold: the agent's thread is the
 * holder.
 *
 *   S1: The window exists from OPEN, which finds the handle by its key, to CLOSE or the loss of the
 *       process. The withdrawal of the handle, or the end of its window, leaves it: its messages
 *       touch the words of the handle's window only inside an epoch, and H2 and H5 refuse those.
 *   S2: The owner's net runs until MPI_Finalize, longer than the handle. After it, messages of the
 *       process fail because the owner is lost.
 *   S3: A process that is lost with a lock leaves an entry with state LOST, for all that wait for
 *       the lock. Else it leaves no entry. */
#include "create/memory_handle.h"
#include "create/opened_window.h"
#include "internode/origin/origin_sync.h"
#include "internode/target/am_dispatch.h"
#include "sync/holder_epochs.h"

#include <sys/random.h>

static enum oriel_status group_open(struct oriel_window *window, const struct oriel_identity *from,
                                    const struct oriel_net_received *message)
{
    const struct oriel_member members[] = {{*oriel_file_identity(), 0}, {*from, 1}};
    struct oriel_net_peer *peer;
    if (message->len_bytes == 0 || message->len_bytes > ORIEL_NET_ADDRESS_BYTES)
        return oriel_fail(ORIEL_E_OTHER, "a process on another node sends no address");
    enum oriel_status status =
        oriel_group_acquire(members, sizeof members[0], 2, 0, &window->group);
    if (status == ORIEL_OK)
        status = oriel_net_open(from, message->data, message->len_bytes, &peer);
    if (status == ORIEL_OK)
        atomic_store_explicit(&window->group->net_peers[1], peer, memory_order_release);
    return status;
}

static enum oriel_status internode_make(struct oriel_window *window)
{
    uint64_t id;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        return oriel_fail(ORIEL_E_OTHER, "the kernel returns no random number");
    window->internode = oriel_internode_make(id, window->n);
    if (window->internode == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
    window->internode->is_refused = true; /* no RDMA: it would not end with the epoch */
    atomic_store_explicit(&window->internode->is_finished, true, memory_order_release);
    return ORIEL_OK;
}

static enum oriel_status window_make(struct oriel_window *window, const struct oriel_identity *from,
                                     const struct oriel_internode_head *head,
                                     const struct oriel_net_received *message)
{
    if (oriel_memory_handle_find(head->a, head->b) == NULL)
        return oriel_fail(ORIEL_E_ATTACH, "the memory handle has been withdrawn");
    enum oriel_status status = group_open(window, from, message);
    if (status == ORIEL_OK)
        status = oriel_opened_window_enter(window, head->a, head->b);
    if (status != ORIEL_OK)
        return status;
    oriel_store_relaxed(&window->holding->entry->is_far, 1);
    window->rank = 0;
    window->control = oriel_window_control(window, 0);
    return internode_make(window);
}

static enum oriel_status holder_open(const struct oriel_identity *from,
                                     const struct oriel_internode_head *head,
                                     const struct oriel_net_received *message,
                                     struct oriel_window **out)
{
    struct oriel_window *window = oriel_opened_window_alloc(2);
    if (window == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
    enum oriel_status status = window_make(window, from, head, message);
    if (status != ORIEL_OK)
        oriel_opened_window_release(window, false);
    else
        *out = window;
    return status;
}

static void holder_close(struct oriel_window *window)
{
    oriel_internode_rank_lost(window, 1); /* no lock is left, unless the process breaks the rules */
    window->control = NULL;               /* of a window that may have ended (S1) */
    oriel_internode_close(window);
    oriel_opened_window_release(window, oriel_load_relaxed(&window->holding->entry->state) ==
                                            ORIEL_ACCESS_STATE_LOST); /* S3 */
}

void oriel_memory_serve(void)
{
    static const struct oriel_am_holders holders = {holder_open, holder_close};
    oriel_am_dispatch_serve_holders(&holders);
}
