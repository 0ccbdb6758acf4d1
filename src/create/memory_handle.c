/* The owner's side of memory handles: areas in the memory file, and what they say about a part of
 * the window. sync/holder_epochs.c has the argument of their words. */
#include "create/memory_handle.h"

#include "base/crc32.h"
#include "base/delay.h"
#include "base/options.h"
#include "create/node_map.h"
#include "memory/agent_area.h"
#include "memory/mechanism.h"
#include "rma/path_select.h"
#include "sync/holder_epochs.h"
#include "window/host_objects.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HANDLE_MAGIC UINT64_C(0x656c646e61484d1a)

enum { HANDLE_VERSION = 1 };

/* Of a window that has, or had, handles. */
struct oriel_window_handles {
    uint64_t members_offset; /* its processes on this node, by win_rank */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects the areas of this process */
static uint64_t list_offset;                              /* of the list; 0: none yet */
static uint32_t area_count;

static struct oriel_handle_list *own_list(void)
{
    return (struct oriel_handle_list *)(oriel_file_base() + list_offset);
}

static struct oriel_handle_area *area_at(uint64_t offset)
{
    return offset == 0 ? NULL : (struct oriel_handle_area *)(oriel_file_base() + offset);
}

static struct oriel_handle_area *first_area(void)
{
    return list_offset == 0
               ? NULL
               : area_at(atomic_load_explicit(&own_list()->first, memory_order_relaxed));
}

static uint32_t handle_checksum(const struct oriel_memory_handle *handle)
{
    struct oriel_memory_handle copy = *handle;
    copy.checksum = 0;
    return oriel_crc32(0, &copy, sizeof copy);
}

bool oriel_memory_handle_is_valid(const struct oriel_memory_handle *handle)
{
    return handle->magic == HANDLE_MAGIC && handle->version == HANDLE_VERSION &&
           handle->checksum == handle_checksum(handle) && handle->key != 0 &&
           handle->area % ORIEL_CACHE_LINE == 0;
}

/* --- areas --- */

/* R */
static bool area_is_free(struct oriel_handle_area *area)
{
    return atomic_load_explicit(&area->key, memory_order_relaxed) == 0 &&
           oriel_handle_is_unused(area);
}

static struct oriel_handle_area *area_find_free(void)
{
    struct oriel_handle_area *area = first_area();
    while (area != NULL && !area_is_free(area))
        area = area_at(area->next);
    return area;
}

static enum oriel_status list_make(void)
{
    return list_offset != 0
               ? ORIEL_OK
               : oriel_file_alloc(sizeof(struct oriel_handle_list), ORIEL_CACHE_LINE, &list_offset);
}

static enum oriel_status area_make(struct oriel_handle_area **out)
{
    uint64_t offset;
    enum oriel_status status = list_make();
    if (status == ORIEL_OK && area_count == ORIEL_HANDLE_AREAS_MOST)
        status = oriel_fail(ORIEL_E_NO_MEM, "this process has %d memory handles",
                            ORIEL_HANDLE_AREAS_MOST);
    if (status == ORIEL_OK)
        status = oriel_file_alloc_sparse(sizeof(struct oriel_handle_area), &offset);
    if (status != ORIEL_OK)
        return ORIEL_E_NO_MEM;
    struct oriel_handle_area *area = area_at(offset);
    area->next = atomic_load_explicit(&own_list()->first, memory_order_relaxed);
    area->number = area_count++;
    atomic_store_explicit(&own_list()->first, offset, memory_order_release);
    *out = area;
    return ORIEL_OK;
}

/* An area without a handle, and without holders. */
static enum oriel_status area_acquire(struct oriel_handle_area **out)
{
    *out = area_find_free();
    if (*out == NULL)
        return area_make(out);
    struct oriel_handle_area *area = *out;
    for (uint32_t i = 0; i < oriel_load_relaxed(&area->used); i++) {
        uint64_t process = atomic_load_explicit(&area->holders[i].process, memory_order_relaxed);
        if (process != 0 && oriel_identity_word_alive(process))
            continue; /* it finds no key, and leaves */
        oriel_store_relaxed(&area->holders[i].state, ORIEL_ACCESS_STATE_NONE);
        atomic_compare_exchange_strong_explicit(&area->holders[i].process, &process, 0,
                                                memory_order_release, memory_order_relaxed);
    }
    return ORIEL_OK;
}

/* --- the part --- */

/* Only bytes [from, from + size_bytes) of the target are left. */
static struct oriel_target target_part(const struct oriel_target *whole, uint64_t from,
                                       uint64_t size_bytes)
{
    struct oriel_target part = *whole;
    const uint64_t low = whole->direct_low > from ? whole->direct_low - from : 0;
    const uint64_t direct_end = whole->direct_low + whole->direct_bytes;
    const uint64_t high = direct_end > from ? direct_end - from : 0;
    part.size_bytes = size_bytes;
    part.address += from;
    part.offset += from;
    part.direct_low = low < size_bytes ? low : size_bytes;
    part.direct_bytes = (high < size_bytes ? high : size_bytes) - part.direct_low;
    if (high <= low || part.direct_low == size_bytes)
        part.direct_low = part.direct_bytes = 0;
    if (whole->placement == ORIEL_PLACEMENT_MIXED && part.direct_bytes == 0)
        part.placement = ORIEL_PLACEMENT_COPY;
    else if (whole->placement == ORIEL_PLACEMENT_MIXED && part.direct_bytes == size_bytes)
        part.placement = ORIEL_PLACEMENT_DIRECT;
    return part;
}

/* Whether any of the bytes [from, end) are memory of a GPU. */
static bool has_gpu_memory(const struct oriel_window *window, uint64_t from, uint64_t end)
{
    bool found = false;
    while (from < end && !found) {
        const struct oriel_path_range alike = oriel_path_range_at(window, window->rank, from);
        found = alike.device != NULL;
        from = alike.end;
    }
    return found;
}

static enum oriel_status find_part(const struct oriel_window *window, int64_t disp,
                                   int64_t size_bytes, struct oriel_target *part)
{
    const struct oriel_target *own = &window->targets[window->rank];
    const bool is_dynamic = window->flavour == ORIEL_FLAVOUR_DYNAMIC;
    int64_t from = disp;
    if (size_bytes < 0)
        return oriel_fail(ORIEL_E_SIZE, "size %lld is negative", (long long)size_bytes);
    if (disp < 0 && !is_dynamic)
        return oriel_fail(ORIEL_E_DISP, "displacement %lld is negative", (long long)disp);
    const bool fits = is_dynamic ? size_bytes == 0 || oriel_region_lookup_hold(window, window->rank,
                                                                               (uint64_t)disp,
                                                                               (uint64_t)size_bytes)
                                 : !__builtin_mul_overflow(disp, own->disp_unit, &from) &&
                                       (uint64_t)from <= own->size_bytes &&
                                       (uint64_t)size_bytes <= own->size_bytes - (uint64_t)from;
    if (!fits)
        return oriel_fail(ORIEL_E_RANGE,
                          "%lld bytes from displacement %lld exceed this rank's memory in the "
                          "window",
                          (long long)size_bytes, (long long)disp);
    if (has_gpu_memory(window, (uint64_t)from, (uint64_t)from + (uint64_t)size_bytes))
        return oriel_fail(ORIEL_E_UNSUPPORTED, "memory of a GPU has no memory handles");
    *part = target_part(own, (uint64_t)from, (uint64_t)size_bytes);
    return ORIEL_OK;
}

/* --- making --- */

static enum oriel_status members_make(struct oriel_window *window)
{
    if (window->handles != NULL)
        return ORIEL_OK;
    struct oriel_window_handles *handles = calloc(1, sizeof *handles);
    if (handles == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a memory handle");
    if (oriel_file_alloc((uint64_t)window->n * sizeof(struct oriel_identity), ORIEL_CACHE_LINE,
                         &handles->members_offset) != ORIEL_OK) {
        free(handles);
        return ORIEL_E_NO_MEM;
    }
    struct oriel_identity *members =
        (struct oriel_identity *)(oriel_file_base() + handles->members_offset);
    for (int32_t i = 0; i < window->n; i++)
        if (window->group->peers[i] != NULL)
            members[i] = window->group->peers[i]->identity;
    window->handles = handles;
    return ORIEL_OK;
}

/* The identity of the process whose memory file contains this rank's memory. */
static struct oriel_identity memory_owner(const struct oriel_window *window)
{
    struct oriel_identity found = *oriel_file_identity();
    uint64_t offset;
    (void)oriel_mechanism_find_file(window->memory_bases[window->rank], 1, &found, &offset);
    return found;
}

/* Memory that is reached by copies: some holder may not be allowed to copy. Without an agent, it
 * cannot open the handle. */
static bool agent_open_for(const struct oriel_target *part)
{
    return part->placement != ORIEL_PLACEMENT_DIRECT &&
           oriel_options()->agent != ORIEL_AGENT_NEVER && oriel_agent_open() == ORIEL_OK;
}

static void area_describe(struct oriel_handle_area *area, const struct oriel_window *window,
                          const struct oriel_target *part)
{
    area->common_offset =
        (uint64_t)((const char *)window->common - window->control_bases[window->leader]);
    area->members_offset = window->handles->members_offset;
    area->member_count = (uint32_t)window->n;
    area->has_agent = agent_open_for(part);
    area->window_number = window->host->number;
    area->leader = window->group->peers[window->leader]->identity;
    area->memory = memory_owner(window);
    area->target = *part;
}

static enum oriel_status make_locked(struct oriel_window *window, const struct oriel_target *part,
                                     struct oriel_memory_handle *out)
{
    struct oriel_handle_area *area = NULL;
    uint64_t key = 0;
    enum oriel_status status = members_make(window);
    if (status == ORIEL_OK)
        status = area_acquire(&area);
    if (status == ORIEL_OK && (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key || key == 0))
        status = oriel_fail(ORIEL_E_OTHER, "the kernel returns no random key");
    if (status != ORIEL_OK)
        return status;
    area_describe(area, window, part);
    oriel_store_relaxed(&area->withdrawn, 0);
    atomic_store_explicit(&area->control_offset, window->targets[window->rank].control_offset,
                          memory_order_release);
    atomic_store_explicit(&window->control->handles_offset, list_offset, memory_order_release);
    oriel_delay();
    atomic_store_explicit(&area->key, key, memory_order_seq_cst);
    *out = (struct oriel_memory_handle){.magic = HANDLE_MAGIC,
                                        .version = HANDLE_VERSION,
                                        .node = oriel_node_id(false),
                                        .owner = *oriel_file_identity(),
                                        .area = (uint64_t)((char *)area - oriel_file_base()),
                                        .key = key};
    out->checksum = handle_checksum(out);
    return ORIEL_OK;
}

enum oriel_status oriel_memory_handle_make(struct oriel_window *window, int64_t disp,
                                           int64_t size_bytes, struct oriel_memory_handle *out)
{
    struct oriel_target part;
    if (oriel_window_is_opened(window))
        return oriel_fail(ORIEL_E_UNSUPPORTED,
                          "the window was opened from a memory handle: only the memory's owner "
                          "makes handles of it");
    enum oriel_status status = find_part(window, disp, size_bytes, &part);
    if (status != ORIEL_OK)
        return status;
    pthread_mutex_lock(&mutex);
    status = make_locked(window, &part, out);
    pthread_mutex_unlock(&mutex);
    return status;
}

/* --- withdrawing --- */

static enum oriel_status claim_withdrawal(const struct oriel_memory_handle *handle,
                                          struct oriel_handle_area **out)
{
    struct oriel_handle_area *area = first_area();
    while (area != NULL && atomic_load_explicit(&area->key, memory_order_relaxed) != handle->key)
        area = area_at(area->next);
    if (area == NULL || (uint64_t)((char *)area - oriel_file_base()) != handle->area ||
        !oriel_identity_equal(&handle->owner, oriel_file_identity()) ||
        oriel_load_relaxed(&area->withdrawn) != 0)
        return oriel_fail(ORIEL_E_ARG, "the handle is withdrawn, or of another process");
    if (oriel_handle_has_own_epoch(area))
        return oriel_fail(ORIEL_E_SYNC, "this process has itself an epoch open on the handle");
    oriel_store_relaxed(&area->withdrawn, 1);
    *out = area;
    return ORIEL_OK;
}

enum oriel_status oriel_memory_handle_free(const struct oriel_memory_handle *handle)
{
    struct oriel_handle_area *area = NULL;
    if (!oriel_memory_handle_is_valid(handle))
        return oriel_fail(ORIEL_E_ARG, "the bytes are no memory handle");
    pthread_mutex_lock(&mutex);
    enum oriel_status status = claim_withdrawal(handle, &area);
    pthread_mutex_unlock(&mutex);
    if (status != ORIEL_OK)
        return status;
    oriel_handle_withdraw(area, false);
    atomic_store_explicit(&area->key, 0, memory_order_seq_cst);
    return ORIEL_OK;
}

static bool area_is_of(const struct oriel_handle_area *area, const struct oriel_window *window)
{
    return atomic_load_explicit(&area->control_offset, memory_order_relaxed) ==
           window->targets[window->rank].control_offset;
}

enum oriel_status oriel_memory_handles_closed(const struct oriel_window *window)
{
    enum oriel_status status = ORIEL_OK;
    if (window->handles == NULL)
        return ORIEL_OK;
    pthread_mutex_lock(&mutex);
    for (struct oriel_handle_area *area = first_area(); area != NULL && status == ORIEL_OK;
         area = area_at(area->next))
        if (area_is_of(area, window) && oriel_handle_has_own_epoch(area))
            status = oriel_fail(ORIEL_E_SYNC, "this process has itself an epoch open on a memory "
                                              "handle of the window");
    pthread_mutex_unlock(&mutex);
    return status;
}

void oriel_memory_handles_withdraw(struct oriel_window *window)
{
    struct oriel_window_handles *handles = window->handles;
    if (handles == NULL)
        return;
    pthread_mutex_lock(&mutex);
    struct oriel_handle_area *area = first_area();
    pthread_mutex_unlock(&mutex);
    for (; area != NULL; area = area_at(area->next)) {
        if (!area_is_of(area, window))
            continue;
        oriel_handle_withdraw(area, true);
        pthread_mutex_lock(&mutex);
        atomic_store_explicit(&area->control_offset, 0, memory_order_release);
        atomic_store_explicit(&area->key, 0, memory_order_seq_cst);
        pthread_mutex_unlock(&mutex);
    }
    oriel_file_free(handles->members_offset);
    free(handles);
    window->handles = NULL;
}
