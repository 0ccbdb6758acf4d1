/* Short puts and accumulates to memory that is reached by copies, deferred until the program
 * completes them (deferred.c has the argument). */
#ifndef ORIEL_RMA_DEFERRED_H
#define ORIEL_RMA_DEFERRED_H

#include "gpu/gpu.h"
#include "reduce/kind.h"
#include "window/window.h"

enum { ORIEL_DEFERRED_BYTES = 512 }; /* of one operation, at most */

/* At creation, once the targets are known. Allocates nothing if this process would never defer an
 * operation. */
void oriel_deferred_make(struct oriel_window *window);
void oriel_deferred_free(struct oriel_window *window);

/* D1: whether an operation of len_bytes on this target is deferred. */
static inline bool oriel_deferred_takes(const struct oriel_window *window, int32_t rank,
                                        uint64_t len_bytes)
{
    return window->deferred != NULL && len_bytes <= ORIEL_DEFERRED_BYTES && rank != window->rank &&
           window->targets[rank].placement == ORIEL_PLACEMENT_COPY &&
           !(oriel_load_relaxed(&window->epoch) & ORIEL_EPOCH_LOCK_ALL);
}

/* Defers an operation on one run of bytes, or of elements of a kind without padding. The caller may
 * reuse here at once. */
void oriel_deferred_put(struct oriel_window *window, int32_t rank, uint64_t offset_bytes,
                        const void *here, uint64_t len_bytes);
void oriel_deferred_accumulate(struct oriel_window *window, int32_t rank, uint64_t offset_bytes,
                               enum oriel_kind kind, enum oriel_operator op, const void *here,
                               uint64_t count);

/* D4: executes the deferred operations on one target; the slow paths of the two below. */
void oriel_deferred_do_all(struct oriel_window *window, int32_t rank);
enum oriel_status oriel_deferred_complete_all(struct oriel_window *window, int32_t rank);

/* D4, for an operation that is not deferred: executes the deferred ones on its target. */
static inline void oriel_deferred_do(struct oriel_window *window, int32_t rank)
{
    if (oriel_unlikely(window->deferred != NULL))
        oriel_deferred_do_all(window, rank);
}

/* Waits for the copies of device memory that this process has begun on the window. Completes all
 * operations that have them, at origin and target. */
static inline enum oriel_status oriel_deferred_copies_end(struct oriel_window *window)
{
    struct oriel_gpu_copies *begun = atomic_load_explicit(&window->begun, memory_order_acquire);
    return oriel_likely(begun == NULL) || oriel_load_acquire(&begun->count) == 0
               ? ORIEL_OK
               : oriel_gpu_copies_end(begun);
}

/* D4, for a call that completes: the same for a target, or for all for -1, and the end of copies
 * that were begun. Returns the failure that was not reported yet (P5). */
static inline enum oriel_status oriel_deferred_complete(struct oriel_window *window, int32_t rank)
{
    const enum oriel_status status = oriel_likely(window->deferred == NULL)
                                         ? ORIEL_OK
                                         : oriel_deferred_complete_all(window, rank);
    const enum oriel_status ended = oriel_deferred_copies_end(window);
    return status == ORIEL_OK ? ended : status;
}

/* --- accumulate.c --- */

/* An accumulate of one run, not deferred. */
enum oriel_status oriel_accumulate_run(struct oriel_window *window, int32_t rank,
                                       uint64_t offset_bytes, enum oriel_kind kind,
                                       enum oriel_operator op, const char *origin, uint64_t count);

#endif
