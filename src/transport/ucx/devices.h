/* What UCX has to send with to other machines, for `oriel info`.  The probe of the network calls. */
#ifndef ORIEL_TRANSPORT_UCX_DEVICES_H
#define ORIEL_TRANSPORT_UCX_DEVICES_H

#include "base/status.h"

#include <stddef.h>

/* Transports with their devices, as in "tcp on eth0 lo", that a net started now would use; ORIEL_E_OTHER with the reason where
 * there would be none. */
enum oriel_status oriel_net_describe(char *text, size_t text_bytes);

#endif
