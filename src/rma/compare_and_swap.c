/* compare_and_swap: one CPU instruction if there is one, like a single accumulate
 * (sync/atomic_mode.h), else under the target's accumulate lock. ORIEL_KIND_OPAQUE128 is the kind
 * of the swap of 16 bytes that may contain elements of other kinds. */
#include "internode/origin/origin_rma.h"
#include "reduce/cpu_swap.h"
#include "rma/deferred.h"
#include "rma/device_buffers.h"
#include "rma/path_select.h"
#include "rma/rma.h"
#include "sync/accumulate_mutex.h"
#include "sync/atomic_mode.h"

#include <string.h>

static enum oriel_status swap_by_copies(const struct oriel_path *path, const char *desired,
                                        const char *wanted, char *found, uint64_t len_bytes)
{
    enum oriel_status status = path->transport->read(&path->remote, found, len_bytes);
    if (status == ORIEL_OK && memcmp(found, wanted, len_bytes) == 0)
        status = path->transport->write(&path->remote, desired, len_bytes);
    return status;
}

static enum oriel_status swap_locked(struct oriel_window *window, int32_t rank,
                                     const struct oriel_path *path, uint64_t len_bytes,
                                     bool contains_elements, const void *origin,
                                     const void *compare, void *result)
{
    char found[ORIEL_SWAP_BYTES];
    char wanted[ORIEL_SWAP_BYTES];
    char desired[ORIEL_SWAP_BYTES];
    memcpy(wanted, compare, len_bytes); /* result may be the same buffer */
    memcpy(desired, origin, len_bytes);
    enum oriel_status status = oriel_accumulate_mutex_lock(window, rank);
    if (status != ORIEL_OK)
        return status;
    if (path->cpu_reaches && (contains_elements || oriel_atomic_mode_is_wide(window, rank)))
        oriel_bulk_begin(window, rank); /* W2, also if the processor lacks the instruction */
    const struct oriel_polled_request asked = {.operation = ORIEL_POLLED_SWAP,
                                               .in = wanted,
                                               .desired = desired,
                                               .out = found,
                                               .len_bytes = len_bytes};
    if (oriel_polled_submit(&path->remote, &asked, &status))
        ;
    else if (path->transport == &oriel_transport_agent)
        status = oriel_agent_swap(&path->remote, desired, wanted, found, len_bytes);
    else
        status = swap_by_copies(path, desired, wanted, found, len_bytes);
    oriel_accumulate_mutex_unlock(window, rank);
    if (status == ORIEL_OK)
        memcpy(result, found, len_bytes);
    return oriel_path_status(status, window, rank);
}

static void swap_by_cpu(void *there, const void *origin, const void *compare, void *result,
                        uint64_t len_bytes)
{
    if (len_bytes > ORIEL_SWAP_NATIVE_BYTES)
        oriel_swap_wide(there, origin, compare, result);
    else
        oriel_swap_native(there, origin, compare, result, len_bytes);
}

/* S1 to S4, or C1 and C2. */
static enum oriel_status swap_single(struct oriel_window *window, int32_t rank, void *there,
                                     uint64_t len_bytes, const void *origin, const void *compare,
                                     void *result)
{
    _Atomic uint32_t *inside = oriel_atomic_mode_enter(window, rank);
    if (inside != NULL) {
        swap_by_cpu(there, origin, compare, result, len_bytes);
        oriel_store_release(inside, 0);
        return ORIEL_OK;
    }
    enum oriel_status status = oriel_accumulate_mutex_lock(window, rank);
    if (status != ORIEL_OK)
        return status;
    swap_by_cpu(there, origin, compare, result, len_bytes);
    oriel_atomic_mode_count(window, rank);
    oriel_accumulate_mutex_unlock(window, rank);
    return ORIEL_OK;
}

static bool any_is_device(const struct oriel_side *one, const void *origin, const void *compare,
                          const void *result)
{
    return oriel_buffer_is_device(origin, one) || oriel_buffer_is_device(compare, one) ||
           oriel_buffer_is_device(result, one);
}

/* With mirrors of the buffers that are device memory. */
static enum oriel_status swap_mirrored(struct oriel_window *window, const struct oriel_span *target,
                                       const void *origin, const void *compare, void *result)
{
    const struct oriel_side *one = &target->side;
    struct oriel_mirror mirrors[3] = {{.memory = NULL}, {.memory = NULL}, {.memory = NULL}};
    enum oriel_status status = oriel_mirror_open(&mirrors[0], origin, one, 0);
    if (status == ORIEL_OK)
        status = oriel_mirror_open(&mirrors[1], compare, one, 0);
    if (status == ORIEL_OK)
        status = oriel_mirror_open(&mirrors[2], result, one, one->type->size_bytes);
    if (status == ORIEL_OK)
        status = oriel_compare_and_swap(window, target, mirrors[0].here, mirrors[1].here,
                                        mirrors[2].here);
    status = oriel_mirrors_settle(window, target->rank, true, status);
    oriel_mirror_close(&mirrors[0]);
    oriel_mirror_close(&mirrors[1]);
    return oriel_mirror_store(&mirrors[2], status);
}

enum oriel_status oriel_compare_and_swap(struct oriel_window *window,
                                         const struct oriel_span *target, const void *origin,
                                         const void *compare, void *result)
{
    const enum oriel_kind kind = target->side.type->kind;
    const uint64_t len_bytes = oriel_kinds[kind].extent_bytes;
    const bool contains_elements = kind == ORIEL_KIND_OPAQUE128;
    const uint64_t address = window->targets[target->rank].address + target->offset_bytes;
    const bool is_aligned = (address & (len_bytes - 1)) == 0;
    if (contains_elements && !is_aligned)
        return oriel_fail(ORIEL_E_ARG, "the place at rank %d is not aligned to 16 bytes",
                          (int)target->rank);
    if (oriel_device_buffers_occur(window)) {
        const enum oriel_status status = oriel_device_wait(window);
        if (status != ORIEL_OK)
            return status;
        if (any_is_device(&target->side, origin, compare, result))
            return swap_mirrored(window, target, origin, compare, result);
    }
    if (oriel_unlikely(oriel_is_internode(window, target->rank)))
        return oriel_internode_compare_and_swap(window, target, origin, compare, result);
    oriel_deferred_do(window, target->rank);
    struct oriel_path path =
        oriel_path_find(window, target->rank, target->offset_bytes, 0, (int64_t)len_bytes);
    const bool by_cpu =
        path.cpu_reaches && is_aligned &&
        (len_bytes <= ORIEL_SWAP_NATIVE_BYTES || (contains_elements && oriel_swap_has_wide()));
    if (!by_cpu)
        return swap_locked(window, target->rank, &path, len_bytes, contains_elements, origin,
                           compare, result);
    enum oriel_status status =
        contains_elements ? oriel_atomic_mode_widen(window, target->rank) : ORIEL_OK;
    return status != ORIEL_OK ? status
                              : swap_single(window, target->rank, path.remote.direct, len_bytes,
                                            origin, compare, result);
}
