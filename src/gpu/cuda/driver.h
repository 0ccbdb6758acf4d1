/* The loaded CUDA driver: its functions, its errors as status, and contexts. Thread-safe after
 * oriel_gpu_cuda has returned the table. */
#ifndef ORIEL_GPU_CUDA_DRIVER_H
#define ORIEL_GPU_CUDA_DRIVER_H

#include "gpu/cuda/abi.h"
#include "gpu/vendor.h"

struct oriel_cu_driver {
#define CUDA_FUNCTION(field, symbol, parameters) oriel_cu_result(*field) parameters;
#include "gpu/cuda/cuda_functions.def"
#undef CUDA_FUNCTION
};

extern struct oriel_cu_driver oriel_cu __attribute__((visibility("hidden")));

/* The driver's own name. */
const char *oriel_cu_error_name(oriel_cu_result result);

/* The status of a failed call, with the driver's own name and text. */
enum oriel_status oriel_cu_failed(const char *call, oriel_cu_result result);

/* Makes the context current for this thread until oriel_cu_leave. */
enum oriel_status oriel_cu_enter(struct oriel_cu_context *context);
void oriel_cu_leave(void);

/* The same with the context of an allocation, in *out. */
enum oriel_status oriel_cu_enter_of(const struct oriel_gpu_memory *memory,
                                    struct oriel_cu_context **out);

/* The process's own context of a device, which stays for good. */
enum oriel_status oriel_cu_primary(int device, struct oriel_cu_context **out);

/* Oriel's stream of the current context: it does not wait for the program's streams. */
enum oriel_status oriel_cu_stream(struct oriel_cu_context *context, struct oriel_cu_stream **out);

/* The stream no longer works: its context was destroyed, and another one has its address. */
void oriel_cu_stream_forget(const struct oriel_cu_stream *stream);

/* Waits for all that is enqueued, also if a call has failed: the buffers are the program's. failed
 * is the name of that call, or NULL. */
enum oriel_status oriel_cu_stream_end(struct oriel_cu_stream *stream, const char *failed,
                                      oriel_cu_result result);

/* --- the functions of the table --- */

struct oriel_gpu_memory oriel_cu_find(const void *address);
enum oriel_status oriel_cu_alloc(uint64_t size_bytes, void **out);
enum oriel_status oriel_cu_free(void *memory);
enum oriel_status oriel_cu_pin(void *memory, uint64_t len_bytes, const void *device);
enum oriel_status oriel_cu_copy(const struct oriel_gpu_piece *pieces, unsigned count,
                                struct oriel_gpu_copies *begun);
enum oriel_status oriel_cu_stream_wait(const struct oriel_gpu_stream *stream);
bool oriel_cu_update(const struct oriel_gpu_update *update, enum oriel_status *status);
bool oriel_cu_copies_between(const void *one, const void *other);
enum oriel_status oriel_cu_share(const void *address, struct oriel_gpu_shared *out);
void oriel_cu_unshare(const struct oriel_gpu_shared *shared);
enum oriel_status oriel_cu_map(const struct oriel_gpu_shared *shared,
                               struct oriel_gpu_mapping *out);
void oriel_cu_unmap(const struct oriel_gpu_mapping *mapping);

#endif
