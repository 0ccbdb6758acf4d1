/* The owner's side of memory handles: areas in the memory file, and what they say about a part of
 * the window. sync/holder_epochs.c has the argument of their words.
 *
 * Making and withdrawing a handle take the same time whatever the number of handles. An area is
 * either in the table of handles, or being withdrawn by some threads, or in the queue of areas
 * without a handle. One from the queue may still have holders. Making a handle looks at the first
 * few only, moves those with holders to the end, and makes an area if it finds none. */
#include "create/memory_handle.h"

#include "base/crc32.h"
#include "base/delay.h"
#include "base/hash_table.h"
#include "base/options.h"
#include "create/node_map.h"
#include "host/host.h"
#include "memory/agent_area.h"
#include "memory/mechanism.h"
#include "rma/path_select.h"
#include "sync/holder_epochs.h"
#include "window/host_objects.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#define HANDLE_MAGIC UINT64_C(0x656c646e61484d1a)

enum { HANDLE_VERSION = 2 };

/* Areas without a handle at which making one looks. */
enum { AREAS_LOOKED_AT = 2 };

/* What this process knows of an area. Never freed, like the area. */
struct lent_area {
    struct oriel_handle_area *area;
    uint32_t withdrawals;            /* threads that withdraw the handle or end the window */
    bool is_queued;                  /* in the queue */
    bool has_window;                 /* in the list of a window: its handle's, or its last one's */
    TAILQ_ENTRY(lent_area) queue;    /* without a handle */
    LIST_ENTRY(lent_area) of_window; /* of that window */
};

/* Of a window that has, or had, handles. */
struct oriel_window_handles {
    uint64_t members_offset; /* its processes on this node, by win_rank */
    LIST_HEAD(lent_areas, lent_area) areas;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects the areas of this process */
static uint64_t list_offset;                              /* of the list; 0: none yet */
static uint32_t area_count;
static struct oriel_hash_table by_key = ORIEL_HASH_TABLE_INIT; /* struct lent_area of handles */
static TAILQ_HEAD(lent_queue, lent_area) without_handle = TAILQ_HEAD_INITIALIZER(without_handle);

static struct oriel_handle_list *own_list(void)
{
    return (struct oriel_handle_list *)(oriel_file_base() + list_offset);
}

static uint32_t handle_checksum(const struct oriel_memory_handle *handle)
{
    struct oriel_memory_handle copy = *handle;
    copy.checksum = 0;
    return oriel_crc32(0, &copy,
                       offsetof(struct oriel_memory_handle, address) + copy.address_bytes);
}

/* Bytes after the address are 0. */
static bool has_address(const struct oriel_memory_handle *handle)
{
    if (handle->address_bytes >= sizeof handle->address)
        return false;
    const char *rest = handle->address + handle->address_bytes;
    const size_t rest_bytes = sizeof handle->address - handle->address_bytes;
    return rest[0] == 0 && memcmp(rest, rest + 1, rest_bytes - 1) == 0;
}

bool oriel_memory_handle_is_valid(const struct oriel_memory_handle *handle)
{
    return handle->magic == HANDLE_MAGIC && handle->version == HANDLE_VERSION &&
           has_address(handle) && handle->checksum == handle_checksum(handle) && handle->key != 0 &&
           handle->area % ORIEL_CACHE_LINE == 0;
}

/* --- areas --- */

static enum oriel_status list_make(void)
{
    return list_offset != 0
               ? ORIEL_OK
               : oriel_file_alloc(sizeof(struct oriel_handle_list), ORIEL_CACHE_LINE, &list_offset);
}

static enum oriel_status area_make(struct lent_area **out)
{
    uint64_t offset;
    struct lent_area *lent = calloc(1, sizeof *lent);
    enum oriel_status status =
        lent != NULL ? list_make() : oriel_fail(ORIEL_E_NO_MEM, "no memory for a memory handle");
    if (status == ORIEL_OK && area_count == ORIEL_HANDLE_AREAS_MOST)
        status = oriel_fail(ORIEL_E_NO_MEM, "this process has %d memory handles",
                            ORIEL_HANDLE_AREAS_MOST);
    if (status == ORIEL_OK)
        status = oriel_file_alloc_sparse(sizeof(struct oriel_handle_area), &offset);
    if (status != ORIEL_OK) {
        free(lent);
        return ORIEL_E_NO_MEM;
    }
    lent->area = (struct oriel_handle_area *)(oriel_file_base() + offset);
    lent->area->next = atomic_load_explicit(&own_list()->first, memory_order_relaxed);
    lent->area->number = area_count++;
    atomic_store_explicit(&own_list()->first, offset, memory_order_release);
    *out = lent;
    return ORIEL_OK;
}

static void queue_add(struct lent_area *lent)
{
    lent->is_queued = true;
    TAILQ_INSERT_TAIL(&without_handle, lent, queue);
}

static void queue_remove(struct lent_area *lent)
{
    lent->is_queued = false;
    TAILQ_REMOVE(&without_handle, lent, queue);
}

/* R */
static struct lent_area *queue_take_unused(void)
{
    for (int i = 0; i < AREAS_LOOKED_AT; i++) {
        struct lent_area *lent = TAILQ_FIRST(&without_handle);
        if (lent == NULL)
            return NULL;
        queue_remove(lent);
        if (oriel_handle_is_unused(lent->area))
            return lent;
        queue_add(lent);
    }
    return NULL;
}

/* An area without a handle, and without holders. */
static enum oriel_status area_acquire(struct lent_area **out)
{
    *out = queue_take_unused();
    if (*out == NULL)
        return area_make(out);
    struct oriel_handle_area *area = (*out)->area;
    for (uint32_t i = 0; i < oriel_load_relaxed(&area->used); i++) {
        uint64_t process = atomic_load_explicit(&area->holders[i].process, memory_order_relaxed);
        if (process != 0 && oriel_identity_word_alive(process) &&
            oriel_load_relaxed(&area->holders[i].state) != ORIEL_ACCESS_STATE_LOST)
            continue; /* it finds no key, and leaves */
        oriel_store_relaxed(&area->holders[i].state, ORIEL_ACCESS_STATE_NONE);
        atomic_compare_exchange_strong_explicit(&area->holders[i].process, &process, 0,
                                                memory_order_release, memory_order_relaxed);
    }
    if ((*out)->has_window)
        LIST_REMOVE(*out, of_window);
    (*out)->has_window = false;
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

static enum oriel_status key_draw(uint64_t *key)
{
    return getrandom(key, sizeof *key, 0) == (ssize_t)sizeof *key && *key != 0
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_OTHER, "the kernel returns no random key");
}

static int32_t own_world_rank(void)
{
    int rank = -1;
    return oriel_host_has_world() && oriel_host()->Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS
               ? rank
               : -1;
}

/* Without a net, processes of other nodes cannot open the handle. */
static void address_add(struct oriel_memory_handle *handle)
{
    size_t len_bytes;
    if (!oriel_net_is_started())
        return;
    const void *address = oriel_net_address(&len_bytes);
    handle->address_bytes = (uint32_t)len_bytes;
    memcpy(handle->address, address, len_bytes);
}

static enum oriel_status make_locked(struct oriel_window *window, const struct oriel_target *part,
                                     struct oriel_memory_handle *out)
{
    struct lent_area *lent = NULL;
    uint64_t key = 0;
    enum oriel_status status = key_draw(&key);
    if (status == ORIEL_OK)
        status = members_make(window);
    if (status == ORIEL_OK)
        status = area_acquire(&lent);
    if (status == ORIEL_OK && !oriel_hash_table_set_nolock(&by_key, key, lent)) {
        queue_add(lent);
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a memory handle");
    }
    if (status != ORIEL_OK)
        return status;
    struct oriel_handle_area *area = lent->area;
    lent->has_window = true;
    LIST_INSERT_HEAD(&window->handles->areas, lent, of_window);
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
                                        .key = key,
                                        .world_rank = own_world_rank()};
    address_add(out);
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
    oriel_memory_serve();
    if (oriel_node_map_job_spans_nodes())
        (void)oriel_node_map_net_start();
    pthread_mutex_lock(&mutex);
    status = make_locked(window, &part, out);
    pthread_mutex_unlock(&mutex);
    return status;
}

/* --- withdrawing --- */

/* Waits without the mutex. The last of the threads that withdraw the handle queues its area.
 * ends_window: no holder touches the window's words afterwards. */
static void withdraw_locked(struct lent_area *lent, bool ends_window)
{
    struct oriel_handle_area *area = lent->area;
    lent->withdrawals++;
    pthread_mutex_unlock(&mutex);
    oriel_handle_withdraw(area, ends_window);
    pthread_mutex_lock(&mutex);
    if (ends_window)
        atomic_store_explicit(&area->control_offset, 0, memory_order_release);
    oriel_hash_table_remove_nolock(&by_key, atomic_load_explicit(&area->key, memory_order_relaxed),
                                   lent);
    atomic_store_explicit(&area->key, 0, memory_order_seq_cst);
    if (--lent->withdrawals == 0)
        queue_add(lent);
}

struct oriel_handle_area *oriel_memory_handle_find(uint64_t area, uint64_t key)
{
    const struct lent_area *lent = oriel_hash_table_find(&by_key, key);
    return lent != NULL && (uint64_t)((char *)lent->area - oriel_file_base()) == area ? lent->area
                                                                                      : NULL;
}

static enum oriel_status find_live(const struct oriel_memory_handle *handle, struct lent_area **out)
{
    struct lent_area *lent = oriel_hash_table_find(&by_key, handle->key);
    if (oriel_memory_handle_find(handle->area, handle->key) == NULL ||
        !oriel_identity_equal(&handle->owner, oriel_file_identity()) || lent->withdrawals != 0)
        return oriel_fail(ORIEL_E_ARG, "the handle is withdrawn, or of another process");
    if (oriel_handle_has_own_epoch(lent->area))
        return oriel_fail(ORIEL_E_SYNC, "this process has itself an epoch open on the handle");
    *out = lent;
    return ORIEL_OK;
}

enum oriel_status oriel_memory_handle_free(const struct oriel_memory_handle *handle)
{
    struct lent_area *lent = NULL;
    if (!oriel_memory_handle_is_valid(handle))
        return oriel_fail(ORIEL_E_ARG, "the bytes are no memory handle");
    pthread_mutex_lock(&mutex);
    enum oriel_status status = find_live(handle, &lent);
    if (status == ORIEL_OK)
        withdraw_locked(lent, false);
    pthread_mutex_unlock(&mutex);
    return status;
}

enum oriel_status oriel_memory_handles_closed(const struct oriel_window *window)
{
    enum oriel_status status = ORIEL_OK;
    const struct lent_area *lent;
    if (window->handles == NULL)
        return ORIEL_OK;
    pthread_mutex_lock(&mutex);
    LIST_FOREACH(lent, &window->handles->areas, of_window)
    if (status == ORIEL_OK && oriel_handle_has_own_epoch(lent->area))
        status = oriel_fail(ORIEL_E_SYNC, "this process has itself an epoch open on a memory "
                                          "handle of the window");
    pthread_mutex_unlock(&mutex);
    return status;
}

void oriel_memory_handles_withdraw(struct oriel_window *window)
{
    struct oriel_window_handles *handles = window->handles;
    struct lent_area *lent;
    if (handles == NULL)
        return;
    pthread_mutex_lock(&mutex);
    while ((lent = LIST_FIRST(&handles->areas)) != NULL) {
        LIST_REMOVE(lent, of_window);
        lent->has_window = false;
        if (lent->is_queued) /* waiting lock calls still touch the window's words */
            queue_remove(lent);
        withdraw_locked(lent, true);
    }
    pthread_mutex_unlock(&mutex);
    oriel_file_free(handles->members_offset);
    free(handles);
    window->handles = NULL;
}
