/* Step 3 of creation: opens the files that the records name, probes CMA, and obtains the carrier.
 * The leader, rank 0 or the first rank of each node, fills the common words. */
#include "create/create_state.h"

#include "host/host.h"
#include "memory/mechanism.h"
#include "memory/memory_limits.h"
#include "rma/device_maps.h"
#include "window/handle.h"

#include <stdio.h>
#include <stdlib.h>

/* A rank's memory of more than ORIEL_RESERVED_BYTES is populated at first touch. So the total of
 * all such ranks must be available. */
static enum oriel_status total_memory_check(const struct create_state *state)
{
    uint64_t total_bytes = 0;
    for (int32_t i = 0; i < state->window->n; i++)
        if (state->records[i].target.size_bytes > ORIEL_RESERVED_BYTES &&
            (state->node_map == NULL || state->node_map->node_by_rank[i] == state->node_map->own))
            total_bytes += state->records[i].target.size_bytes;
    if (state->creation->flavour == ORIEL_FLAVOUR_CREATE || total_bytes == 0 ||
        total_bytes <= oriel_memory_limits_available())
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_NO_MEM, "the ranks request %lu bytes, %lu are available",
                      (unsigned long)total_bytes, (unsigned long)oriel_memory_limits_available());
}

/* Sets the NUMA placement of the parts whose ranks gave one. */
static void place_parts(const struct create_state *state, uint64_t offset)
{
    uint64_t at = offset;
    for (int32_t i = 0; i < state->window->n; i++) {
        const struct create_record *record = &state->records[i];
        if (record->placement.from != ORIEL_PAGES_ANYWHERE)
            oriel_file_place(offset, at, record->target.size_bytes, record->placement);
        at += record->target.size_bytes;
    }
}

/* Reserves each rank's part near that rank, or where it wants it. */
static enum oriel_status alloc_parts(struct create_state *state, uint64_t align_bytes,
                                     uint64_t *offset)
{
    uint32_t n = (uint32_t)state->window->n;
    bool is_placed = false;
    struct oriel_file_part *parts = calloc(n + 1, sizeof *parts);
    if (parts == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the parts of %u ranks", n);
    for (uint32_t i = 0; i < n; i++) {
        parts[i] =
            (struct oriel_file_part){state->records[i].target.size_bytes, state->records[i].node};
        is_placed = is_placed || state->records[i].placement.from != ORIEL_PAGES_ANYWHERE;
    }
    /* whole pages */
    parts[n] = (struct oriel_file_part){is_placed ? ORIEL_FILE_PAGES_BYTES : 0, -1};
    enum oriel_status status = oriel_file_alloc_parts(parts, n + 1, align_bytes, offset);
    free(parts);
    if (status == ORIEL_OK)
        state->window->memory_offset = (int64_t)*offset;
    if (status == ORIEL_OK && is_placed)
        place_parts(state, *offset);
    return status;
}

/* Allocates one block in rank 0's file, with the segments consecutive in rank order (MPI-4.1,
 * 13.2.3). */
static enum oriel_status allocate_contiguous(struct create_state *state)
{
    struct oriel_window *window = state->window;
    struct create_record *records = state->records;
    uint64_t total_bytes = 0;
    uint64_t align_bytes = 0;
    for (int32_t i = 0; i < window->n; i++) {
        if (__builtin_add_overflow(total_bytes, records[i].target.size_bytes, &total_bytes))
            return oriel_fail(ORIEL_E_NO_MEM, "the sizes of all ranks overflow");
        align_bytes = records[i].alignment > align_bytes ? records[i].alignment : align_bytes;
    }
    uint64_t offset;
    enum oriel_status status = alloc_parts(state, align_bytes, &offset);
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++) {
        records[i].target.offset = offset;
        records[i].target.address = (uint64_t)(uintptr_t)(oriel_file_base() + offset);
        offset += records[i].target.size_bytes;
    }
    return status;
}

/* MPI_Win_allocate_shared: whether all memory is in one block of rank 0's file. Separate memory
 * requires that every rank requested it; a hint that only some ranks gave is ignored. */
static bool want_contiguous(const struct create_state *state)
{
    bool contiguous = false;
    for (int32_t i = 0; i < state->window->n; i++)
        contiguous = contiguous || !state->records[i].noncontig;
    return contiguous && state->creation->flavour == ORIEL_FLAVOUR_SHARED;
}

void oriel_create_state_fill_common(struct oriel_common *common, int32_t n,
                                    const struct create_record *(*record_at)(void *context,
                                                                             int32_t rank),
                                    void *context)
{
    common->version = RECORD_VERSION;
    common->n = n;
    common->here = n;
    for (int32_t i = 0; i < n; i++) {
        struct oriel_target *target = &common->targets[i];
        *target = record_at(context, i)->target;
        if (target->placement == ORIEL_PLACEMENT_DIRECT)
            target->direct_bytes = target->size_bytes;
    }
}

const struct create_record *oriel_create_state_gathered_record(void *records, int32_t rank)
{
    return &((const struct create_record *)records)[rank];
}

/* Only on the leader: fills the common words, which all ranks read after the agreement. */
static enum oriel_status leader_fill_common(struct create_state *state)
{
    struct oriel_window *window = state->window;
    enum oriel_status status = total_memory_check(state);
    if (status == ORIEL_OK && state->node_map != NULL)
        return oriel_node_map_fill(state);
    if (status == ORIEL_OK && state->is_contiguous)
        status = allocate_contiguous(state);
    if (status == ORIEL_OK)
        oriel_create_state_fill_common(
            (struct oriel_common *)(oriel_file_base() + window->common_offset), window->n,
            oriel_create_state_gathered_record, state->records);
    return status;
}

/* Finds each target's memory file, if not all targets use their own files. */
static enum oriel_status target_files_open(struct create_state *state)
{
    struct oriel_window *window = state->window;
    bool contiguous = state->is_contiguous;
    bool own_files = !contiguous;
    if (contiguous && state->own.noncontig) { /* other ranks did not request it */
        oriel_create_state_free_block(window->memory_offset);
        window->memory_offset = -1;
    }
    for (int32_t i = 0; i < window->n; i++)
        own_files = own_files && oriel_identity_equal(&state->records[i].memory,
                                                      &state->records[i].member.process);
    window->memory_bases = window->group->bases;
    if (own_files)
        return ORIEL_OK;
    window->memory_base_array = calloc((uint32_t)window->n, sizeof *window->memory_base_array);
    if (window->memory_base_array == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the window's addresses");
    window->memory_bases = window->memory_base_array;
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++) {
        struct oriel_peer *peer = NULL;
        if (window->group->peers[i] == NULL)
            continue; /* on another node */
        status = oriel_peer_open(
            contiguous ? &state->records[0].member.process : &state->records[i].memory, &peer);
        if (status == ORIEL_OK)
            window->memory_base_array[i] = peer->base;
    }
    return status;
}

static enum oriel_status group_open(struct create_state *state)
{
    struct oriel_window *window = state->window;
    enum oriel_status status = ORIEL_OK;
    state->is_contiguous = want_contiguous(state);
    status = oriel_node_map_check(state);
    if (status == ORIEL_OK && window->group == NULL)
        status = oriel_group_acquire(&state->records[0].member, sizeof state->records[0], window->n,
                                     window->rank, &window->group);
    if (status != ORIEL_OK)
        return status;
    window->control_bases = window->group->bases;
    return target_files_open(state);
}

/* At a rendezvous, as soon as one target needs CMA, all other ranks are probed. Later windows then
 * need no probe of their own. */
static void cma_probe_all(struct oriel_shm_rendezvous *rendezvous)
{
    bool known = true;
    for (int32_t i = 0; i < rendezvous->group->n && known; i++)
        known = i == rendezvous->rank ||
                oriel_mechanism_probe_cma(rendezvous->group->peers[i]) == ORIEL_OK;
    rendezvous->cma_known = known;
}

/* Whether this process can map a rank's device memory. */
static enum oriel_status device_probe(const struct oriel_window *window, int32_t rank,
                                      const struct oriel_target *target)
{
    const struct oriel_gpu_shared *shared =
        (const struct oriel_gpu_shared *)(window->control_bases[rank] + target->offset);
    return oriel_device_maps_find(window, rank, shared, target->address) != NULL ? ORIEL_OK
                                                                                 : ORIEL_E_OTHER;
}

static enum oriel_status cma_probe_targets(struct create_state *state)
{
    struct oriel_window *window = state->window;
    enum oriel_status status = ORIEL_OK;
    bool is_needed = false;
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++) {
        const struct create_record *record = &state->records[i];
        if (i == window->rank || window->group->peers[i] == NULL ||
            record->target.placement == ORIEL_PLACEMENT_DIRECT)
            continue;
        if (record->target.placement == ORIEL_PLACEMENT_DEVICE) {
            status = device_probe(window, i, &record->target);
            continue;
        }
        is_needed = true;
        status = oriel_mechanism_probe_cma(window->group->peers[i]);
    }
    if (is_needed && status == ORIEL_OK && state->rendezvous != NULL)
        cma_probe_all(state->rendezvous);
    return status;
}

/* The host's objects; once per creation. */
static enum oriel_status host_handles_create(struct create_state *state)
{
    struct oriel_window *window = state->window;
    MPI_Comm comm = state->creation->comm;
    if (state->has_carrier)
        return ORIEL_OK;
    if (oriel_host()->Comm_group(comm, &window->host->group) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_NO_MEM, "the host cannot create a group");
    enum oriel_status status =
        oriel_host_carrier(comm, oriel_handle_count(), &window->host->handle);
    if (status != ORIEL_OK)
        return status;
    status = oriel_handle_add(window->host->handle, window);
    if (status == ORIEL_OK)
        state->has_carrier = true;
    else
        oriel_host_carrier_free(&window->host->handle, 0);
    return status;
}

enum oriel_status oriel_create_state_join_rendezvous(struct create_state *state)
{
    struct oriel_window *window = state->window;
    struct oriel_group *group = state->rendezvous->group;
    oriel_group_add_reference(group);
    window->group = group;
    window->control_bases = group->bases;
    window->memory_bases = group->bases;
    state->own.cma_known = state->rendezvous->cma_known;
    return host_handles_create(state);
}

/* No attribute may be set or deleted while the host deletes attributes. */
static bool any_rank_is_freeing(const struct create_state *state)
{
    for (int32_t i = 0; i < state->window->n; i++)
        if (state->records[i].is_freeing)
            return true;
    return false;
}

/* Attaches a rendezvous for the next windows over the communicator, if rank 0 has one. This window
 * does not depend on it. */
static bool rendezvous_attach(struct create_state *state)
{
    struct oriel_window *window = state->window;
    uint64_t words_offset = state->records[0].rendezvous_offset;
    if (words_offset == 0 || state->node_map != NULL || any_rank_is_freeing(state) ||
        oriel_comm_cache_attach(state->creation->comm, window->group, window->rank, words_offset,
                                state->rendezvous_offset, &state->new_rendezvous) != ORIEL_OK)
        return false;
    state->rendezvous_offset = -1;
    return true;
}

/* Step 3: the bits that this rank contributes. */
uint32_t oriel_create_state_contribute(struct create_state *state)
{
    uint32_t bits = AGREE_MEMORY;
    if (state->records == NULL)
        return AGREE_REACHED | AGREE_CMA;
    if (group_open(state) != ORIEL_OK)
        oriel_create_state_note_host(state);
    else
        bits |= AGREE_REACHED;
    if ((bits & AGREE_REACHED) && cma_probe_targets(state) == ORIEL_OK)
        bits |= AGREE_CMA;
    else if (bits & AGREE_REACHED)
        snprintf(state->window->host->no_cma, sizeof state->window->host->no_cma, "%s",
                 oriel_fail_message());
    if ((bits & AGREE_REACHED) && rendezvous_attach(state))
        bits |= AGREE_RENDEZVOUS;
    enum oriel_status status = ORIEL_OK;
    if ((bits & AGREE_REACHED) && state->window->rank == state->window->leader)
        status = leader_fill_common(state);
    if ((bits & AGREE_REACHED) && status == ORIEL_OK)
        status = host_handles_create(state);
    if ((bits & AGREE_REACHED) && status == ORIEL_OK)
        status = oriel_node_map_open(state);
    if (status == ORIEL_E_OTHER)
        oriel_create_state_note_host(state);
    if (status != ORIEL_OK)
        bits &= status == ORIEL_E_OTHER ? ~(uint32_t)AGREE_REACHED : ~(uint32_t)AGREE_MEMORY;
    return bits;
}
