/* Oriel's kernels: their text, the functions that the driver makes of it, and their memory.
 * Thread-safe.
 *
 * A function belongs to a context. Its first use loads it, which takes the driver some milliseconds
 * to compile, and later processes less: it keeps the result in the user's compute cache. */
#ifndef ORIEL_GPU_CUDA_KERNELS_H
#define ORIEL_GPU_CUDA_KERNELS_H

#include "gpu/cuda/driver.h"

/* A type of PTX in which an update computes. */
struct oriel_cu_element {
    char letter;         /* s, u or f */
    unsigned char bytes; /* 1, 2, 4 or 8 */
};

/* --- kernel_text.c: PTX, NULL if there is no memory; the caller frees it --- */

/* Elements that a thread updates at once, with one load and one store of 4, 8 or 16 bytes. */
unsigned oriel_cu_lanes(struct oriel_cu_element element);

bool oriel_cu_update_exists(struct oriel_cu_element element, enum oriel_operator op);

/* The kernel "update" with the parameters target, origin, result, whole and count, of 64 bits each.
 * It updates count elements: first `whole` times those of all lanes, then the rest one at a time.
 * result may be 0, or equal to origin. */
char *oriel_cu_update_text(struct oriel_cu_element element, enum oriel_operator op);

/* The kernel "copy" with the address of struct oriel_gpu_piece as parameter: each block of threads
 * copies one. */
char *oriel_cu_copy_text(void);

/* --- kernels.c --- */

/* What Oriel has for its kernels on a stream of the current context. */
struct oriel_cu_kernels;

/* NULL if kernels do not work here. The first time a function cannot be loaded, a line on standard
 * error has the reason. */
struct oriel_cu_kernels *oriel_cu_kernels_of(struct oriel_cu_stream *stream);
struct oriel_cu_function *oriel_cu_kernels_update(struct oriel_cu_kernels *kernels,
                                                  struct oriel_cu_element element,
                                                  enum oriel_operator op);
struct oriel_cu_function *oriel_cu_kernels_copy(struct oriel_cu_kernels *kernels);

/* The stream no longer works. */
void oriel_cu_kernels_forget(const struct oriel_cu_stream *stream);

/* Multiprocessors of the device. */
unsigned oriel_cu_kernels_width(const struct oriel_cu_kernels *kernels);

/* Device memory that what is enqueued on the stream uses, in the order of the stream. Others do not
 * enqueue such things between the two calls. Returns 0, and the second call is not made, if the
 * device has not as much. */
oriel_cu_pointer oriel_cu_scratch_begin(struct oriel_cu_kernels *kernels, uint64_t size_bytes);
void oriel_cu_scratch_end(struct oriel_cu_kernels *kernels);

/* Whether the bytes are device memory that kernels of the current context can access. */
bool oriel_cu_kernels_access(const void *address, uint64_t len_bytes);

#endif
