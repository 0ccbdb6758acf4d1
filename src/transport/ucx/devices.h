/* UCX's devices for communication with other nodes, for `oriel info`. */
#ifndef ORIEL_TRANSPORT_UCX_DEVICES_H
#define ORIEL_TRANSPORT_UCX_DEVICES_H

#include "base/status.h"

#include <stddef.h>

/* The transports and devices that a net started now would use, as in "tcp on eth0 lo". Returns
 * ORIEL_E_OTHER with the reason if there would be none. */
enum oriel_status oriel_net_describe(char *text, size_t text_bytes);

#endif
