/* Combines the path data of user_memory.c, attach.c and creation. */
#include "create/path_info.h"

#include "base/log.h"
#include "base/options.h"
#include "create/attach.h"
#include "internode/origin/origin_peers.h"
#include "window/holders.h"
#include "window/label.h"

#include <stdio.h>
#include <string.h>

static unsigned local_paths(struct oriel_window *window, char *reason, size_t room)
{
    reason[0] = '\0';
    if (window->flavour == ORIEL_FLAVOUR_DYNAMIC)
        return oriel_attached_paths(window, reason, room);
    if (window->user_memory == NULL)
        return window->host->size_bytes > 0 ? ORIEL_PATH_DIRECT : 0;
    oriel_user_memory_reason(window->user_memory, reason, room);
    return oriel_user_memory_paths(window->user_memory);
}

static void text_append(char *text, size_t room, const char *separator, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", used > 0 ? separator : "", more);
}

/* The paths of the ranks on this node. slow: why there is no faster one. */
static void node_paths_append(struct oriel_path_info *paths, const struct oriel_window *window,
                              unsigned path_bits, const char *slow)
{
    const bool is_copied = (path_bits & ORIEL_PATH_COPY) != 0;
    const bool is_by_agent =
        (path_bits & ORIEL_PATH_AGENT) != 0 ||
        (window->by_agent && (path_bits & (ORIEL_PATH_COPY | ORIEL_PATH_GPU)) != 0);
    if ((path_bits & ORIEL_PATH_DIRECT) != 0)
        text_append(paths->names, sizeof paths->names, "+", "direct");
    if ((path_bits & ORIEL_PATH_PROMOTED) != 0)
        text_append(paths->names, sizeof paths->names, "+", "promoted");
    if ((path_bits & ORIEL_PATH_GPU) != 0)
        text_append(paths->names, sizeof paths->names, "+", "gpu");
    if (is_copied && !window->by_agent)
        text_append(paths->names, sizeof paths->names, "+", "cma");
    if (is_by_agent)
        text_append(paths->names, sizeof paths->names, "+", "agent");
    if (slow[0] != '\0')
        text_append(paths->reason, sizeof paths->reason, "; ", slow);
    if (!is_by_agent || (path_bits & ORIEL_PATH_AGENT) != 0)
        return;
    text_append(paths->reason, sizeof paths->reason, "; ", is_copied ? "cma: " : "gpu: ");
    strncat(paths->reason,
            window->host->no_cma[0] != '\0' ? window->host->no_cma : "refused to another rank",
            sizeof paths->reason - strlen(paths->reason) - 1);
}

/* This process's paths to the part that it has opened (memory_open.c). */
static unsigned opened_paths(const struct oriel_window *window)
{
    const struct oriel_target *target = &window->targets[0];
    const bool is_promoted = oriel_load_relaxed(&oriel_window_control(window, 0)->promoted) != 0;
    const unsigned by_cpu = is_promoted ? ORIEL_PATH_PROMOTED : ORIEL_PATH_DIRECT;
    if (target->size_bytes == 0)
        return 0;
    if (target->placement == ORIEL_PLACEMENT_DIRECT)
        return by_cpu;
    return target->placement == ORIEL_PLACEMENT_COPY ? ORIEL_PATH_COPY : by_cpu | ORIEL_PATH_COPY;
}

/* Origins of this node load, store or let the kernel copy, unless the agent copies. */
static void progress_find(struct oriel_path_info *paths, const struct oriel_window *window,
                          unsigned path_bits)
{
    const bool copied = (path_bits & ORIEL_PATH_COPY) != 0;
    const bool reached = (path_bits & ~(unsigned)(ORIEL_PATH_COPY | ORIEL_PATH_AGENT)) != 0;
    const bool served = (path_bits & ORIEL_PATH_AGENT) != 0;
    const bool has_origins = window->here > 1 || window->holding != NULL;
    if (has_origins && (reached || (copied && !window->by_agent)))
        text_append(paths->progress, sizeof paths->progress, "+", "origin");
    if ((has_origins && (served || (copied && window->by_agent))) ||
        (window->here < window->n && path_bits != 0))
        text_append(paths->progress, sizeof paths->progress, "+", "thread");
}

struct oriel_path_info oriel_path_info_get(struct oriel_window *window)
{
    struct oriel_path_info paths = {.names = "", .progress = "", .reason = ""};
    char slow[240] = "";
    if (window->holding != NULL && window->internode != NULL) {
        text_append(paths.names, sizeof paths.names, "+", "ucx");
        text_append(paths.progress, sizeof paths.progress, "+", "thread");
        return paths;
    }
    if (window->holding != NULL) {
        const unsigned opened = opened_paths(window);
        node_paths_append(&paths, window, opened, slow);
        progress_find(&paths, window, opened);
        return paths;
    }
    if (window->n == 1)
        return paths; /* there are no other ranks */
    unsigned path_bits = local_paths(window, slow, sizeof slow);
    if (window->here > 1)
        node_paths_append(&paths, window, path_bits, slow);
    if (window->here < window->n && path_bits != 0)
        text_append(paths.names, sizeof paths.names, "+", "ucx");
    progress_find(&paths, window, path_bits);
    return paths;
}

/* A whole multiple of GiB, MiB or KiB is written as such. */
static int size_format(char *out, size_t room, uint64_t size_bytes)
{
    static const char *const units[] = {"GiB", "MiB", "KiB"};
    for (unsigned i = 0; i < 3 && size_bytes != 0; i++)
        if (size_bytes % (UINT64_C(1) << (30 - 10 * i)) == 0)
            return snprintf(out, room, "%lu %s", (unsigned long)(size_bytes >> (30 - 10 * i)),
                            units[i]);
    return snprintf(out, room, "%lu bytes", (unsigned long)size_bytes);
}

/* ", 64 MiB per rank", or the smallest and the largest. */
static void sizes_format(const struct oriel_window *window, char *out, size_t room)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (int32_t i = 0; i < window->n; i++) {
        uint64_t size_bytes = window->targets[i].size_bytes;
        least = size_bytes < least ? size_bytes : least;
        most = size_bytes > most ? size_bytes : most;
    }
    size_t used = (size_t)snprintf(out, room, ", ");
    if (least != most) {
        used += (size_t)size_format(out + used, room - used, least);
        used += (size_t)snprintf(out + used, room - used, " to ");
    }
    used += (size_t)size_format(out + used, room - used, most);
    snprintf(out + used, room - used, " per rank");
}

static int32_t node_count(const struct oriel_window *window)
{
    return window->internode == NULL        ? 1
           : oriel_window_is_opened(window) ? 2
                                            : oriel_internode_nodes(window)->count;
}

/* "other ranks reach its memory by cma; no better path: REASON" */
static void paths_format(struct oriel_window *window, const struct oriel_path_ranks *ranks,
                         char *out, size_t room)
{
    struct oriel_path_info paths = oriel_path_info_get(window);
    char whose[80] = "its memory";
    if (ranks->count < ranks->count_of_all)
        snprintf(whose, sizeof whose, "the memory of %d of %d ranks (first: rank %d)",
                 (int)ranks->count, (int)window->n, (int)ranks->first);
    if (window->n == 1)
        snprintf(out, room, "there are no other ranks");
    else if (ranks->count_of_all == 0)
        snprintf(out, room, "%s",
                 window->flavour == ORIEL_FLAVOUR_DYNAMIC ? "no memory is attached yet"
                                                          : "it has no memory");
    else
        snprintf(out, room, "other ranks reach %s by %s%s%s", whose, paths.names,
                 paths.reason[0] != '\0' ? "; no better path: " : "", paths.reason);
}

void oriel_path_info_report(struct oriel_window *window, const char *call,
                            const struct oriel_path_ranks *ranks)
{
    char sizes[100] = "";
    char paths[sizeof(struct oriel_path_info) + 200];
    if (window->flavour != ORIEL_FLAVOUR_DYNAMIC)
        sizes_format(window, sizes, sizeof sizes);
    paths_format(window, ranks, paths, sizeof paths);
    oriel_note_job_call(call, "window %lu of %d rank%s on %d node%s%s: %s",
                        (unsigned long)window->host->number, (int)window->n,
                        window->n == 1 ? "" : "s", (int)node_count(window),
                        node_count(window) == 1 ? "" : "s", sizes, paths);
}

void oriel_path_info_report_attached(struct oriel_window *window)
{
    char label[ORIEL_WINDOW_LABEL_BYTES];
    if (oriel_options()->verbose < 1)
        return;
    struct oriel_path_info paths = oriel_path_info_get(window);
    oriel_window_label(window, label);
    if (paths.names[0] != '\0')
        oriel_note_call("MPI_Win_attach", "other ranks reach the memory attached to %s by %s%s%s",
                        label, paths.names, paths.reason[0] != '\0' ? "; no better path: " : "",
                        paths.reason);
}

void oriel_path_info_save_label(struct oriel_window *window)
{
    oriel_window_label(window, window->host->label);
}

void oriel_path_info_warn_lost(const struct oriel_window *window, const char *call,
                               uint64_t lost_bytes)
{
    char rest[ORIEL_WINDOW_LABEL_BYTES + 160];
    if (lost_bytes == 0)
        return;
    snprintf(rest, sizeof rest,
             " on %s: the program has unmapped or replaced %lu bytes of this rank's memory; Oriel "
             "leaves them unchanged [O15]",
             window->host->label, (unsigned long)lost_bytes);
    oriel_log_call(ORIEL_LOG_WARNING, call, rest);
}
