/* The description of a window in its record: the paths to its memory and their reason, its ranks in
 * MPI_COMM_WORLD, its id. */
#include "observe/stats/observed_window.h"

#include "base/options.h"
#include "create/path_info.h"
#include "host/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- paths --- */

/* The path of operations on a target's memory. */
uint8_t oriel_observed_path_to(const struct oriel_window *window, int32_t target)
{
    if (window == NULL)
        return ORIEL_PATH_host;
    switch (window->targets[target].placement) {
    case ORIEL_PLACEMENT_NETWORK: return ORIEL_PATH_ucx;
    case ORIEL_PLACEMENT_DIRECT:
        return oriel_load_relaxed(&oriel_window_control(window, target)->promoted)
                   ? ORIEL_PATH_promoted
                   : ORIEL_PATH_direct;
    case ORIEL_PLACEMENT_COPY:
        return target == window->rank ? ORIEL_PATH_direct
               : window->by_agent     ? ORIEL_PATH_agent
                                      : ORIEL_PATH_cma;
    default: return ORIEL_PATH_BY_PLACE;
    }
}

static void record_set_reason(struct oriel_window_record *record, const char *reason)
{
    snprintf(record->reason, sizeof record->reason, "%.*s", ORIEL_RECORD_REASON - 1, reason);
}

/* The slowest path of other ranks: the one with a reason. */
void oriel_observed_set_path(struct oriel_observed *observed)
{
    static const struct {
        const char *name;
        enum oriel_counted_path path;
    } known_paths[] = {{"agent", ORIEL_PATH_agent},   {"cma", ORIEL_PATH_cma},
                       {"gpu", ORIEL_PATH_gpu},       {"promoted", ORIEL_PATH_promoted},
                       {"direct", ORIEL_PATH_direct}, {"ucx", ORIEL_PATH_ucx}};
    struct oriel_window_record *record = observed->record;
    if (observed->window == NULL) {
        record->own_path = ORIEL_PATH_host;
        record_set_reason(record, oriel_options()->bypass ? "ORIEL_BYPASS" : oriel_fail_message());
        return;
    }
    struct oriel_path_info paths = oriel_path_info_get(observed->window);
    record->own_path = ORIEL_PATH_direct;
    for (size_t i = 0; i < sizeof known_paths / sizeof known_paths[0]; i++)
        if (strstr(paths.names, known_paths[i].name) != NULL) {
            record->own_path = (uint8_t)known_paths[i].path;
            break;
        }
    record_set_reason(record, paths.reason);
}

/* --- the world --- */

/* The window's ranks in MPI_COMM_WORLD, which programs with only sessions lack. */
void oriel_observed_world_ranks(MPI_Group group, int n, int32_t *ranks)
{
    const struct oriel_host_calls *host = oriel_host();
    MPI_Group world = MPI_GROUP_NULL;
    int *own = malloc((unsigned)n * sizeof *own);
    bool known = own != NULL && oriel_host_has_world() &&
                 host->Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS;
    for (int i = 0; own != NULL && i < n; i++)
        own[i] = i;
    known = known && host->Group_translate_ranks(group, n, own, world, ranks) == MPI_SUCCESS;
    for (int i = 0; i < n; i++)
        if (!known || ranks[i] == MPI_UNDEFINED)
            ranks[i] = -1;
    if (world != MPI_GROUP_NULL)
        host->Group_free(&world);
    free(own);
}

/* A window of the host has no number that its ranks share. They share their set of ranks, and the
 * count of such windows over that set: creation is collective, so all ranks see one order. */
uint64_t oriel_observed_host_id(const int32_t *ranks, int n)
{
    static struct {
        uint64_t hash;
        uint64_t count;
    } kept[ORIEL_RECORDS_MOST];
    uint64_t hash = (uint64_t)n;
    for (int i = 0; i < n; i++)
        hash = (hash ^ (uint32_t)ranks[i]) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    unsigned at = 0;
    while (at < ORIEL_RECORDS_MOST - 1 && kept[at].count != 0 && kept[at].hash != hash)
        at++;
    kept[at].hash = hash;
    return hash + ++kept[at].count;
}
