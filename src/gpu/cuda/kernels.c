/* Functions and memory for kernels, by context and stream. */
#include "gpu/cuda/kernels.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 3, SIZES = 4, LEAST_SCRATCH_BYTES = 1 << 16, LOG_BYTES = 512 };

struct oriel_cu_kernels {
    struct oriel_cu_kernels *next;
    const struct oriel_cu_context *context;
    struct oriel_cu_stream *stream; /* NULL: no longer works */
    unsigned width;
    /* functions; NULL until their first use */
    struct oriel_cu_function *updates[LETTERS][SIZES][ORIEL_OPERATOR_COUNT];
    struct oriel_cu_function *copy;
    pthread_mutex_t scratch_mutex; /* protects the next two */
    oriel_cu_pointer scratch;
    uint64_t scratch_bytes;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects all else */
static struct oriel_cu_kernels *list;
static bool is_refused; /* a function could not be loaded: the CPU computes from then on */

static struct oriel_cu_kernels *kernels_make(const struct oriel_cu_context *context,
                                             struct oriel_cu_stream *stream)
{
    oriel_cu_device device;
    int width;
    struct oriel_cu_kernels *made = calloc(1, sizeof *made);
    if (made == NULL || oriel_cu.ctx_get_device(&device) != ORIEL_CU_SUCCESS ||
        oriel_cu.device_get_attribute(&width, ORIEL_CU_DEVICE_MULTIPROCESSOR_COUNT, device) !=
            ORIEL_CU_SUCCESS) {
        free(made);
        return NULL;
    }
    made->context = context;
    made->stream = stream;
    made->width = (unsigned)width;
    pthread_mutex_init(&made->scratch_mutex, NULL);
    made->next = list;
    return list = made;
}

struct oriel_cu_kernels *oriel_cu_kernels_of(struct oriel_cu_stream *stream)
{
    struct oriel_cu_context *context;
    struct oriel_cu_kernels *kernels = NULL;
    if (oriel_cu.ctx_get_current(&context) != ORIEL_CU_SUCCESS)
        return NULL;
    pthread_mutex_lock(&mutex);
    if (!is_refused) {
        kernels = list;
        while (kernels != NULL && (kernels->context != context || kernels->stream != stream))
            kernels = kernels->next;
        if (kernels == NULL)
            kernels = kernels_make(context, stream);
    }
    pthread_mutex_unlock(&mutex);
    return kernels;
}

void oriel_cu_kernels_forget(const struct oriel_cu_stream *stream)
{
    pthread_mutex_lock(&mutex);
    for (struct oriel_cu_kernels *kernels = list; kernels != NULL; kernels = kernels->next)
        if (kernels->stream == stream)
            kernels->stream = NULL;
    pthread_mutex_unlock(&mutex);
}

unsigned oriel_cu_kernels_width(const struct oriel_cu_kernels *kernels)
{
    return kernels->width;
}

/* --- functions --- */

/* The first failure is for all kernels and contexts: what the compiler refuses once it refuses
 * again, and the CPU computes the same. */
static void refuse(const char *call, oriel_cu_result result, const char *log)
{
    is_refused = true;
    oriel_warn("the GPU driver does not load Oriel's kernels, so the CPU computes accumulates of "
               "device memory: %s returned %s (%d)%s%.*s [O32]",
               call, oriel_cu_error_name(result), (int)result, log[0] != '\0' ? ": " : "",
               (int)strcspn(log, "\n"), log);
}

static struct oriel_cu_function *load(const char *text, const char *name)
{
    struct oriel_cu_module *module;
    struct oriel_cu_function *function = NULL;
    char log[LOG_BYTES] = "";
    int options[] = {ORIEL_CU_JIT_ERROR_LOG_BUFFER, ORIEL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    const char *call = "cuModuleLoadDataEx";
    oriel_cu_result result = oriel_cu.module_load_data_ex(&module, text, 2, options, values);
    if (result == ORIEL_CU_SUCCESS) {
        call = "cuModuleGetFunction";
        result = oriel_cu.module_get_function(&function, module, name);
    }
    if (result != ORIEL_CU_SUCCESS)
        refuse(call, result, log);
    return result == ORIEL_CU_SUCCESS ? function : NULL;
}

struct oriel_cu_function *oriel_cu_kernels_update(struct oriel_cu_kernels *kernels,
                                                  struct oriel_cu_element element,
                                                  enum oriel_operator op)
{
    const unsigned letter = element.letter == 's' ? 0 : element.letter == 'u' ? 1 : 2;
    const unsigned size = (unsigned)__builtin_ctz(element.bytes);
    pthread_mutex_lock(&mutex);
    struct oriel_cu_function **function = &kernels->updates[letter][size][op];
    if (*function == NULL && !is_refused) {
        char *text = oriel_cu_update_text(element, op);
        *function = text != NULL ? load(text, "update") : NULL;
        free(text);
    }
    struct oriel_cu_function *found = *function;
    pthread_mutex_unlock(&mutex);
    return found;
}

struct oriel_cu_function *oriel_cu_kernels_copy(struct oriel_cu_kernels *kernels)
{
    pthread_mutex_lock(&mutex);
    if (kernels->copy == NULL && !is_refused) {
        char *text = oriel_cu_copy_text();
        kernels->copy = text != NULL ? load(text, "copy") : NULL;
        free(text);
    }
    struct oriel_cu_function *found = kernels->copy;
    pthread_mutex_unlock(&mutex);
    return found;
}

/* --- memory --- */

/* The old memory may be in use by what is enqueued. */
static void scratch_grow(struct oriel_cu_kernels *kernels, uint64_t size_bytes)
{
    uint64_t wanted_bytes = LEAST_SCRATCH_BYTES;
    while (wanted_bytes < size_bytes)
        wanted_bytes *= 2;
    if (kernels->scratch != 0) {
        oriel_cu.stream_synchronize(kernels->stream);
        oriel_cu.mem_free(kernels->scratch);
    }
    const bool has_memory = oriel_cu.mem_alloc(&kernels->scratch, wanted_bytes) == ORIEL_CU_SUCCESS;
    kernels->scratch = has_memory ? kernels->scratch : 0;
    kernels->scratch_bytes = has_memory ? wanted_bytes : 0;
}

oriel_cu_pointer oriel_cu_scratch_begin(struct oriel_cu_kernels *kernels, uint64_t size_bytes)
{
    pthread_mutex_lock(&kernels->scratch_mutex);
    if (kernels->scratch_bytes < size_bytes)
        scratch_grow(kernels, size_bytes);
    const oriel_cu_pointer scratch = kernels->scratch;
    if (scratch == 0)
        pthread_mutex_unlock(&kernels->scratch_mutex);
    return scratch;
}

void oriel_cu_scratch_end(struct oriel_cu_kernels *kernels)
{
    pthread_mutex_unlock(&kernels->scratch_mutex);
}

/* --- which memory they may access --- */

static bool has_access(uint64_t address)
{
    unsigned flags = 0;
    return oriel_cu.pointer_get_attribute(&flags, ORIEL_CU_POINTER_ACCESS_FLAGS, address) ==
               ORIEL_CU_SUCCESS &&
           flags == ORIEL_CU_ACCESS_READ_WRITE;
}

/* The memory of another context needs a permission that copies do not need. */
static bool enable_peer(struct oriel_cu_context *peer, int device)
{
    oriel_cu_device own;
    int can = 0;
    if (oriel_cu.ctx_get_device(&own) != ORIEL_CU_SUCCESS || own == device ||
        oriel_cu.device_can_access_peer(&can, own, device) != ORIEL_CU_SUCCESS || !can)
        return false;
    const oriel_cu_result result = oriel_cu.ctx_enable_peer_access(peer, 0);
    return result == ORIEL_CU_SUCCESS || result == ORIEL_CU_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

/* A kernel that accesses other memory loses its context for good, so this is checked where a copy
 * would report an error. Of memory that the program has mapped, the first byte and the last stand
 * for all. */
bool oriel_cu_kernels_access(const void *address, uint64_t len_bytes)
{
    const uint64_t first = (uint64_t)(uintptr_t)address;
    const struct oriel_gpu_memory memory = oriel_cu_find(address);
    struct oriel_cu_context *context;
    if (memory.kind != ORIEL_GPU_DEVICE || memory.id == 0 || memory.end - first < len_bytes ||
        oriel_cu.ctx_get_current(&context) != ORIEL_CU_SUCCESS)
        return false;
    if (memory.context == context)
        return true;
    return (memory.context == NULL || enable_peer(memory.context, memory.device)) &&
           has_access(first) && has_access(first + len_bytes - 1);
}
