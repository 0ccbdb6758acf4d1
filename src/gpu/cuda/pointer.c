/* The allocation at an address, from the driver, cached by range.
 *
 * The driver gives every allocation an id that it never uses again. So a cached range is valid if
 * the driver still has its id at the address: one question instead of seven. The driver does not
 * tell when memory is freed, and its functions may be called without Oriel seeing it.
 *
 * An address in a cached range that the driver does not know any more was freed. The program may
 * have host memory there meanwhile, which the kernel can read. If it cannot, the CPU could not
 * either, and the operation must fail. A context that was lost answers no question: then memory is
 * device memory if it is in a cached range or the kernel cannot read it. So operations on the first
 * fail, and those on host memory go on. */
#include "gpu/cuda/driver.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CACHED = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct oriel_gpu_memory cached[CACHED]; /* device memory; start is 0 in a free entry */
static unsigned used; /* entries that have ever been stored: an operation searches no others */
static unsigned next_replaced;

static struct oriel_gpu_memory *cache_find(uint64_t address)
{
    for (unsigned i = 0; i < used; i++)
        if (cached[i].start <= address && address < cached[i].end)
            return &cached[i];
    return NULL;
}

static void cache_store(const struct oriel_gpu_memory *memory)
{
    struct oriel_gpu_memory *entry = cache_find(memory->start);
    if (entry == NULL) {
        entry = &cached[next_replaced++ % CACHED];
        used = used < CACHED ? used + 1 : CACHED;
    }
    *entry = *memory;
}

/* A call that reads a set of signals there and does nothing with it. The kernel may refuse copies
 * by process_vm_readv, also within a process. */
static bool kernel_reads(uint64_t address)
{
    const int before = errno;
    const bool reads =
        syscall(SYS_rt_sigprocmask, -1, address & ~UINT64_C(7), NULL, 8) == 0 || errno != EFAULT;
    errno = before;
    return reads;
}

static struct oriel_gpu_memory host_memory(void)
{
    return (struct oriel_gpu_memory){.kind = ORIEL_GPU_HOST};
}

/* ORIEL_CU_SUCCESS with kind HOST if the driver does not know the address. */
static oriel_cu_result ask(uint64_t address, struct oriel_gpu_memory *out)
{
    unsigned type = 0;
    unsigned is_managed = 0;
    size_t len_bytes = 0;
    *out = host_memory();
    int attributes[] = {ORIEL_CU_POINTER_MEMORY_TYPE,    ORIEL_CU_POINTER_IS_MANAGED,
                        ORIEL_CU_POINTER_BUFFER_ID,      ORIEL_CU_POINTER_CONTEXT,
                        ORIEL_CU_POINTER_DEVICE_ORDINAL, ORIEL_CU_POINTER_RANGE_START_ADDR,
                        ORIEL_CU_POINTER_RANGE_SIZE};
    void *values[] = {&type,        &is_managed, &out->id,  &out->context,
                      &out->device, &out->start, &len_bytes};
    const oriel_cu_result result = oriel_cu.pointer_get_attributes(
        sizeof attributes / sizeof attributes[0], attributes, values, address);
    if (result == ORIEL_CU_ERROR_INVALID_VALUE || result == ORIEL_CU_ERROR_NOT_INITIALIZED ||
        (result == ORIEL_CU_SUCCESS && type == ORIEL_CU_MEMORY_TYPE_NONE)) {
        *out = host_memory();
        return ORIEL_CU_SUCCESS;
    }
    out->end = out->start + len_bytes;
    out->kind = is_managed                          ? ORIEL_GPU_MANAGED
                : type == ORIEL_CU_MEMORY_TYPE_HOST ? ORIEL_GPU_PINNED
                                                    : ORIEL_GPU_DEVICE;
    return result;
}

/* Device memory that the driver does not know any more. */
static struct oriel_gpu_memory freed_memory(struct oriel_gpu_memory *entry, uint64_t address)
{
    struct oriel_gpu_memory freed = *entry;
    if (kernel_reads(address)) {
        *entry = (struct oriel_gpu_memory){.start = 0};
        return host_memory();
    }
    freed.id = 0;
    return freed;
}

/* Memory about which the driver does not answer. Its copies fail with the driver's reason. */
static struct oriel_gpu_memory unanswered(const struct oriel_gpu_memory *entry, uint64_t address)
{
    if (kernel_reads(address))
        return host_memory();
    return entry != NULL ? *entry
                         : (struct oriel_gpu_memory){.kind = ORIEL_GPU_DEVICE, .id = UINT64_MAX};
}

static struct oriel_gpu_memory find_locked(uint64_t address)
{
    struct oriel_gpu_memory found;
    struct oriel_gpu_memory *entry = cache_find(address);
    uint64_t id = 0;
    if (entry != NULL &&
        oriel_cu.pointer_get_attribute(&id, ORIEL_CU_POINTER_BUFFER_ID, address) ==
            ORIEL_CU_SUCCESS &&
        id == entry->id)
        return *entry;
    if (ask(address, &found) != ORIEL_CU_SUCCESS)
        return unanswered(entry, address);
    if (found.kind == ORIEL_GPU_DEVICE)
        cache_store(&found);
    else if (found.kind == ORIEL_GPU_HOST && entry != NULL)
        return freed_memory(entry, address);
    return found;
}

enum oriel_status oriel_cu_alloc(uint64_t size_bytes, void **out)
{
    struct oriel_cu_context *context = NULL;
    oriel_cu_pointer memory;
    if (oriel_cu.ctx_get_current(&context) != ORIEL_CU_SUCCESS || context == NULL)
        return oriel_fail(ORIEL_E_UNSUPPORTED,
                          "device memory is wanted, and this thread has no current context of a "
                          "GPU");
    const oriel_cu_result result = oriel_cu.mem_alloc(&memory, size_bytes);
    *out = (void *)(uintptr_t)memory;
    return result == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuMemAlloc", result);
}

enum oriel_status oriel_cu_free(void *memory)
{
    const struct oriel_gpu_memory found = oriel_cu_find(memory);
    struct oriel_cu_context *context;
    enum oriel_status status = oriel_cu_enter_of(&found, &context);
    if (status != ORIEL_OK)
        return status;
    const oriel_cu_result result = oriel_cu.mem_free((oriel_cu_pointer)(uintptr_t)memory);
    oriel_cu_leave();
    return result == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuMemFree", result);
}

/* For all contexts. The driver forgets it with the context in which it was done. */
enum oriel_status oriel_cu_pin(void *memory, uint64_t len_bytes, const void *device)
{
    const struct oriel_gpu_memory near = oriel_cu_find(device);
    struct oriel_cu_context *context;
    if (oriel_cu_find(memory).kind == ORIEL_GPU_PINNED)
        return ORIEL_OK;
    enum oriel_status status = oriel_cu_enter_of(&near, &context);
    if (status != ORIEL_OK)
        return status;
    const oriel_cu_result result =
        oriel_cu.mem_host_register(memory, len_bytes, ORIEL_CU_MEM_HOST_REGISTER_PORTABLE);
    oriel_cu_leave();
    return result == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuMemHostRegister", result);
}

struct oriel_gpu_memory oriel_cu_find(const void *address)
{
    pthread_mutex_lock(&mutex);
    const struct oriel_gpu_memory found = find_locked((uint64_t)(uintptr_t)address);
    pthread_mutex_unlock(&mutex);
    return found;
}

/* The driver copies between memory of cuMemAlloc of any two devices. Memory that was mapped by
 * address is of those devices only that were given access. */
bool oriel_cu_copies_between(const void *one, const void *other)
{
    int can = 0;
    const struct oriel_gpu_memory a = oriel_cu_find(one);
    const struct oriel_gpu_memory b = oriel_cu_find(other);
    if (a.kind != ORIEL_GPU_DEVICE || b.kind != ORIEL_GPU_DEVICE || a.device == b.device ||
        (a.context != NULL && b.context != NULL))
        return true;
    return oriel_cu.device_can_access_peer(&can, a.device, b.device) == ORIEL_CU_SUCCESS && can;
}
