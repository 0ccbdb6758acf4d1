/* Step 1 of creation: each rank checks its arguments, allocates its control words and, depending on
 * the flavour, its memory. A failure is stored in the record. */
#include "create/create_state.h"

#include "base/options.h"
#include "create/regions.h"
#include "create/user_memory.h"
#include "gpu/gpu.h"
#include "host/host.h"
#include "memory/agent_area.h"
#include "memory/mechanism.h"
#include "memory/pages.h"
#include "memory/polled_area.h"
#include "sync/notify.h"

enum oriel_status oriel_create_state_alloc_block(uint64_t len_bytes, uint64_t align_bytes,
                                                 int64_t *stored_offset, uint64_t *offset)
{
    enum oriel_status status = oriel_file_alloc(len_bytes, align_bytes, offset);
    if (status == ORIEL_OK)
        *stored_offset = (int64_t)*offset;
    return status;
}

static enum oriel_status window_memory_alloc(struct create_state *state, uint64_t len_bytes,
                                             uint64_t align_bytes, uint64_t *offset)
{
    const struct oriel_pages_placement placement = state->own.placement;
    const bool is_placed = placement.from != ORIEL_PAGES_ANYWHERE && len_bytes > 0;
    if (is_placed && len_bytes < ORIEL_FILE_PAGES_BYTES)
        len_bytes = ORIEL_FILE_PAGES_BYTES;
    enum oriel_status status = state->creation->flavour == ORIEL_FLAVOUR_SHARED
                                   ? oriel_file_alloc_shared(len_bytes, align_bytes, offset)
                                   : oriel_file_alloc_window(len_bytes, align_bytes, offset);
    if (status == ORIEL_OK)
        state->window->memory_offset = (int64_t)*offset;
    if (status == ORIEL_OK &&
        !(is_placed && oriel_file_place(*offset, *offset, len_bytes, placement)))
        oriel_hints_clear_placement(&state->window->host->hints);
    return status;
}

void oriel_create_state_free_block(int64_t offset)
{
    if (offset >= 0)
        oriel_file_free((uint64_t)offset);
}

static enum oriel_status check_arguments(const struct oriel_creation *creation)
{
    if (creation->size_bytes < 0)
        return oriel_fail(ORIEL_E_SIZE, "size %ld is negative", (long)creation->size_bytes);
    if (creation->disp_unit <= 0)
        return oriel_fail(ORIEL_E_DISP, "displacement unit %ld is not positive",
                          (long)creation->disp_unit);
    if (creation->flavour == ORIEL_FLAVOUR_CREATE && creation->base == NULL &&
        creation->size_bytes > 0)
        return oriel_fail(ORIEL_E_BASE, "base is NULL, size is %ld", (long)creation->size_bytes);
    return ORIEL_OK;
}

static uint32_t agent_readiness(void)
{
    if (oriel_options()->agent == ORIEL_AGENT_NEVER)
        return AGENT_REFUSED;
    return oriel_agent_is_open() ? AGENT_READY : AGENT_TO_OPEN;
}

/* The only direct range; memory on one or both sides of it may be reached by copies. NULL if there
 * are no or several direct ranges. */
static const struct oriel_memory_range *find_direct_range(const struct oriel_user_memory *memory)
{
    const struct oriel_memory_range *middle = NULL;
    for (size_t i = 0; i < memory->range_count; i++) {
        if (memory->ranges[i].place == ORIEL_SHARING_PRIVATE ||
            memory->ranges[i].place == ORIEL_SHARING_DEVICE)
            continue;
        if (middle != NULL)
            return NULL;
        middle = &memory->ranges[i];
    }
    return middle;
}

/* Prepares user memory that is not entirely in one memory file: promotes it, and chooses the
 * target's placement. */
static enum oriel_status user_memory_prepare(struct create_state *state)
{
    struct oriel_window *window = state->window;
    struct oriel_target *target = &state->own.target;
    enum oriel_status status = oriel_user_memory_open(
        (uintptr_t)target->address, target->size_bytes, window->n > 1, &window->user_memory);
    if (status != ORIEL_OK)
        return status;
    const struct oriel_user_memory *memory = window->user_memory;
    const struct oriel_memory_range *middle = find_direct_range(memory);
    oriel_store_relaxed(&window->control->promoted,
                        (oriel_user_memory_paths(memory) & ORIEL_PATH_PROMOTED) != 0);
    if (middle != NULL) {
        target->placement =
            memory->range_count == 1 ? ORIEL_PLACEMENT_DIRECT : ORIEL_PLACEMENT_MIXED;
        target->direct_low = middle->start - target->address;
        target->direct_bytes = middle->end - middle->start;
        target->offset = middle->offset - target->direct_low;
    } else if (memory->shared_offset != 0) { /* all of it is of one allocation */
        target->placement = ORIEL_PLACEMENT_DEVICE;
        target->offset = memory->shared_offset;
    } else if (memory->range_count == 1) {
        target->placement = ORIEL_PLACEMENT_COPY;
    } else {
        target->placement = ORIEL_PLACEMENT_REGIONS;
        if (oriel_regions_insert(window, memory->ranges, memory->range_count) != ORIEL_OK)
            return oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of regions");
    }
    if (target->placement != ORIEL_PLACEMENT_DIRECT)
        state->own.agent = agent_readiness();
    return ORIEL_OK;
}

/* MPI_Win_allocate of device memory: then as memory of the program. */
static enum oriel_status device_memory_prepare(struct create_state *state, uint64_t size_bytes)
{
    struct oriel_window *window = state->window;
    const enum oriel_status status = oriel_gpu_alloc(size_bytes, &window->device_memory);
    if (status != ORIEL_OK)
        return status;
    state->own.target.address = (uint64_t)(uintptr_t)window->device_memory;
    return user_memory_prepare(state);
}

/* Prepares this rank's memory, for flavours where each rank has its own. */
static enum oriel_status window_memory_prepare(struct create_state *state)
{
    const struct oriel_creation *creation = state->creation;
    struct oriel_target *target = &state->own.target;
    uint64_t size_bytes = (uint64_t)creation->size_bytes;
    target->size_bytes = size_bytes;
    target->disp_unit = creation->disp_unit;
    target->placement = ORIEL_PLACEMENT_DIRECT;
    state->own.memory = *oriel_file_identity();
    if (state->window->n > 1 &&
        (creation->flavour == ORIEL_FLAVOUR_DYNAMIC || creation->flavour == ORIEL_FLAVOUR_CREATE)) {
        oriel_polled_install();
        oriel_host_progress_register(oriel_polled_poll);
    }
    if (creation->flavour == ORIEL_FLAVOUR_DYNAMIC) {
        target->placement = ORIEL_PLACEMENT_REGIONS;
        state->own.agent = agent_readiness();
        return ORIEL_OK;
    }
    if (creation->flavour == ORIEL_FLAVOUR_CREATE) {
        target->address = (uint64_t)(uintptr_t)creation->base;
        if (size_bytes == 0 || oriel_mechanism_find_file(creation->base, size_bytes,
                                                         &state->own.memory, &target->offset))
            return ORIEL_OK;
        return user_memory_prepare(state);
    }
    if (creation->flavour == ORIEL_FLAVOUR_ALLOCATE && size_bytes > 0 &&
        oriel_hints_want_device(&state->window->host->hints))
        return device_memory_prepare(state, size_bytes);
    if (creation->flavour == ORIEL_FLAVOUR_SHARED && !state->own.noncontig)
        return ORIEL_OK; /* rank 0 allocates for all ranks once it knows the sizes */
    enum oriel_status status =
        window_memory_alloc(state, size_bytes, state->own.alignment, &target->offset);
    target->address = (uint64_t)(uintptr_t)(oriel_file_base() + target->offset);
    return status;
}

/* The ORIEL_PATH_* of the memory at creation: a dynamic window has none yet. */
static uint8_t paths_of_memory(const struct create_state *state)
{
    if (state->window->user_memory != NULL)
        return (uint8_t)oriel_user_memory_paths(state->window->user_memory);
    return state->creation->size_bytes > 0 ? ORIEL_PATH_DIRECT : 0;
}

/* Memory that the program allocated stays where it is. */
static void placement_prepare(struct create_state *state)
{
    struct oriel_hints *hints = &state->window->host->hints;
    const bool allocates = state->creation->flavour != ORIEL_FLAVOUR_CREATE &&
                           state->creation->flavour != ORIEL_FLAVOUR_DYNAMIC;
    state->own.placement = oriel_hints_placement(hints);
    if (state->own.placement.from == ORIEL_PAGES_ANYWHERE ||
        (allocates && oriel_pages_can_place(state->own.placement)))
        return;
    state->own.placement.from = ORIEL_PAGES_ANYWHERE;
    oriel_hints_clear_placement(hints);
}

static enum oriel_status control_words_prepare(struct create_state *state)
{
    struct oriel_window *window = state->window;
    uint64_t offset;
    enum oriel_status status = oriel_create_state_alloc_block(
        sizeof(struct oriel_control), 2 * ORIEL_CACHE_LINE, &window->control_offset, &offset);
    if (status != ORIEL_OK)
        return status;
    window->control = (struct oriel_control *)(oriel_file_base() + offset);
    state->own.target.control_offset = offset;
    status = oriel_notifications_make(window, oriel_hints_notifications(&window->host->hints),
                                      oriel_host_has_threads());
    if (status != ORIEL_OK)
        return status;
    if (window->rank != 0)
        return ORIEL_OK;
    bool wants_rendezvous = window->n > 1 && state->rendezvous == NULL && !state->own.is_freeing;
    /* a failure is no error: the next windows are then created like this one */
    if (wants_rendezvous &&
        oriel_create_state_alloc_block(oriel_shm_rendezvous_bytes(window->n), ORIEL_CACHE_LINE,
                                       &state->rendezvous_offset, &offset) == ORIEL_OK)
        state->own.rendezvous_offset = offset;
    return oriel_create_state_alloc_block(oriel_common_bytes(window->n), 2 * ORIEL_CACHE_LINE,
                                          &window->common_offset, &state->own.common_offset);
}

enum oriel_status oriel_create_state_prepare(struct create_state *state)
{
    static _Atomic uint64_t internode_ids;
    const struct oriel_creation *creation = state->creation;
    struct oriel_hints *hints = &state->window->host->hints;
    oriel_gpu_look();
    oriel_hints_init(hints);
    enum oriel_status status = oriel_hints_read(hints, creation->info);
    state->window->only_host_buffers = !oriel_hints_allow_device(hints);
    state->own.is_device =
        creation->flavour == ORIEL_FLAVOUR_CREATE && oriel_gpu_is_device(creation->base);
    state->own.version = RECORD_VERSION;
    state->own.is_freeing = oriel_comm_cache_is_freeing(creation->comm);
    state->own.node = oriel_pages_node();
    state->own.noncontig = oriel_hint_is_true(hints->noncontig);
    state->own.alignment = oriel_hints_alignment(hints);
    placement_prepare(state);
    if (oriel_window_start() != ORIEL_OK) {
        oriel_create_state_note_host(state);
        state->own.wants_host = 1;
        return ORIEL_OK;
    }
    state->own.member.process = *oriel_file_identity();
    state->own.member.node = oriel_node_id(creation->flavour == ORIEL_FLAVOUR_SHARED);
    state->own.internode_id =
        1 + atomic_fetch_add_explicit(&internode_ids, 1, memory_order_relaxed);
    if (status == ORIEL_OK && state->window == &state->spare)
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
    if (status == ORIEL_OK)
        status = check_arguments(creation);
    if (status == ORIEL_OK)
        status = control_words_prepare(state);
    if (status == ORIEL_OK)
        status = window_memory_prepare(state);
    state->own.paths = paths_of_memory(state);
    if (status != ORIEL_E_OTHER || state->own.is_device)
        return status;
    oriel_create_state_note_host(state);
    state->own.wants_host = 1;
    return ORIEL_OK;
}
