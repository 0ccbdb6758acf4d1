/* Updates by a kernel. Buffers that the kernel cannot access are copied to or from Oriel's own
 * device memory: memory of the host, of a GPU without access to the target's, and elements that are
 * not aligned. The pieces are of at most 4 MiB: the copy of one takes some 0.2 ms, so the time to
 * begin the next one is nothing.
 *
 * Few elements of buffers on the host are left to the caller, which reads, computes and writes: two
 * copies of a few microseconds each. A kernel needs a copy, a launch and as much again for a
 * result, about the same. The caller repeats its two copies for each SMALL_BYTES. Buffers in device
 * memory would need a copy of their own first, so then the kernel is better from one element on. */
#include "gpu/cuda/kernels.h"
#include "gpu/update.h"

enum { SMALL_BYTES = 1 << 14, PIECE_BYTES = 1 << 22 };

enum { THREADS = 256 /* of a block */, BLOCKS = 32 /* at most, per multiprocessor */ };

/* Each kind as parts that a kernel computes with alike; 0 parts: with no type of PTX. */
static const struct {
    struct oriel_cu_element element;
    unsigned char parts;
} kinds[ORIEL_KIND_COUNT] = {
#define SIGNED_OR_NOT(type)                                                                        \
    {                                                                                              \
        (type)(-1) < 1 ? 's' : 'u', sizeof(type)                                                   \
    }
#define INTEGER(name, type, unsigned_type) [ORIEL_KIND_##name] = {SIGNED_OR_NOT(type), 1},
#define WIDE(name, type, unsigned_type)
#define REAL(name, type) [ORIEL_KIND_##name] = {{'f', sizeof(type)}, sizeof(type) <= 8},
#define COMPLEX(name, type, real)                                                                  \
    [ORIEL_KIND_##name] = {{'f', sizeof(real)}, 2 * (sizeof(real) <= 8)},
#define HALF(name, parts)
#define PAIR(name, type, index_type)
#define COMPOSED(name, type, index_type)
#define LOGICAL(name, type)       [ORIEL_KIND_##name] = {SIGNED_OR_NOT(type), 1},
#define BITS(name, type, like)    [ORIEL_KIND_##name] = {SIGNED_OR_NOT(type), 1},
#define LETTERS(name, type, like) [ORIEL_KIND_##name] = {SIGNED_OR_NOT(type), 1},
#define OPAQUE(name, type)
#include "reduce/kinds.def"
};

static bool is_aligned(const void *address, uint64_t bytes)
{
    return (uintptr_t)address % bytes == 0;
}

/* An exchange moves bits, in the largest units to which the elements and the target are aligned.
 * Returns the parts of an element; 0 if no kernel has the operator on it. */
static unsigned element_find(const struct oriel_gpu_update *update, struct oriel_cu_element *out)
{
    const uint32_t extent_bytes = oriel_kinds[update->kind].extent_bytes;
    *out = kinds[update->kind].element;
    if (update->op == ORIEL_OPERATOR_REPLACE) {
        *out = (struct oriel_cu_element){'u', 8};
        while (extent_bytes % out->bytes != 0 || !is_aligned(update->target, out->bytes))
            out->bytes /= 2;
        return extent_bytes / out->bytes;
    }
    const unsigned parts = kinds[update->kind].parts;
    const bool is_supported = parts == 1 || (parts == 2 && update->op == ORIEL_OPERATOR_SUM);
    return is_supported && is_aligned(update->target, out->bytes) &&
                   oriel_cu_update_exists(*out, update->op)
               ? parts
               : 0;
}

/* One update in progress, on parts. */
struct update {
    struct oriel_cu_kernels *kernels;
    struct oriel_cu_function *function;
    struct oriel_cu_stream *stream;
    struct oriel_cu_element element;
    oriel_cu_pointer target;
    oriel_cu_pointer origin;
    oriel_cu_pointer result; /* 0: not wanted */
    bool stages_origin;
    bool stages_result;
    uint64_t count; /* what is left */
};

static oriel_cu_result launch(const struct update *update, oriel_cu_pointer origin,
                              oriel_cu_pointer result, uint64_t count)
{
    const unsigned lanes = oriel_cu_lanes(update->element);
    const uint64_t lanes_bytes = (uint64_t)lanes * update->element.bytes;
    oriel_cu_pointer target = update->target;
    uint64_t whole = (target | origin | result) % lanes_bytes == 0 ? count / lanes : 0;
    const uint64_t accesses = whole > 0 ? whole : count;
    const uint64_t blocks = (accesses + THREADS - 1) / THREADS;
    const uint64_t most = (uint64_t)BLOCKS * oriel_cu_kernels_width(update->kernels);
    void *parameters[] = {&target, &origin, &result, &whole, &count};
    return oriel_cu.launch_kernel(update->function, (unsigned)(blocks < most ? blocks : most), 1, 1,
                                  THREADS, 1, 1, 0, update->stream, parameters, NULL);
}

/* The next parts. The scratch stands for each buffer that the kernel cannot access, or for both:
 * the kernel loads before it stores. Returns the name of the call that failed, or NULL. */
static const char *enqueue(struct update *update, oriel_cu_pointer scratch, uint64_t count,
                           oriel_cu_result *result)
{
    const uint64_t len_bytes = count * update->element.bytes;
    const oriel_cu_pointer from = update->stages_origin ? scratch : update->origin;
    const oriel_cu_pointer to = update->stages_result ? scratch : update->result;
    *result = update->stages_origin
                  ? oriel_cu.memcpy_async(from, update->origin, len_bytes, update->stream)
                  : ORIEL_CU_SUCCESS;
    if (*result != ORIEL_CU_SUCCESS)
        return "cuMemcpyAsync";
    *result = launch(update, from, to, count);
    if (*result != ORIEL_CU_SUCCESS)
        return "cuLaunchKernel";
    if (update->stages_result)
        *result = oriel_cu.memcpy_async(update->result, to, len_bytes, update->stream);
    update->target += len_bytes;
    update->origin += len_bytes;
    update->result += update->result != 0 ? len_bytes : 0;
    update->count -= count;
    return *result == ORIEL_CU_SUCCESS ? NULL : "cuMemcpyAsync";
}

/* False, without an effect, if there is no memory for the buffers that the kernel cannot access. */
static bool run(struct update *update, enum oriel_status *status)
{
    const bool stages = update->stages_origin || update->stages_result;
    const uint64_t most = (stages ? PIECE_BYTES : UINT64_MAX) / update->element.bytes;
    const uint64_t piece = update->count < most ? update->count : most;
    oriel_cu_pointer scratch = 0;
    oriel_cu_result result = ORIEL_CU_SUCCESS;
    const char *failed = NULL;
    if (stages) {
        scratch = oriel_cu_scratch_begin(update->kernels, piece * update->element.bytes);
        if (scratch == 0)
            return false;
    }
    while (update->count > 0 && failed == NULL)
        failed = enqueue(update, scratch, update->count < piece ? update->count : piece, &result);
    if (stages)
        oriel_cu_scratch_end(update->kernels);
    *status = oriel_cu_stream_end(update->stream, failed, result);
    return true;
}

static bool is_small(const struct oriel_gpu_update *update)
{
    return update->count * oriel_kinds[update->kind].extent_bytes <= SMALL_BYTES &&
           !oriel_gpu_is_device(update->origin) &&
           (update->result == NULL || !oriel_gpu_is_device(update->result));
}

/* In the context that is current. */
static bool update_here(const struct oriel_gpu_update *wanted, struct oriel_cu_context *context,
                        enum oriel_status *status)
{
    struct update update = {.target = (oriel_cu_pointer)(uintptr_t)wanted->target,
                            .origin = (oriel_cu_pointer)(uintptr_t)wanted->origin,
                            .result = (oriel_cu_pointer)(uintptr_t)wanted->result};
    const unsigned parts = element_find(wanted, &update.element);
    update.count = wanted->count * parts;
    const uint64_t len_bytes = update.count * update.element.bytes;
    if (parts == 0 || !oriel_cu_kernels_access(wanted->target, len_bytes) ||
        oriel_cu_stream(context, &update.stream) != ORIEL_OK)
        return false;
    update.kernels = oriel_cu_kernels_of(update.stream);
    if (update.kernels == NULL)
        return false;
    update.function = oriel_cu_kernels_update(update.kernels, update.element, wanted->op);
    if (update.function == NULL)
        return false;
    update.stages_origin = !is_aligned(wanted->origin, update.element.bytes) ||
                           !oriel_cu_kernels_access(wanted->origin, len_bytes);
    update.stages_result =
        wanted->result != NULL && (!is_aligned(wanted->result, update.element.bytes) ||
                                   !oriel_cu_kernels_access(wanted->result, len_bytes));
    return run(&update, status);
}

bool oriel_cu_update(const struct oriel_gpu_update *update, enum oriel_status *status)
{
    struct oriel_cu_context *context;
    const struct oriel_gpu_memory memory = oriel_cu_find(update->target);
    if (memory.kind != ORIEL_GPU_DEVICE || memory.id == 0 || is_small(update) ||
        oriel_cu_enter_of(&memory, &context) != ORIEL_OK)
        return false;
    const bool is_done = update_here(update, context, status);
    oriel_cu_leave();
    return is_done;
}
