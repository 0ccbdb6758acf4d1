/* Moves bytes between two layouts, one in this process and one in a target's window. */
#ifndef ORIEL_RMA_COPY_REMOTE_H
#define ORIEL_RMA_COPY_REMOTE_H

#include "datatype/copy_layout.h"
#include "transport/transport.h"

/* Moves all bytes of the source side, in the order of the type maps; the other side has at least as
 * many. to_target selects the source side. */
enum oriel_status oriel_copy_remote(const struct oriel_transport *transport,
                                    const struct oriel_remote *remote,
                                    const struct oriel_items *target, char *here,
                                    const struct oriel_items *origin, bool to_target);

/* The same by the transport's slots for pieces only, with remote as it is. */
enum oriel_status oriel_copy_by_pieces(const struct oriel_transport *transport,
                                       const struct oriel_remote *remote,
                                       const struct oriel_items *target, char *here,
                                       const struct oriel_items *origin, bool to_target);

#endif
