/* What the driver knows of an address: attributes, ranges, and the memory that copies use. */
#include "standin.h"

#include <string.h>

enum { NO_DEVICE = -2 };

static bool is_host(const struct standin_allocation *allocation)
{
    return allocation->kind == STANDIN_HOST || allocation->kind == STANDIN_REGISTERED;
}

static bool has_cpu_address(const struct standin_allocation *allocation)
{
    return is_host(allocation) || allocation->kind == STANDIN_MANAGED;
}

/* Managed memory is where its page is at the moment: here, every second page is on the host. */
static bool is_on_host(const struct standin_allocation *allocation, uint64_t address)
{
    return is_host(allocation) || (allocation->kind == STANDIN_MANAGED && (address >> 12 & 1));
}

oriel_cu_result standin_resolve(const char *what, uint64_t address, size_t len_bytes,
                                struct standin_place *place)
{
    struct standin_allocation *allocation = standin_find(address);
    *place = (struct standin_place){.memory = (char *)(uintptr_t)address, .is_pageable = true};
    if (!allocation) {
        return ORIEL_CU_SUCCESS;
    }
    size_t offset_bytes = address - allocation->base;
    if (len_bytes > allocation->size_bytes - offset_bytes) {
        standin_misuse("%s: %zu bytes at %#llx exceed the allocation of %zu bytes at %#llx", what,
                       len_bytes, (unsigned long long)address, allocation->size_bytes,
                       (unsigned long long)allocation->base);
    }
    if (allocation->kind == STANDIN_MAPPED &&
        !(allocation->access[standin_current->device] & ORIEL_CU_ACCESS_READ)) {
        return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                             "%s: %#llx is mapped, but device %d has no access (cuMemSetAccess)",
                             what, (unsigned long long)address, standin_current->device);
    }
    *place = (struct standin_place){.memory = allocation->memory + offset_bytes,
                                    .allocation = allocation};
    return ORIEL_CU_SUCCESS;
}

/* The range of addresses: the reservation of memory that is mapped by cuMemMap. */
static struct standin_range range_of(const struct standin_allocation *allocation)
{
    struct standin_range range = {allocation->base, allocation->size_bytes};
    return allocation->kind == STANDIN_MAPPED ? standin_reservation(allocation->base) : range;
}

unsigned standin_access(const struct standin_allocation *allocation,
                        const struct oriel_cu_context *context)
{
    bool is_allowed = true;
    if (allocation->kind == STANDIN_MAPPED) {
        return (unsigned)allocation->access[context->device];
    }
    if (allocation->kind == STANDIN_DEVICE) {
        is_allowed =
            allocation->device == context->device || context->peers & 1u << allocation->device;
    } else if (allocation->kind == STANDIN_IMPORTED) {
        is_allowed = allocation->context == context;
    }
    return is_allowed ? ORIEL_CU_ACCESS_READ_WRITE : ORIEL_CU_ACCESS_NONE;
}

/* Writes an attribute of an address in the allocation. */
static oriel_cu_result write_attribute(void *value, int attribute,
                                       const struct standin_allocation *allocation,
                                       uint64_t address)
{
    switch (attribute) {
    case ORIEL_CU_POINTER_CONTEXT:
        /* memory without a context has none: cuMemMap */
        *(struct oriel_cu_context **)value =
            allocation->kind == STANDIN_MAPPED ? NULL : allocation->context;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_MEMORY_TYPE:
        *(unsigned *)value = is_on_host(allocation, address) ? ORIEL_CU_MEMORY_TYPE_HOST
                                                             : ORIEL_CU_MEMORY_TYPE_DEVICE;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_DEVICE_POINTER: *(uint64_t *)value = address; return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_HOST_POINTER:
        if (!has_cpu_address(allocation)) {
            return ORIEL_CU_ERROR_INVALID_VALUE;
        }
        *(void **)value = (void *)(uintptr_t)address;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_SYNC_MEMOPS: *(int *)value = 0; return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_BUFFER_ID:
    case ORIEL_CU_POINTER_MEMORY_BLOCK_ID:
        *(unsigned long long *)value = allocation->id;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_IS_MANAGED:
        *(int *)value = allocation->kind == STANDIN_MANAGED;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_DEVICE_ORDINAL:
        *(int *)value = allocation->device;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(int *)value = allocation->kind == STANDIN_DEVICE;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_RANGE_START_ADDR:
        *(uint64_t *)value = range_of(allocation).base;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_RANGE_SIZE:
        *(size_t *)value = range_of(allocation).size_bytes;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_MAPPING_BASE_ADDR:
        *(uint64_t *)value = allocation->base;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_MAPPING_SIZE:
        *(size_t *)value = allocation->size_bytes;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_MAPPED: *(int *)value = 1; return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_ALLOWED_HANDLE_TYPES:
        *(uint64_t *)value = standin_handle_types(allocation);
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_ACCESS_FLAGS:
        *(unsigned *)value = standin_current ? standin_access(allocation, standin_current) : 0;
        return ORIEL_CU_SUCCESS;
    case ORIEL_CU_POINTER_MEMPOOL_HANDLE: *(void **)value = NULL; return ORIEL_CU_SUCCESS;
    default: return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "pointer attribute %d", attribute);
    }
}

/* What cuPointerGetAttributes writes for an address without memory, which may be reserved. */
static void write_unknown(void *value, int attribute, uint64_t address)
{
    switch (attribute) {
    case ORIEL_CU_POINTER_RANGE_START_ADDR:
        *(uint64_t *)value = standin_reservation(address).base;
        break;
    case ORIEL_CU_POINTER_RANGE_SIZE:
        *(size_t *)value = standin_reservation(address).size_bytes;
        break;
    case ORIEL_CU_POINTER_MEMORY_TYPE:
    case ORIEL_CU_POINTER_ACCESS_FLAGS: *(unsigned *)value = 0; break;
    case ORIEL_CU_POINTER_DEVICE_ORDINAL: *(int *)value = NO_DEVICE; break;
    case ORIEL_CU_POINTER_SYNC_MEMOPS:
    case ORIEL_CU_POINTER_IS_MANAGED:
    case ORIEL_CU_POINTER_IS_LEGACY_CUDA_IPC_CAPABLE:
    case ORIEL_CU_POINTER_MAPPED: *(int *)value = 0; break;
    default: *(uint64_t *)value = 0; break;
    }
}

oriel_cu_result standin_pointer_get_attribute(void *value, int attribute, oriel_cu_pointer pointer)
{
    oriel_cu_result result = standin_begin(CALL_pointer_get_attribute, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    const struct standin_allocation *allocation = standin_find(pointer);
    return standin_end(allocation ? write_attribute(value, attribute, allocation, pointer)
                                  : ORIEL_CU_ERROR_INVALID_VALUE);
}

oriel_cu_result standin_pointer_get_attributes(unsigned count, int *attributes, void **values,
                                               oriel_cu_pointer pointer)
{
    oriel_cu_result result = standin_begin(CALL_pointer_get_attributes, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    const struct standin_allocation *allocation = standin_find(pointer);
    for (unsigned i = 0; i < count; i++) {
        if (!allocation ||
            write_attribute(values[i], attributes[i], allocation, pointer) != ORIEL_CU_SUCCESS) {
            write_unknown(values[i], attributes[i], pointer);
        }
    }
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_get_address_range(oriel_cu_pointer *base, size_t *size_bytes,
                                              oriel_cu_pointer pointer)
{
    oriel_cu_result result = standin_begin(CALL_mem_get_address_range, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    const struct standin_allocation *allocation = standin_find(pointer);
    if (!allocation || allocation->kind >= STANDIN_MANAGED) {
        return standin_end(ORIEL_CU_ERROR_NOT_FOUND);
    }
    if (allocation->device != standin_current->device) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_NOT_FOUND,
                                         "cuMemGetAddressRange of memory of device %d, but the "
                                         "current context is of device %d",
                                         allocation->device, standin_current->device));
    }
    if (base) {
        *base = allocation->base;
    }
    if (size_bytes) {
        *size_bytes = allocation->size_bytes;
    }
    return standin_end(ORIEL_CU_SUCCESS);
}
