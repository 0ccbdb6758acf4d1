#include "device.h"

#include "gpu/cuda/abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
#define CUDA_FUNCTION(field, symbol, parameters) oriel_cu_result(*field) parameters;
#include "gpu/cuda/cuda_functions.def"
#include "standin/program_functions.def"
#undef CUDA_FUNCTION
} cu;

static void *library;
static struct oriel_cu_context *context;
static int ordinal;

static void need(oriel_cu_result result, const char *call)
{
    const char *name = "?";
    if (result == ORIEL_CU_SUCCESS)
        return;
    cu.get_error_name(result, &name);
    fprintf(stderr, "the test's own %s failed: %s (%d)\n", call, name, (int)result);
    exit(1);
}
#define NEED(field, arguments) need(cu.field arguments, #field)

static bool driver_load(void)
{
    if (library != NULL)
        return true;
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
#define CUDA_FUNCTION(field, symbol, parameters) *(void **)&cu.field = dlsym(library, symbol);
#include "gpu/cuda/cuda_functions.def"
#include "standin/program_functions.def"
#undef CUDA_FUNCTION
    return cu.init != NULL;
}

bool device_exists(void)
{
    int count = 0;
    return driver_load() && cu.init(0) == ORIEL_CU_SUCCESS &&
           cu.device_get_count(&count) == ORIEL_CU_SUCCESS && count > 0;
}

static void context_make(void)
{
    int count;
    const char *rank =
        getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    if (!device_exists()) {
        fprintf(stderr, "no GPU\n");
        exit(1);
    }
    NEED(device_get_count, (&count));
    ordinal = rank != NULL ? atoi(rank) % count : 0;
    NEED(device_primary_ctx_retain, (&context, ordinal));
}

void device_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Thread_local bool is_open;
    if (is_open)
        return;
    pthread_once(&once, context_make);
    NEED(ctx_set_current, (context));
    is_open = true;
}

void *device_alloc(size_t size_bytes)
{
    oriel_cu_pointer memory;
    device_open();
    NEED(mem_alloc, (&memory, size_bytes));
    return (void *)(uintptr_t)memory;
}

void *device_alloc_on_next(size_t size_bytes)
{
    struct oriel_cu_context *next;
    int count;
    device_open();
    NEED(device_get_count, (&count));
    NEED(device_primary_ctx_retain, (&next, (ordinal + 1) % count));
    NEED(ctx_set_current, (next));
    void *memory = device_alloc(size_bytes);
    NEED(ctx_set_current, (context));
    return memory;
}

void device_free(void *memory)
{
    NEED(mem_free, ((oriel_cu_pointer)(uintptr_t)memory));
}

static struct oriel_cu_memory_properties mapped_properties(bool can_be_shared)
{
    return (struct oriel_cu_memory_properties){
        .type = ORIEL_CU_ALLOCATION_PINNED,
        .handle_types =
            can_be_shared ? ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR : ORIEL_CU_HANDLE_NONE,
        .location = {ORIEL_CU_LOCATION_DEVICE, ordinal}};
}

static size_t round_up(size_t size_bytes)
{
    const struct oriel_cu_memory_properties properties = mapped_properties(false);
    size_t unit;
    NEED(mem_get_allocation_granularity, (&unit, &properties, ORIEL_CU_GRANULARITY_MINIMUM));
    return (size_bytes + unit - 1) / unit * unit;
}

/* Memories of len_bytes each, next to each other. */
static void *map_several(int count, size_t len_bytes, bool can_be_shared)
{
    oriel_cu_memory memory;
    oriel_cu_pointer address;
    const struct oriel_cu_memory_properties properties = mapped_properties(can_be_shared);
    const struct oriel_cu_access access = {{ORIEL_CU_LOCATION_DEVICE, ordinal},
                                           ORIEL_CU_ACCESS_READ_WRITE};
    const size_t all_bytes = (size_t)count * len_bytes;
    NEED(mem_address_reserve, (&address, all_bytes, 0, 0, 0));
    for (size_t at = 0; at < all_bytes; at += len_bytes) {
        NEED(mem_create, (&memory, len_bytes, &properties, 0));
        NEED(mem_map, (address + at, len_bytes, 0, memory, 0));
        NEED(mem_release, (memory));
    }
    NEED(mem_set_access, (address, all_bytes, &access, 1));
    return (void *)(uintptr_t)address;
}

void *device_map(size_t size_bytes, bool can_be_shared)
{
    device_open();
    return map_several(1, round_up(size_bytes), can_be_shared);
}

void *device_map_two(size_t size_bytes, size_t *first_bytes)
{
    device_open();
    *first_bytes = round_up(size_bytes);
    return map_several(2, *first_bytes, true);
}

void device_unmap(void *memory, size_t size_bytes)
{
    const size_t len_bytes = round_up(size_bytes);
    NEED(mem_unmap, ((oriel_cu_pointer)(uintptr_t)memory, len_bytes));
    NEED(mem_address_free, ((oriel_cu_pointer)(uintptr_t)memory, len_bytes));
}

void *device_alloc_managed(size_t size_bytes)
{
    oriel_cu_pointer memory;
    device_open();
    NEED(mem_alloc_managed, (&memory, size_bytes, ORIEL_CU_MEM_ATTACH_GLOBAL));
    return (void *)(uintptr_t)memory;
}

void *device_alloc_pinned(size_t size_bytes)
{
    void *memory;
    device_open();
    NEED(mem_host_alloc, (&memory, size_bytes, 0));
    return memory;
}

void device_free_pinned(void *memory)
{
    NEED(mem_free_host, (memory));
}

void device_write(void *device, const void *host, size_t len_bytes)
{
    NEED(memcpy_sync,
         ((oriel_cu_pointer)(uintptr_t)device, (oriel_cu_pointer)(uintptr_t)host, len_bytes));
    /* such a copy may return before the bytes have arrived; other streams are not waited for */
    NEED(stream_synchronize, (NULL));
}

void device_read(void *host, const void *device, size_t len_bytes)
{
    NEED(memcpy_sync,
         ((oriel_cu_pointer)(uintptr_t)host, (oriel_cu_pointer)(uintptr_t)device, len_bytes));
}

void device_fill(void *device, int byte, size_t len_bytes)
{
    char *bytes = malloc(len_bytes);
    memset(bytes, byte, len_bytes);
    device_write(device, bytes, len_bytes);
    free(bytes);
}

void *device_stream_make(void)
{
    struct oriel_cu_stream *stream;
    device_open();
    NEED(stream_create, (&stream, ORIEL_CU_STREAM_NON_BLOCKING));
    return stream;
}

void device_stream_free(void *stream)
{
    NEED(stream_destroy, (stream));
}

void device_stream_fill(void *stream, void *device, int byte, size_t len_bytes)
{
    NEED(memset_d8_async,
         ((oriel_cu_pointer)(uintptr_t)device, (unsigned char)byte, len_bytes, stream));
}

void device_stream_copy(void *stream, void *to, const void *from, size_t len_bytes)
{
    NEED(memcpy_async,
         ((oriel_cu_pointer)(uintptr_t)to, (oriel_cu_pointer)(uintptr_t)from, len_bytes, stream));
}

void device_stream_wait(void *stream)
{
    NEED(stream_synchronize, (stream));
}

void device_copy(void *to, const void *from, size_t len_bytes)
{
    static struct oriel_cu_stream *stream;
    if (stream == NULL)
        NEED(stream_create, (&stream, ORIEL_CU_STREAM_NON_BLOCKING));
    NEED(memcpy_dtod_async,
         ((oriel_cu_pointer)(uintptr_t)to, (oriel_cu_pointer)(uintptr_t)from, len_bytes, stream));
    NEED(stream_synchronize, (stream));
}

bool device_counted(const char *function, uint64_t *count)
{
    uint64_t (*counter)(void) = NULL;
    device_open();
    *(void **)&counter = dlsym(library, function);
    if (counter != NULL)
        *count = counter();
    return counter != NULL;
}

bool device_fail(const char *text)
{
    void (*fail)(const char *text) = NULL;
    device_open();
    *(void **)&fail = dlsym(library, "standinFail");
    if (fail != NULL)
        fail(text);
    return fail != NULL;
}

int stderr_collect(FILE **file)
{
    const int old = dup(STDERR_FILENO);
    *file = tmpfile();
    dup2(fileno(*file), STDERR_FILENO);
    return old;
}

int stderr_count(FILE *file, int old, const char *word)
{
    char line[1000];
    int count = 0;
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL) {
        fputs(line, stderr);
        count += strstr(line, word) != NULL;
    }
    fclose(file);
    return count;
}
