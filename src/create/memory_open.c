/* Opens a memory handle as a window of one rank. The window is made by this process alone, and the
 * memory's owner is its rank 0. An owner on another node makes a window of its own for this process
 * (memory_serve.c), to which this one's messages are sent: rank 0 is then like any rank on another
 * node. */
#include "base/options.h"
#include "create/create.h"
#include "create/memory_handle.h"
#include "create/node_map.h"
#include "create/opened_window.h"
#include "host/host.h"
#include "internode/origin/origin_peers.h"
#include "memory/mechanism.h"
#include "rma/deferred.h"
#include "sync/holder_epochs.h"
#include "transport/shared/copy.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oriel_window *oriel_opened_window_alloc(int32_t n)
{
    struct oriel_window *window =
        aligned_alloc(ORIEL_CACHE_LINE, (sizeof *window + 63) & ~(size_t)63);
    struct oriel_window_host *host = calloc(1, sizeof *host);
    struct oriel_holding *holding = calloc(1, sizeof *holding);
    struct oriel_common *common = aligned_alloc(2 * ORIEL_CACHE_LINE, 8 * ORIEL_CACHE_LINE);
    _Static_assert(sizeof *common + 2 * sizeof(struct oriel_target) <= 8 * ORIEL_CACHE_LINE,
                   "there is room for two targets");
    if (window == NULL || host == NULL || holding == NULL || common == NULL) {
        free(window);
        free(host);
        free(holding);
        free(common);
        return NULL;
    }
    *common = (struct oriel_common){.n = n, .here = 1, .bulk_targets = 1};
    *host = (struct oriel_window_host){.handle = MPI_WIN_NULL, .group = MPI_GROUP_NULL};
    holding->common = common;
    atomic_init(&holding->access[0], ORIEL_ACCESS_STATE_ABSENT);
    *window = (struct oriel_window){.n = n,
                                    .rank = -1,
                                    .here = 1,
                                    .common = common,
                                    .targets = common->targets,
                                    .control_offset = -1,
                                    .common_offset = -1,
                                    .memory_offset = -1,
                                    .flavour = ORIEL_FLAVOUR_CREATE,
                                    .serial = oriel_window_next_serial(),
                                    .holding = holding,
                                    .host = host};
    atomic_init(&window->access, holding->access);
    return window;
}

void oriel_opened_window_release(struct oriel_window *window, bool keeps_entry)
{
    struct oriel_holding *holding = window->holding;
    oriel_deferred_free(window);
    if (window->internode != NULL)
        oriel_internode_free(window->internode);
    if (holding->entry != NULL && !keeps_entry)
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

/* --- an owner on this node --- */

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
    return status;
}

/* Takes an entry; then the handle stays as it is until the entry is left. */
static enum oriel_status area_enter(struct oriel_window *window, uint64_t area, uint64_t key)
{
    struct oriel_holding *holding = window->holding;
    const struct oriel_peer *owner = window->group->peers[0];
    if (area > owner->reserve_bytes - sizeof(struct oriel_handle_area))
        return oriel_fail(ORIEL_E_ARG, "the bytes are no memory handle");
    holding->area = (struct oriel_handle_area *)(owner->base + area);
    holding->key = key;
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
    window->memory_base_array = calloc((size_t)window->n, sizeof *window->memory_base_array);
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

enum oriel_status oriel_opened_window_enter(struct oriel_window *window, uint64_t area,
                                            uint64_t key)
{
    window->control_bases = window->group->bases;
    enum oriel_status status = area_enter(window, area, key);
    if (status == ORIEL_OK)
        status = files_open(window);
    return status == ORIEL_OK ? members_open(window) : status;
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

static enum oriel_status near_open(struct oriel_window *window,
                                   const struct oriel_memory_handle *handle)
{
    enum oriel_status status = owner_open(window, handle);
    if (status == ORIEL_OK)
        status = oriel_opened_window_enter(window, handle->area, handle->key);
    if (status == ORIEL_OK)
        status = path_choose(window);
    if (status == ORIEL_OK)
        window->host->number = window->holding->area->window_number;
    return status;
}

/* --- an owner on another node --- */

static enum oriel_status net_open(const struct oriel_memory_handle *handle)
{
    char reason[200];
    if (handle->address_bytes == 0)
        return oriel_fail(ORIEL_E_UNSUPPORTED,
                          "the handle's owner is on another node, and had no network when it made "
                          "the handle");
    if (oriel_node_map_net_start() == ORIEL_OK)
        return ORIEL_OK;
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    return oriel_fail(ORIEL_E_UNSUPPORTED, "the handle's owner is on another node: %s", reason);
}

/* The group has the owner and this process, as that of the owner's window. */
static enum oriel_status far_owner_open(struct oriel_window *window,
                                        const struct oriel_memory_handle *handle)
{
    const struct oriel_member members[] = {{handle->owner, handle->node},
                                           {*oriel_file_identity(), oriel_node_id(false)}};
    struct oriel_net_peer *owner;
    enum oriel_status status = net_open(handle);
    if (status == ORIEL_OK)
        status = oriel_group_acquire(members, sizeof members[0], 2, 1, &window->group);
    if (status == ORIEL_OK)
        status = oriel_net_open(&handle->owner, handle->address, handle->address_bytes, &owner);
    if (status != ORIEL_OK)
        return status;
    atomic_store_explicit(&window->group->net_peers[0], owner, memory_order_release);
    window->control_bases = window->group->bases;
    window->memory_bases = window->group->bases;
    window->internode = oriel_internode_make(0, 2);
    return window->internode != NULL ? ORIEL_OK
                                     : oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
}

static enum oriel_status far_open(struct oriel_window *window,
                                  const struct oriel_memory_handle *handle)
{
    struct oriel_internode_head head = {
        .kind = ORIEL_INTERNODE_OPEN, .a = handle->area, .b = handle->key};
    struct oriel_internode_question *question;
    struct oriel_internode_opened opened;
    struct iovec address;
    size_t len_bytes;
    enum oriel_status status = far_owner_open(window, handle);
    if (status != ORIEL_OK)
        return status;
    address.iov_base = (void *)(uintptr_t)oriel_net_address(&address.iov_len);
    status = oriel_internode_question_with(window, 0, window->group->net_peers[0], &head, &address,
                                           &question);
    if (status != ORIEL_OK)
        return status;
    const void *data = oriel_internode_question_data(question, &len_bytes);
    if (len_bytes == sizeof opened)
        memcpy(&opened, data, sizeof opened);
    free(question);
    if (len_bytes != sizeof opened)
        return oriel_fail(ORIEL_E_OTHER, "the handle's owner replies with %zu bytes", len_bytes);
    window->common->targets[0] = (struct oriel_target){.offset = opened.id,
                                                       .disp_unit = opened.disp_unit,
                                                       .size_bytes = opened.size_bytes,
                                                       .placement = ORIEL_PLACEMENT_NETWORK};
    window->internode->id = opened.id;
    window->holding->key = handle->key;
    window->host->number = opened.window_number;
    return ORIEL_OK;
}

/* A dead owner needs no message. */
static void far_close(struct oriel_window *window)
{
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_CLOSE};
    struct oriel_internode_question *question;
    if (oriel_internode_question(window, 0, window->group->net_peers[0], &head, &question) ==
        ORIEL_OK)
        free(question);
}

/* --- this process's part --- */

static void describe(struct oriel_window *window, const struct oriel_memory_handle *handle)
{
    const struct oriel_target *target = &window->targets[0];
    struct oriel_window_host *host = window->host;
    oriel_copy_window_created();
    window->id = handle->owner.id[0] ^ handle->key;
    window->holding->owner_world_rank = handle->world_rank;
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
    const bool is_near = handle->node == oriel_node_id(false);
    oriel_hints_init(&window->host->hints);
    enum oriel_status status = oriel_hints_read(&window->host->hints, info);
    if (status == ORIEL_OK)
        status = is_near ? near_open(window, handle) : far_open(window, handle);
    if (status == ORIEL_OK)
        status = control_make(window);
    if (status == ORIEL_OK) {
        describe(window, handle);
        status = carrier_make(window);
    }
    if (status != ORIEL_OK && !is_near && window->targets[0].placement == ORIEL_PLACEMENT_NETWORK)
        far_close(window);
    return status;
}

enum oriel_status oriel_memory_open(const struct oriel_memory_handle *handle, MPI_Info info,
                                    struct oriel_window **out)
{
    if (!oriel_memory_handle_is_valid(handle))
        return oriel_fail(ORIEL_E_ARG, "the bytes are no memory handle");
    enum oriel_status status = oriel_window_start();
    if (status != ORIEL_OK)
        return status;
    struct oriel_window *window = oriel_opened_window_alloc(1);
    if (window == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
    status = open_parts(window, handle, info);
    if (status != ORIEL_OK)
        oriel_opened_window_release(window, false);
    else
        *out = window;
    return status;
}

enum oriel_status oriel_memory_close(struct oriel_window *window, bool *gone)
{
    enum oriel_status status = oriel_window_free_handle(window, gone);
    if (status != ORIEL_OK)
        return status;
    if (window->internode != NULL)
        far_close(window);
    oriel_opened_window_release(window, false);
    return ORIEL_OK;
}
