/* Where the target's memory has an address in this process, host or device, the GPU's driver copies
 * between it and the buffer. Everything else works on a mirror: targets that only the kernel, an
 * agent or the network reaches, and operations that compute.
 *
 * Copies need not end before their operation returns: they are left on their stream until a call
 * completes the operation (oriel_deferred_complete). Not so where another node's origin waits for
 * the reply, or where flushes have their fast path, because the window takes no device buffers.
 * Mirrors are complete when their operation returns, and all that computes reads and writes
 * complete data.
 *
 * Between nodes the data of puts and accumulates has been copied when their call returns, so they
 * need their mirrors no more. What returns data needs them until that has arrived, which is awaited
 * first. Large puts and gets need no mirror (device_pipeline.h). */
#include "rma/device_buffers.h"

#include "internode/origin/origin_sync.h"
#include "rma/copy_remote.h"
#include "rma/deferred.h"
#include "rma/device_pipeline.h"
#include "rma/mixed_regions.h"
#include "rma/path_select.h"
#include "rma/rma.h"

#include <stdlib.h>

/* Returns false if there are no bytes. */
static bool bounds_of(const void *here, const struct oriel_side *side, const char **low,
                      const char **high)
{
    int64_t low_bytes, high_bytes;
    if (side->count * side->type->size_bytes == 0)
        return false;
    oriel_layout_bounds(side->type->layout, side->count, side->type->extent_bytes, &low_bytes,
                        &high_bytes);
    *low = oriel_at(here, low_bytes);
    *high = oriel_at(here, high_bytes);
    return true;
}

bool oriel_buffer_ends_on_device(const void *here, const struct oriel_side *side)
{
    const char *low, *high;
    return bounds_of(here, side, &low, &high) && oriel_gpu_is_device(high - 1);
}

/* If the device has failed, the copy returns the reason. */
enum oriel_status oriel_device_buffer_check(const void *here, const struct oriel_side *side)
{
    const char *low, *high;
    if (!bounds_of(here, side, &low, &high))
        return ORIEL_OK;
    const struct oriel_gpu_memory memory = oriel_gpu_find(low);
    if (memory.kind == ORIEL_GPU_DEVICE && memory.id == 0)
        return oriel_fail(ORIEL_E_BUFFER, "the device memory at %p was freed", (const void *)low);
    if (memory.kind == ORIEL_GPU_DEVICE &&
        (memory.id == UINT64_MAX || (uint64_t)(uintptr_t)high <= memory.end))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_BUFFER,
                      "the buffer's bytes from %p to %p are not all in one allocation of device "
                      "memory",
                      (const void *)low, (const void *)high);
}

/* --- mirrors --- */

static enum oriel_status mirror_copy(struct oriel_mirror *mirror, bool to_device)
{
    const struct oriel_remote remote = {.direct = mirror->device};
    const struct oriel_items items = oriel_side_items(&mirror->side);
    return oriel_copy_remote(&oriel_transport_gpu, &remote, &items, mirror->here, &items,
                             to_device);
}

/* An item that the operation writes in part is read before, since the whole item is stored. */
enum oriel_status oriel_mirror_open(struct oriel_mirror *mirror, const void *buffer,
                                    const struct oriel_side *side, uint64_t written_bytes)
{
    const char *low, *high;
    char *here = (char *)(uintptr_t)buffer;
    struct oriel_items items = oriel_side_items(side);
    *mirror = (struct oriel_mirror){.here = here, .device = here, .side = *side};
    if (!bounds_of(buffer, side, &low, &high) || !oriel_buffer_is_device(buffer, side))
        return ORIEL_OK;
    enum oriel_status status = oriel_device_buffer_check(buffer, side);
    if (status != ORIEL_OK)
        return status;
    if (written_bytes > 0) {
        oriel_items_trim(&items, written_bytes);
        mirror->side.count = items.count;
        bounds_of(buffer, &mirror->side, &low, &high);
    }
    mirror->memory = malloc((size_t)(high - low));
    if (mirror->memory == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a copy of %lld bytes of device memory",
                          (long long)(high - low));
    mirror->here = oriel_at(mirror->memory, here - low);
    if (items.count * items.layout->size_bytes != written_bytes)
        status = mirror_copy(mirror, false);
    if (status != ORIEL_OK)
        oriel_mirror_close(mirror);
    return status;
}

void oriel_mirror_close(struct oriel_mirror *mirror)
{
    free(mirror->memory);
    mirror->memory = NULL;
}

enum oriel_status oriel_mirror_store(struct oriel_mirror *mirror, enum oriel_status status)
{
    if (status == ORIEL_OK && mirror->memory != NULL)
        status = mirror_copy(mirror, true);
    oriel_mirror_close(mirror);
    return status;
}

enum oriel_status oriel_mirrors_settle(struct oriel_window *window, int32_t target, bool returns,
                                       enum oriel_status status)
{
    enum oriel_status ended = ORIEL_OK;
    if (!oriel_is_internode(window, target))
        ended = oriel_deferred_copies_end(window);
    else if (returns)
        ended = oriel_internode_flush_local(window, target);
    return status == ORIEL_OK ? ended : status;
}

/* --- copies that were begun --- */

static struct oriel_gpu_copies *copies_make(struct oriel_window *window)
{
    struct oriel_gpu_copies *none = NULL;
    struct oriel_gpu_copies *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    pthread_mutex_init(&made->mutex, NULL);
    if (atomic_compare_exchange_strong_explicit(&window->begun, &none, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    free(made);
    return none;
}

struct oriel_gpu_copies *oriel_device_copies(struct oriel_window *window)
{
    struct oriel_gpu_copies *begun = atomic_load_explicit(&window->begun, memory_order_acquire);
    if (window->only_host_buffers || oriel_path_serves_internode)
        return NULL;
    return begun != NULL ? begun : copies_make(window);
}

enum oriel_status oriel_device_name_stream(struct oriel_window *window, uint64_t stream)
{
    struct oriel_gpu_copies *begun = oriel_device_copies(window);
    if (window->only_host_buffers)
        return ORIEL_OK;
    if (begun == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the stream of a window");
    atomic_store_explicit(&begun->stream, stream, memory_order_relaxed);
    atomic_store_explicit(&begun->has_stream, true, memory_order_release);
    return ORIEL_OK;
}

/* As oriel_put and oriel_get choose the path. */
static bool is_copied_by_driver(const struct oriel_window *window, const struct oriel_span *target)
{
    int64_t low_bytes, high_bytes;
    const struct oriel_items items = oriel_side_items(&target->side);
    if (oriel_is_internode(window, target->rank) || oriel_regions_are_mixed(window, target))
        return false;
    oriel_layout_bounds(items.layout, items.count, items.extent_bytes, &low_bytes, &high_bytes);
    return oriel_path_find(window, target->rank, target->offset_bytes, low_bytes, high_bytes)
               .transport == &oriel_transport_gpu;
}

enum oriel_status oriel_device_wait_for_host(struct oriel_window *window,
                                             const struct oriel_span *target)
{
    struct oriel_gpu_copies *begun = atomic_load_explicit(&window->begun, memory_order_acquire);
    return begun == NULL || !oriel_gpu_has_stream(begun) || is_copied_by_driver(window, target)
               ? ORIEL_OK
               : oriel_device_wait(window);
}

void oriel_device_copies_free(struct oriel_window *window)
{
    free(atomic_load_explicit(&window->begun, memory_order_relaxed));
}

/* --- put and get --- */

static enum oriel_status transfer_mirrored(struct oriel_window *window,
                                           const struct oriel_span *target, char *here,
                                           const struct oriel_side *origin, uint64_t len_bytes,
                                           bool to_target)
{
    struct oriel_mirror mirror;
    enum oriel_status status = oriel_device_wait(window);
    if (status == ORIEL_OK)
        status = oriel_mirror_open(&mirror, here, origin, to_target ? 0 : len_bytes);
    if (status != ORIEL_OK)
        return status;
    status = to_target ? oriel_put(window, target, mirror.here, origin)
                       : oriel_get(window, target, mirror.here, origin);
    status = oriel_mirrors_settle(window, target->rank, !to_target, status);
    if (!to_target)
        return oriel_mirror_store(&mirror, status);
    oriel_mirror_close(&mirror);
    return status;
}

/* A large buffer, in its bytes or in those from its first to its last, has no mirror. */
static enum oriel_status transfer_internode(struct oriel_window *window,
                                            const struct oriel_span *target, char *here,
                                            const struct oriel_side *origin, uint64_t len_bytes,
                                            bool to_target)
{
    const char *low, *high;
    if (!bounds_of(here, origin, &low, &high) || high - low <= ORIEL_PIPELINE_PART_BYTES)
        return transfer_mirrored(window, target, here, origin, len_bytes, to_target);
    const enum oriel_status status = oriel_device_wait(window);
    return status != ORIEL_OK
               ? status
               : oriel_pipeline_transfer(window, target, here, origin, len_bytes, to_target);
}

enum oriel_status oriel_device_transfer(struct oriel_window *window,
                                        const struct oriel_span *target, char *here,
                                        const struct oriel_side *origin, bool to_target)
{
    int64_t low_bytes, high_bytes;
    struct oriel_items at_target = oriel_side_items(&target->side);
    struct oriel_items at_origin = oriel_side_items(origin);
    const struct oriel_items *source = to_target ? &at_origin : &at_target;
    const uint64_t len_bytes = source->count * source->layout->size_bytes;
    if (len_bytes == 0)
        return ORIEL_OK;
    const enum oriel_status checked = oriel_device_buffer_check(here, origin);
    if (checked != ORIEL_OK)
        return checked;
    if (oriel_is_internode(window, target->rank))
        return transfer_internode(window, target, here, origin, len_bytes, to_target);
    oriel_items_trim(to_target ? &at_target : &at_origin, len_bytes);
    oriel_layout_bounds(at_target.layout, at_target.count, at_target.extent_bytes, &low_bytes,
                        &high_bytes);
    if (oriel_regions_are_mixed(window, target))
        return transfer_mirrored(window, target, here, origin, len_bytes, to_target);
    struct oriel_path path =
        oriel_path_find(window, target->rank, target->offset_bytes, low_bytes, high_bytes);
    if ((path.transport != &oriel_transport_shared && path.transport != &oriel_transport_gpu) ||
        !oriel_gpu_copies_between(oriel_at(here, at_origin.layout->low_bytes),
                                  oriel_at(path.remote.direct, low_bytes)))
        return transfer_mirrored(window, target, here, origin, len_bytes, to_target);
    oriel_deferred_do(window, target->rank);
    path.remote.begun = oriel_device_copies(window);
    const enum oriel_status status = oriel_copy_remote(&oriel_transport_gpu, &path.remote,
                                                       &at_target, here, &at_origin, to_target);
    return oriel_path_status(status, window, target->rank);
}
