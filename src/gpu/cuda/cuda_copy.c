/* Copies on Oriel's own stream. It does not wait for the program's streams: a program makes its
 * kernels' results complete before it gives the buffer to MPI. If the program has named its stream,
 * the copies are in the order of that stream instead. Pieces of one length at equal distances on
 * both sides are one copy of rows. Many others are copied by one kernel. */
#include "gpu/cuda/kernels.h"

enum {
    ROWS_LEAST = 4,
    PITCH_MOST = INT32_MAX,
    LEAST_BATCH = 8, /* copies that one kernel replaces */
    BATCH_PIECE_BYTES = 1 << 16,
    BATCH_THREADS = 128,
};

/* The distance from each piece to the next. */
struct rows {
    int64_t to_bytes, from_bytes;
};

static int64_t distance(const void *from, const void *to)
{
    return (int64_t)((uintptr_t)to - (uintptr_t)from);
}

/* How many pieces from the first on are rows of one copy. */
static unsigned count_rows(const struct oriel_gpu_piece *pieces, unsigned count, struct rows *rows)
{
    unsigned i = 2;
    if (count < ROWS_LEAST || pieces[0].len_bytes != pieces[1].len_bytes)
        return 1;
    rows->to_bytes = distance(pieces[0].to, pieces[1].to);
    rows->from_bytes = distance(pieces[0].from, pieces[1].from);
    const int64_t least = (int64_t)pieces[0].len_bytes;
    if (rows->to_bytes < least || rows->from_bytes < least || rows->to_bytes > PITCH_MOST ||
        rows->from_bytes > PITCH_MOST)
        return 1;
    while (i < count && pieces[i].len_bytes == pieces[0].len_bytes &&
           distance(pieces[i - 1].to, pieces[i].to) == rows->to_bytes &&
           distance(pieces[i - 1].from, pieces[i].from) == rows->from_bytes)
        i++;
    return i < ROWS_LEAST ? 1 : i;
}

static bool is_host(const void *address)
{
    const enum oriel_gpu_kind kind = oriel_cu_find(address).kind;
    return kind == ORIEL_GPU_HOST || kind == ORIEL_GPU_PINNED;
}

static oriel_cu_result copy_rows(const struct oriel_gpu_piece *first, unsigned count,
                                 const struct rows *rows, struct oriel_cu_stream *stream)
{
    const struct oriel_cu_copy_2d copy = {
        .source_type =
            is_host(first->from) ? ORIEL_CU_MEMORY_TYPE_HOST : ORIEL_CU_MEMORY_TYPE_DEVICE,
        .source_host = first->from,
        .source_device = (oriel_cu_pointer)(uintptr_t)first->from,
        .source_pitch_bytes = (size_t)rows->from_bytes,
        .target_type = is_host(first->to) ? ORIEL_CU_MEMORY_TYPE_HOST : ORIEL_CU_MEMORY_TYPE_DEVICE,
        .target_host = first->to,
        .target_device = (oriel_cu_pointer)(uintptr_t)first->to,
        .target_pitch_bytes = (size_t)rows->to_bytes,
        .width_bytes = first->len_bytes,
        .height = count,
    };
    return oriel_cu.memcpy_2d_async(&copy, stream);
}

/* --- many pieces by one kernel --- */

/* The driver needs about 1.5 us to begin a copy, and as much for a launch. A batch is a copy of its
 * list, a launch and some questions about the memory, as long as four copies: it pays from twice as
 * many on. A block of threads copies a piece, so the device's own engines copy long pieces faster,
 * and then the time to begin a copy is nothing. */
static bool batch_pays(const struct oriel_gpu_piece *pieces, unsigned count)
{
    struct rows rows;
    uint64_t len_bytes = 0;
    unsigned copies = 0;
    for (unsigned i = 0; i < count; i++)
        len_bytes += pieces[i].len_bytes;
    if (len_bytes / count > BATCH_PIECE_BYTES)
        return false;
    for (unsigned i = 0; i < count && copies < LEAST_BATCH; copies++)
        i += count_rows(pieces + i, count - i, &rows);
    return copies >= LEAST_BATCH;
}

/* Pinned memory has one address for the CPU and for kernels, except where the program registered it
 * on a system that cannot do that. */
static bool kernels_access(const void *from, const void *end)
{
    oriel_cu_pointer pointer;
    const uint64_t len_bytes = (uint64_t)distance(from, end);
    const struct oriel_gpu_memory memory = oriel_cu_find(from);
    if (memory.kind != ORIEL_GPU_PINNED)
        return oriel_cu_kernels_access(from, len_bytes);
    return memory.end - (uintptr_t)from >= len_bytes &&
           oriel_cu.mem_host_get_device_pointer(&pointer, (void *)(uintptr_t)from, 0) ==
               ORIEL_CU_SUCCESS &&
           pointer == (uintptr_t)from;
}

/* Whether kernels access all bytes of both sides. */
static bool batch_is_accessible(const struct oriel_gpu_piece *pieces, unsigned count)
{
    const char *from = pieces[0].from, *from_end = from;
    const char *to = pieces[0].to, *to_end = to;
    for (unsigned i = 0; i < count; i++) {
        const char *source = pieces[i].from, *sink = pieces[i].to;
        const uint64_t len_bytes = pieces[i].len_bytes;
        from = source < from ? source : from;
        from_end = source + len_bytes > from_end ? source + len_bytes : from_end;
        to = sink < to ? sink : to;
        to_end = sink + len_bytes > to_end ? sink + len_bytes : to_end;
    }
    return kernels_access(from, from_end) && kernels_access(to, to_end);
}

/* False if a kernel cannot do it. *failed is the name of the call that failed, or NULL. */
static bool enqueue_batch(const struct oriel_gpu_piece *pieces, unsigned count,
                          struct oriel_cu_stream *stream, const char **failed,
                          oriel_cu_result *result)
{
    const uint64_t list_bytes = count * sizeof pieces[0];
    struct oriel_cu_kernels *kernels =
        batch_is_accessible(pieces, count) ? oriel_cu_kernels_of(stream) : NULL;
    struct oriel_cu_function *function = kernels != NULL ? oriel_cu_kernels_copy(kernels) : NULL;
    oriel_cu_pointer list = function != NULL ? oriel_cu_scratch_begin(kernels, list_bytes) : 0;
    if (list == 0)
        return false;
    void *parameters[] = {&list};
    *failed = "cuMemcpyHtoDAsync";
    *result = oriel_cu.memcpy_htod_async(list, pieces, list_bytes, stream);
    if (*result == ORIEL_CU_SUCCESS) {
        *failed = "cuLaunchKernel";
        *result = oriel_cu.launch_kernel(function, count, 1, 1, BATCH_THREADS, 1, 1, 0, stream,
                                         parameters, NULL);
    }
    oriel_cu_scratch_end(kernels);
    *failed = *result == ORIEL_CU_SUCCESS ? NULL : *failed;
    return true;
}

/* Returns the name of the call that failed, or NULL. */
static const char *enqueue(const struct oriel_gpu_piece *pieces, unsigned count,
                           struct oriel_cu_stream *stream, oriel_cu_result *result)
{
    struct rows rows;
    const char *failed;
    if (count >= LEAST_BATCH && batch_pays(pieces, count) &&
        enqueue_batch(pieces, count, stream, &failed, result))
        return failed;
    for (unsigned i = 0; i < count;) {
        const unsigned height = count_rows(pieces + i, count - i, &rows);
        const struct oriel_gpu_piece *piece = &pieces[i];
        *result = height > 1 ? copy_rows(piece, height, &rows, stream)
                             : oriel_cu.memcpy_async((oriel_cu_pointer)(uintptr_t)piece->to,
                                                     (oriel_cu_pointer)(uintptr_t)piece->from,
                                                     piece->len_bytes, stream);
        if (*result != ORIEL_CU_SUCCESS)
            return height > 1 ? "cuMemcpy2DAsync" : "cuMemcpyAsync";
        i += height;
    }
    return NULL;
}

/* Leaves the copies on the stream to the end of begun; false if there is no room for it. */
static bool leave(struct oriel_gpu_copies *begun, struct oriel_cu_context *context,
                  struct oriel_cu_stream *stream)
{
    pthread_mutex_lock(&begun->mutex);
    uint32_t at = 0;
    const uint32_t count = oriel_load_relaxed(&begun->count);
    while (at < count && begun->streams[at].stream != stream)
        at++;
    if (at == count && count < ORIEL_GPU_STREAMS) {
        begun->streams[at] = (struct oriel_gpu_stream){context, stream};
        oriel_store_release(&begun->count, count + 1);
    }
    pthread_mutex_unlock(&begun->mutex);
    return at < ORIEL_GPU_STREAMS;
}

/* Which side's context makes the copies: that of mapped memory, which only some devices access,
 * before that of other device memory, and that before managed memory. 0: host memory. */
static unsigned precedence(const struct oriel_gpu_memory *memory)
{
    if (memory->kind == ORIEL_GPU_DEVICE)
        return memory->context == NULL ? 3 : 2;
    return memory->kind == ORIEL_GPU_MANAGED ? 1 : 0;
}

static enum oriel_status device_side(const struct oriel_gpu_piece *piece,
                                     struct oriel_gpu_memory *out)
{
    const struct oriel_gpu_memory to = oriel_cu_find(piece->to), from = oriel_cu_find(piece->from);
    const bool to_is_freed = to.kind == ORIEL_GPU_DEVICE && to.id == 0;
    const bool from_is_freed = from.kind == ORIEL_GPU_DEVICE && from.id == 0;
    *out = precedence(&from) > precedence(&to) ? from : to;
    return !to_is_freed && !from_is_freed && precedence(out) > 0
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_BUFFER, "the device memory at %p was freed",
                            to_is_freed ? piece->to : piece->from);
}

/* The program's stream and its context; false if it has named none. A stream of no context of its
 * own is one of the current context. */
static bool program_stream(const struct oriel_gpu_copies *begun, struct oriel_cu_context **context,
                           struct oriel_cu_stream **stream)
{
    if (begun == NULL || !oriel_gpu_has_stream(begun))
        return false;
    *stream = (struct oriel_cu_stream *)(uintptr_t)atomic_load_explicit(&begun->stream,
                                                                        memory_order_relaxed);
    return oriel_cu.stream_get_ctx(*stream, context) == ORIEL_CU_SUCCESS;
}

enum oriel_status oriel_cu_copy(const struct oriel_gpu_piece *pieces, unsigned count,
                                struct oriel_gpu_copies *begun)
{
    struct oriel_gpu_memory memory;
    struct oriel_cu_context *context;
    struct oriel_cu_stream *stream;
    oriel_cu_result result = ORIEL_CU_SUCCESS;
    enum oriel_status status = device_side(&pieces[0], &memory);
    if (status != ORIEL_OK)
        return status;
    const bool is_programs = program_stream(begun, &context, &stream);
    status = is_programs ? oriel_cu_enter(context) : oriel_cu_enter_of(&memory, &context);
    if (status != ORIEL_OK)
        return status;
    if (!is_programs)
        status = oriel_cu_stream(context, &stream);
    if (status == ORIEL_OK) {
        const char *failed = enqueue(pieces, count, stream, &result);
        /* what was enqueued before a failure ends now, since the buffers are the program's */
        if (failed != NULL || begun == NULL || !leave(begun, context, stream))
            status = oriel_cu_stream_end(stream, failed, result);
    }
    oriel_cu_leave();
    return status;
}

enum oriel_status oriel_cu_stream_wait(const struct oriel_gpu_stream *stream)
{
    struct oriel_cu_context *context = stream->context;
    oriel_cu_result result = ORIEL_CU_SUCCESS;
    if (context == NULL)
        result = oriel_cu.stream_get_ctx(stream->stream, &context);
    if (result != ORIEL_CU_SUCCESS)
        return oriel_cu_failed("cuStreamGetCtx", result);
    const enum oriel_status status = oriel_cu_enter(context);
    if (status != ORIEL_OK)
        return status;
    result = oriel_cu.stream_synchronize(stream->stream);
    oriel_cu_leave();
    return result == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuStreamSynchronize", result);
}
