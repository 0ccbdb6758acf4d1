/* A library that is linked to the driver: the program that loads it does not name the driver. */
#include "gpu/cuda/abi.h"

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

oriel_cu_result cuInit(unsigned flags);
oriel_cu_result cuDevicePrimaryCtxRetain(struct oriel_cu_context **context, oriel_cu_device device);
oriel_cu_result cuCtxSetCurrent(struct oriel_cu_context *context);
oriel_cu_result cuMemAlloc_v2(oriel_cu_pointer *pointer, size_t size_bytes);
oriel_cu_result cuMemcpy(oriel_cu_pointer target, oriel_cu_pointer source, size_t len_bytes);
oriel_cu_result cuCtxSynchronize(void);
EXPORT void *plugin_copy(const void *host, size_t len_bytes);

/* A copy in device memory, which is never freed; NULL: the driver fails. */
EXPORT void *plugin_copy(const void *host, size_t len_bytes)
{
    struct oriel_cu_context *context;
    oriel_cu_pointer memory;
    if (cuInit(0) != ORIEL_CU_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, 0) != ORIEL_CU_SUCCESS ||
        cuCtxSetCurrent(context) != ORIEL_CU_SUCCESS ||
        cuMemAlloc_v2(&memory, len_bytes) != ORIEL_CU_SUCCESS ||
        cuMemcpy(memory, (oriel_cu_pointer)(uintptr_t)host, len_bytes) != ORIEL_CU_SUCCESS ||
        cuCtxSynchronize() != ORIEL_CU_SUCCESS)
        return NULL;
    return (void *)(uintptr_t)memory;
}
