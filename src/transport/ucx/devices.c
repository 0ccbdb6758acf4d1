/* Lists the devices that UCX has found, from UCX's printed report of a context: before a worker
 * exists there is no other interface. */
#include "transport/ucx/devices.h"

#include "base/options.h"
#include "transport/ucx/internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses a line of the report that ends in TRANSPORT/DEVICE. Returns false for other lines, and for
 * transports within this node, whose device UCX calls memory. */
static bool resource_parse(char *line, char **transport, char **device)
{
    if (strstr(line, " resource ") == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    char *last = strrchr(line, ' ');
    *transport = last + 1;
    *device = strchr(last, '/');
    if (*device == NULL)
        return false;
    *(*device)++ = '\0';
    return strncmp(*device, "memory", strlen("memory")) != 0;
}

static void resources_list(FILE *report, char *text, size_t text_bytes)
{
    char line[256];
    char before[32] = "";
    size_t at = 0;
    char *transport;
    char *device;
    text[0] = '\0';
    while (fgets(line, sizeof line, report) != NULL && at < text_bytes) {
        if (!resource_parse(line, &transport, &device))
            continue;
        if (strcmp(before, transport) == 0)
            at += (size_t)snprintf(text + at, text_bytes - at, " %s", device);
        else
            at += (size_t)snprintf(text + at, text_bytes - at, "%s%s on %s", at > 0 ? ", " : "",
                                   transport, device);
        snprintf(before, sizeof before, "%s", transport);
    }
}

enum oriel_status oriel_net_list_devices(ucp_context_h context, char *text, size_t text_bytes)
{
    char *bytes = NULL;
    size_t len_bytes = 0;
    FILE *report = open_memstream(&bytes, &len_bytes);
    if (report != NULL) {
        oriel_ucp()->ucp_context_print_info(context, report);
        fclose(report);
        report = len_bytes > 0 ? fmemopen(bytes, len_bytes, "r") : NULL;
    }
    if (report == NULL) {
        free(bytes);
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for UCX's report");
    }
    resources_list(report, text, text_bytes);
    fclose(report);
    free(bytes);
    return text[0] != '\0' ? ORIEL_OK
                           : oriel_fail(ORIEL_E_OTHER, "no UCX: it has no network device (UCX_TLS "
                                                       "and UCX_NET_DEVICES select devices)");
}

enum oriel_status oriel_net_describe(char *text, size_t text_bytes)
{
    ucp_context_h context;
    if (oriel_options()->net == ORIEL_NET_OFF)
        return oriel_fail(ORIEL_E_OTHER, "ORIEL_NET=off");
    enum oriel_status status = oriel_ucp_load();
    if (status == ORIEL_OK)
        status = oriel_ucp_open(&context, text, text_bytes);
    if (status == ORIEL_OK)
        oriel_ucp()->ucp_cleanup(context);
    return status;
}
