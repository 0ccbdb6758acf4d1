/* What Oriel needs of a maker's driver: one table for each maker. cuda/ has the only one so far. */
#ifndef ORIEL_GPU_VENDOR_H
#define ORIEL_GPU_VENDOR_H

#include "gpu/gpu.h"

struct oriel_gpu_shared;
struct oriel_gpu_update;
struct oriel_gpu_mapping;

struct oriel_gpu_vendor {
    const char *name;
    struct oriel_gpu_memory (*find)(const void *address);
    enum oriel_status (*alloc)(uint64_t size_bytes, void **out);
    enum oriel_status (*free)(void *memory);
    enum oriel_status (*pin)(void *memory, uint64_t len_bytes, const void *device);
    enum oriel_status (*copy)(const struct oriel_gpu_piece *pieces, unsigned count,
                              struct oriel_gpu_copies *begun);
    enum oriel_status (*stream_wait)(const struct oriel_gpu_stream *stream);
    /* gpu/update.h; the operators that move elements only if there is a result */
    bool (*update)(const struct oriel_gpu_update *update, enum oriel_status *status);
    bool (*copies_between)(const void *one, const void *other);
    /* gpu/share.h */
    enum oriel_status (*share)(const void *address, struct oriel_gpu_shared *out);
    void (*unshare)(const struct oriel_gpu_shared *shared);
    enum oriel_status (*map)(const struct oriel_gpu_shared *shared, struct oriel_gpu_mapping *out);
    void (*unmap)(const struct oriel_gpu_mapping *mapping);
};

/* The table, once the program has loaded the driver and it is recent enough; else NULL.
 * Thread-safe. */
const struct oriel_gpu_vendor *oriel_gpu_cuda(void);

#endif
