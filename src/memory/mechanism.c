/* Finds which mechanism serves: load and store for memory in a memory file, CMA for other memory
 * where a real read from the peer succeeds. */
#include "memory/mechanism.h"

#include "base/options.h"
#include "transport/transport.h"

#include <stdatomic.h>

bool oriel_mechanism_find_file(const void *base, uint64_t len_bytes, struct oriel_identity *file,
                               uint64_t *offset)
{
    if (oriel_file_find(base, len_bytes, offset)) {
        *file = *oriel_file_identity();
        return true;
    }
    struct oriel_peer *peer = oriel_peer_find(base, len_bytes, offset);
    if (peer != NULL)
        *file = peer->identity;
    return peer != NULL;
}

static enum oriel_status cma_probe_peer(const struct oriel_peer *peer)
{
    if (oriel_options()->cma == ORIEL_CMA_NEVER)
        return oriel_fail(ORIEL_E_OTHER, "ORIEL_CMA=never");
    struct oriel_file_header header;
    struct oriel_remote remote = {.address = peer->owner_address, .pid = peer->identity.pid};
    enum oriel_status status = oriel_transport_cma.read(&remote, &header, sizeof header);
    if (status == ORIEL_OK && !oriel_identity_equal(&header.identity, &peer->identity))
        status = oriel_fail(ORIEL_E_OTHER, "CMA reads a process other than peer %d",
                            (int)peer->identity.pid);
    return status;
}

enum oriel_status oriel_mechanism_probe_cma(struct oriel_peer *peer)
{
    uint32_t known = atomic_load_explicit(&peer->cma, memory_order_relaxed);
    if (known == ORIEL_CMA_GRANTED)
        return ORIEL_OK;
    /* a failed probe runs again each time, because its reason is needed each time */
    enum oriel_status status = cma_probe_peer(peer);
    if (status == ORIEL_OK)
        atomic_store_explicit(&peer->cma, ORIEL_CMA_GRANTED, memory_order_relaxed);
    return status;
}
