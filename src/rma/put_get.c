/* Put and get. A target whose memory is all direct is copied from layout to layout. For other
 * targets the path depends on the bytes: dense datatypes without padding move in one transfer, all
 * others in pieces. Internode targets are in origin_rma.c. */
#include "internode/origin/origin_rma.h"
#include "rma/copy_remote.h"
#include "rma/deferred.h"
#include "rma/device_buffers.h"
#include "rma/mixed_regions.h"
#include "rma/path_select.h"
#include "rma/rma.h"
#include "transport/shared/copy.h"

/* For targets whose memory is not all direct: the path depends on the extent of the access. */
static enum oriel_status transfer_by_path(struct oriel_window *window,
                                          const struct oriel_span *target, char *here,
                                          const struct oriel_side *origin, uint64_t len_bytes,
                                          bool to_target)
{
    int64_t low_bytes;
    int64_t high_bytes;
    struct oriel_items at_target = oriel_side_items(&target->side);
    struct oriel_items at_origin = oriel_side_items(origin);
    enum oriel_status status;
    if (oriel_is_internode(window, target->rank))
        return to_target ? oriel_internode_put(window, target, here, origin)
                         : oriel_internode_get(window, target, here, origin);
    const bool is_plain = oriel_side_is_plain(origin) && oriel_side_is_plain(&target->side);
    const bool is_mixed = oriel_regions_are_mixed(window, target);
    if (to_target && is_plain && !is_mixed &&
        oriel_deferred_takes(window, target->rank, len_bytes)) {
        oriel_deferred_put(window, target->rank, target->offset_bytes, here, len_bytes);
        return ORIEL_OK;
    }
    oriel_deferred_do(window, target->rank);
    oriel_layout_bounds(at_target.layout, at_target.count, at_target.extent_bytes, &low_bytes,
                        &high_bytes);
    struct oriel_path path =
        oriel_path_find(window, target->rank, target->offset_bytes, low_bytes, high_bytes);
    oriel_items_trim(to_target ? &at_target : &at_origin, len_bytes);
    if (oriel_unlikely(path.transport == &oriel_transport_gpu))
        path.remote.begun = oriel_device_copies(window);
    if (is_mixed)
        status = oriel_mixed_transfer(window, target, &at_target, here, &at_origin, to_target);
    else if (!is_plain)
        status = oriel_copy_remote(path.transport, &path.remote, &at_target, here, &at_origin,
                                   to_target);
    else
        status = to_target ? oriel_path_write(&path, here, len_bytes)
                           : oriel_path_read(&path, here, len_bytes);
    return oriel_path_status(status, window, target->rank);
}

static __attribute__((noinline)) enum oriel_status
move_direct(char *there, const struct oriel_items *target, char *here,
            const struct oriel_items *origin, bool to_target)
{
    struct oriel_remote remote = {.direct = there};
    return oriel_copy_remote(&oriel_transport_shared, &remote, target, here, origin, to_target);
}

static inline __attribute__((always_inline)) enum oriel_status
transfer_span(struct oriel_window *window, const struct oriel_span *target, char *here,
              const struct oriel_side *origin, bool to_target)
{
    const struct oriel_side *source = to_target ? origin : &target->side;
    const uint64_t len_bytes = source->count * source->type->size_bytes;
    if (len_bytes == 0)
        return ORIEL_OK;
    if (window->targets[target->rank].placement != ORIEL_PLACEMENT_DIRECT)
        return transfer_by_path(window, target, here, origin, len_bytes, to_target);
    struct oriel_items at_target = oriel_side_items(&target->side);
    struct oriel_items at_origin = oriel_side_items(origin);
    char *there = oriel_window_direct(window, target->rank, target->offset_bytes);
    oriel_items_trim(to_target ? &at_target : &at_origin, len_bytes);
    if (oriel_unlikely(!oriel_copy_is_supported(&at_target, &at_origin)))
        return move_direct(there, &at_target, here, &at_origin, to_target);
    if (to_target && oriel_side_is_plain(&target->side))
        oriel_copy_premap(there, len_bytes);
    const bool copied = to_target ? oriel_copy_items(there, &at_target, here, &at_origin)
                                  : oriel_copy_items(here, &at_origin, there, &at_target);
    return oriel_likely(copied) ? ORIEL_OK
                                : oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
}

enum oriel_status oriel_put(struct oriel_window *window, const struct oriel_span *target,
                            const void *here, const struct oriel_side *origin)
{
    char *buffer = (char *)(uintptr_t)here;
    if (oriel_device_buffers_occur(window)) {
        if (oriel_buffer_is_device(here, origin))
            return oriel_device_transfer(window, target, buffer, origin, true);
        const enum oriel_status status = oriel_device_wait_for_host(window, target);
        if (status != ORIEL_OK)
            return status;
    }
    return transfer_span(window, target, buffer, origin, true);
}

enum oriel_status oriel_get(struct oriel_window *window, const struct oriel_span *target,
                            void *here, const struct oriel_side *origin)
{
    if (oriel_device_buffers_occur(window)) {
        if (oriel_buffer_is_device(here, origin))
            return oriel_device_transfer(window, target, here, origin, false);
        const enum oriel_status status = oriel_device_wait_for_host(window, target);
        if (status != ORIEL_OK)
            return status;
    }
    return transfer_span(window, target, here, origin, false);
}
