/* Memory that the CPU reaches, too: managed memory, pinned memory, and program memory that is
 * pinned by registration. */
#include "standin.h"

#include <sys/mman.h>

void standin_release_host(struct standin_allocation *allocation)
{
    munmap(allocation->memory, allocation->size_bytes);
    standin_remove(allocation);
}

uint64_t standinPinned(void)
{
    uint64_t pinned_bytes = 0;
    pthread_mutex_lock(&standin_mutex);
    for (const struct standin_allocation *each = standin_allocations; each; each = each->next) {
        if (each->kind == STANDIN_HOST || each->kind == STANDIN_REGISTERED) {
            pinned_bytes += each->size_bytes;
        }
    }
    pthread_mutex_unlock(&standin_mutex);
    return pinned_bytes;
}

static oriel_cu_result allocate_host(enum standin_kind kind, uint64_t *base, size_t size_bytes)
{
    if (!size_bytes) {
        return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
    }
    void *memory =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return ORIEL_CU_ERROR_OUT_OF_MEMORY;
    }
    *base = standin_add(kind, (uintptr_t)memory, size_bytes)->base;
    return ORIEL_CU_SUCCESS;
}

oriel_cu_result standin_mem_alloc_managed(oriel_cu_pointer *pointer, size_t size_bytes,
                                          unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_mem_alloc_managed, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (flags != ORIEL_CU_MEM_ATTACH_GLOBAL && flags != ORIEL_CU_MEM_ATTACH_HOST) {
        return standin_end(
            standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "cuMemAllocManaged with flags %u", flags));
    }
    return standin_end(allocate_host(STANDIN_MANAGED, pointer, size_bytes));
}

oriel_cu_result standin_mem_host_alloc(void **memory, size_t size_bytes, unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_mem_host_alloc, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    uint64_t base = 0;
    result =
        flags > 7 ? ORIEL_CU_ERROR_INVALID_VALUE : allocate_host(STANDIN_HOST, &base, size_bytes);
    *memory = (void *)(uintptr_t)base;
    return standin_end(result);
}

oriel_cu_result standin_mem_free_host(void *memory)
{
    oriel_cu_result result = standin_begin(CALL_mem_free_host, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_allocation *allocation = standin_quiesced((uintptr_t)memory, STANDIN_HOST);
    if (!allocation) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuMemFreeHost of %p, which cuMemHostAlloc did not return",
                                         memory));
    }
    standin_release_host(allocation);
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_host_register(void *memory, size_t size_bytes, unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_mem_host_register, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    uint64_t base = (uintptr_t)memory;
    unsigned read_only = flags & ORIEL_CU_MEM_HOST_REGISTER_READ_ONLY;
    if (!memory || !size_bytes || flags > 15 || base + size_bytes < base) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuMemHostRegister of %zu bytes at %p with flags %u",
                                         size_bytes, memory, flags));
    }
    for (struct standin_allocation *other = standin_allocations; other; other = other->next) {
        if (other->base < base + size_bytes && base < other->base + other->size_bytes) {
            return standin_end(
                standin_fault(ORIEL_CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                              "cuMemHostRegister of memory that the driver knows, at %p", memory));
        }
    }
    if (read_only || flags & ORIEL_CU_MEM_HOST_REGISTER_IO_MEMORY) {
        return standin_end(ORIEL_CU_ERROR_NOT_SUPPORTED);
    }
    standin_add(STANDIN_REGISTERED, base, size_bytes);
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_host_unregister(void *memory)
{
    oriel_cu_result result = standin_begin(CALL_mem_host_unregister, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_allocation *allocation = standin_find((uintptr_t)memory);
    if (!allocation || allocation->base != (uintptr_t)memory ||
        allocation->kind != STANDIN_REGISTERED) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_HOST_MEMORY_NOT_REGISTERED,
                                         "cuMemHostUnregister of %p, which is not registered",
                                         memory));
    }
    if (allocation->in_flight) {
        standin_misuse("cuMemHostUnregister of %p, which %u operations of streams still use",
                       memory, allocation->in_flight);
    }
    standin_remove(allocation);
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_host_get_device_pointer(oriel_cu_pointer *pointer, void *memory,
                                                    unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_mem_host_get_device_pointer, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_allocation *allocation = standin_find((uintptr_t)memory);
    if (flags || !allocation ||
        (allocation->kind != STANDIN_HOST && allocation->kind != STANDIN_REGISTERED)) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuMemHostGetDevicePointer of %p, which is not pinned",
                                         memory));
    }
    *pointer = (uintptr_t)memory;
    return standin_end(ORIEL_CU_SUCCESS);
}
