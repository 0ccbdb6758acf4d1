/* The part of the CUDA driver's binary interface that Oriel uses: types, values and structures as
 * libcuda.so.1 on 64-bit Linux has them. No header of CUDA is needed. The values never change: the
 * driver gives a changed function a new name, as in cuMemAlloc_v2 (cuda_functions.def). */
#ifndef ORIEL_GPU_CUDA_ABI_H
#define ORIEL_GPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int oriel_cu_result;       /* of every function */
typedef int oriel_cu_device;       /* ordinal of a device, from 0 */
typedef uint64_t oriel_cu_pointer; /* address in the space that the CPU and all devices share */
typedef uint64_t oriel_cu_memory;  /* physical memory of cuMemCreate, without an address */

struct oriel_cu_context;
struct oriel_cu_stream;
struct oriel_cu_event;
struct oriel_cu_module;
struct oriel_cu_function;

enum {
    ORIEL_CU_SUCCESS = 0,
    ORIEL_CU_ERROR_INVALID_VALUE = 1,
    ORIEL_CU_ERROR_OUT_OF_MEMORY = 2,
    ORIEL_CU_ERROR_NOT_INITIALIZED = 3,
    ORIEL_CU_ERROR_DEINITIALIZED = 4, /* the process is exiting */
    ORIEL_CU_ERROR_STUB_LIBRARY = 34,
    ORIEL_CU_ERROR_NO_DEVICE = 100,
    ORIEL_CU_ERROR_INVALID_DEVICE = 101,
    ORIEL_CU_ERROR_INVALID_IMAGE = 200,
    ORIEL_CU_ERROR_INVALID_CONTEXT = 201,
    ORIEL_CU_ERROR_MAP_FAILED = 205,
    ORIEL_CU_ERROR_UNMAP_FAILED = 206,
    ORIEL_CU_ERROR_ALREADY_MAPPED = 208,
    ORIEL_CU_ERROR_NO_BINARY_FOR_GPU = 209,
    ORIEL_CU_ERROR_NOT_MAPPED = 211,
    ORIEL_CU_ERROR_ECC_UNCORRECTABLE = 214,
    ORIEL_CU_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    ORIEL_CU_ERROR_INVALID_PTX = 218,
    ORIEL_CU_ERROR_NVLINK_UNCORRECTABLE = 220,
    ORIEL_CU_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    ORIEL_CU_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    ORIEL_CU_ERROR_OPERATING_SYSTEM = 304,
    ORIEL_CU_ERROR_INVALID_HANDLE = 400,
    ORIEL_CU_ERROR_ILLEGAL_STATE = 401,
    ORIEL_CU_ERROR_NOT_FOUND = 500,
    ORIEL_CU_ERROR_NOT_READY = 600, /* of a query: no fault */
    ORIEL_CU_ERROR_ILLEGAL_ADDRESS = 700,
    ORIEL_CU_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    ORIEL_CU_ERROR_LAUNCH_TIMEOUT = 702,
    ORIEL_CU_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    ORIEL_CU_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
    ORIEL_CU_ERROR_CONTEXT_IS_DESTROYED = 709,
    ORIEL_CU_ERROR_ASSERT = 710,
    ORIEL_CU_ERROR_TOO_MANY_PEERS = 711,
    ORIEL_CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    ORIEL_CU_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    ORIEL_CU_ERROR_HARDWARE_STACK_ERROR = 714,
    ORIEL_CU_ERROR_ILLEGAL_INSTRUCTION = 715,
    ORIEL_CU_ERROR_MISALIGNED_ADDRESS = 716,
    ORIEL_CU_ERROR_INVALID_ADDRESS_SPACE = 717,
    ORIEL_CU_ERROR_INVALID_PC = 718,
    ORIEL_CU_ERROR_LAUNCH_FAILED = 719,
    ORIEL_CU_ERROR_NOT_PERMITTED = 800,
    ORIEL_CU_ERROR_NOT_SUPPORTED = 801,
    ORIEL_CU_ERROR_SYSTEM_NOT_READY = 802,
    ORIEL_CU_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    ORIEL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    ORIEL_CU_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    ORIEL_CU_ERROR_UNKNOWN = 999
};

/* of cuDeviceGetAttribute */
enum {
    ORIEL_CU_DEVICE_MAX_THREADS_PER_BLOCK = 1,
    ORIEL_CU_DEVICE_MAX_PITCH = 11, /* of two-dimensional copies, in bytes */
    ORIEL_CU_DEVICE_MULTIPROCESSOR_COUNT = 16,
    ORIEL_CU_DEVICE_INTEGRATED = 18,
    ORIEL_CU_DEVICE_CAN_MAP_HOST_MEMORY = 19,
    ORIEL_CU_DEVICE_COMPUTE_MODE = 20,
    ORIEL_CU_DEVICE_PCI_BUS_ID = 33,
    ORIEL_CU_DEVICE_PCI_DEVICE_ID = 34,
    ORIEL_CU_DEVICE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    ORIEL_CU_DEVICE_UNIFIED_ADDRESSING = 41,
    ORIEL_CU_DEVICE_PCI_DOMAIN_ID = 50,
    ORIEL_CU_DEVICE_COMPUTE_CAPABILITY_MAJOR = 75,
    ORIEL_CU_DEVICE_COMPUTE_CAPABILITY_MINOR = 76,
    ORIEL_CU_DEVICE_MANAGED_MEMORY = 83,
    ORIEL_CU_DEVICE_HOST_NATIVE_ATOMIC_SUPPORTED = 86,
    ORIEL_CU_DEVICE_PAGEABLE_MEMORY_ACCESS = 88,
    ORIEL_CU_DEVICE_CONCURRENT_MANAGED_ACCESS = 89,
    ORIEL_CU_DEVICE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
    ORIEL_CU_DEVICE_HOST_REGISTER_SUPPORTED = 99,
    ORIEL_CU_DEVICE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    ORIEL_CU_DEVICE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    ORIEL_CU_DEVICE_READ_ONLY_HOST_REGISTER_SUPPORTED = 113
};

/* of cuPointerGetAttribute and cuPointerGetAttributes; the type of the result in brackets */
enum {
    ORIEL_CU_POINTER_CONTEXT = 1,                     /* [struct oriel_cu_context *] */
    ORIEL_CU_POINTER_MEMORY_TYPE = 2,                 /* [unsigned] */
    ORIEL_CU_POINTER_DEVICE_POINTER = 3,              /* [oriel_cu_pointer] */
    ORIEL_CU_POINTER_HOST_POINTER = 4,                /* [void *] */
    ORIEL_CU_POINTER_SYNC_MEMOPS = 6,                 /* [int] */
    ORIEL_CU_POINTER_BUFFER_ID = 7,                   /* [unsigned long long] never used twice */
    ORIEL_CU_POINTER_IS_MANAGED = 8,                  /* [int] */
    ORIEL_CU_POINTER_DEVICE_ORDINAL = 9,              /* [int] */
    ORIEL_CU_POINTER_IS_LEGACY_CUDA_IPC_CAPABLE = 10, /* [int] */
    ORIEL_CU_POINTER_RANGE_START_ADDR = 11,           /* [oriel_cu_pointer] */
    ORIEL_CU_POINTER_RANGE_SIZE = 12,                 /* [size_t] */
    ORIEL_CU_POINTER_MAPPED = 13,                     /* [int] */
    ORIEL_CU_POINTER_ALLOWED_HANDLE_TYPES = 14,       /* [uint64_t] */
    ORIEL_CU_POINTER_ACCESS_FLAGS = 16,               /* [unsigned] ORIEL_CU_ACCESS_ */
    ORIEL_CU_POINTER_MEMPOOL_HANDLE = 17,             /* [void *] NULL if in no pool */
    ORIEL_CU_POINTER_MAPPING_SIZE = 18,               /* [size_t] */
    ORIEL_CU_POINTER_MAPPING_BASE_ADDR = 19,          /* [oriel_cu_pointer] */
    ORIEL_CU_POINTER_MEMORY_BLOCK_ID = 20             /* [unsigned long long] */
};

enum {
    ORIEL_CU_MEMORY_TYPE_NONE = 0, /* of cuPointerGetAttributes: not known to the driver */
    ORIEL_CU_MEMORY_TYPE_HOST = 1,
    ORIEL_CU_MEMORY_TYPE_DEVICE = 2,
    ORIEL_CU_MEMORY_TYPE_ARRAY = 3,
    ORIEL_CU_MEMORY_TYPE_UNIFIED = 4 /* of a copy: the driver finds the kind by the address */
};

/* flags */
enum {
    ORIEL_CU_MEM_ATTACH_GLOBAL = 1,
    ORIEL_CU_MEM_ATTACH_HOST = 2,
    ORIEL_CU_MEM_ATTACH_SINGLE = 4
};
enum {
    ORIEL_CU_MEM_HOST_ALLOC_PORTABLE = 1,
    ORIEL_CU_MEM_HOST_ALLOC_DEVICE_MAP = 2,
    ORIEL_CU_MEM_HOST_ALLOC_WRITE_COMBINED = 4
};
enum {
    ORIEL_CU_MEM_HOST_REGISTER_PORTABLE = 1,
    ORIEL_CU_MEM_HOST_REGISTER_DEVICE_MAP = 2,
    ORIEL_CU_MEM_HOST_REGISTER_IO_MEMORY = 4,
    ORIEL_CU_MEM_HOST_REGISTER_READ_ONLY = 8
};
enum { ORIEL_CU_STREAM_DEFAULT = 0, ORIEL_CU_STREAM_NON_BLOCKING = 1 };
enum {
    ORIEL_CU_EVENT_DEFAULT = 0,
    ORIEL_CU_EVENT_BLOCKING_SYNC = 1,
    ORIEL_CU_EVENT_DISABLE_TIMING = 2,
    ORIEL_CU_EVENT_INTERPROCESS = 4
};
enum { ORIEL_CU_IPC_LAZY_ENABLE_PEER_ACCESS = 1 };

/* Values of a struct oriel_cu_stream * that denote no stream of cuStreamCreate. NULL is the first,
 * unless the program was compiled for the second. */
#define ORIEL_CU_STREAM_LEGACY     ((struct oriel_cu_stream *)1)
#define ORIEL_CU_STREAM_PER_THREAD ((struct oriel_cu_stream *)2)

struct oriel_cu_uuid {
    unsigned char bytes[16];
};

/* Passed by value. */
struct oriel_cu_ipc_handle {
    char bytes[64];
};

/* A copy of `height` rows. A row begins `pitch` bytes after the row before. */
struct oriel_cu_copy_2d {
    size_t source_x_bytes;
    size_t source_y;
    unsigned source_type;           /* ORIEL_CU_MEMORY_TYPE_ */
    const void *source_host;        /* if HOST */
    oriel_cu_pointer source_device; /* if DEVICE or UNIFIED */
    void *source_array;             /* if ARRAY */
    size_t source_pitch_bytes;
    size_t target_x_bytes;
    size_t target_y;
    unsigned target_type;
    void *target_host;
    oriel_cu_pointer target_device;
    void *target_array;
    size_t target_pitch_bytes;
    size_t width_bytes;
    size_t height;
};
_Static_assert(sizeof(struct oriel_cu_copy_2d) == 128, "as in the driver");
_Static_assert(offsetof(struct oriel_cu_copy_2d, target_x_bytes) == 56, "as in the driver");

/* Virtual memory management: memory without an address, and addresses without memory. */
enum { ORIEL_CU_LOCATION_DEVICE = 1 };
enum { ORIEL_CU_ALLOCATION_PINNED = 1 };
enum { ORIEL_CU_HANDLE_NONE = 0, ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR = 1 };
enum { ORIEL_CU_GRANULARITY_MINIMUM = 0, ORIEL_CU_GRANULARITY_RECOMMENDED = 1 };
enum { ORIEL_CU_ACCESS_NONE = 0, ORIEL_CU_ACCESS_READ = 1, ORIEL_CU_ACCESS_READ_WRITE = 3 };

struct oriel_cu_location {
    int type; /* ORIEL_CU_LOCATION_ */
    int id;   /* the device */
};

struct oriel_cu_memory_properties {
    int type;         /* ORIEL_CU_ALLOCATION_ */
    int handle_types; /* ORIEL_CU_HANDLE_, by which it can be exported; their sum */
    struct oriel_cu_location location;
    void *windows_attributes;
    unsigned char compression;
    unsigned char gpu_direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
};
_Static_assert(sizeof(struct oriel_cu_memory_properties) == 32, "as in the driver");

struct oriel_cu_access {
    struct oriel_cu_location location;
    int flags; /* ORIEL_CU_ACCESS_ */
};
_Static_assert(sizeof(struct oriel_cu_access) == 12, "as in the driver");

/* Options of cuModuleLoadDataEx. A size is passed in place of the pointer. */
enum { ORIEL_CU_JIT_ERROR_LOG_BUFFER = 5, ORIEL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

/* of cuGetProcAddress */
enum {
    ORIEL_CU_PROC_ADDRESS_SUCCESS = 0,
    ORIEL_CU_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    ORIEL_CU_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
};

#endif
