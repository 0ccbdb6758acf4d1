/* A stand-in for the CUDA driver, for tests without a GPU: what its files share. It is no driver:
 * device memory is a memfd, and streams are threads of the process (README.md).
 *
 * One mutex protects all state. standin_begin locks it and standin_end unlocks it, so an entry
 * function runs with it held. The operations of streams execute without it. */
#ifndef ORIEL_TESTS_GPU_STANDIN_H
#define ORIEL_TESTS_GPU_STANDIN_H

#include "gpu/cuda/abi.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { STANDIN_EXIT_MISUSE = 86, STANDIN_DEVICES_MOST = 8 };

/* Each function of the driver is standin_<field>, exported under the driver's name. */
#pragma GCC visibility push(default)
#define CUDA_FUNCTION(field, symbol, parameters)                                                   \
    oriel_cu_result standin_##field parameters __asm__(symbol);
#include "gpu/cuda/cuda_functions.def"
#include "program_functions.def"
#undef CUDA_FUNCTION
oriel_cu_result standin_get_proc_address(const char *name, void **function, int version,
                                         uint64_t flags,
                                         int *status) __asm__("cuGetProcAddress_v2");
/* For tests; a driver has no such function: the launches of this process so far. */
uint64_t standinLaunches(void);
/* The copies so far, and the bytes of host memory that are pinned now. */
uint64_t standinCopies(void);
uint64_t standinPinned(void);
/* From now on the errors of this text, as in STANDIN_FAIL, in place of the earlier ones. Calls are
 * counted from 1 again. */
void standinFail(const char *text);
#pragma GCC visibility pop

#define CUDA_FUNCTION(field, symbol, parameters) CALL_##field,
enum standin_call {
#include "gpu/cuda/cuda_functions.def"
#include "program_functions.def"
    STANDIN_CALLS
};
#undef CUDA_FUNCTION

/* ---- inject.c: settings, errors and misuse ---- */

/* From the environment, read at the first call. */
struct standin_settings {
    int devices[STANDIN_DEVICES_MOST]; /* the visible ones, by ordinal */
    int device_count;
    int version;
    bool has_peer_access;
    bool is_strict;
    size_t memory_bytes; /* of each device */
    unsigned delay_us;   /* at most, before each operation of a stream */
    bool holds;          /* an operation of a stream begins when a call waits or asks for it */
    uint64_t seed;
    uint64_t thread_ms; /* at most, of a kernel's thread */
};
extern struct standin_settings standin_settings;
extern pthread_mutex_t standin_mutex;

enum standin_need { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };

/* Returns with the mutex held, or an error without it: an injected one, no cuInit, no current
 * context, or a context that is lost. */
oriel_cu_result standin_begin(enum standin_call call, enum standin_need need);

/* Unlocks and returns result. */
oriel_cu_result standin_end(oriel_cu_result result);

/* Misuse that the driver reports: returns code, or ends the process in strict mode. */
__attribute__((format(printf, 2, 3))) oriel_cu_result standin_fault(oriel_cu_result code,
                                                                    const char *format, ...);

/* Misuse with undefined behaviour: ends the process with STANDIN_EXIT_MISUSE. */
__attribute__((format(printf, 1, 2), noreturn)) void standin_misuse(const char *format, ...);

/* Whether the error makes its context unusable. */
bool standin_is_sticky(oriel_cu_result code);

/* The next number of a sequence that begins with *state, which is not 0. */
uint64_t standin_random(uint64_t *state);

/* ---- context.c ---- */

struct oriel_cu_context {
    bool is_alive;
    int device; /* ordinal */
    unsigned retained;
    unsigned peers;       /* bit per ordinal: enabled peer access */
    oriel_cu_result lost; /* the sticky error, or 0 */
    struct oriel_cu_stream *legacy;
};

extern bool standin_initialised;
extern _Thread_local struct oriel_cu_context *standin_current;

/* The ordinal of a device with that number, or -1 if it is not visible. */
int standin_ordinal(int64_t device);

/* Makes the context unusable by a sticky error. */
void standin_lose(struct oriel_cu_context *context, oriel_cu_result code);

/* ---- memory.c: every range of addresses that the driver knows ---- */

enum { STANDIN_UNIT_BYTES = 512, STANDIN_BLOCK_BYTES = 2 << 20 };
enum { STANDIN_UNITS = STANDIN_BLOCK_BYTES / STANDIN_UNIT_BYTES, STANDIN_IMPORTERS = 64 };

/* The last bytes of a memfd, after the memory: what other processes read. */
struct standin_tail {
    uint64_t magic; /* STANDIN_MAGIC */
    uint64_t block_id;
    uint64_t size_bytes;
    int64_t device; /* its number, not an ordinal */
    int64_t exporter_pid;
    /* The allocation that begins at a unit; 0 if none does. Written by the exporter. */
    _Atomic uint64_t live[STANDIN_UNITS];
    /* Processes that have an allocation open; pid 0 is a free entry. Written by them. */
    struct {
        _Atomic int64_t pid;
        _Atomic uint64_t allocation_id;
    } importers[STANDIN_IMPORTERS];
};
#define STANDIN_MAGIC UINT64_C(0x5354414e44494e21)

/* Memory of a device: a memfd with a mapping that only copies and kernels use. `visible` is the
 * address that the program gets; the CPU faults on it. */
struct standin_block {
    struct standin_block *next;
    uint64_t id;
    char *visible; /* stays reserved when the memory is freed, for a block of the same size */
    size_t size_bytes;
    char *hidden; /* NULL: free */
    struct standin_tail *tail;
    int fd;
    int device;                         /* ordinal */
    unsigned used;                      /* its allocations */
    bool is_shared;                     /* consists of units for small allocations */
    unsigned char units[STANDIN_UNITS]; /* 1: in use, of a shared one */
};

enum standin_kind {
    STANDIN_DEVICE,    /* cuMemAlloc */
    STANDIN_IMPORTED,  /* cuIpcOpenMemHandle */
    STANDIN_MAPPED,    /* cuMemMap */
    STANDIN_MANAGED,   /* cuMemAllocManaged */
    STANDIN_HOST,      /* cuMemHostAlloc */
    STANDIN_REGISTERED /* cuMemHostRegister */
};

struct standin_allocation {
    struct standin_allocation *next;
    enum standin_kind kind;
    uint64_t id; /* never used twice in a process */
    uint64_t base;
    size_t size_bytes;
    char *memory; /* where copies and kernels reach it */
    int device;   /* ordinal */
    struct oriel_cu_context *context;
    unsigned in_flight;                /* operations of streams that use it */
    struct standin_block *block;       /* DEVICE, IMPORTED */
    unsigned opened;                   /* IMPORTED: times */
    uint64_t remote_id;                /* IMPORTED: its id in the exporter */
    struct standin_physical *physical; /* MAPPED */
    int access[STANDIN_DEVICES_MOST];  /* MAPPED: ORIEL_CU_ACCESS_ by ordinal */
};

extern struct standin_allocation *standin_allocations;

/* The allocation that contains the address, or NULL. */
struct standin_allocation *standin_find(uint64_t address);

/* Adds one for the current context. Ends the process if there is no memory. */
struct standin_allocation *standin_add(enum standin_kind kind, uint64_t base, size_t size_bytes);
void standin_remove(struct standin_allocation *allocation);

/* Addresses that the CPU faults on. NULL if there are none. */
void *standin_reserve(size_t size_bytes, size_t alignment_bytes);

/* Counts device memory; false if the device has not that much left. */
bool standin_charge(int device, size_t size_bytes);
void standin_uncharge(int device, size_t size_bytes);

/* A memfd with a tail. -1 if there is none. */
int standin_memfd(uint64_t id, size_t size_bytes, int device, struct standin_tail **tail);

/* The allocation of the kind that begins at base, or NULL, after all work that may use it. */
struct standin_allocation *standin_quiesced(uint64_t base, enum standin_kind kind);

/* host_memory.c: unmaps memory of cuMemAllocManaged or cuMemHostAlloc. */
void standin_release_host(struct standin_allocation *allocation);

/* Frees everything of a context that ends. */
void standin_free_context(struct oriel_cu_context *context);

/* Where the bytes at an address are. */
struct standin_place {
    char *memory;
    bool is_pageable;                      /* memory that the driver does not know */
    struct standin_allocation *allocation; /* NULL if pageable */
};

/* Finds the len_bytes at an address. Ends the process if they exceed their allocation. */
oriel_cu_result standin_resolve(const char *what, uint64_t address, size_t len_bytes,
                                struct standin_place *place);

/* pointer.c: what kernels of a context may do with the allocation, ORIEL_CU_ACCESS_. */
unsigned standin_access(const struct standin_allocation *allocation,
                        const struct oriel_cu_context *context);

/* ipc.c: the pid of a live process that has the allocation open, or 0. */
int standin_importer(const struct standin_allocation *allocation);

/* ---- physical.c ---- */

/* Memory of cuMemCreate. It exists while a handle or a mapping does. */
struct standin_physical {
    struct standin_physical *next;
    oriel_cu_memory handle;
    unsigned references; /* of the handle */
    unsigned mappings;
    int fd;
    int device; /* ordinal */
    size_t size_bytes;
    unsigned handle_types;
    struct standin_tail *tail; /* NULL: imported */
};

/* Sizes and addresses are multiples of 2 MiB. */
bool standin_is_granular(uint64_t size_bytes);

/* NULL if the handle is none, or was released. */
struct standin_physical *standin_physical_find(oriel_cu_memory handle);
oriel_cu_result standin_no_handle(const char *what, oriel_cu_memory memory);

/* Frees it after its last use. */
void standin_physical_drop(struct standin_physical *physical);

/* By which handles the memory can be exported. */
unsigned standin_handle_types(const struct standin_allocation *allocation);

/* ---- vmm.c ---- */

struct standin_range {
    uint64_t base;
    size_t size_bytes;
};

/* The reserved addresses around an address; of size 0 if it is not reserved. */
struct standin_range standin_reservation(uint64_t address);

/* ---- stream.c ---- */

struct standin_wait {
    struct oriel_cu_stream *stream;
    uint64_t sequence; /* waits until so much of the stream is complete */
};

/* The first member of every operation, which is allocated by malloc. */
struct standin_operation {
    struct standin_operation *next;
    uint64_t sequence;
    oriel_cu_result (*execute)(struct standin_operation *operation); /* without the mutex */
    void (*finish)(struct standin_operation *operation); /* with the mutex; may be NULL */
    struct standin_wait *waits;
    unsigned wait_count;
};

/* Finds a stream of the current context; *out is the stream's own struct. */
oriel_cu_result standin_stream_find(struct oriel_cu_stream *stream, struct oriel_cu_stream **out);

struct oriel_cu_context *standin_stream_context(const struct oriel_cu_stream *stream);

/* Appends an operation, which the stream owns from then on. */
void standin_enqueue(struct oriel_cu_stream *stream, struct standin_operation *operation);

/* Waits until everything in the stream is complete, or in all streams of a context (NULL: of all).
 * The mutex is released meanwhile. Returns the context's sticky error. */
oriel_cu_result standin_drain_stream(struct oriel_cu_stream *stream);
oriel_cu_result standin_drain(struct oriel_cu_context *context);

#endif
