/* Finds the driver, and what all calls of it need: errors, contexts, streams. */
#include "gpu/cuda/driver.h"

#include "base/log.h"
#include "gpu/cuda/kernels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* The first with cuDeviceGetUuid_v2: 1,000 times the major number plus 10 times the minor one. */
enum { OLDEST_VERSION = 11040 };

struct oriel_cu_driver oriel_cu;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects the streams and contexts */

/* --- finding it --- */

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {
#define CUDA_FUNCTION(field, symbol, parameters) {symbol, offsetof(struct oriel_cu_driver, field)},
#include "gpu/cuda/cuda_functions.def"
#undef CUDA_FUNCTION
};

/* Returns the name of a missing function, or NULL. */
static const char *functions_find(void *library, struct oriel_cu_driver *out)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(library, functions[i].symbol);
        if (found == NULL)
            return functions[i].symbol;
        *(void **)((char *)out + functions[i].offset) = found;
    }
    return NULL;
}

/* Once: others may use the functions already. */
static void functions_publish(const struct oriel_cu_driver *found)
{
    pthread_mutex_lock(&mutex);
    if (oriel_cu.init == NULL)
        oriel_cu = *found;
    pthread_mutex_unlock(&mutex);
}

const struct oriel_gpu_vendor *oriel_gpu_cuda(void)
{
    static const struct oriel_gpu_vendor vendor = {
        .name = "CUDA",
        .find = oriel_cu_find,
        .alloc = oriel_cu_alloc,
        .free = oriel_cu_free,
        .pin = oriel_cu_pin,
        .copy = oriel_cu_copy,
        .copies_between = oriel_cu_copies_between,
        .update = oriel_cu_update,
        .stream_wait = oriel_cu_stream_wait,
        .share = oriel_cu_share,
        .unshare = oriel_cu_unshare,
        .map = oriel_cu_map,
        .unmap = oriel_cu_unmap,
    };
    static _Atomic bool is_refused;
    struct oriel_cu_driver found;
    int version = 0;
    void *library = atomic_load_explicit(&is_refused, memory_order_relaxed)
                        ? NULL
                        : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return NULL;
    const char *missing = functions_find(library, &found);
    if (missing == NULL && found.driver_get_version(&version) == ORIEL_CU_SUCCESS &&
        version >= OLDEST_VERSION) {
        functions_publish(&found);
        return &vendor;
    }
    if (atomic_exchange_explicit(&is_refused, true, memory_order_relaxed))
        return NULL;
    if (version != 0)
        oriel_warn("the CUDA driver is of version %d.%d, older than %d.%d: device memory is "
                   "not supported [O31]",
                   version / 1000, version % 1000 / 10, OLDEST_VERSION / 1000,
                   OLDEST_VERSION % 1000 / 10);
    else
        oriel_warn("the CUDA driver has no function %s: device memory is not supported [O31]",
                   missing != NULL ? missing : "cuDriverGetVersion that works");
    return NULL;
}

/* --- errors --- */

static enum oriel_status status_of(oriel_cu_result result)
{
    switch (result) {
    case ORIEL_CU_ERROR_INVALID_VALUE:
    case ORIEL_CU_ERROR_NOT_MAPPED: return ORIEL_E_BUFFER;
    case ORIEL_CU_ERROR_OUT_OF_MEMORY: return ORIEL_E_NO_MEM;
    case ORIEL_CU_ERROR_NOT_SUPPORTED: return ORIEL_E_UNSUPPORTED;
    default: return ORIEL_E_OTHER;
    }
}

const char *oriel_cu_error_name(oriel_cu_result result)
{
    const char *name = NULL;
    if (oriel_cu.get_error_name(result, &name) != ORIEL_CU_SUCCESS || name == NULL)
        name = "an unknown error";
    return name;
}

enum oriel_status oriel_cu_failed(const char *call, oriel_cu_result result)
{
    const char *text = NULL;
    if (oriel_cu.get_error_string(result, &text) != ORIEL_CU_SUCCESS || text == NULL)
        text = "no description";
    return oriel_fail(status_of(result), "the GPU driver's %s failed: %s (%d): %s", call,
                      oriel_cu_error_name(result), (int)result, text);
}

/* --- contexts and streams --- */

enum oriel_status oriel_cu_enter(struct oriel_cu_context *context)
{
    const oriel_cu_result result = oriel_cu.ctx_push_current(context);
    return result == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuCtxPushCurrent", result);
}

void oriel_cu_leave(void)
{
    struct oriel_cu_context *left;
    oriel_cu.ctx_pop_current(&left);
}

enum { MOST_DEVICES = 64 };

enum oriel_status oriel_cu_primary(int device, struct oriel_cu_context **out)
{
    static struct oriel_cu_context *contexts[MOST_DEVICES];
    oriel_cu_result result = ORIEL_CU_SUCCESS;
    if (device < 0 || device >= MOST_DEVICES)
        return oriel_fail(ORIEL_E_OTHER, "the GPU has ordinal %d: at most %d are supported", device,
                          MOST_DEVICES - 1);
    pthread_mutex_lock(&mutex);
    if (contexts[device] == NULL)
        result = oriel_cu.device_primary_ctx_retain(&contexts[device], device);
    *out = contexts[device];
    pthread_mutex_unlock(&mutex);
    return result == ORIEL_CU_SUCCESS ? ORIEL_OK
                                      : oriel_cu_failed("cuDevicePrimaryCtxRetain", result);
}

/* Memory that was mapped by address, or that is of a pool, has no context: the current one is used
 * if its device can access the memory, else that of the memory's device. */
enum oriel_status oriel_cu_enter_of(const struct oriel_gpu_memory *memory,
                                    struct oriel_cu_context **out)
{
    int device, can = 0;
    *out = memory->context;
    if (*out == NULL && oriel_cu.ctx_get_current(out) == ORIEL_CU_SUCCESS && *out != NULL &&
        oriel_cu.ctx_get_device(&device) == ORIEL_CU_SUCCESS && device != memory->device &&
        (oriel_cu.device_can_access_peer(&can, device, memory->device) != ORIEL_CU_SUCCESS || !can))
        *out = NULL;
    const enum oriel_status status =
        *out != NULL ? ORIEL_OK : oriel_cu_primary(memory->device, out);
    return status == ORIEL_OK ? oriel_cu_enter(*out) : status;
}

/* Of one context. */
struct context_stream {
    struct context_stream *next;
    const struct oriel_cu_context *context;
    struct oriel_cu_stream *stream;
};
static struct context_stream *streams;

static enum oriel_status stream_find(const struct oriel_cu_context *context,
                                     struct oriel_cu_stream **out)
{
    struct context_stream *entry = streams;
    while (entry != NULL && entry->context != context)
        entry = entry->next;
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        if (entry == NULL)
            return oriel_fail(ORIEL_E_NO_MEM, "no memory for a stream of the GPU");
        entry->context = context;
        entry->next = streams;
        streams = entry;
    }
    oriel_cu_result result =
        entry->stream != NULL
            ? ORIEL_CU_SUCCESS
            : oriel_cu.stream_create(&entry->stream, ORIEL_CU_STREAM_NON_BLOCKING);
    *out = entry->stream;
    return result == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuStreamCreate", result);
}

enum oriel_status oriel_cu_stream(struct oriel_cu_context *context, struct oriel_cu_stream **out)
{
    pthread_mutex_lock(&mutex);
    const enum oriel_status status = stream_find(context, out);
    pthread_mutex_unlock(&mutex);
    return status;
}

void oriel_cu_stream_forget(const struct oriel_cu_stream *stream)
{
    oriel_cu_kernels_forget(stream);
    pthread_mutex_lock(&mutex);
    for (struct context_stream *entry = streams; entry != NULL; entry = entry->next)
        if (entry->stream == stream)
            entry->stream = NULL;
    pthread_mutex_unlock(&mutex);
}

enum oriel_status oriel_cu_stream_end(struct oriel_cu_stream *stream, const char *failed,
                                      oriel_cu_result result)
{
    if (failed != NULL && result == ORIEL_CU_ERROR_INVALID_HANDLE)
        oriel_cu_stream_forget(stream);
    const oriel_cu_result ended = oriel_cu.stream_synchronize(stream);
    if (failed != NULL)
        return oriel_cu_failed(failed, result);
    return ended == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuStreamSynchronize", ended);
}
