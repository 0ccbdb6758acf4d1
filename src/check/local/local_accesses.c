/* Uses of the process's memory become accesses: LOAD or STORE. An access is stored in the history
 * of each window that has the bytes. Bytes outside windows are stored in a history of the process's
 * own, which contains outstanding accesses only.
 *
 * A load or store that was recorded is not recorded again while the process's clock stays the same
 * (thread_shadow.h). A later access by another rank meets the record. Whatever this process itself
 * starts empties the shadow. */
#include "check/local/local_accesses.h"

#include "base/atomic.h"
#include "check/common/reentrancy.h"
#include "check/local/buffer_uses.h"
#include "check/local/short_buffers.h"
#include "check/local/thread_shadow.h"
#include "check/local/watched_pages.h"
#include "check/local/window_memory.h"
#include "check/local/window_memory_uses.h"
#include "check/order/order.h"
#include "check/order/thread_order.h"
#include "check/report/call_sites.h"
#include "check/report/finding.h"

#include <pthread.h>

static struct {
    pthread_mutex_t mutex;
    oriel_shm_offset history; /* of buffers outside windows; 0: not started */
    oriel_conflict_fn *tell;
    void *closure;
    oriel_atomic_fn *order_atomic;
    _Atomic uint64_t groups;
    oriel_code_fn *is_instrumented; /* NULL: nothing is */
    oriel_code_fn *is_watcher;      /* NULL: there is none */
} own = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Whether this thread is in this file: a signal handler may interrupt it. INSIDE_ALONE: with the
 * mutex, where other threads may enter. */
static _Thread_local enum { OUTSIDE, INSIDE, INSIDE_ALONE } inside;

/* The bytes of the thread's last atomic load. The compiler announces volatile loads before it
 * performs them. Before the thread's next checked action, the clocks that the load may have seen
 * are acquired again. */
static _Thread_local struct {
    uint64_t low;
    uint64_t high;
} last_load;

/* The lowest buffer on this thread's stack, of those that were stored in the history since the last
 * oriel_local_end_frames. */
static _Thread_local uint64_t lowest_on_stack = UINT64_MAX;

static void short_buffers_open_update(void)
{
    oriel_short_buffers.open = own.history != 0 && oriel_watched_pages_now.pages == NULL;
}

static void accesses_lock(void)
{
    bool several = oriel_check_many_threads || oriel_watched_pages_now.pages != NULL;
    inside = several ? INSIDE_ALONE : INSIDE;
    if (several)
        pthread_mutex_lock(&own.mutex);
}

static void accesses_unlock(void)
{
    if (inside == INSIDE_ALONE)
        pthread_mutex_unlock(&own.mutex);
    inside = OUTSIDE;
}

/* Requires the lock. */
static void bounds_update(void)
{
    if (!oriel_uses_are_open() && (oriel_short_buffers.count == 0 || !oriel_check_many_threads))
        oriel_uses_bounds_reset();
}

enum oriel_status oriel_local_start(oriel_conflict_fn *tell, void *closure, oriel_atomic_fn *order)
{
    own.tell = tell;
    own.closure = closure;
    own.order_atomic = order;
    own.history = oriel_history_make(0);
    short_buffers_open_update();
    if (oriel_watched_pages_now.pages != NULL)
        oriel_finding_local_watched();
    return own.history != 0
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_NO_MEM,
                            "no room for the buffers' history in the checker's memory");
}

void oriel_local_stop(void)
{
    accesses_lock();
    oriel_short_buffer_clear();
    oriel_uses_clear();
    bounds_update();
    oriel_regions_clear();
    oriel_history_free(own.history);
    own.history = 0;
    short_buffers_open_update();
    accesses_unlock();
}

/* --- atomics --- */

static inline void last_load_acquire(void)
{
    oriel_threads_enter();
    if (oriel_likely(last_load.high == 0))
        return;
    accesses_lock();
    oriel_regions_order(own.order_atomic, last_load.low, last_load.high, false);
    last_load.high = 0;
    accesses_unlock();
}

static void atomic_access_order(uint64_t low, uint64_t len_bytes, bool writes)
{
    accesses_lock();
    oriel_regions_order(own.order_atomic, low, low + len_bytes, writes);
    accesses_unlock();
    if (!writes) {
        last_load.low = low;
        last_load.high = low + len_bytes;
    }
}

/* --- memory of windows --- */

enum oriel_status oriel_local_region_add(const void *base, uint64_t len_bytes,
                                         oriel_shm_offset history, int64_t offset,
                                         oriel_conflict_fn *tell, void *closure)
{
    uint64_t low = (uint64_t)(uintptr_t)base;
    if (len_bytes == 0 || history == 0)
        return ORIEL_OK;
    struct oriel_local_region region = {.low = low,
                                        .high = low + len_bytes,
                                        .history = history,
                                        .offset = offset,
                                        .tell = tell,
                                        .closure = closure};
    accesses_lock();
    oriel_region_put_also(&region);
    enum oriel_status status = oriel_region_add(&region);
    if (status == ORIEL_OK)
        oriel_watched_pages_add(region.low, region.high);
    oriel_shadows_empty();
    accesses_unlock();
    return status;
}

void oriel_local_region_remove(const void *base, oriel_shm_offset history)
{
    struct oriel_local_region region;
    accesses_lock();
    if (oriel_region_remove((uint64_t)(uintptr_t)base, history, &region))
        oriel_watched_pages_remove(region.low, region.high);
    oriel_shadows_empty();
    accesses_unlock();
}

void oriel_local_forget(oriel_shm_offset history)
{
    accesses_lock();
    oriel_uses_forget(history);
    accesses_unlock();
}

/* --- groups --- */

enum { GROUP_OF_CALL_BIT = 62 };

oriel_local_group oriel_local_group_new(void)
{
    return ORIEL_ACCESS_GROUP | UINT64_C(1) << GROUP_OF_CALL_BIT |
           atomic_fetch_add_explicit(&own.groups, 1, memory_order_relaxed);
}

oriel_local_group oriel_local_group_target(uint64_t window_id, int target)
{
    uint64_t mixed =
        (window_id ^ window_id >> 31) * UINT64_C(0xbf58476d1ce4e5b9) + (uint64_t)(uint32_t)target;
    mixed = (mixed ^ mixed >> 29) * UINT64_C(0x94d049bb133111eb);
    return ORIEL_ACCESS_GROUP | mixed >> 2;
}

/* --- uses --- */

static bool local_access_make(struct oriel_access *access, bool writes, uint8_t flags,
                              uint64_t group)
{
    *access = (struct oriel_access){.kind = writes ? ORIEL_ACCESS_STORE : ORIEL_ACCESS_LOAD,
                                    .flags = flags,
                                    .origin = oriel_order_rank(),
                                    .snapshot = ORIEL_SNAPSHOT_LIVE,
                                    .group = group};
    oriel_tick now = oriel_order_now();
    access->issued = now;
    if (group == 0)
        access->complete = now;
    return now != ORIEL_TICK_PENDING;
}

/* Requires the lock. If there is no memory to remember the use, it is not recorded: nothing could
 * end it. */
static void extents_use_locked(struct oriel_access *access, struct oriel_extents *extents)
{
    struct oriel_use_range bounds = oriel_use_range_of(extents);
    struct oriel_use *use = access->group != 0 ? oriel_use_of(access->group) : NULL;
    if (own.history == 0 || bounds.low >= bounds.high || (access->group != 0 && use == NULL))
        return;
    const struct oriel_local_region *region = oriel_region_find(bounds.low, bounds.high, NULL);
    if (region == NULL && use != NULL)
        oriel_uses_bounds_widen(bounds.low, bounds.high);
    if (region == NULL)
        oriel_short_buffer_meet(access, extents->list, extents->count, own.tell, own.closure);
    if (region == NULL && use == NULL)
        oriel_history_look(own.history, access, extents->list, extents->count, own.tell,
                           own.closure);
    else if (region == NULL && oriel_use_note(use, own.history))
        oriel_history_add(own.history, access, extents->list, extents->count, own.tell,
                          own.closure);
    for (; region != NULL; region = oriel_region_find(bounds.low, bounds.high, region))
        if (use == NULL || oriel_use_note(use, region->history))
            oriel_region_use(region, access, extents, &bounds);
    if (use != NULL && oriel_watched_pages_now.pages != NULL)
        oriel_use_watch(use, bounds.low, bounds.high);
    if (use != NULL && bounds.low >= (uint64_t)(uintptr_t)__builtin_frame_address(0) &&
        bounds.low < lowest_on_stack)
        lowest_on_stack = bounds.low;
}

/* Whether bytes outside windows can conflict with other calls only, and the short list contains all
 * outstanding buffers. */
static bool short_list_is_complete(void)
{
    return oriel_watched_pages_now.pages == NULL && !oriel_uses_are_open();
}

static bool run_is_outside_windows(uint64_t low, uint64_t high)
{
    return oriel_regions_are_elsewhere(low, high) || oriel_region_find(low, high, NULL) == NULL;
}

static void extents_use(struct oriel_extents *extents, bool writes, uint8_t flags,
                        oriel_local_group group, const struct oriel_site *site)
{
    struct oriel_access access;
    if (extents->count == 0 || !local_access_make(&access, writes, flags, group))
        return;
    access.site = *site;
    accesses_lock();
    if (group != 0 && oriel_watched_pages_now.pages != NULL)
        oriel_shadows_empty();
    extents_use_locked(&access, extents);
    accesses_unlock();
}

/* Checks a plain run. False: the slow path, extents_use, is needed. */
static bool run_use_short(uint64_t low, uint64_t len_bytes, bool writes, uint8_t flags,
                          oriel_local_group group, const struct oriel_site *site)
{
    accesses_lock();
    bool done = short_list_is_complete() && run_is_outside_windows(low, low + len_bytes) &&
                oriel_short_buffer_use(
                    &(struct oriel_short_buffer){low, low + len_bytes, group, *site, writes, flags},
                    own.tell, own.closure);
    if (done && group != 0 && oriel_check_many_threads)
        oriel_uses_bounds_widen(low, low + len_bytes);
    accesses_unlock();
    return done;
}

void oriel_local_buffer(const void *buffer, MPI_Count count, MPI_Datatype datatype, bool writes,
                        uint8_t flags, oriel_local_group group, const struct oriel_site *site)
{
    struct oriel_extents extents;
    if (own.history == 0 || inside || count <= 0)
        return;
    last_load_acquire();
    if (oriel_extents_open_of(&extents, datatype, (uint64_t)count, (int64_t)(intptr_t)buffer) ==
            ORIEL_OK &&
        !(extents.count == 1 && extents.list[0].count == 1 &&
          run_use_short((uint64_t)extents.list[0].offset, extents.list[0].len_bytes, writes, flags,
                        group, site)))
        extents_use(&extents, writes, flags, group, site);
    oriel_extents_close(&extents);
}

void oriel_local_items(const void *buffer, uint64_t count, const struct oriel_type *type,
                       bool writes, oriel_local_group group, uint64_t most_bytes,
                       const struct oriel_site *site)
{
    struct oriel_extents extents;
    if (own.history == 0 || inside || count == 0)
        return;
    last_load_acquire();
    uint64_t len_bytes = count * type->size_bytes;
    if (oriel_likely(type->plain_bytes != INT64_MAX) &&
        run_use_short((uint64_t)(uintptr_t)buffer, len_bytes < most_bytes ? len_bytes : most_bytes,
                      writes, 0, group, site))
        return;
    if (oriel_extents_open(&extents, type, count, (int64_t)(intptr_t)buffer, most_bytes) ==
        ORIEL_OK)
        extents_use(&extents, writes, 0, group, site);
    oriel_extents_close(&extents);
}

/* False if the result overlaps a buffer that the same operation reads: then each buffer is checked
 * on its own. */
static bool result_is_apart(const struct oriel_short_buffer_run *runs, unsigned count)
{
    for (unsigned i = 0; i + 1 < count; i++)
        if (oriel_short_buffer_runs_meet(runs[i], runs[count - 1]))
            return false;
    return true;
}

bool oriel_local_runs(const struct oriel_short_buffer_run *runs, unsigned count,
                      oriel_local_group group, const struct oriel_site *site)
{
    unsigned first = oriel_short_buffers.count;
    if (own.history == 0 || inside)
        return true;
    if (oriel_check_many_threads || !short_list_is_complete() ||
        first + count > ORIEL_SHORT_BUFFERS_MOST || !result_is_apart(runs, count))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!run_is_outside_windows(runs[i].low, runs[i].high))
            return false;
    inside = INSIDE;
    for (unsigned i = 0; i < count; i++)
        oriel_short_buffer_add(&runs[i], group, site, first, own.tell, own.closure);
    inside = OUTSIDE;
    return true;
}

void oriel_local_message(const void *buffer, MPI_Count count, MPI_Datatype datatype, bool writes,
                         oriel_local_group group, const struct oriel_site *site)
{
    oriel_local_buffer(buffer, count, datatype, writes, ORIEL_ACCESS_MESSAGE, group, site);
}

/* Requires the lock. */
static void history_complete_group(oriel_shm_offset history, oriel_local_group group,
                                   oriel_tick now)
{
    if (history == own.history || now == ORIEL_TICK_PENDING)
        oriel_history_end_one(history, group);
    else
        oriel_history_complete_one(history, group, now);
}

void oriel_local_complete_shared_uses(oriel_local_group group)
{
    if (own.history == 0 || inside)
        return;
    accesses_lock();
    struct oriel_use *use = oriel_uses_are_open() ? oriel_use_find(group) : NULL;
    oriel_tick now = use != NULL ? oriel_order_now() : ORIEL_TICK_PENDING;
    for (size_t i = 0; use != NULL && i < use->histories_count; i++)
        if (use->histories[i] != own.history)
            history_complete_group(use->histories[i], group, now);
    accesses_unlock();
}

static __attribute__((noinline)) void group_complete(oriel_local_group group)
{
    if (own.history == 0 || inside || group == 0)
        return;
    accesses_lock();
    oriel_short_buffer_end(group);
    struct oriel_use *use = oriel_uses_are_open() ? oriel_use_find(group) : NULL;
    oriel_tick now = use != NULL ? oriel_order_now() : ORIEL_TICK_PENDING;
    for (size_t i = 0; use != NULL && i < use->histories_count; i++)
        history_complete_group(use->histories[i], group, now);
    if (use != NULL)
        oriel_use_end(use);
    bounds_update();
    accesses_unlock();
}

void oriel_local_complete(oriel_local_group group)
{
    if (oriel_likely(oriel_short_buffers.open && !oriel_check_many_threads)) {
        oriel_short_buffer_end(group);
        if (oriel_likely(!oriel_uses_are_open()))
            return;
    }
    group_complete(group);
}

/* --- memory that ends --- */

/* Reports the windows that have bytes of the memory, each once. */
static void regions_end(const struct oriel_access *access, uint64_t low, uint64_t high)
{
    const struct oriel_local_region *region = NULL;
    while ((region = oriel_region_find(low, high, region)) != NULL) {
        uint64_t first = region->low > low ? region->low : low;
        uint64_t end = region->high < high ? region->high : high;
        struct oriel_conflict conflict = {.later = *access,
                                          .offset = region->offset + (int64_t)(first - region->low),
                                          .len_bytes = end - first};
        if (oriel_local_region_end(region))
            region->tell(&conflict, region->closure);
    }
}

/* lowest: of the buffers in the history, or more. */
static void memory_end(uint64_t low, uint64_t high, uint64_t lowest, const struct oriel_site *site)
{
    struct oriel_access access;
    struct oriel_access_extent run = {(int64_t)low, high - low, 1, 0};
    if (own.history == 0 || inside || low >= high)
        return;
    if (oriel_local_is_unused(low, high) || !local_access_make(&access, true, 0, 0))
        return;
    access.site = *site;
    accesses_lock();
    regions_end(&access, low, high);
    oriel_short_buffer_meet(&access, &run, 1, own.tell, own.closure);
    oriel_short_buffer_forget(low, high);
    low = lowest > low ? lowest : low;
    run = (struct oriel_access_extent){(int64_t)low, high - low, 1, 0};
    if (oriel_uses_are_open() && low < high) {
        oriel_history_look(own.history, &access, &run, 1, own.tell, own.closure);
        oriel_history_forget(own.history, (int64_t)low, high - low);
    }
    accesses_unlock();
}

void oriel_local_end_memory(uint64_t low, uint64_t high, const struct oriel_site *site)
{
    memory_end(low, high, low, site);
}

void oriel_local_end_frames(uint64_t low, uint64_t high, const struct oriel_site *site)
{
    memory_end(low, high, lowest_on_stack, site);
    if (lowest_on_stack < high || !oriel_uses_are_open())
        lowest_on_stack = oriel_uses_are_open() ? high : UINT64_MAX;
}

/* --- loads and stores --- */

/* A signal handler's are not while its thread has a lock that recording them may need. */
static inline bool accesses_are_recorded(void)
{
    return own.history != 0 && inside == OUTSIDE && oriel_shm_locks == 0 &&
           oriel_check_where.in.depth == 0 && oriel_check_running;
}

/* Records a load or store of instrumented code. */
static void access_record(uint64_t low, uint64_t len_bytes, bool writes, enum oriel_call call,
                          const void *address_of_call)
{
    struct oriel_access access;
    if (oriel_shadow_knows(low, len_bytes, writes) ||
        !local_access_make(&access, writes, ORIEL_ACCESS_SANITIZER, 0))
        return;
    access.site = oriel_site_here(address_of_call, call, (uint32_t)access.origin, 0);
    struct oriel_extents extents = {.count = 1, .list = extents.own};
    extents.own[0] = (struct oriel_access_extent){(int64_t)low, len_bytes, 1, 0};
    accesses_lock();
    extents_use_locked(&access, &extents);
    accesses_unlock();
}

void oriel_local_access(const void *address, uint64_t len_bytes, bool writes, bool atomic,
                        const void *address_of_call)
{
    uint64_t low = (uint64_t)(uintptr_t)address;
    if (!accesses_are_recorded() || len_bytes == 0)
        return;
    oriel_check_look();
    last_load_acquire();
    if (atomic)
        atomic_access_order(low, len_bytes, writes);
    else
        access_record(low, len_bytes, writes, writes ? ORIEL_CALL_store : ORIEL_CALL_load,
                      address_of_call);
}

/* --- functions of libc --- */

struct pending_report {
    oriel_conflict_fn *tell;
    void *closure;
};

/* An access of code that is not instrumented. Order through its loads and stores is not seen. Only
 * an operation that is still under way is certainly not ordered before it. */
static void pending_conflict(const struct oriel_conflict *conflict, void *closure)
{
    const struct pending_report *report = closure;
    struct oriel_conflict doubtful = *conflict;
    doubtful.may_be_hosts = 1;
    if (conflict->earlier.complete == ORIEL_TICK_PENDING)
        report->tell(&doubtful, report->closure);
}

static void pending_look(struct oriel_access *access, uint64_t low, uint64_t high)
{
    struct oriel_access_extent run = {(int64_t)low, high - low, 1, 0};
    struct pending_report report = {own.tell, own.closure};
    const struct oriel_local_region *region = NULL;
    oriel_short_buffer_meet(access, &run, 1, pending_conflict, &report);
    if (oriel_uses_are_open())
        oriel_history_look(own.history, access, &run, 1, pending_conflict, &report);
    while ((region = oriel_region_find(low, high, region)) != NULL) {
        uint64_t first = region->low > low ? region->low : low;
        uint64_t end = region->high < high ? region->high : high;
        report = (struct pending_report){region->tell, region->closure};
        run = (struct oriel_access_extent){region->offset + (int64_t)(first - region->low),
                                           end - first, 1, 0};
        oriel_history_look(region->history, access, &run, 1, pending_conflict, &report);
    }
}

void oriel_local_library_access(const void *address, uint64_t len_bytes, bool writes,
                                enum oriel_call call, const void *address_of_call)
{
    uint64_t low = (uint64_t)(uintptr_t)address;
    struct oriel_access access;
    if (!accesses_are_recorded() || len_bytes == 0 ||
        (own.is_watcher != NULL && own.is_watcher(address_of_call)))
        return;
    oriel_check_look();
    last_load_acquire();
    if (own.is_instrumented != NULL && own.is_instrumented(address_of_call)) {
        access_record(low, len_bytes, writes, call, address_of_call);
        return;
    }
    if (!local_access_make(&access, writes, ORIEL_ACCESS_SANITIZER, 0))
        return;
    access.site = (struct oriel_site){.address = (uint64_t)(uintptr_t)address_of_call,
                                      .world_rank = (uint32_t)access.origin,
                                      .call = (uint16_t)call};
    accesses_lock();
    pending_look(&access, low, low + len_bytes);
    accesses_unlock();
}

bool oriel_local_watched(const void *address, uint64_t len_bytes)
{
    return len_bytes > 0 && oriel_watched_pages_sees(&oriel_watched_pages_now,
                                                     (uint64_t)(uintptr_t)address, len_bytes);
}

const struct oriel_watched_pages *oriel_check_watch(oriel_code_fn *is_instrumented,
                                                    oriel_code_fn *is_watcher)
{
    accesses_lock();
    own.is_instrumented = is_instrumented;
    own.is_watcher = is_watcher;
    bool watches = oriel_watched_pages_start();
    oriel_check_watches = watches;
    short_buffers_open_update();
    oriel_watched_pages_now.accessed = oriel_local_access;
    oriel_watched_pages_now.threads = &oriel_thread_hooks;
    const struct oriel_local_region *region = NULL;
    while (watches && (region = oriel_region_find(0, UINT64_MAX, region)) != NULL)
        oriel_watched_pages_add(region->low, region->high);
    accesses_unlock();
    if (watches && own.history != 0)
        oriel_finding_local_watched();
    return watches ? &oriel_watched_pages_now : NULL;
}
