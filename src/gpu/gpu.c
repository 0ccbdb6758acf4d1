/* Calls of the driver. */
#include "gpu/gpu.h"

#include "gpu/share.h"
#include "gpu/vendor.h"

#include <unistd.h>

_Atomic(const struct oriel_gpu_vendor *) oriel_gpu_vendor;

static const struct oriel_gpu_vendor *vendor_load(void)
{
    return atomic_load_explicit(&oriel_gpu_vendor, memory_order_acquire);
}

struct oriel_gpu_memory oriel_gpu_find(const void *address)
{
    const struct oriel_gpu_vendor *vendor = vendor_load();
    return vendor == NULL ? (struct oriel_gpu_memory){.kind = ORIEL_GPU_HOST}
                          : vendor->find(address);
}

enum oriel_status oriel_gpu_copy(const struct oriel_gpu_piece *pieces, unsigned count)
{
    return vendor_load()->copy(pieces, count);
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
