/* Combines the path data of user_memory.c, attach.c and creation. */
#include "create/path_info.h"

#include "base/log.h"
#include "base/options.h"
#include "create/attach.h"
#include "host/host.h"
#include "window/host_objects.h"

#include <stdio.h>
#include <string.h>

static unsigned local_paths(struct oriel_window *window, char *reason, size_t room)
{
    reason[0] = '\0';
    if (window->flavour == ORIEL_FLAVOUR_DYNAMIC)
        return oriel_attached_paths(window, reason, room);
    if (window->user_memory == NULL)
        return window->host->size_bytes > 0 ? ORIEL_PATH_ARENA : 0;
    snprintf(reason, room, "%s", window->user_memory->reason);
    return oriel_user_memory_paths(window->user_memory);
}

static void text_append(char *text, size_t room, const char *separator, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", used > 0 ? separator : "", more);
}

/* The paths of the ranks on this node. */
static void node_paths_append(struct oriel_path_info *paths, const struct oriel_window *window,
                              unsigned path_bits, const char *no_promotion)
{
    if ((path_bits & ORIEL_PATH_ARENA) != 0)
        text_append(paths->names, sizeof paths->names, "+", "arena");
    if ((path_bits & ORIEL_PATH_PROMOTED) != 0)
        text_append(paths->names, sizeof paths->names, "+", "promoted");
    if ((path_bits & ORIEL_PATH_COPY) == 0)
        return;
    text_append(paths->names, sizeof paths->names, "+", window->by_agent ? "agent" : "cma");
    if (no_promotion[0] != '\0') {
        text_append(paths->reason, sizeof paths->reason, "; ", "promotion: ");
        strncat(paths->reason, no_promotion, sizeof paths->reason - strlen(paths->reason) - 1);
    }
    if (window->by_agent) {
        text_append(paths->reason, sizeof paths->reason, "; ", "cma: ");
        strncat(paths->reason,
                window->host->no_cma[0] != '\0' ? window->host->no_cma : "refused to another rank",
                sizeof paths->reason - strlen(paths->reason) - 1);
    }
}

struct oriel_path_info oriel_path_info_get(struct oriel_window *window)
{
    struct oriel_path_info paths = {.names = "", .reason = ""};
    char no_promotion[240];
    if (window->n == 1)
        return paths; /* there are no other ranks */
    unsigned path_bits = local_paths(window, no_promotion, sizeof no_promotion);
    if (window->here > 1)
        node_paths_append(&paths, window, path_bits, no_promotion);
    if (window->here < window->n && path_bits != 0)
        text_append(paths.names, sizeof paths.names, "+", "ucx");
    return paths;
}

void oriel_path_info_report(struct oriel_window *window, const char *call)
{
    if (oriel_options()->verbose < 1)
        return;
    struct oriel_path_info paths = oriel_path_info_get(window);
    if (paths.names[0] != '\0')
        oriel_note("%s: window %lu of %d ranks: other ranks reach the memory of rank %d by %s%s%s",
                   call, (unsigned long)window->serial, (int)window->n, (int)window->rank,
                   paths.names, paths.reason[0] != '\0' ? "; no better path: " : "", paths.reason);
}

void oriel_path_info_save_name(struct oriel_window *window)
{
    int name_bytes = 0;
    char *name = window->host->name;
    if (oriel_host()->Win_get_name(window->host->handle, name, &name_bytes) != MPI_SUCCESS)
        name[0] = '\0';
}

void oriel_path_info_warn_lost(const struct oriel_window *window, const char *call,
                               uint64_t lost_bytes)
{
    const char *name = window->host->name;
    if (lost_bytes > 0)
        oriel_warn("%s on window %s: the program has unmapped or replaced %lu bytes of the memory "
                   "of rank %d; Oriel leaves them unchanged [O15]",
                   call, name[0] != '\0' ? name : "(unnamed)", (unsigned long)lost_bytes,
                   (int)window->rank);
}
