/* The creation protocol. A window's carrier is a window of the host, whose handle the program gets.
 *
 *   1. Each rank prepares: it checks its arguments, allocates its control words and, depending on
 *      the flavour, its memory. Rank 0 allocates the common words. A failure is recorded in the
 *      rank's record, not returned.
 *   2. All ranks exchange records. From the same records all draw the same conclusion: an error on
 *      any rank is an error on all ranks. If one rank cannot share memory, the host creates the
 *      window on all ranks. Over a communicator that has a rendezvous (create_exchange.c), each
 *      rank obtains its carrier before this step. The usual window is then complete after this
 *      step, and the other steps are skipped.
 *   3. Each rank opens the files of all others, which proves that each pair can open both ways. It
 *      probes CMA where a target needs it, and obtains a carrier from the host. Rank 0 fills the
 *      table of targets. The first window of a communicator also creates its rendezvous.
 *   4. All ranks agree by one reduction of bits; only then does the window exist on all ranks. If
 *      the ranks are on several nodes (node_map.c), they start the net and exchange addresses
 *      before step 3. In step 3 each node's leader fills a table for its node. When all ranks have
 *      finished, they agree once more.
 *   5. If CMA is refused to any rank, agents serve all memory of the window that would need CMA. If
 *      the records show a rank whose agent is not open, that rank opens it, and all agree once
 *      more. If an agent may not be opened, the host creates the window.
 *
 * Invariant: no rank returns a window that another rank does not have, unless a rank has died
 * meanwhile. Threads may create windows on different communicators concurrently. */
#include "create/create_state.h"

#include "base/log.h"
#include "base/options.h"
#include "create/attach.h"
#include "create/path_info.h"
#include "create/regions.h"
#include "host/host.h"
#include "memory/agent_area.h"
#include "rma/deferred.h"
#include "rma/device_buffers.h"
#include "rma/device_maps.h"
#include "sync/access_words.h"
#include "sync/notify.h"
#include "sync/pscw_counters.h"
#include "transport/shared/copy.h"
#include "window/handle.h"

#include <stdio.h>
#include <stdlib.h>

/* The records are valid until step 4. */
static const struct create_record *rank_record(const struct create_state *state, int32_t rank)
{
    return state->records != NULL ? &state->records[rank]
                                  : oriel_shm_rendezvous_record(state->rendezvous, rank);
}

/* Whether a rank cannot share memory at all, or has another version. */
static bool any_rank_wants_host(const struct create_state *state)
{
    for (int32_t i = 0; i < state->window->n; i++) {
        const struct create_record *record = rank_record(state, i);
        if (record->wants_host || record->version != RECORD_VERSION)
            return true;
    }
    return false;
}

/* The error of the first failed rank is returned on all ranks. */
static enum oriel_status agreed_status(const struct create_state *state)
{
    for (int32_t i = 0; i < state->window->n; i++) {
        enum oriel_status status = rank_record(state, i)->status;
        if (status == ORIEL_OK)
            continue;
        if (i == state->window->rank)
            return status; /* the message is already this thread's last one */
        return oriel_fail_of_other(status, "rank %d failed to create its part of the window",
                                   (int)i);
    }
    return ORIEL_OK;
}

static uint64_t common_offset(const struct create_state *state)
{
    if (state->node_map != NULL) {
        const struct oriel_window *window = state->window;
        const char *base = window->control_bases[window->leader];
        const struct oriel_control *control =
            (const struct oriel_control *)(base +
                                           state->records[window->leader].target.control_offset);
        return atomic_load_explicit(&control->common_offset, memory_order_acquire);
    }
    return rank_record(state, 0)->common_offset;
}

/* Derived from rank 0's process and the number of its window. */
static uint64_t common_id(const struct create_state *state)
{
    const struct create_record *first = rank_record(state, 0);
    return first->member.process.id[0] ^ first->internode_id * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t oriel_window_next_serial(void)
{
    static _Atomic uint64_t serials;
    return 1 + atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed);
}

static void window_fill_in(struct create_state *state)
{
    struct oriel_window *window = state->window;
    const struct oriel_creation *creation = state->creation;
    static const int flavors[] = {
        [ORIEL_FLAVOUR_CREATE] = MPI_WIN_FLAVOR_CREATE,
        [ORIEL_FLAVOUR_ALLOCATE] = MPI_WIN_FLAVOR_ALLOCATE,
        [ORIEL_FLAVOUR_SHARED] = MPI_WIN_FLAVOR_SHARED,
        [ORIEL_FLAVOUR_DYNAMIC] = MPI_WIN_FLAVOR_DYNAMIC,
    };
    oriel_copy_window_created();
    window->flavour = creation->flavour;
    window->common =
        (struct oriel_common *)(window->control_bases[window->leader] + common_offset(state));
    window->targets = window->common->targets;
    oriel_deferred_make(window);
    atomic_init(&window->access, window->group->absent);
    if (creation->flavour == ORIEL_FLAVOUR_CREATE)
        window->base = creation->base;
    else if (window->device_memory != NULL)
        window->base = window->device_memory;
    else if (creation->flavour != ORIEL_FLAVOUR_DYNAMIC)
        window->base = oriel_window_direct(window, window->rank, 0);
    if (creation->flavour == ORIEL_FLAVOUR_SHARED)
        oriel_peer_set_core_dump(window->base, (uint64_t)creation->size_bytes, true);
    if (state->is_contiguous)
        oriel_hints_set_contiguous(&window->host->hints,
                                   creation->size_bytes > 0 ? window->base : NULL);
    if (state->is_contiguous && !oriel_file_has_page(window->base, (uint64_t)creation->size_bytes))
        oriel_hints_clear_placement(&window->host->hints);
    window->serial = oriel_window_next_serial();
    window->id = common_id(state);
    window->host->number = rank_record(state, 0)->internode_id;
    window->host->size_bytes = (MPI_Aint)creation->size_bytes;
    window->host->disp_unit = (int)creation->disp_unit;
    window->host->create_flavor = flavors[creation->flavour];
    window->host->model = MPI_WIN_UNIFIED;
    oriel_user_memory_begin(window->user_memory, window->n);
    uint64_t stream;
    if (oriel_hints_stream(&window->host->hints, &stream) &&
        oriel_device_name_stream(window, stream) != ORIEL_OK)
        window->host->hints.cuda_stream[0] = '\0';
}

void oriel_window_free_begin(struct oriel_window *window)
{
    (void)oriel_deferred_copies_end(window);
    /* before the barrier: after it the owners may free their memory */
    oriel_device_maps_close(window);
    oriel_user_memory_end(window->user_memory);
}

void oriel_window_release_memory(struct oriel_window *window)
{
    uint64_t lost_bytes = oriel_attached_close(window);
    oriel_regions_close(window);
    lost_bytes += oriel_user_memory_close(window->user_memory);
    window->user_memory = NULL;
    oriel_path_info_warn_lost(window, "MPI_Win_free", lost_bytes);
}

void oriel_window_release_host_group(struct oriel_window *window)
{
    if (window->host->group != MPI_GROUP_NULL)
        oriel_host()->Group_free(&window->host->group);
}

/* Frees everything except the carrier. */
static void window_release(struct oriel_window *window)
{
    oriel_device_maps_close(window);
    oriel_device_copies_free(window);
    if (window->device_memory != NULL)
        (void)oriel_gpu_free(window->device_memory);
    oriel_node_map_close(window);
    oriel_deferred_free(window);
    oriel_window_release_memory(window);
    oriel_create_state_free_block(window->memory_offset);
    oriel_create_state_free_block(window->common_offset);
    if (window->control != NULL) {
        oriel_pscw_counters_close(window);
        oriel_access_words_close(window);
        oriel_notifications_close(window);
    }
    oriel_create_state_free_block(window->control_offset);
    if (window->group != NULL)
        oriel_group_release(window->group);
    oriel_window_release_host_group(window);
    free(window->memory_base_array);
    free(window->started.partners);
    free(window->posted.partners);
}

static void window_struct_free(struct oriel_window *window)
{
    free(window->host);
    free(window);
}

/* Uses storage inside the state when memory is exhausted. Returns false when the host does not know
 * the communicator. */
static bool window_struct_alloc(struct create_state *state)
{
    int n;
    int rank;
    MPI_Comm comm = state->creation->comm;
    if (oriel_host()->Comm_size(comm, &n) != MPI_SUCCESS ||
        oriel_host()->Comm_rank(comm, &rank) != MPI_SUCCESS)
        return false;
    struct oriel_window *window =
        aligned_alloc(ORIEL_CACHE_LINE, (sizeof *window + 63) & ~(size_t)63);
    struct oriel_window_host *host = calloc(1, sizeof *host);
    if (window == NULL || host == NULL) {
        free(window);
        free(host);
        window = &state->spare;
        host = &state->spare_host;
    }
    *host = (struct oriel_window_host){.handle = MPI_WIN_NULL, .group = MPI_GROUP_NULL};
    *window = (struct oriel_window){.n = n,
                                    .rank = rank,
                                    .here = n,
                                    .control_offset = -1,
                                    .common_offset = -1,
                                    .memory_offset = -1,
                                    .host = host};
    state->window = window;
    return true;
}

static bool any_agent_is(const struct create_state *state, enum readiness readiness)
{
    for (int32_t i = 0; i < state->window->n; i++)
        if (state->records[i].agent == readiness)
            return true;
    return false;
}

void oriel_create_state_note_host(const struct create_state *state)
{
    oriel_note_call(state->creation->call, "the host creates the window: %s [O12]",
                    oriel_fail_message());
}

/* Step 5: from the same records and bits, all ranks act the same. */
static enum oriel_status agree_on_agents(struct create_state *state, bool *use_host)
{
    uint32_t agreed = 1;
    enum oriel_status status = ORIEL_OK;
    if (any_agent_is(state, AGENT_TO_OPEN)) {
        bool opened = state->own.agent != AGENT_TO_OPEN || oriel_agent_open() == ORIEL_OK;
        if (!opened)
            oriel_create_state_note_host(state);
        status = oriel_create_state_agree(state, opened, &agreed);
    }
    if (status == ORIEL_OK && agreed == 0)
        (void)oriel_fail_of_other(ORIEL_E_OTHER, "a rank could not start its agent");
    *use_host = agreed == 0;
    state->window->by_agent = true;
    return status;
}

/* Whether the communicator has a rendezvous from here on is what all ranks agreed on, regardless of
 * the window. */
static void rendezvous_confirm_or_drop(struct create_state *state, bool is_agreed)
{
    if (state->new_rendezvous != NULL && is_agreed)
        oriel_comm_cache_confirm(state->new_rendezvous);
    else if (state->new_rendezvous != NULL)
        oriel_comm_cache_drop(state->creation->comm);
}

/* The host creates the window. The reason is this thread's last message. */
static enum oriel_status agree_on_host(bool others_want)
{
    if (others_want)
        (void)oriel_fail_of_other(ORIEL_E_OTHER, "another rank cannot share its memory");
    return ORIEL_OK;
}

/* The host would crash on device memory: no rank gets the window. */
static enum oriel_status host_check(const struct create_state *state)
{
    char reason[200];
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    for (int32_t i = 0; i < state->window->n; i++)
        if (rank_record(state, i)->is_device)
            return oriel_fail(ORIEL_E_UNSUPPORTED,
                              "the memory of rank %d is of a GPU, and the host MPI would have to "
                              "create the window: %s",
                              (int)i, reason);
    return ORIEL_OK;
}

/* Steps 2 to 5. */
static enum oriel_status paths_negotiate(struct create_state *state, bool *use_host)
{
    bool done;
    enum oriel_status status = oriel_create_state_exchange(state, &done);
    if (status != ORIEL_OK || done)
        return status;
    *use_host = any_rank_wants_host(state);
    if (*use_host)
        return agree_on_host(!state->own.wants_host);
    status = agreed_status(state);
    if (status == ORIEL_OK)
        status = oriel_node_map_exchange(state);
    if (status != ORIEL_OK)
        return status;
    uint32_t own = oriel_create_state_contribute(state);
    uint32_t agreed = own;
    status = oriel_create_state_agree(state, own, &agreed);
    rendezvous_confirm_or_drop(state, status == ORIEL_OK && (agreed & AGREE_RENDEZVOUS));
    if (status != ORIEL_OK || (agreed & AGREE_ALL) == AGREE_ALL)
        return status;
    *use_host = !(agreed & AGREE_REACHED);
    if (*use_host)
        return agree_on_host(own & AGREE_REACHED);
    if (!(agreed & AGREE_MEMORY)) /* a rank that lacks memory may have no records either */
        return own & AGREE_MEMORY
                   ? oriel_fail_of_other(ORIEL_E_NO_MEM,
                                         "another rank has run out of memory or window handles")
                   : ORIEL_E_NO_MEM;
    *use_host = any_agent_is(state, AGENT_REFUSED);
    if (!*use_host)
        return agree_on_agents(state, use_host);
    (void)oriel_fail(ORIEL_E_OTHER, "no cross-memory copies, and ORIEL_AGENT=never");
    oriel_create_state_note_host(state);
    return ORIEL_OK;
}

static enum oriel_status creation_negotiate(struct create_state *state, bool *use_host)
{
    enum oriel_status status = paths_negotiate(state, use_host);
    if (status == ORIEL_OK && *use_host)
        status = host_check(state);
    *use_host = *use_host && status == ORIEL_OK;
    return status;
}

/* A message that arrives while its window is incomplete would find missing words. In an internode
 * window, therefore, no rank returns before all have finished, and the receiving thread checks
 * is_finished. */
static enum oriel_status creation_agree_finished(struct create_state *state)
{
    uint32_t agreed;
    if (state->node_map == NULL)
        return ORIEL_OK;
    atomic_store_explicit(&state->window->internode->is_finished, true, memory_order_release);
    return oriel_create_state_agree(state, 1, &agreed);
}

/* A rank that died during the final agreement may have agreed with some ranks before. These have
 * the window and continue. This rank sends no messages to other nodes, where the window may be
 * incomplete. Ranks that wait there learn of the death when they query this process. */
static void creation_abandon(struct oriel_window *window, int32_t dead)
{
    char text[400]; /* this thread's last failure, which is preserved */
    uint32_t whole = 0;
    snprintf(text, sizeof text, "%s", oriel_fail_message());
    atomic_compare_exchange_strong_explicit(&window->common->broken, &whole, (uint32_t)dead + 1,
                                            memory_order_release, memory_order_relaxed);
    oriel_window_free_begin(window);
    oriel_window_abandon_local(window, dead);
    (void)oriel_fail(ORIEL_E_PEER, "%s", text);
}

/* others_may_have_it: all ranks were ready for it. */
static void creation_undo(struct create_state *state, bool others_may_have_it)
{
    struct oriel_window *window = state->window;
    if (state->has_carrier) {
        MPI_Win handle = window->host->handle;
        oriel_host_carrier_free(&window->host->handle, 0);
        oriel_handle_remove(handle, window);
    }
    if (others_may_have_it) {
        creation_abandon(window, state->dead);
        return;
    }
    window_release(window);
    if (window != &state->spare)
        window_struct_free(window);
}

/* One line per window, by the first rank with memory. Where other ranks' memory has other paths,
 * the first rank of each kind prints a line. */
static void creation_report(const struct create_state *state)
{
    struct oriel_path_ranks ranks = {.first = -1};
    if (oriel_options()->verbose < 1)
        return;
    for (int32_t i = 0; i < state->window->n; i++) {
        uint8_t paths = rank_record(state, i)->paths;
        if (paths == 0)
            continue;
        ranks.count_of_all++;
        if (paths == state->own.paths && ranks.count++ == 0)
            ranks.first = i;
    }
    if (state->window->rank == (ranks.count_of_all == 0 ? 0 : ranks.first))
        oriel_path_info_report(state->window, state->creation->call, &ranks);
}

enum oriel_status oriel_window_create(const struct oriel_creation *creation,
                                      struct oriel_window **out, bool *use_host)
{
    struct create_state state = {.creation = creation, .rendezvous_offset = -1};
    *use_host = false;
    oriel_window_reclaim();
    oriel_comm_cache_reclaim();
    if (!window_struct_alloc(&state))
        return oriel_fail(ORIEL_E_COMM, "the host does not know the communicator");
    state.rendezvous = oriel_comm_cache_find(creation->comm);
    state.own.status = oriel_create_state_prepare(&state);
    if (state.rendezvous != NULL && state.own.status == ORIEL_OK && !state.own.wants_host)
        state.own.status = oriel_create_state_join_rendezvous(&state);
    enum oriel_status status = creation_negotiate(&state, use_host);
    const bool is_finished = status == ORIEL_OK && !*use_host;
    if (is_finished) {
        window_fill_in(&state);
        status = creation_agree_finished(&state);
    }
    if (status == ORIEL_OK && !*use_host) {
        if (state.window->internode != NULL)
            atomic_store_explicit(&state.window->internode->is_settled, true, memory_order_release);
        creation_report(&state);
        *out = state.window;
    } else {
        creation_undo(&state, is_finished && status == ORIEL_E_PEER);
    }
    oriel_create_state_free_block(state.rendezvous_offset);
    oriel_node_map_free(state.node_map);
    if (state.records != state.inline_records)
        free(state.records);
    return status;
}

void oriel_window_destroy(struct oriel_window *window)
{
    window_release(window);
    window_struct_free(window);
}

MPI_Win oriel_window_handle(const struct oriel_window *window)
{
    return window->host->handle;
}
