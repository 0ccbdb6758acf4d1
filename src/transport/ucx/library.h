/* libucp's functions, found when they are first wanted, so that Oriel runs without it.  The table is filled once and never
 * changes; the library stays loaded, since its own threads and handlers may outlive its last use.  transport/ucx/ calls. */
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

/* ORIEL_E_OTHER with the reason where there is no libucp, or an older one. */
enum oriel_status oriel_ucp_load(void);

extern struct oriel_ucp_calls oriel_ucp_calls;
static inline const struct oriel_ucp_calls *oriel_ucp(void)
{
    return &oriel_ucp_calls;
}

/* What UCX says of a status. */
const char *oriel_ucp_text(ucs_status_t status);

/* A context of network transports, for ucp_cleanup, and what they are (oriel_net_list), of which there must be some; after
 * oriel_ucp_load. */
enum oriel_status oriel_ucp_open(ucp_context_h *out, char *found, size_t found_bytes);

/* Whether RDMA devices are among them. */
bool oriel_ucp_has_verbs(const char *found);

/* Another one, of those transports of that one (as oriel_net_list has them) whose devices put and get by themselves; false where
 * there are none. */
bool oriel_ucp_open_devices(const char *found, ucp_context_h *out);

#endif
