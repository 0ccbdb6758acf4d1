/* libucp's functions, loaded at the first use, so Oriel runs without it. The table is filled once
 * and never changes. The library stays loaded, because its threads and handlers may outlive its
 * last use. */
#ifndef ORIEL_TRANSPORT_UCX_LIBRARY_H
#define ORIEL_TRANSPORT_UCX_LIBRARY_H

#include "base/status.h"

#include <stdbool.h>

#include <ucp/api/ucp.h>

struct oriel_ucp_calls {
#define CALL(name) __typeof__(&name) name;
#include "transport/ucx/library.def"
#undef CALL
};

/* Returns ORIEL_E_OTHER with the reason if there is no libucp, or an older one. */
enum oriel_status oriel_ucp_load(void);

extern struct oriel_ucp_calls oriel_ucp_calls;
static inline const struct oriel_ucp_calls *oriel_ucp(void)
{
    return &oriel_ucp_calls;
}

/* UCX's text for a status. */
const char *oriel_ucp_status_text(ucs_status_t status);

/* Opens a context of network transports, to be closed with ucp_cleanup, and returns their list
 * (oriel_net_list_devices), which is not empty. Call after oriel_ucp_load. */
enum oriel_status oriel_ucp_open(ucp_context_h *out, char *found, size_t found_bytes);

/* True if the list contains RDMA devices. */
bool oriel_ucp_has_verbs(const char *found);

/* Opens another context, for those transports of the list that put and get with RDMA. Returns false
 * if there are none. */
bool oriel_ucp_open_devices(const char *found, ucp_context_h *out);

#endif
