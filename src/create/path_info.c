/* Combines the path data of user_memory.c, attach.c and creation. */
#include "create/path_info.h"

#include "base/log.h"
#include "base/options.h"
#include "create/attach.h"
#include "host/host.h"
#include "window/host_objects.h"

#include <stdio.h>
#include <string.h>

static unsigned find_ways(struct oriel_window *window, char *reason, size_t room)
{
    reason[0] = '\0';
    if (window->flavour == ORIEL_FLAVOUR_DYNAMIC)
        return oriel_attached_ways(window, reason, room);
    if (window->own_memory == NULL)
        return window->host->size_bytes > 0 ? ORIEL_WAY_ARENA : 0;
    snprintf(reason, room, "%s", window->own_memory->reason);
    return oriel_own_memory_ways(window->own_memory);
}

static void add(char *text, size_t room, const char *separator, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", used > 0 ? separator : "", more);
}

/* The paths of the ranks on this node. */
static void add_near(struct oriel_paths *paths, const struct oriel_window *window, unsigned ways,
                     const char *no_promotion)
{
    if ((ways & ORIEL_WAY_ARENA) != 0)
        add(paths->ways, sizeof paths->ways, "+", "arena");
    if ((ways & ORIEL_WAY_PROMOTED) != 0)
        add(paths->ways, sizeof paths->ways, "+", "promoted");
    if ((ways & ORIEL_WAY_COPY) == 0)
        return;
    add(paths->ways, sizeof paths->ways, "+", window->by_agent ? "agent" : "cma");
    if (no_promotion[0] != '\0') {
        add(paths->reason, sizeof paths->reason, "; ", "promotion: ");
        strncat(paths->reason, no_promotion, sizeof paths->reason - strlen(paths->reason) - 1);
    }
    if (window->by_agent) {
        add(paths->reason, sizeof paths->reason, "; ", "cma: ");
        strncat(paths->reason,
                window->host->no_cma[0] != '\0' ? window->host->no_cma : "refused to another rank",
                sizeof paths->reason - strlen(paths->reason) - 1);
    }
}

struct oriel_paths oriel_paths_of(struct oriel_window *window)
{
    struct oriel_paths paths = {.ways = "", .reason = ""};
    char no_promotion[240];
    if (window->n == 1)
        return paths; /* there are no other ranks */
    unsigned ways = find_ways(window, no_promotion, sizeof no_promotion);
    if (window->here > 1)
        add_near(&paths, window, ways, no_promotion);
    if (window->here < window->n && ways != 0)
        add(paths.ways, sizeof paths.ways, "+", "ucx");
    return paths;
}

void oriel_paths_note(struct oriel_window *window, const char *call)
{
    if (oriel_options()->verbose < 1)
        return;
    struct oriel_paths paths = oriel_paths_of(window);
    if (paths.ways[0] != '\0')
        oriel_note("%s: window %lu of %d ranks: others reach the memory of rank %d by %s%s%s", call,
                   (unsigned long)window->serial, (int)window->n, (int)window->rank, paths.ways,
                   paths.reason[0] != '\0' ? "; no better way: " : "", paths.reason);
}

void oriel_paths_keep_name(struct oriel_window *window)
{
    int name_bytes = 0;
    char *name = window->host->name;
    if (oriel_host()->Win_get_name(window->host->handle, name, &name_bytes) != MPI_SUCCESS)
        name[0] = '\0';
}

void oriel_paths_warn_lost(const struct oriel_window *window, const char *call, uint64_t lost_bytes)
{
    const char *name = window->host->name;
    if (lost_bytes > 0)
        oriel_warn("%s on window %s: %lu bytes of the memory of rank %d were unmapped or replaced "
                   "before; they are left "
                   "as they are",
                   call, name[0] != '\0' ? name : "(unnamed)", (unsigned long)lost_bytes,
                   (int)window->rank);
}
