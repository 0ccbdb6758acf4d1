/* Calls of the driver. */
#include "gpu/gpu.h"

#include "gpu/share.h"
#include "gpu/update.h"
#include "gpu/vendor.h"

#include <unistd.h>

_Atomic(const struct oriel_gpu_vendor *) oriel_gpu_vendor;

static const struct oriel_gpu_vendor *vendor_load(void)
{
    return atomic_load_explicit(&oriel_gpu_vendor, memory_order_acquire);
}

struct oriel_gpu_memory oriel_gpu_find(const void *address)
{
    return vendor_load()->find(address);
}

enum oriel_status oriel_gpu_alloc(uint64_t size_bytes, void **out)
{
    const struct oriel_gpu_vendor *vendor = vendor_load();
    return vendor != NULL ? vendor->alloc(size_bytes, out)
                          : oriel_fail(ORIEL_E_UNSUPPORTED,
                                       "device memory is wanted, and the program has loaded no "
                                       "driver of a GPU");
}

enum oriel_status oriel_gpu_free(void *memory)
{
    return vendor_load()->free(memory);
}

enum oriel_status oriel_gpu_copy(const struct oriel_gpu_piece *pieces, unsigned count,
                                 struct oriel_gpu_copies *begun)
{
    return vendor_load()->copy(pieces, count, begun);
}

enum oriel_status oriel_gpu_copies_end(struct oriel_gpu_copies *begun)
{
    struct oriel_first_failure first = {.status = ORIEL_OK};
    pthread_mutex_lock(&begun->mutex);
    const uint32_t count = oriel_load_relaxed(&begun->count);
    for (uint32_t i = 0; i < count; i++)
        oriel_first_failure_record(&first, vendor_load()->stream_wait(&begun->streams[i]));
    oriel_store_release(&begun->count, 0);
    pthread_mutex_unlock(&begun->mutex);
    return oriel_first_failure_raise(&first);
}

enum oriel_status oriel_gpu_stream_wait(struct oriel_gpu_copies *begun)
{
    const struct oriel_gpu_stream stream = {
        NULL, (void *)(uintptr_t)atomic_load_explicit(&begun->stream, memory_order_relaxed)};
    return oriel_gpu_has_stream(begun) ? vendor_load()->stream_wait(&stream) : ORIEL_OK;
}

/* Operators that only move elements are copies, except for an exchange. */
bool oriel_gpu_update(const struct oriel_gpu_update *update, enum oriel_status *status)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[update->kind];
    struct oriel_gpu_piece piece = {.len_bytes = update->count * kind->extent_bytes};
    if (kind->padded)
        return false;
    if (update->op == ORIEL_OPERATOR_NO_OP) {
        piece.to = update->result;
        piece.from = update->target;
    } else if (update->op == ORIEL_OPERATOR_REPLACE && update->result == NULL) {
        piece.to = update->target;
        piece.from = update->origin;
    } else {
        return vendor_load()->update(update, status);
    }
    *status = piece.to != NULL ? oriel_gpu_copy(&piece, 1, NULL) : ORIEL_OK;
    return true;
}

enum oriel_status oriel_gpu_pin(void *memory, uint64_t len_bytes, const void *device)
{
    return vendor_load()->pin(memory, len_bytes, device);
}

bool oriel_gpu_copies_between(const void *one, const void *other)
{
    return vendor_load()->copies_between(one, other);
}

enum oriel_status oriel_gpu_share(const void *address, struct oriel_gpu_shared *out)
{
    return vendor_load()->share(address, out);
}

void oriel_gpu_unshare(const struct oriel_gpu_shared *shared)
{
    vendor_load()->unshare(shared);
}

enum oriel_status oriel_gpu_map(const struct oriel_gpu_shared *shared,
                                struct oriel_gpu_mapping *out)
{
    const struct oriel_gpu_vendor *vendor = vendor_load();
    if (shared->refusal[0] != '\0')
        return oriel_fail(ORIEL_E_OTHER, "%s", shared->refusal);
    if (vendor == NULL)
        return oriel_fail(ORIEL_E_OTHER,
                          "process %d has not loaded the driver of the GPU whose memory it is to "
                          "access",
                          (int)getpid());
    return vendor->map(shared, out);
}

void oriel_gpu_unmap(const struct oriel_gpu_mapping *mapping)
{
    vendor_load()->unmap(mapping);
}
