/* Virtual memory management: reserved addresses, and mappings of physical memory at them. */
#include "standin.h"

#include <stdlib.h>
#include <sys/mman.h>

struct reservation {
    struct reservation *next;
    struct standin_range range;
};

static struct reservation *reservations;

struct standin_range standin_reservation(uint64_t address)
{
    for (const struct reservation *reservation = reservations; reservation;
         reservation = reservation->next) {
        if (address - reservation->range.base < reservation->range.size_bytes) {
            return reservation->range;
        }
    }
    return (struct standin_range){0, 0};
}

oriel_cu_result standin_mem_address_reserve(oriel_cu_pointer *pointer, size_t size_bytes,
                                            size_t alignment_bytes, oriel_cu_pointer wanted,
                                            uint64_t flags)
{
    (void)wanted; /* a wish, which the driver need not fulfil */
    oriel_cu_result result = standin_begin(CALL_mem_address_reserve, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (flags || !standin_is_granular(size_bytes) || alignment_bytes & (alignment_bytes - 1)) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuMemAddressReserve of %zu bytes aligned to %zu",
                                         size_bytes, alignment_bytes));
    }
    size_t unit_bytes =
        alignment_bytes > STANDIN_BLOCK_BYTES ? alignment_bytes : STANDIN_BLOCK_BYTES;
    struct reservation *reservation = calloc(1, sizeof *reservation);
    void *memory = reservation ? standin_reserve(size_bytes, unit_bytes) : NULL;
    if (!memory) {
        free(reservation);
        return standin_end(ORIEL_CU_ERROR_OUT_OF_MEMORY);
    }
    *reservation = (struct reservation){reservations, {(uintptr_t)memory, size_bytes}};
    reservations = reservation;
    *pointer = reservation->range.base;
    return standin_end(ORIEL_CU_SUCCESS);
}

/* The first mapping that overlaps a range, or NULL. */
static struct standin_allocation *mapping_in(uint64_t base, size_t size_bytes)
{
    struct standin_allocation *allocation = standin_allocations;
    while (allocation &&
           (allocation->kind != STANDIN_MAPPED || allocation->base >= base + size_bytes ||
            base >= allocation->base + allocation->size_bytes)) {
        allocation = allocation->next;
    }
    return allocation;
}

oriel_cu_result standin_mem_address_free(oriel_cu_pointer pointer, size_t size_bytes)
{
    oriel_cu_result result = standin_begin(CALL_mem_address_free, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct reservation **link = &reservations;
    while (*link && ((*link)->range.base != pointer || (*link)->range.size_bytes != size_bytes)) {
        link = &(*link)->next;
    }
    struct reservation *reservation = *link;
    if (!reservation) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuMemAddressFree of %zu bytes at %#llx, no reservation",
                                         size_bytes, (unsigned long long)pointer));
    }
    if (mapping_in(pointer, size_bytes)) {
        standin_misuse("cuMemAddressFree of addresses that have memory, at %#llx",
                       (unsigned long long)pointer);
    }
    munmap((void *)(uintptr_t)pointer, size_bytes);
    *link = reservation->next;
    free(reservation);
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_map(oriel_cu_pointer pointer, size_t size_bytes, size_t offset_bytes,
                                oriel_cu_memory memory, uint64_t flags)
{
    oriel_cu_result result = standin_begin(CALL_mem_map, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_physical *physical = standin_physical_find(memory);
    if (!physical) {
        return standin_end(standin_no_handle("cuMemMap", memory));
    }
    struct standin_range range = standin_reservation(pointer);
    if (flags || offset_bytes || !standin_is_granular(size_bytes) ||
        size_bytes > range.size_bytes || pointer - range.base > range.size_bytes - size_bytes ||
        pointer % STANDIN_BLOCK_BYTES || size_bytes > physical->size_bytes ||
        mapping_in(pointer, size_bytes)) {
        return standin_end(standin_fault(
            ORIEL_CU_ERROR_INVALID_VALUE,
            "cuMemMap of %zu bytes at %#llx: not reserved, in use, or more than the memory has",
            size_bytes, (unsigned long long)pointer));
    }
    void *hidden = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, physical->fd, 0);
    if (hidden == MAP_FAILED) {
        return standin_end(ORIEL_CU_ERROR_OUT_OF_MEMORY);
    }
    struct standin_allocation *allocation = standin_add(STANDIN_MAPPED, pointer, size_bytes);
    allocation->memory = hidden;
    allocation->device = physical->device;
    allocation->context = NULL;
    allocation->physical = physical;
    physical->mappings++;
    return standin_end(ORIEL_CU_SUCCESS);
}

/* Whether the range consists of whole mappings. */
static bool is_mapped(const char *what, uint64_t base, size_t size_bytes)
{
    size_t covered_bytes = 0;
    for (const struct standin_allocation *allocation = standin_allocations; allocation;
         allocation = allocation->next) {
        if (allocation->kind == STANDIN_MAPPED && allocation->base >= base &&
            allocation->base + allocation->size_bytes <= base + size_bytes) {
            covered_bytes += allocation->size_bytes;
        }
    }
    if (!size_bytes || covered_bytes != size_bytes) {
        standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                      "%s of %zu bytes at %#llx, which are not whole mappings", what, size_bytes,
                      (unsigned long long)base);
        return false;
    }
    return true;
}

oriel_cu_result standin_mem_unmap(oriel_cu_pointer pointer, size_t size_bytes)
{
    oriel_cu_result result = standin_begin(CALL_mem_unmap, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (!is_mapped("cuMemUnmap", pointer, size_bytes)) {
        return standin_end(ORIEL_CU_ERROR_INVALID_VALUE);
    }
    struct standin_allocation *allocation;
    while ((allocation = mapping_in(pointer, size_bytes))) {
        struct standin_physical *physical = allocation->physical;
        if (allocation->in_flight) {
            standin_misuse("cuMemUnmap of %#llx, which %u operations of streams still use",
                           (unsigned long long)allocation->base, allocation->in_flight);
        }
        munmap(allocation->memory, allocation->size_bytes);
        standin_remove(allocation);
        physical->mappings--;
        standin_physical_drop(physical);
    }
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_set_access(oriel_cu_pointer pointer, size_t size_bytes,
                                       const struct oriel_cu_access *accesses, size_t count)
{
    oriel_cu_result result = standin_begin(CALL_mem_set_access, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (!is_mapped("cuMemSetAccess", pointer, size_bytes)) {
        return standin_end(ORIEL_CU_ERROR_INVALID_VALUE);
    }
    for (struct standin_allocation *allocation = standin_allocations; allocation;
         allocation = allocation->next) {
        bool is_inside = allocation->kind == STANDIN_MAPPED && allocation->base >= pointer &&
                         allocation->base < pointer + size_bytes;
        for (size_t i = 0; is_inside && i < count; i++) {
            int device = accesses[i].location.id;
            if (accesses[i].location.type != ORIEL_CU_LOCATION_DEVICE || device < 0 ||
                device >= standin_settings.device_count) {
                return standin_end(ORIEL_CU_ERROR_INVALID_DEVICE);
            }
            if (device != allocation->device && !standin_settings.has_peer_access) {
                return standin_end(ORIEL_CU_ERROR_PEER_ACCESS_UNSUPPORTED);
            }
            allocation->access[device] = accesses[i].flags;
        }
    }
    return standin_end(ORIEL_CU_SUCCESS);
}
