/* Device memory that several processes map. The owner's driver makes a handle of an allocation:
 * plain bytes for memory of cuMemAlloc, a file descriptor for memory that the program has mapped
 * itself (virtual memory management). The kernel gives the descriptor to a process that may trace
 * the owner, which is what copies by CMA need as well. */
#include "gpu/cuda/driver.h"
#include "gpu/share.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- the owner --- */

static enum oriel_status device_uuid(int device, uint8_t out[16])
{
    struct oriel_cu_uuid uuid;
    const oriel_cu_result result = oriel_cu.device_get_uuid(&uuid, device);
    if (result != ORIEL_CU_SUCCESS)
        return oriel_cu_failed("cuDeviceGetUuid", result);
    memcpy(out, uuid.bytes, sizeof uuid.bytes);
    return ORIEL_OK;
}

static enum oriel_status share_legacy(struct oriel_gpu_shared *out)
{
    struct oriel_cu_ipc_handle handle;
    const oriel_cu_result result = oriel_cu.ipc_get_mem_handle(&handle, out->start);
    if (result != ORIEL_CU_SUCCESS)
        return oriel_cu_failed("cuIpcGetMemHandle", result);
    memcpy(out->legacy, handle.bytes, sizeof handle.bytes);
    return ORIEL_OK;
}

/* The mapping at an address: the allocation is all that the program has reserved around it. */
static enum oriel_status mapping_find(const void *address, struct oriel_gpu_shared *out)
{
    size_t len_bytes;
    const oriel_cu_result result = oriel_cu.mem_get_address_range(
        &out->start, &len_bytes, (oriel_cu_pointer)(uintptr_t)address);
    out->end = out->start + len_bytes;
    return result == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuMemGetAddressRange", result);
}

static void refuse(struct oriel_gpu_shared *out, const char *reason)
{
    snprintf(out->refusal, sizeof out->refusal, "other processes cannot map device memory %s",
             reason);
}

static enum oriel_status share_by_descriptor(const void *address, struct oriel_gpu_shared *out)
{
    oriel_cu_memory handle;
    uint64_t types = ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR;
    oriel_cu.pointer_get_attribute(&types, ORIEL_CU_POINTER_ALLOWED_HANDLE_TYPES,
                                   (oriel_cu_pointer)(uintptr_t)address);
    if (!(types & ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR)) {
        refuse(out, "that was created without a POSIX file descriptor as handle type");
        return ORIEL_OK;
    }
    oriel_cu_result result =
        oriel_cu.mem_retain_allocation_handle(&handle, (void *)(uintptr_t)address);
    if (result != ORIEL_CU_SUCCESS)
        return oriel_cu_failed("cuMemRetainAllocationHandle", result);
    result = oriel_cu.mem_export_to_shareable_handle(&out->fd, handle,
                                                     ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR, 0);
    oriel_cu.mem_release(handle);
    if (result != ORIEL_CU_SUCCESS)
        return oriel_cu_failed("cuMemExportToShareableHandle", result);
    return ORIEL_OK;
}

enum oriel_status oriel_cu_share(const void *address, struct oriel_gpu_shared *out)
{
    const struct oriel_gpu_memory memory = oriel_cu_find(address);
    struct oriel_cu_context *context;
    int is_legacy = 0;
    if (memory.id == 0)
        return oriel_fail(ORIEL_E_BASE, "the device memory at %p was freed", address);
    *out = (struct oriel_gpu_shared){.start = memory.start,
                                     .end = memory.end,
                                     .id = memory.id,
                                     .pid = (int32_t)getpid(),
                                     .fd = -1};
    if (memory.kind == ORIEL_GPU_MANAGED) {
        refuse(out, "that its driver moves");
        return ORIEL_OK;
    }
    oriel_cu.pointer_get_attribute(&is_legacy, ORIEL_CU_POINTER_IS_LEGACY_CUDA_IPC_CAPABLE,
                                   (oriel_cu_pointer)(uintptr_t)address);
    enum oriel_status status = device_uuid(memory.device, out->uuid);
    if (status == ORIEL_OK)
        status = oriel_cu_enter_of(&memory, &context);
    if (status != ORIEL_OK)
        return status;
    if (is_legacy) {
        status = share_legacy(out);
    } else {
        status = mapping_find(address, out);
        if (status == ORIEL_OK)
            status = share_by_descriptor(address, out);
    }
    oriel_cu_leave();
    return status;
}

void oriel_cu_unshare(const struct oriel_gpu_shared *shared)
{
    if (shared->fd >= 0)
        close(shared->fd);
}

/* --- the others --- */

/* The device with that id, or -1: this process cannot see it. */
static int device_find(const uint8_t uuid[16])
{
    struct oriel_cu_uuid found;
    int count = 0;
    if (oriel_cu.device_get_count(&count) != ORIEL_CU_SUCCESS)
        return -1;
    for (int i = 0; i < count; i++)
        if (oriel_cu.device_get_uuid(&found, i) == ORIEL_CU_SUCCESS &&
            memcmp(found.bytes, uuid, sizeof found.bytes) == 0)
            return i;
    return -1;
}

static oriel_cu_result open_legacy(const struct oriel_gpu_shared *shared,
                                   struct oriel_gpu_mapping *out)
{
    struct oriel_cu_ipc_handle handle;
    memcpy(handle.bytes, shared->legacy, sizeof handle.bytes);
    out->is_legacy = true;
    return oriel_cu.ipc_open_mem_handle(&out->start, handle, ORIEL_CU_IPC_LAZY_ENABLE_PEER_ACCESS);
}

/* A copy of the owner's descriptor, or -1. */
static int descriptor_fetch(const struct oriel_gpu_shared *shared)
{
    const int owner = (int)syscall(SYS_pidfd_open, shared->pid, 0);
    if (owner < 0)
        return -1;
    const int fetched = (int)syscall(SYS_pidfd_getfd, owner, shared->fd, 0);
    const int error = errno;
    close(owner);
    errno = error;
    return fetched;
}

/* For the device of the current context. */
static oriel_cu_result access_allow(const struct oriel_gpu_mapping *mapping)
{
    struct oriel_cu_access access = {.location = {.type = ORIEL_CU_LOCATION_DEVICE},
                                     .flags = ORIEL_CU_ACCESS_READ_WRITE};
    const oriel_cu_result result = oriel_cu.ctx_get_device(&access.location.id);
    return result != ORIEL_CU_SUCCESS
               ? result
               : oriel_cu.mem_set_access(mapping->start, mapping->len_bytes, &access, 1);
}

static oriel_cu_result map_at_addresses(struct oriel_gpu_mapping *out)
{
    oriel_cu_result result = oriel_cu.mem_address_reserve(&out->start, out->len_bytes, 0, 0, 0);
    if (result != ORIEL_CU_SUCCESS)
        return result;
    result = oriel_cu.mem_map(out->start, out->len_bytes, 0, out->handle, 0);
    if (result == ORIEL_CU_SUCCESS) {
        result = access_allow(out);
        if (result != ORIEL_CU_SUCCESS)
            oriel_cu.mem_unmap(out->start, out->len_bytes);
    }
    if (result != ORIEL_CU_SUCCESS)
        oriel_cu.mem_address_free(out->start, out->len_bytes);
    return result;
}

static oriel_cu_result open_descriptor(int fd, struct oriel_gpu_mapping *out)
{
    oriel_cu_result result = oriel_cu.mem_import_from_shareable_handle(
        &out->handle, (void *)(intptr_t)fd, ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR);
    if (result != ORIEL_CU_SUCCESS)
        return result;
    result = map_at_addresses(out);
    if (result != ORIEL_CU_SUCCESS)
        oriel_cu.mem_release(out->handle);
    return result;
}

/* Maps it for the device of a context. */
static enum oriel_status map_in(struct oriel_cu_context *context, int fd,
                                const struct oriel_gpu_shared *shared,
                                struct oriel_gpu_mapping *out)
{
    enum oriel_status status = oriel_cu_enter(context);
    if (status != ORIEL_OK)
        return status;
    out->context = context;
    const oriel_cu_result result = fd < 0 ? open_legacy(shared, out) : open_descriptor(fd, out);
    if (result != ORIEL_CU_SUCCESS)
        status =
            oriel_cu_failed(fd < 0 ? "cuIpcOpenMemHandle" : "mapping of a shared handle", result);
    oriel_cu_leave();
    return status;
}

/* For the device that the program uses, which may differ from the owner's. If that has no access
 * to the owner's device, for the owner's device: the driver then copies between the two. */
static enum oriel_status map_anywhere(int fd, const struct oriel_gpu_shared *shared,
                                      struct oriel_gpu_mapping *out)
{
    struct oriel_cu_context *context = NULL;
    struct oriel_cu_context *owners = NULL;
    const int device = device_find(shared->uuid);
    enum oriel_status status = ORIEL_E_OTHER;
    oriel_cu.ctx_get_current(&context);
    if (context != NULL)
        status = map_in(context, fd, shared, out);
    else if (device < 0)
        return oriel_fail(ORIEL_E_OTHER,
                          "the GPU that has the memory of process %d is not visible to process %d, "
                          "which has no context of another GPU either",
                          (int)shared->pid, (int)getpid());
    if (status != ORIEL_OK && device >= 0) {
        status = oriel_cu_primary(device, &owners);
        if (status == ORIEL_OK && owners != context)
            status = map_in(owners, fd, shared, out);
    }
    return status;
}

enum oriel_status oriel_cu_map(const struct oriel_gpu_shared *shared, struct oriel_gpu_mapping *out)
{
    *out = (struct oriel_gpu_mapping){.len_bytes = shared->end - shared->start};
    const int fd = shared->fd < 0 ? -1 : descriptor_fetch(shared);
    if (shared->fd >= 0 && fd < 0)
        return oriel_fail(ORIEL_E_OTHER,
                          "the kernel does not give process %d the handle of process %d's device "
                          "memory: %s",
                          (int)getpid(), (int)shared->pid, strerror(errno));
    const enum oriel_status status = map_anywhere(fd, shared, out);
    if (fd >= 0)
        close(fd);
    return status;
}

void oriel_cu_unmap(const struct oriel_gpu_mapping *mapping)
{
    if (oriel_cu_enter(mapping->context) != ORIEL_OK)
        return;
    if (mapping->is_legacy) {
        oriel_cu.ipc_close_mem_handle(mapping->start);
    } else {
        oriel_cu.mem_unmap(mapping->start, mapping->len_bytes);
        oriel_cu.mem_address_free(mapping->start, mapping->len_bytes);
        oriel_cu.mem_release(mapping->handle);
    }
    oriel_cu_leave();
}
