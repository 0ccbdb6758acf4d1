/* Probes the network that internode windows would use. */
#include "memory/net_probe.h"

#include "base/status.h"
#include "transport/ucx/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void oriel_probe_network(struct oriel_probe *out)
{
    static const char *const choices[] = {"UCX_TLS", "UCX_NET_DEVICES"};
    char chosen[120] = "";
    size_t at = 0;
    char devices[sizeof out->detail - sizeof chosen];
    out->name = "network";
    out->available = oriel_net_describe(devices, sizeof devices) == ORIEL_OK;
    for (int i = 0; i < 2; i++) {
        const char *choice = getenv(choices[i]);
        if (choice != NULL && at < sizeof chosen)
            at += (size_t)snprintf(chosen + at, sizeof chosen - at, "; %s=%.40s%s", choices[i],
                                   choice, strlen(choice) > 40 ? "..." : "");
    }
    snprintf(out->detail, sizeof out->detail, "%s%s",
             out->available ? devices : oriel_fail_message(), chosen);
}
