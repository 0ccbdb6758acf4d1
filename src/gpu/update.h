/* Accumulates that a GPU computes in its own memory. Thread-safe. */
#ifndef ORIEL_GPU_UPDATE_H
#define ORIEL_GPU_UPDATE_H

#include "gpu/gpu.h"

/* An accumulate of elements in one run, as a kernel of reduce/kind.h computes it. */
struct oriel_gpu_update {
    enum oriel_kind kind;
    enum oriel_operator op;
    char *target;       /* device memory */
    const char *origin; /* in any memory; NULL if op is NO_OP */
    char *result;       /* in any memory, also that of origin; NULL: not wanted */
    uint64_t count;
};

/* Updates the elements; the caller excludes all others that may update them meanwhile. Returns when
 * target and result have their values. False: no GPU computes this here, or the caller is as fast
 * when it reads, computes and writes; then nothing has changed. Else *status is as of a copy. */
bool oriel_gpu_update(const struct oriel_gpu_update *update, enum oriel_status *status);

#endif
