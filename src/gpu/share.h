/* Device memory that other processes of the node map: the owner shares an allocation, the others
 * map it and copy to and from their own address of it. Thread-safe. */
#ifndef ORIEL_GPU_SHARE_H
#define ORIEL_GPU_SHARE_H

#include "gpu/gpu.h"

/* What a process must know to map an allocation of another; plain bytes, in the owner's memory
 * file. */
struct oriel_gpu_shared {
    uint64_t start; /* of the memory, in the owner's address space */
    uint64_t end;
    uint64_t id;      /* unique in the owner for all time */
    int32_t pid;      /* of the owner */
    int32_t fd;       /* of the owner: a handle of the allocation; -1: legacy has it */
    uint8_t uuid[16]; /* of the device */
    uint8_t legacy[64];
    char refusal[160]; /* why no other process can map it; empty if others can */
};

/* An allocation of another process, mapped here; of this process, its own address. */
struct oriel_gpu_mapping {
    uint64_t start; /* in this process, of shared.start */
    uint64_t len_bytes;
    uint64_t handle; /* of the driver; 0 if there is none */
    void *context;   /* of the mapping; NULL for the process's own memory */
    bool is_legacy;
};

/* Shares the allocation at an address, or the one mapping there if the program has mapped several
 * next to each other. Of memory that no other process can map, *out has the reason, and its owner
 * copies for the others. */
enum oriel_status oriel_gpu_share(const void *address, struct oriel_gpu_shared *out);
void oriel_gpu_unshare(const struct oriel_gpu_shared *shared);

/* ORIEL_E_OTHER with the reason if this process cannot map it: no driver, no access from its device
 * to the owner's, or the owner has freed it. */
enum oriel_status oriel_gpu_map(const struct oriel_gpu_shared *shared,
                                struct oriel_gpu_mapping *out);
void oriel_gpu_unmap(const struct oriel_gpu_mapping *mapping);

#endif
