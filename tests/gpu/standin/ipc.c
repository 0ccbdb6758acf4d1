/* Legacy handles of device memory for other processes.
 *
 * A handle names the exporter's process and the descriptor of a block's memfd, which the importer
 * opens in /proc. As in the driver, the whole block is mapped. The block's tail shows the importer
 * whether the allocation still exists, and the exporter whether a process still has it open. */
#include "standin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct handle {
    uint64_t magic;
    uint64_t block_id;
    uint64_t allocation_id;
    uint64_t offset_bytes;
    uint64_t size_bytes;
    int64_t pid;
    int64_t fd;
};
_Static_assert(sizeof(struct handle) <= sizeof(struct oriel_cu_ipc_handle), "fits");

/* Blocks of other processes that are mapped here. */
static struct standin_block *imported;

static bool is_process(int64_t pid)
{
    char path[40], text[8];
    snprintf(path, sizeof path, "/proc/%lld/exe", (long long)pid);
    /* a zombie has none */
    return readlink(path, text, sizeof text) > 0 || errno == EACCES;
}

int standin_importer(const struct standin_allocation *allocation)
{
    struct standin_tail *tail = allocation->block->tail;
    for (unsigned i = 0; i < STANDIN_IMPORTERS; i++) {
        int64_t pid = tail->importers[i].pid;
        if (pid && tail->importers[i].allocation_id == allocation->id && is_process(pid)) {
            return (int)pid;
        }
    }
    return 0;
}

static void enter_importer(struct standin_tail *tail, uint64_t allocation_id)
{
    for (unsigned i = 0; i < STANDIN_IMPORTERS; i++) {
        int64_t none = 0;
        if (__atomic_compare_exchange_n((int64_t *)&tail->importers[i].pid, &none, getpid(), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            tail->importers[i].allocation_id = allocation_id;
            return;
        }
    }
    standin_misuse("a block of device memory is open %d times in other processes",
                   STANDIN_IMPORTERS);
}

static void remove_importer(struct standin_tail *tail, uint64_t allocation_id)
{
    for (unsigned i = 0; i < STANDIN_IMPORTERS; i++) {
        if (tail->importers[i].pid == getpid() &&
            tail->importers[i].allocation_id == allocation_id) {
            tail->importers[i].allocation_id = 0;
            tail->importers[i].pid = 0;
            return;
        }
    }
}

oriel_cu_result standin_ipc_get_mem_handle(struct oriel_cu_ipc_handle *handle,
                                           oriel_cu_pointer pointer)
{
    oriel_cu_result result = standin_begin(CALL_ipc_get_mem_handle, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    const struct standin_allocation *allocation = standin_find(pointer);
    if (!allocation || allocation->kind != STANDIN_DEVICE) {
        return standin_end(
            standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                          "cuIpcGetMemHandle of %#llx, which cuMemAlloc did not return",
                          (unsigned long long)pointer));
    }
    struct handle contents = {.magic = STANDIN_MAGIC,
                              .block_id = allocation->block->id,
                              .allocation_id = allocation->id,
                              .offset_bytes =
                                  (size_t)(allocation->memory - allocation->block->hidden),
                              .size_bytes = allocation->size_bytes,
                              .pid = getpid(),
                              .fd = allocation->block->fd};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &contents, sizeof contents);
    return standin_end(ORIEL_CU_SUCCESS);
}

/* Maps the exporter's block. NULL if it does not exist any more. */
static struct standin_block *map_block(const struct handle *handle)
{
    char path[64];
    struct stat status;
    struct standin_block *block = calloc(1, sizeof *block);
    if (!block) {
        return NULL;
    }
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)handle->pid,
             (long long)handle->fd);
    block->fd = open(path, O_RDWR | O_CLOEXEC);
    if (block->fd < 0) {
        free(block);
        return NULL;
    }
    size_t tail_bytes = sizeof *block->tail;
    block->hidden = MAP_FAILED;
    if (fstat(block->fd, &status) == 0 && (size_t)status.st_size > tail_bytes) {
        block->size_bytes = (size_t)status.st_size - tail_bytes;
        block->hidden =
            mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, block->fd, 0);
    }
    close(block->fd);
    if (block->hidden == MAP_FAILED) {
        free(block);
        return NULL;
    }
    block->tail = (struct standin_tail *)(void *)(block->hidden + block->size_bytes);
    block->id = handle->block_id;
    block->visible = block->tail->magic == STANDIN_MAGIC && block->tail->block_id == block->id
                         ? standin_reserve(block->size_bytes, STANDIN_BLOCK_BYTES)
                         : NULL;
    if (!block->visible) {
        munmap(block->hidden, block->size_bytes + tail_bytes);
        free(block);
        return NULL;
    }
    block->next = imported;
    imported = block;
    return block;
}

static void unmap_block(struct standin_block *block)
{
    struct standin_block **link = &imported;
    while (*link != block) {
        link = &(*link)->next;
    }
    *link = block->next;
    munmap(block->visible, block->size_bytes);
    munmap(block->hidden, block->size_bytes + sizeof *block->tail);
    free(block);
}

/* Whether the current device reaches the memory of a block. */
static oriel_cu_result check_device(const struct standin_block *block)
{
    int ordinal = standin_ordinal(block->tail->device);
    if (ordinal < 0) {
        return ORIEL_CU_ERROR_INVALID_VALUE;
    }
    return ordinal == standin_current->device || standin_settings.has_peer_access
               ? ORIEL_CU_SUCCESS
               : ORIEL_CU_ERROR_PEER_ACCESS_UNSUPPORTED;
}

static oriel_cu_result open_handle(oriel_cu_pointer *pointer, const struct handle *handle)
{
    struct standin_block *block = imported;
    while (block && (block->id != handle->block_id || block->tail->exporter_pid != handle->pid)) {
        block = block->next;
    }
    for (struct standin_allocation *known = standin_allocations; block && known;
         known = known->next) {
        if (known->block == block && known->remote_id == handle->allocation_id &&
            known->context == standin_current) {
            known->opened++;
            *pointer = known->base;
            return ORIEL_CU_SUCCESS;
        }
    }
    if (!block && !(block = map_block(handle))) {
        return standin_fault(ORIEL_CU_ERROR_INVALID_HANDLE,
                             "cuIpcOpenMemHandle: process %lld or its memory does not exist",
                             (long long)handle->pid);
    }
    oriel_cu_result result = check_device(block);
    size_t unit =
        block->size_bytes == STANDIN_BLOCK_BYTES ? handle->offset_bytes / STANDIN_UNIT_BYTES : 0;
    if (result == ORIEL_CU_SUCCESS && block->tail->live[unit] != handle->allocation_id) {
        result = standin_fault(ORIEL_CU_ERROR_INVALID_HANDLE,
                               "cuIpcOpenMemHandle: process %lld has freed the memory",
                               (long long)handle->pid);
    }
    if (result != ORIEL_CU_SUCCESS) {
        if (!block->used) {
            unmap_block(block);
        }
        return result;
    }
    struct standin_allocation *allocation = standin_add(
        STANDIN_IMPORTED, (uintptr_t)block->visible + handle->offset_bytes, handle->size_bytes);
    allocation->memory = block->hidden + handle->offset_bytes;
    allocation->device = standin_ordinal(block->tail->device);
    allocation->block = block;
    allocation->opened = 1;
    allocation->remote_id = handle->allocation_id;
    block->used++;
    enter_importer(block->tail, handle->allocation_id);
    *pointer = allocation->base;
    return ORIEL_CU_SUCCESS;
}

oriel_cu_result standin_ipc_open_mem_handle(oriel_cu_pointer *pointer,
                                            struct oriel_cu_ipc_handle handle, unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_ipc_open_mem_handle, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct handle contents;
    memcpy(&contents, &handle, sizeof contents);
    if (flags != ORIEL_CU_IPC_LAZY_ENABLE_PEER_ACCESS || contents.magic != STANDIN_MAGIC) {
        result = standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                               "cuIpcOpenMemHandle with flags %u, or of bytes that are no handle",
                               flags);
    } else if (contents.pid == getpid()) {
        result = standin_fault(ORIEL_CU_ERROR_INVALID_CONTEXT,
                               "cuIpcOpenMemHandle of a handle of the process itself");
    } else {
        result = open_handle(pointer, &contents);
    }
    return standin_end(result);
}

oriel_cu_result standin_ipc_close_mem_handle(oriel_cu_pointer pointer)
{
    oriel_cu_result result = standin_begin(CALL_ipc_close_mem_handle, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_allocation *allocation = standin_find(pointer);
    if (!allocation || allocation->kind != STANDIN_IMPORTED || allocation->base != pointer) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuIpcCloseMemHandle of %#llx, which is not open",
                                         (unsigned long long)pointer));
    }
    if (--allocation->opened) {
        return standin_end(ORIEL_CU_SUCCESS);
    }
    if (allocation->in_flight) {
        standin_misuse("cuIpcCloseMemHandle of %#llx, which %u operations of streams still use",
                       (unsigned long long)pointer, allocation->in_flight);
    }
    struct standin_block *block = allocation->block;
    remove_importer(block->tail, allocation->remote_id);
    standin_remove(allocation);
    if (!--block->used) {
        unmap_block(block);
    }
    return standin_end(ORIEL_CU_SUCCESS);
}
