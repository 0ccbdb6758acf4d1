/* Origin and result buffers in the memory of a GPU. Operations that the GPU's driver cannot do by a
 * copy use a mirror: host memory with the same layout. */
#ifndef ORIEL_RMA_DEVICE_BUFFERS_H
#define ORIEL_RMA_DEVICE_BUFFERS_H

#include "datatype/operands.h"
#include "gpu/gpu.h"
#include "rma/path_select.h"
#include "transport/transport.h"
#include "window/window.h"

/* Whether a buffer of a window's operations may be device memory. */
static inline bool oriel_device_buffers_occur(const struct oriel_window *window)
{
    return oriel_gpu_is_loaded() && !window->only_host_buffers;
}

/* The copies of this window that need not end before their operation returns; NULL: they must. */
struct oriel_gpu_copies *oriel_device_copies(struct oriel_window *window);

/* Names the program's stream, in whose order the operations of this process on the window are. */
enum oriel_status oriel_device_name_stream(struct oriel_window *window, uint64_t stream);

/* Before an operation that is not enqueued on the program's stream: waits for that. An operation of
 * another node's rank does not: only the stream of the rank that calls MPI counts. */
static inline enum oriel_status oriel_device_wait(struct oriel_window *window)
{
    struct oriel_gpu_copies *begun = atomic_load_explicit(&window->begun, memory_order_acquire);
    return oriel_likely(begun == NULL) || oriel_path_serves_internode
               ? ORIEL_OK
               : oriel_gpu_stream_wait(begun);
}

/* Before a put or get whose buffer is no device memory: the same, unless the driver copies, in the
 * order of the stream. */
enum oriel_status oriel_device_wait_for_host(struct oriel_window *window,
                                             const struct oriel_span *target);

void oriel_device_copies_free(struct oriel_window *window);

/* Whether the last byte of the items at here is device memory. */
bool oriel_buffer_ends_on_device(const void *here, const struct oriel_side *side);

/* Whether the first byte of the items at here is device memory, or the last byte: a datatype with
 * absolute addresses may have both kinds of memory. */
static inline bool oriel_buffer_is_device(const void *here, const struct oriel_side *side)
{
    const int64_t low_bytes = side->type->layout->low_bytes;
    if (here == NULL && low_bytes == 0)
        return false;
    return oriel_gpu_is_device(oriel_at(here, low_bytes)) ||
           (!side->type->dense && oriel_buffer_ends_on_device(here, side));
}

/* Before the driver's copies and kernels, of a buffer that is device memory: ORIEL_E_BUFFER if it
 * was freed, or is not all in one allocation. */
enum oriel_status oriel_device_buffer_check(const void *here, const struct oriel_side *side);

/* The mirror of a buffer; of one in host memory, the buffer itself. */
struct oriel_mirror {
    char *here; /* to be used in place of the buffer */
    char *device;
    struct oriel_side side; /* the items that the mirror has */
    void *memory;           /* NULL: the buffer is in host memory */
};

/* Opens the mirror of a buffer that the operation writes, written_bytes from its first item on: it
 * has only the items that these fill. Or of one that it reads, if written_bytes is 0: the mirror
 * has all its contents. */
enum oriel_status oriel_mirror_open(struct oriel_mirror *mirror, const void *buffer,
                                    const struct oriel_side *side, uint64_t written_bytes);

/* Copies the items back to the buffer, if status, which is returned, is ORIEL_OK; and closes it. */
enum oriel_status oriel_mirror_store(struct oriel_mirror *mirror, enum oriel_status status);

void oriel_mirror_close(struct oriel_mirror *mirror);

/* After an operation on mirrors, with its status: waits until it needs them no more. Returns the
 * first failure. returns: the operation returns data. */
enum oriel_status oriel_mirrors_settle(struct oriel_window *window, int32_t target, bool returns,
                                       enum oriel_status status);

/* oriel_put and oriel_get with a buffer in device memory. */
enum oriel_status oriel_device_transfer(struct oriel_window *window,
                                        const struct oriel_span *target, char *here,
                                        const struct oriel_side *origin, bool to_target);

#endif
