/* Moves bytes between two layouts, one in this process and one in a target's window, without packing.  put_get.c calls. */
#ifndef ORIEL_RMA_COPY_REMOTE_H
#define ORIEL_RMA_COPY_REMOTE_H

#include "datatype/copy_layout.h"
#include "transport/transport.h"

/* Moves as many bytes as the source side has (the other has at least as many), in the order of the type maps; to_target says
 * which side is the source. */
enum oriel_status oriel_move(const struct oriel_transport *by, const struct oriel_remote *there,
                             const struct oriel_items *target, char *here,
                             const struct oriel_items *origin, bool to_target);

#endif
