/* Memory of GPUs in this process, through the driver that the program itself has loaded. Oriel
 * neither links a driver nor loads one. While there is none, each question below is one load.
 *
 * Addresses of device memory are addresses of this process that the CPU cannot access: the driver
 * gives each byte of host and device memory an address of its own. So one address says where the
 * bytes are, and a copy needs no more than two of them.
 *
 * Thread-safe. No function needs a current context, and none changes it. */
#ifndef ORIEL_GPU_GPU_H
#define ORIEL_GPU_GPU_H

#include "base/atomic.h"
#include "base/status.h"
#include "reduce/kind.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct oriel_gpu_vendor;

/* NULL: the program has no driver. */
extern _Atomic(const struct oriel_gpu_vendor *) oriel_gpu_vendor
    __attribute__((visibility("hidden")));

static inline bool oriel_gpu_is_loaded(void)
{
    return oriel_unlikely(atomic_load_explicit(&oriel_gpu_vendor, memory_order_acquire) != NULL);
}

/* Looks whether the program has loaded a driver meanwhile. When a window is created, and when the
 * program loads a driver or uses a library that may have brought one (dlopen.c). */
void oriel_gpu_look(void);

/* The sort of memory at an address. */
enum oriel_gpu_kind {
    ORIEL_GPU_HOST,    /* the driver does not know it */
    ORIEL_GPU_PINNED,  /* host memory whose physical pages the device uses */
    ORIEL_GPU_MANAGED, /* moves between host and device when touched */
    ORIEL_GPU_DEVICE,  /* the CPU cannot access it */
};

/* An allocation. */
struct oriel_gpu_memory {
    enum oriel_gpu_kind kind;
    /* of the allocation, or of all that the program has reserved around a mapping */
    uint64_t start;
    uint64_t end;
    /* unique in this process for all time; 0: was freed; UINT64_MAX: the device has failed */
    uint64_t id;
    int device; /* the driver's ordinal */
    void *context;
};

/* The allocation that contains the address; only with a loaded driver. */
struct oriel_gpu_memory oriel_gpu_find(const void *address);

static inline bool oriel_gpu_is_device(const void *address)
{
    return oriel_gpu_is_loaded() && oriel_gpu_find(address).kind == ORIEL_GPU_DEVICE;
}

/* Device memory of the calling thread's current context. ORIEL_E_UNSUPPORTED if the program has no
 * driver, or the thread no context. */
enum oriel_status oriel_gpu_alloc(uint64_t size_bytes, void **out);
enum oriel_status oriel_gpu_free(void *memory);

/* A part of a copy. */
struct oriel_gpu_piece {
    void *to;
    const void *from;
    uint64_t len_bytes;
};

/* Copies that were begun and may not have ended, on the streams where they are. */
enum { ORIEL_GPU_STREAMS = 8 };
struct oriel_gpu_copies {
    pthread_mutex_t mutex; /* protects the list; held until all copies have ended */
    struct oriel_gpu_stream {
        void *context;
        void *stream;
    } streams[ORIEL_GPU_STREAMS];
    _Atomic uint32_t count;
    /* the program's stream, in whose order the copies are; if it has none, Oriel's own are used,
     * which wait for no stream of the program */
    _Atomic uint64_t stream;
    _Atomic bool has_stream;
};

/* Copies between any two kinds of memory; all pieces have the same two allocations, at least one of
 * which is device memory or managed. Without begun, returns when all bytes have arrived; else the
 * copies may be left to the end of begun. ORIEL_E_BUFFER if an allocation was freed or does not
 * hold the bytes; ORIEL_E_OTHER if the device has failed. */
enum oriel_status oriel_gpu_copy(const struct oriel_gpu_piece *pieces, unsigned count,
                                 struct oriel_gpu_copies *begun);

/* Waits until all copies that were begun have ended, those of other threads as well. */
enum oriel_status oriel_gpu_copies_end(struct oriel_gpu_copies *begun);

/* Whether the program has named a stream. */
static inline bool oriel_gpu_has_stream(const struct oriel_gpu_copies *begun)
{
    return atomic_load_explicit(&begun->has_stream, memory_order_acquire);
}

/* Waits for all that the program has enqueued on its stream so far, if it has named one. */
enum oriel_status oriel_gpu_stream_wait(struct oriel_gpu_copies *begun);

/* Pins host memory of whole pages, for copies from and to the device memory at an address; for
 * good. Does nothing if it is pinned. */
enum oriel_status oriel_gpu_pin(void *memory, uint64_t len_bytes, const void *device);

/* False if no context can access the memory at both addresses. */
bool oriel_gpu_copies_between(const void *one, const void *other);

#endif
