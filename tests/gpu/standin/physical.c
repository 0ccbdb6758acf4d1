/* Physical memory of virtual memory management: a memfd each, which other processes import by its
 * descriptor. */
#include "standin.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct standin_physical *physicals;
static oriel_cu_memory last_handle = 0x564d0000;

bool standin_is_granular(uint64_t size_bytes)
{
    return size_bytes && size_bytes % STANDIN_BLOCK_BYTES == 0;
}

unsigned standin_handle_types(const struct standin_allocation *allocation)
{
    return allocation->kind == STANDIN_MAPPED ? allocation->physical->handle_types : 0;
}

struct standin_physical *standin_physical_find(oriel_cu_memory handle)
{
    struct standin_physical *physical = physicals;
    while (physical && (physical->handle != handle || !physical->references)) {
        physical = physical->next;
    }
    return physical;
}

oriel_cu_result standin_no_handle(const char *what, oriel_cu_memory memory)
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

void standin_physical_drop(struct standin_physical *physical)
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
    if (flags || !standin_is_granular(size_bytes)) {
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
    struct standin_physical *physical = standin_physical_find(memory);
    if (!physical) {
        return standin_end(standin_no_handle("cuMemRelease", memory));
    }
    physical->references--;
    standin_physical_drop(physical);
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
    struct standin_physical *physical = standin_physical_find(memory);
    if (!physical) {
        return standin_end(standin_no_handle("cuMemExportToShareableHandle", memory));
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

/* The size and the device of the memory of a descriptor; false if it is none. */
static bool read_tail(int fd, size_t *size_bytes, int *device)
{
    struct stat status;
    size_t tail_bytes = sizeof(struct standin_tail);
    if (fd < 0 || fstat(fd, &status) != 0 || (size_t)status.st_size <= tail_bytes) {
        return false;
    }
    *size_bytes = (size_t)status.st_size - tail_bytes;
    struct standin_tail *tail =
        mmap(NULL, tail_bytes, PROT_READ, MAP_SHARED, fd, (off_t)*size_bytes);
    if (tail == MAP_FAILED) {
        return false;
    }
    bool is_memory = tail->magic == STANDIN_MAGIC;
    *device = standin_ordinal(tail->device);
    munmap(tail, tail_bytes);
    return is_memory && *device >= 0;
}

oriel_cu_result standin_mem_import_from_shareable_handle(oriel_cu_memory *memory, void *handle,
                                                         int handle_type)
{
    oriel_cu_result result = standin_begin(CALL_mem_import_from_shareable_handle, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    size_t size_bytes;
    int device, fd = fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 0);
    if (handle_type != ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR ||
        !read_tail(fd, &size_bytes, &device)) {
        close(fd);
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "descriptor %d is no memory of a visible device",
                                         (int)(intptr_t)handle));
    }
    *memory = add_physical(fd, device, size_bytes, ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR)->handle;
    return standin_end(ORIEL_CU_SUCCESS);
}
