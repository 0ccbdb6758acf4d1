/* The table of all ranges of addresses that the driver knows, and device memory.
 *
 * As in the driver, small allocations are units of 512 bytes from blocks of 2 MiB, so allocations
 * may be neighbours, and a freed address is soon in use again. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALL_MOST_BYTES = 1 << 20 };

struct standin_allocation *standin_allocations;

static struct standin_block *blocks;
static size_t charged[STANDIN_DEVICES_MOST];
static uint64_t last_id;

static size_t round_up(size_t size_bytes, size_t unit_bytes)
{
    return (size_bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
}

struct standin_allocation *standin_find(uint64_t address)
{
    struct standin_allocation *allocation = standin_allocations;
    while (allocation && address - allocation->base >= allocation->size_bytes) {
        allocation = allocation->next;
    }
    return allocation;
}

struct standin_allocation *standin_add(enum standin_kind kind, uint64_t base, size_t size_bytes)
{
    struct standin_allocation *allocation = calloc(1, sizeof *allocation);
    if (!allocation) {
        standin_misuse("no memory for the stand-in itself");
    }
    allocation->kind = kind;
    allocation->id = ++last_id;
    allocation->base = base;
    allocation->size_bytes = size_bytes;
    allocation->memory = (char *)(uintptr_t)base;
    allocation->context = standin_current;
    allocation->device = standin_current ? standin_current->device : -1;
    allocation->next = standin_allocations;
    standin_allocations = allocation;
    return allocation;
}

void standin_remove(struct standin_allocation *allocation)
{
    struct standin_allocation **link = &standin_allocations;
    while (*link != allocation) {
        link = &(*link)->next;
    }
    *link = allocation->next;
    free(allocation);
}

void *standin_reserve(size_t size_bytes, size_t alignment_bytes)
{
    char *memory = mmap(NULL, size_bytes + alignment_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    char *aligned = (char *)round_up((uintptr_t)memory, alignment_bytes);
    if (aligned > memory) {
        munmap(memory, (size_t)(aligned - memory));
    }
    munmap(aligned + size_bytes, alignment_bytes - (size_t)(aligned - memory));
    return aligned;
}

bool standin_charge(int device, size_t size_bytes)
{
    if (size_bytes > standin_settings.memory_bytes - charged[device]) {
        return false;
    }
    charged[device] += size_bytes;
    return true;
}

void standin_uncharge(int device, size_t size_bytes)
{
    charged[device] -= size_bytes;
}

int standin_memfd(uint64_t id, size_t size_bytes, int device, struct standin_tail **tail)
{
    int fd = memfd_create("standin-device-memory", MFD_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    void *memory = MAP_FAILED;
    if (ftruncate(fd, (off_t)(size_bytes + sizeof **tail)) == 0) {
        memory =
            mmap(NULL, sizeof **tail, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)size_bytes);
    }
    if (memory == MAP_FAILED) {
        close(fd);
        return -1;
    }
    *tail = memory;
    (*tail)->magic = STANDIN_MAGIC;
    (*tail)->block_id = id;
    (*tail)->size_bytes = size_bytes;
    (*tail)->device = standin_settings.devices[device];
    (*tail)->exporter_pid = getpid();
    return fd;
}

/* Gives a block its memory. */
static bool fill_block(struct standin_block *block, int device)
{
    if (!standin_charge(device, block->size_bytes)) {
        return false;
    }
    block->id = ++last_id;
    block->fd = standin_memfd(block->id, block->size_bytes, device, &block->tail);
    if (block->fd >= 0) {
        block->hidden =
            mmap(NULL, block->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, block->fd, 0);
        if (block->hidden != MAP_FAILED) {
            block->device = device;
            memset(block->units, 0, sizeof block->units);
            return true;
        }
        block->hidden = NULL;
        munmap(block->tail, sizeof *block->tail);
        close(block->fd);
    }
    standin_uncharge(device, block->size_bytes);
    return false;
}

/* A block with memory: at an address that was in use before, if there is one. */
static struct standin_block *make_block(int device, size_t size_bytes, bool is_shared)
{
    struct standin_block *block = blocks;
    while (block && (block->hidden || block->size_bytes != size_bytes)) {
        block = block->next;
    }
    if (!block) {
        block = calloc(1, sizeof *block);
        void *visible = block ? standin_reserve(size_bytes, STANDIN_BLOCK_BYTES) : NULL;
        if (!visible) {
            free(block);
            return NULL;
        }
        block->visible = visible;
        block->size_bytes = size_bytes;
        block->next = blocks;
        blocks = block;
    }
    block->is_shared = is_shared;
    return fill_block(block, device) ? block : NULL;
}

/* The first of `count` free units in a row, or STANDIN_UNITS. */
static unsigned free_units(const struct standin_block *block, unsigned count)
{
    unsigned row = 0;
    for (unsigned unit = 0; unit < STANDIN_UNITS; unit++) {
        row = block->units[unit] ? 0 : row + 1;
        if (row == count) {
            return unit + 1 - count;
        }
    }
    return STANDIN_UNITS;
}

static struct standin_block *place_small(int device, unsigned count, unsigned *unit)
{
    for (struct standin_block *block = blocks; block; block = block->next) {
        if (block->hidden && block->is_shared && block->device == device) {
            *unit = free_units(block, count);
            if (*unit < STANDIN_UNITS) {
                return block;
            }
        }
    }
    *unit = 0;
    return make_block(device, STANDIN_BLOCK_BYTES, true);
}

static oriel_cu_result allocate(oriel_cu_pointer *pointer, size_t size_bytes)
{
    int device = standin_current->device;
    unsigned unit = 0, count = 0;
    struct standin_block *block;
    if (!size_bytes) {
        return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "cuMemAlloc of 0 bytes");
    }
    if (size_bytes > standin_settings.memory_bytes) {
        return ORIEL_CU_ERROR_OUT_OF_MEMORY;
    }
    if (size_bytes <= SMALL_MOST_BYTES) {
        count = (unsigned)(round_up(size_bytes, STANDIN_UNIT_BYTES) / STANDIN_UNIT_BYTES);
        block = place_small(device, count, &unit);
    } else {
        block = make_block(device, round_up(size_bytes, STANDIN_BLOCK_BYTES), false);
    }
    if (!block) {
        return ORIEL_CU_ERROR_OUT_OF_MEMORY;
    }
    size_t offset_bytes = (size_t)unit * STANDIN_UNIT_BYTES;
    struct standin_allocation *allocation =
        standin_add(STANDIN_DEVICE, (uintptr_t)block->visible + offset_bytes, size_bytes);
    allocation->memory = block->hidden + offset_bytes;
    allocation->block = block;
    block->used++;
    memset(block->units + unit, 1, count);
    block->tail->live[unit] = allocation->id;
    *pointer = allocation->base;
    return ORIEL_CU_SUCCESS;
}

oriel_cu_result standin_mem_alloc(oriel_cu_pointer *pointer, size_t size_bytes)
{
    oriel_cu_result result = standin_begin(CALL_mem_alloc, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(allocate(pointer, size_bytes));
}

static void release_device(struct standin_allocation *allocation)
{
    struct standin_block *block = allocation->block;
    size_t unit = (size_t)(allocation->memory - block->hidden) / STANDIN_UNIT_BYTES;
    int importer = standin_importer(allocation);
    if (importer) {
        standin_misuse("device memory at %#llx is freed while process %d has it open",
                       (unsigned long long)allocation->base, importer);
    }
    block->tail->live[block->is_shared ? unit : 0] = 0;
    if (block->is_shared) {
        memset(allocation->memory, 0xDB, allocation->size_bytes); /* no useful contents */
        memset(block->units + unit, 0,
               round_up(allocation->size_bytes, STANDIN_UNIT_BYTES) / STANDIN_UNIT_BYTES);
    }
    if (!--block->used) {
        munmap(block->hidden, block->size_bytes);
        munmap(block->tail, sizeof *block->tail);
        close(block->fd);
        block->hidden = NULL;
        standin_uncharge(block->device, block->size_bytes);
    }
    standin_remove(allocation);
}

struct standin_allocation *standin_quiesced(uint64_t base, enum standin_kind kind)
{
    standin_drain(NULL);
    struct standin_allocation *allocation = standin_find(base);
    return allocation && allocation->base == base && allocation->kind == kind ? allocation : NULL;
}

oriel_cu_result standin_mem_free(oriel_cu_pointer pointer)
{
    oriel_cu_result result = standin_begin(CALL_mem_free, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct standin_allocation *allocation = standin_quiesced(pointer, STANDIN_DEVICE);
    if (allocation) {
        release_device(allocation);
    } else if ((allocation = standin_quiesced(pointer, STANDIN_MANAGED))) {
        standin_release_host(allocation);
    } else if (pointer) {
        result = standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                               "cuMemFree of %#llx, which cuMemAlloc did not return or is freed",
                               (unsigned long long)pointer);
    }
    return standin_end(result);
}

void standin_free_context(struct oriel_cu_context *context)
{
    struct standin_allocation *allocation = standin_allocations;
    while (allocation) {
        struct standin_allocation *next = allocation->next;
        if (allocation->context == context && allocation->kind == STANDIN_DEVICE) {
            release_device(allocation);
        } else if (allocation->context == context && allocation->kind == STANDIN_MANAGED) {
            standin_release_host(allocation);
        }
        allocation = next;
    }
}
