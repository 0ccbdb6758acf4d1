/* Virtual memory management: physical memory (a memfd) with handles, reserved addresses, and
 * mappings of the one at the other. */
#include "standin.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct standin_physical {
    struct standin_physical *next;
    oriel_cu_memory handle;
    unsigned references; /* of the handle */
    unsigned mappings;
    int fd;
    int device; /* ordinal */
    size_t size_bytes;
    unsigned handle_types;
    struct standin_tail *tail; /* NULL: imported */
};

struct reservation {
    struct reservation *next;
    uint64_t base;
    size_t size_bytes;
};

static struct standin_physical *physicals;
static struct reservation *reservations;
static oriel_cu_memory last_handle = 0x564d0000;

unsigned standin_handle_types(const struct standin_allocation *allocation)
{
    return allocation->kind == STANDIN_MAPPED ? allocation->physical->handle_types : 0;
}

static bool is_granular(uint64_t size_bytes)
{
    return size_bytes && size_bytes % STANDIN_BLOCK_BYTES == 0;
}

static struct standin_physical *find_physical(oriel_cu_memory handle)
{
    struct standin_physical *physical = physicals;
    while (physical && (physical->handle != handle || !physical->references)) {
        physical = physical->next;
    }
    return physical;
}

static oriel_cu_result no_handle(const char *what, oriel_cu_memory memory)
{
    return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "%s: %#llx is no handle of memory, or freed",
                         what, (unsigned long long)memory);
}

static struct standin_physical *add_physical(int fd, int device, size_t size_bytes,
                                             unsigned handle_types)
{
    struct standin_physical *physical = calloc(1, sizeof *physical);
    if (!physical) {
        standin_misuse("no memory for the stand-in itself");
    }
    *physical = (struct standin_physical){.next = physicals,
                                          .handle = ++last_handle,
                                          .references = 1,
                                          .fd = fd,
                                          .device = device,
                                          .size_bytes = size_bytes,
                                          .handle_types = handle_types};
    physicals = physical;
    return physical;
}

static void remove_if_unused(struct standin_physical *physical)
{
    if (physical->references || physical->mappings) {
        return;
    }
    struct standin_physical **link = &physicals;
    while (*link != physical) {
        link = &(*link)->next;
    }
    *link = physical->next;
    if (physical->tail) {
        munmap(physical->tail, sizeof *physical->tail);
        standin_uncharge(physical->device, physical->size_bytes);
    }
    close(physical->fd);
    free(physical);
}

static oriel_cu_result check_properties(const struct oriel_cu_memory_properties *properties)
{
    if (properties->type != ORIEL_CU_ALLOCATION_PINNED ||
        properties->location.type != ORIEL_CU_LOCATION_DEVICE) {
        return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "memory of another type or location");
    }
    if (properties->location.id < 0 || properties->location.id >= standin_settings.device_count) {
        return ORIEL_CU_ERROR_INVALID_DEVICE;
    }
    return properties->handle_types & ~ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR
               ? ORIEL_CU_ERROR_NOT_SUPPORTED
               : ORIEL_CU_SUCCESS;
}

oriel_cu_result standin_mem_create(oriel_cu_memory *memory, size_t size_bytes,
                                   const struct oriel_cu_memory_properties *properties,
                                   uint64_t flags)
{
    oriel_cu_result result = standin_begin(CALL_mem_create, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (flags || !is_granular(size_bytes)) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuMemCreate of %zu bytes, no multiple of 2 MiB",
                                         size_bytes));
    }
    result = check_properties(properties);
    if (result != ORIEL_CU_SUCCESS) {
        return standin_end(result);
    }
    int device = properties->location.id;
    if (!standin_charge(device, size_bytes)) {
        return standin_end(ORIEL_CU_ERROR_OUT_OF_MEMORY);
    }
    struct standin_tail *tail = NULL;
    int fd = standin_memfd(last_handle + 1, size_bytes, device, &tail);
    if (fd < 0) {
        standin_uncharge(device, size_bytes);
        return standin_end(ORIEL_CU_ERROR_OUT_OF_MEMORY);
    }
    struct standin_physical *physical =
        add_physical(fd, device, size_bytes, (unsigned)properties->handle_types);
    physical->tail = tail;
    *memory = physical->handle;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_release(oriel_cu_memory memory)
{
    oriel_cu_result result = standin_begin(CALL_mem_release, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_physical *physical = find_physical(memory);
    if (!physical) {
        return standin_end(no_handle("cuMemRelease", memory));
    }
    physical->references--;
    remove_if_unused(physical);
    return standin_end(ORIEL_CU_SUCCESS);
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
    if (flags || !is_granular(size_bytes) || alignment_bytes & (alignment_bytes - 1)) {
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
    *reservation = (struct reservation){reservations, (uintptr_t)memory, size_bytes};
    reservations = reservation;
    *pointer = reservation->base;
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
    while (*link && ((*link)->base != pointer || (*link)->size_bytes != size_bytes)) {
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
    struct standin_physical *physical = find_physical(memory);
    if (!physical) {
        return standin_end(no_handle("cuMemMap", memory));
    }
    struct reservation *reservation = reservations;
    while (reservation && (pointer < reservation->base || size_bytes > reservation->size_bytes ||
                           pointer - reservation->base > reservation->size_bytes - size_bytes)) {
        reservation = reservation->next;
    }
    if (flags || offset_bytes || !reservation || !is_granular(size_bytes) ||
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
        remove_if_unused(physical);
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

oriel_cu_result standin_mem_get_allocation_granularity(
    size_t *granularity_bytes, const struct oriel_cu_memory_properties *properties, int option)
{
    oriel_cu_result result = standin_begin(CALL_mem_get_allocation_granularity, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    (void)option;
    *granularity_bytes = STANDIN_BLOCK_BYTES;
    return standin_end(check_properties(properties));
}

oriel_cu_result standin_mem_retain_allocation_handle(oriel_cu_memory *memory, void *address)
{
    oriel_cu_result result = standin_begin(CALL_mem_retain_allocation_handle, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_allocation *allocation = standin_find((uintptr_t)address);
    if (!allocation || allocation->kind != STANDIN_MAPPED) {
        return standin_end(ORIEL_CU_ERROR_INVALID_VALUE);
    }
    allocation->physical->references++;
    *memory = allocation->physical->handle;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_export_to_shareable_handle(void *handle, oriel_cu_memory memory,
                                                       int handle_type, uint64_t flags)
{
    oriel_cu_result result = standin_begin(CALL_mem_export_to_shareable_handle, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_physical *physical = find_physical(memory);
    if (!physical) {
        return standin_end(no_handle("cuMemExportToShareableHandle", memory));
    }
    if (flags || handle_type != ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR ||
        !(physical->handle_types & ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR)) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "an export of memory that was made without handle type"));
    }
    int fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
    *(int *)handle = fd;
    return standin_end(fd < 0 ? ORIEL_CU_ERROR_OPERATING_SYSTEM : ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_mem_import_from_shareable_handle(oriel_cu_memory *memory, void *handle,
                                                         int handle_type)
{
    oriel_cu_result result = standin_begin(CALL_mem_import_from_shareable_handle, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct stat status;
    uint64_t magic = 0;
    int64_t device = -1;
    off_t size_bytes = 0;
    int fd = handle_type == ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR
                 ? fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 0)
                 : -1;
    if (fd >= 0 && fstat(fd, &status) == 0) {
        size_bytes = status.st_size - (off_t)sizeof(struct standin_tail);
    }
    if (size_bytes > 0 &&
        (pread(fd, &magic, 8, size_bytes + (off_t)offsetof(struct standin_tail, magic)) != 8 ||
         pread(fd, &device, 8, size_bytes + (off_t)offsetof(struct standin_tail, device)) != 8)) {
        magic = 0;
    }
    int ordinal = standin_settings.device_count - 1;
    while (ordinal >= 0 && standin_settings.devices[ordinal] != device) {
        ordinal--;
    }
    if (magic != STANDIN_MAGIC || ordinal < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "descriptor %d is no memory of a visible device",
                                         (int)(intptr_t)handle));
    }
    *memory = add_physical(fd, ordinal, (size_t)size_bytes, ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR)
                  ->handle;
    return standin_end(ORIEL_CU_SUCCESS);
}
