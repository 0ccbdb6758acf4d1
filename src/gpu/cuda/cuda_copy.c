/* Copies on Oriel's own stream. It does not wait for the program's streams: a program makes its
 * kernels' results complete before it gives the buffer to MPI. Pieces of one length at equal
 * distances on both sides are one copy of rows. */
#include "gpu/cuda/driver.h"

#include <string.h>

enum { ROWS_LEAST = 4, PITCH_MOST = INT32_MAX };

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

/* Returns the name of the call that failed, or NULL. */
static const char *enqueue(const struct oriel_gpu_piece *pieces, unsigned count,
                           struct oriel_cu_stream *stream, oriel_cu_result *result)
{
    struct rows rows;
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

/* All that is enqueued ends before this returns, also after a failure: the buffers are the
 * program's. */
static enum oriel_status copy_on(struct oriel_cu_stream *stream,
                                 const struct oriel_gpu_piece *pieces, unsigned count)
{
    oriel_cu_result result;
    const char *failed = enqueue(pieces, count, stream, &result);
    if (failed != NULL && result == ORIEL_CU_ERROR_INVALID_HANDLE)
        oriel_cu_stream_forget(stream);
    const oriel_cu_result ended = oriel_cu.stream_synchronize(stream);
    if (failed != NULL)
        return oriel_cu_failed(failed, result);
    return ended == ORIEL_CU_SUCCESS ? ORIEL_OK : oriel_cu_failed("cuStreamSynchronize", ended);
}

static bool is_of_gpu(const struct oriel_gpu_memory *memory)
{
    return memory->kind == ORIEL_GPU_DEVICE || memory->kind == ORIEL_GPU_MANAGED;
}

/* The device memory, or managed memory, whose context makes the copies. */
static enum oriel_status device_side(const struct oriel_gpu_piece *piece,
                                     struct oriel_gpu_memory *out)
{
    const void *address = piece->to;
    *out = oriel_cu_find(address);
    if (!is_of_gpu(out))
        *out = oriel_cu_find(address = piece->from);
    return is_of_gpu(out) && out->id != 0
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_BUFFER, "the device memory at %p was freed", address);
}

enum oriel_status oriel_cu_copy(const struct oriel_gpu_piece *pieces, unsigned count)
{
    struct oriel_gpu_memory memory;
    struct oriel_cu_context *context;
    struct oriel_cu_stream *stream;
    enum oriel_status status = device_side(&pieces[0], &memory);
    if (status == ORIEL_OK)
        status = oriel_cu_enter_of(&memory, &context);
    if (status != ORIEL_OK)
        return status;
    status = oriel_cu_stream(context, &stream);
    if (status == ORIEL_OK)
        status = copy_on(stream, pieces, count);
    oriel_cu_leave();
    return status;
}
