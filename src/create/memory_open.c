/* Opens a memory handle of a process of this node as a window of one rank. The window is made by
 * this process alone, and the memory's owner is its rank 0. */
#include "base/options.h"
#include "create/create.h"
#include "create/memory_handle.h"
#include "create/node_map.h"
#include "host/host.h"
#include "memory/mechanism.h"
#include "rma/deferred.h"
#include "sync/holder_epochs.h"
#include "transport/shared/copy.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static struct oriel_window *window_alloc(void)
{
    struct oriel_window *window =
        aligned_alloc(ORIEL_CACHE_LINE, (sizeof *window + 63) & ~(size_t)63);
    struct oriel_window_host *host = calloc(1, sizeof *host);
    struct oriel_holding *holding = calloc(1, sizeof *holding);
    struct oriel_common *common = aligned_alloc(2 * ORIEL_CACHE_LINE, 6 * ORIEL_CACHE_LINE);
    _Static_assert(sizeof *common + sizeof(struct oriel_target) <= 6 * ORIEL_CACHE_LINE,
                   "there is room for one target");
    if (window == NULL || host == NULL || holding == NULL || common == NULL) {
        free(window);
        free(host);
        free(holding);
        free(common);
        return NULL;
    }
    *common = (struct oriel_common){.n = 1, .here = 1, .bulk_targets = 1};
    *host = (struct oriel_window_host){.handle = MPI_WIN_NULL, .group = MPI_GROUP_NULL};
    holding->common = common;
    atomic_init(&holding->access[0], ORIEL_ACCESS_STATE_ABSENT);
    *window = (struct oriel_window){.n = 1,
                                    .rank = -1,
                                    .here = 1,
                                    .common = common,
                                    .targets = common->targets,
                                    .control_offset = -1,
                                    .common_offset = -1,
                                    .memory_offset = -1,
                                    .holding = holding,
                                    .host = host};
    atomic_init(&window->access, holding->access);
    return window;
}

/* Everything but the carrier. */
static void window_release(struct oriel_window *window)
{
    struct oriel_holding *holding = window->holding;
    oriel_deferred_free(window);
    if (holding->entry != NULL)
        oriel_holder_leave(holding->entry);
    if (window->control_offset >= 0)
        oriel_file_free((uint64_t)window->control_offset);
    if (window->group != NULL)
        oriel_group_release(window->group);
    oriel_window_release_host_group(window);
    free(window->memory_base_array);
    free(holding->members);
    free(holding->common);
    free(holding);
    free(window->host);
    free(window);
}

/* --- the owner --- */

/* A process that is gone cannot be opened, for which the caller's message has another reason. */
static enum oriel_status owner_open(struct oriel_window *window,
                                    const struct oriel_memory_handle *handle)
{
    const struct oriel_member owner = {handle->owner, handle->node};
    enum oriel_status status = oriel_group_acquire(&owner, sizeof owner, 1, 0, &window->group);
    const bool is_own = oriel_identity_equal(&handle->owner, oriel_file_identity());
    if (!is_own && (status == ORIEL_OK ? !oriel_peer_alive(window->group->peers[0])
                                       : !oriel_identity_alive(&handle->owner)))
        return oriel_fail(ORIEL_E_PEER, "the handle's owner (process %d) has died [O18]",
                          (int)handle->owner.pid);
    window->control_bases = status == ORIEL_OK ? window->group->bases : NULL;
    return status;
}

/* Takes an entry; then the handle stays as it is until the entry is left. */
static enum oriel_status area_enter(struct oriel_window *window,
                                    const struct oriel_memory_handle *handle)
{
    struct oriel_holding *holding = window->holding;
    const struct oriel_peer *owner = window->group->peers[0];
    if (handle->area > owner->reserve_bytes - sizeof(struct oriel_handle_area))
        return oriel_fail(ORIEL_E_ARG, "the bytes are no memory handle");
    holding->area = (struct oriel_handle_area *)(owner->base + handle->area);
    holding->key = handle->key;
    enum oriel_status status = oriel_holder_enter(holding->area, &holding->entry);
    if (status != ORIEL_OK)
        return status;
    holding->name = oriel_holder_name(holding->area, holding->entry);
    return oriel_handle_is_valid(holding->area, holding->key)
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_ATTACH, "the memory handle has been withdrawn");
}

/* The files that contain the memory and the gate. */
static enum oriel_status files_open(struct oriel_window *window)
{
    struct oriel_holding *holding = window->holding;
    const struct oriel_handle_area *area = holding->area;
    struct oriel_peer *leader;
    struct oriel_peer *memory;
    window->memory_base_array = calloc(1, sizeof *window->memory_base_array);
    if (window->memory_base_array == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
    enum oriel_status status = oriel_peer_open(&area->leader, &leader);
    if (status == ORIEL_OK)
        status = oriel_peer_open(&area->memory, &memory);
    if (status != ORIEL_OK)
        return status;
    window->memory_base_array[0] = memory->base;
    window->memory_bases = window->memory_base_array;
    holding->owner_common = (struct oriel_common *)(leader->base + area->common_offset);
    window->common->targets[0] = area->target;
    return ORIEL_OK;
}

/* A process that has died since is none to wait for. */
static enum oriel_status members_open(struct oriel_window *window)
{
    struct oriel_holding *holding = window->holding;
    const struct oriel_handle_area *area = holding->area;
    const struct oriel_identity *members =
        (const struct oriel_identity *)(window->group->peers[0]->base + area->members_offset);
    holding->member_count = (int32_t)area->member_count;
    holding->members = calloc(area->member_count, sizeof(struct oriel_peer *));
    if (holding->members == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
    for (uint32_t i = 0; i < area->member_count; i++)
        if (members[i].pid != 0 && oriel_peer_open(&members[i], &holding->members[i]) != ORIEL_OK &&
            oriel_identity_alive(&members[i]))
            return ORIEL_E_OTHER;
    return ORIEL_OK;
}

/* Copies by the kernel, or else by the owner's agent. */
static enum oriel_status path_choose(struct oriel_window *window)
{
    char reason[200];
    if (window->targets[0].placement == ORIEL_PLACEMENT_DIRECT ||
        oriel_mechanism_probe_cma(window->group->peers[0]) == ORIEL_OK)
        return ORIEL_OK;
    window->by_agent = true;
    snprintf(window->host->no_cma, sizeof window->host->no_cma, "%s", oriel_fail_message());
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    return window->holding->area->has_agent
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_UNSUPPORTED,
                            "the memory is reached by copies, %s, and its owner has no agent",
                            reason);
}

/* --- this process's part --- */

static void describe(struct oriel_window *window)
{
    const struct oriel_target *target = &window->targets[0];
    struct oriel_window_host *host = window->host;
    oriel_copy_window_created();
    window->flavour = ORIEL_FLAVOUR_CREATE;
    window->serial = oriel_window_next_serial();
    window->id = window->group->peers[0]->identity.id[0] ^ window->holding->key;
    host->number = window->holding->area->window_number;
    host->size_bytes = (MPI_Aint)target->size_bytes;
    host->disp_unit = target->disp_unit > INT_MAX ? INT_MAX : (int)target->disp_unit;
    host->create_flavor = MPI_WIN_FLAVOR_CREATE;
    host->model = MPI_WIN_UNIFIED;
    oriel_deferred_make(window);
}

/* Words that other processes read, but that no process needs of this window. */
static enum oriel_status control_make(struct oriel_window *window)
{
    uint64_t offset;
    if (oriel_file_alloc(sizeof(struct oriel_control), 2 * ORIEL_CACHE_LINE, &offset) != ORIEL_OK)
        return ORIEL_E_NO_MEM;
    window->control_offset = (int64_t)offset;
    window->control = (struct oriel_control *)(oriel_file_base() + offset);
    return ORIEL_OK;
}

static enum oriel_status carrier_make(struct oriel_window *window)
{
    struct oriel_window_host *host = window->host;
    if (oriel_host_singleton() == MPI_COMM_NULL && !oriel_host_has_world())
        return oriel_fail(
            ORIEL_E_UNSUPPORTED,
            "without MPI_COMM_WORLD this process must create a window before it opens "
            "a handle");
    enum oriel_status status =
        oriel_host_carrier(MPI_COMM_NULL, oriel_handle_count(), &host->handle);
    if (status != ORIEL_OK)
        return status;
    if (oriel_host()->Comm_group(oriel_host_singleton(), &host->group) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_NO_MEM, "the host cannot create a group");
    if (status == ORIEL_OK)
        status = oriel_handle_add(host->handle, window);
    if (status != ORIEL_OK)
        oriel_host_carrier_free(&host->handle, 0);
    return status;
}

static enum oriel_status open_parts(struct oriel_window *window,
                                    const struct oriel_memory_handle *handle, MPI_Info info)
{
    oriel_hints_init(&window->host->hints);
    enum oriel_status status = oriel_hints_read(&window->host->hints, info);
    if (status == ORIEL_OK)
        status = owner_open(window, handle);
    if (status == ORIEL_OK)
        status = area_enter(window, handle);
    if (status == ORIEL_OK)
        status = files_open(window);
    if (status == ORIEL_OK)
        status = members_open(window);
    if (status == ORIEL_OK)
        status = path_choose(window);
    if (status == ORIEL_OK)
        status = control_make(window);
    if (status != ORIEL_OK)
        return status;
    describe(window);
    return carrier_make(window);
}

enum oriel_status oriel_memory_open(const struct oriel_memory_handle *handle, MPI_Info info,
                                    struct oriel_window **out)
{
    if (!oriel_memory_handle_is_valid(handle))
        return oriel_fail(ORIEL_E_ARG, "the bytes are no memory handle");
    enum oriel_status status = oriel_window_start();
    if (status != ORIEL_OK)
        return status;
    if (handle->node != oriel_node_id(false))
        return oriel_fail(ORIEL_E_UNSUPPORTED,
                          "the handle's owner is on another node: only processes of its node open "
                          "it");
    struct oriel_window *window = window_alloc();
    if (window == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
    status = open_parts(window, handle, info);
    if (status != ORIEL_OK)
        window_release(window);
    else
        *out = window;
    return status;
}

enum oriel_status oriel_memory_close(struct oriel_window *window, bool *gone)
{
    enum oriel_status status = oriel_window_free_handle(window, gone);
    if (status == ORIEL_OK)
        window_release(window);
    return status;
}
