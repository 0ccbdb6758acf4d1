/* Device memory of other processes, mapped in this one. A process maps an allocation once, however
 * many windows contain it: older drivers refuse to map it twice. Thread-safe. */
#ifndef ORIEL_TRANSPORT_GPU_MAPPINGS_H
#define ORIEL_TRANSPORT_GPU_MAPPINGS_H

#include "gpu/share.h"

/* Maps the allocation, or adds a reference. *start is this process's address of shared->start. */
enum oriel_status oriel_gpu_mapping_open(const struct oriel_gpu_shared *shared, uint64_t *start);

/* Releases a reference, given the address. */
void oriel_gpu_mapping_close(uint64_t start);

#endif
