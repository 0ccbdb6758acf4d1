/* Accumulates: atomic per element.  Memory that the CPU reaches takes native kernels where there are any; everything else
 * happens under the target's accumulate lock, the target's own accumulates included (kernel.c has the argument).  api/
 * calls. */
#include "ops/ops.h"
#include "ops/remote.h"
#include "ops/swap.h"
#include "sync/mutex.h"

#include <string.h>

enum { STAGE_BYTES = 16384 };

static bool is_aligned(const void *address, uint64_t size_bytes)
{
    return ((uintptr_t)address & (size_bytes - 1)) == 0;
}

/* Read, modify, write of memory that only the kernel reaches, in pieces of whole elements. */
static enum oriel_status accumulate_staged(const struct oriel_transport *by, const struct oriel_remote *there,
                                           oriel_kernel *kernel, const struct oriel_span *span, const char *origin,
                                           char *result, bool writes)
{
    char stage[STAGE_BYTES] __attribute__((aligned(64)));
    uint64_t extent_bytes = oriel_kinds[span->kind].extent_bytes;
    uint64_t most = STAGE_BYTES / extent_bytes;
    enum oriel_status status = ORIEL_OK;
    for (uint64_t done = 0; done < span->count && status == ORIEL_OK;) {
        uint64_t now = span->count - done < most ? span->count - done : most;
        uint64_t at = done * extent_bytes;
        struct oriel_remote piece = oriel_remote_advance(there, at);
        status = by->read(&piece, stage, now * extent_bytes);
        if (status == ORIEL_OK) {
            kernel(stage, origin != NULL ? origin + at : NULL, result != NULL ? result + at : NULL, now);
            if (writes)
                status = by->write(&piece, stage, now * extent_bytes);
        }
        done += now;
    }
    return status;
}

static enum oriel_status accumulate_locked(struct oriel_window *window, const struct oriel_transport *by,
                                           const struct oriel_remote *there, const struct oriel_span *span,
                                           enum oriel_operator operator, const void *origin, void *result)
{
    oriel_kernel *kernel = oriel_kinds[span->kind].plain[operator];
    enum oriel_status status = oriel_mutex_lock(window, span->target);
    if (status != ORIEL_OK)
        return status;
    if (by == &oriel_transport_shared)
        kernel(there->direct, origin, result, span->count);
    else
        status = accumulate_staged(by, there, kernel, span, origin, result, operator != ORIEL_OPERATOR_NO_OP);
    oriel_mutex_unlock(window, span->target);
    return oriel_remote_status(status, window, span->target);
}

/* Native kernels work where every origin reaches the element with its own CPU instructions. */
static bool is_native(const struct oriel_window *window, const struct oriel_span *span, const struct oriel_remote *there)
{
    return window->targets[span->target].mechanism == ORIEL_BY_ARENA &&
           is_aligned(there->direct, oriel_kinds[span->kind].extent_bytes);
}

enum oriel_status oriel_accumulate(struct oriel_window *window, const struct oriel_span *span,
                                   enum oriel_operator operator, const void *origin, void *result)
{
    struct oriel_remote there;
    const struct oriel_transport *by = oriel_remote_find(window, span->target, span->offset_bytes, &there);
    oriel_kernel *native = oriel_kinds[span->kind].native[operator];
    if (oriel_unlikely(native == NULL || !is_native(window, span, &there)))
        return accumulate_locked(window, by, &there, span, operator, origin, result);
    native(there.direct, origin, result, span->count);
    return ORIEL_OK;
}

static enum oriel_status swap_locked(struct oriel_window *window, const struct oriel_transport *by,
                                     const struct oriel_remote *there, const struct oriel_span *span, const void *origin,
                                     const void *compare, void *result)
{
    uint64_t found;
    uint64_t wanted;
    uint64_t desired;
    uint32_t len_bytes = oriel_kinds[span->kind].extent_bytes;
    memcpy(&wanted, compare, len_bytes); /* result may be the same buffer */
    memcpy(&desired, origin, len_bytes);
    enum oriel_status status = oriel_mutex_lock(window, span->target);
    if (status != ORIEL_OK)
        return status;
    status = by->read(there, &found, len_bytes);
    if (status == ORIEL_OK && memcmp(&found, &wanted, len_bytes) == 0)
        status = by->write(there, &desired, len_bytes);
    oriel_mutex_unlock(window, span->target);
    if (status == ORIEL_OK)
        memcpy(result, &found, len_bytes);
    return oriel_remote_status(status, window, span->target);
}

enum oriel_status oriel_compare_and_swap(struct oriel_window *window, const struct oriel_span *span, const void *origin,
                                         const void *compare, void *result)
{
    struct oriel_remote there;
    const struct oriel_transport *by = oriel_remote_find(window, span->target, span->offset_bytes, &there);
    if (oriel_unlikely(!is_native(window, span, &there)))
        return swap_locked(window, by, &there, span, origin, compare, result);
    oriel_swap_native(there.direct, origin, compare, result, oriel_kinds[span->kind].extent_bytes);
    return ORIEL_OK;
}
