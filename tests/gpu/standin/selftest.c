/* The stand-in for the CUDA driver does what tests rely on. Each case runs in a child process, whose
 * environment has its settings. */
#include "gpu/cuda/abi.h"
#include "unit/cmocka_all.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_MISUSE = 86, MIB = 1 << 20 };

static struct {
#define CUDA_FUNCTION(field, symbol, parameters) oriel_cu_result(*field) parameters;
#include "gpu/cuda/cuda_functions.def"
#undef CUDA_FUNCTION
} cu;

static struct oriel_cu_context *contexts[2];

/* In a child: ends it with the line. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define EXPECT_OK(call) EXPECT_CODE(call, ORIEL_CU_SUCCESS)

#define EXPECT_CODE(call, code)                                                                    \
    do {                                                                                           \
        oriel_cu_result result_ = (call);                                                          \
        if (result_ != (code)) {                                                                   \
            fprintf(stderr, "line %d: %s returned %d\n", __LINE__, #call, result_);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void load(void)
{
    void *library = dlopen(STANDIN_LIBRARY, RTLD_NOW);
    EXPECT(library);
#define CUDA_FUNCTION(field, symbol, parameters)                                                   \
    *(void **)&cu.field = dlsym(library, symbol);                                                  \
    EXPECT(cu.field);
#include "gpu/cuda/cuda_functions.def"
#undef CUDA_FUNCTION
}

static void start(void)
{
    load();
    EXPECT_OK(cu.init(0));
    EXPECT_OK(cu.device_primary_ctx_retain(&contexts[0], 0));
    EXPECT_OK(cu.device_primary_ctx_retain(&contexts[1], 1));
    EXPECT_OK(cu.ctx_set_current(contexts[0]));
}

/* Runs body in a child with NAME=VALUE settings, separated by spaces. Returns its exit status, or
 * 256 + a signal, and what it wrote to stderr. */
static int run(void (*body)(void), const char *settings, char *text, size_t text_bytes)
{
    int ends[2], status;
    char list[256];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        char *rest;
        snprintf(list, sizeof list, "%s", settings);
        for (char *item = strtok_r(list, " ", &rest); item; item = strtok_r(NULL, " ", &rest)) {
            putenv(item);
        }
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(60);
        signal(SIGSEGV, SIG_DFL); /* cmocka handles it */
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        body();
        _exit(0);
    }
    close(ends[1]);
    FILE *errors = fdopen(ends[0], "r");
    size_t len = fread(text, 1, text_bytes - 1, errors);
    text[len] = '\0';
    fclose(errors);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static void passes_with(void (*body)(void), const char *settings)
{
    char text[1024];
    int status = run(body, settings, text, sizeof text);
    if (status) {
        print_error("status %d: %s\n", status, text);
    }
    assert_int_equal(status, 0);
}

static void passes(void (*body)(void))
{
    passes_with(body, "");
}

static void is_misuse(void (*body)(void), const char *settings, const char *sentence)
{
    char text[1024];
    int status = run(body, settings, text, sizeof text);
    if (status != EXIT_MISUSE || !strstr(text, sentence)) {
        print_error("status %d: %s\n", status, text);
    }
    assert_int_equal(status, EXIT_MISUSE);
    assert_non_null(strstr(text, sentence));
}

static uint64_t device_memory(size_t size_bytes)
{
    oriel_cu_pointer pointer;
    EXPECT_OK(cu.mem_alloc(&pointer, size_bytes));
    return pointer;
}

static uint64_t of(const void *memory)
{
    return (uintptr_t)memory;
}

/* ---- device memory ---- */

static void copy_there_and_back(void)
{
    start();
    size_t sizes[] = {1, 511, 4096, 3 * MIB};
    for (unsigned i = 0; i < 4; i++) {
        uint64_t pointer = device_memory(sizes[i]), other = device_memory(sizes[i]);
        char *out = malloc(sizes[i]), *in = malloc(sizes[i]);
        memset(out, 'x', sizes[i]);
        memset(in, 0, sizes[i]);
        EXPECT_OK(cu.memcpy_sync(pointer, of(out), sizes[i]));
        EXPECT_OK(cu.memcpy_dtod(other, pointer, sizes[i]));
        EXPECT_OK(cu.memcpy_sync(of(in), other, sizes[i]));
        EXPECT(memcmp(in, out, sizes[i]) == 0);
        EXPECT_OK(cu.mem_free(pointer));
        EXPECT_OK(cu.mem_free(other));
    }
}

static void device_memory_is_copied(void **state)
{
    (void)state;
    passes(copy_there_and_back);
    passes_with(copy_there_and_back, "STANDIN_DELAY_US=2000");
}

static void touch(void)
{
    start();
    *(volatile char *)(uintptr_t)device_memory(4096) = 1;
}

static void cpu_faults_on_device_memory(void **state)
{
    char text[256];
    (void)state;
    assert_int_equal(run(touch, "", text, sizeof text), 256 + SIGSEGV);
}

static void neighbours(void)
{
    start();
    uint64_t first = device_memory(100), second = device_memory(100), base;
    size_t size_bytes;
    EXPECT(second == first + 512);
    EXPECT_OK(cu.mem_get_address_range(&base, &size_bytes, second + 99));
    EXPECT(base == second && size_bytes == 100);
    EXPECT_CODE(cu.mem_get_address_range(&base, &size_bytes, second + 100),
                ORIEL_CU_ERROR_NOT_FOUND);
    unsigned long long id, other;
    EXPECT_OK(cu.pointer_get_attribute(&id, ORIEL_CU_POINTER_BUFFER_ID, first));
    EXPECT_OK(cu.mem_free(first));
    EXPECT(device_memory(50) == first);
    EXPECT_OK(cu.pointer_get_attribute(&other, ORIEL_CU_POINTER_BUFFER_ID, first));
    EXPECT(other > id);
    first = device_memory(8 * MIB);
    EXPECT_OK(cu.mem_free(first));
    EXPECT(device_memory(8 * MIB) == first);
}

static void small_allocations_are_neighbours_and_addresses_are_used_again(void **state)
{
    (void)state;
    passes(neighbours);
}

static void attributes(void)
{
    start();
    EXPECT_OK(cu.ctx_set_current(contexts[1]));
    uint64_t device = device_memory(8), managed;
    void *pinned;
    char pageable[8];
    char *page = aligned_alloc(4096, 4096);
    EXPECT_OK(cu.mem_alloc_managed(&managed, 8, ORIEL_CU_MEM_ATTACH_GLOBAL));
    EXPECT_OK(cu.mem_host_alloc(&pinned, 8, 0));
    EXPECT_OK(cu.mem_host_register(page, 4096, 0));
    memset((void *)(uintptr_t)managed, 1, 8);
    memset(pinned, 1, 8);
    uint64_t pointers[] = {device, managed, of(pinned), of(page), of(pageable)};
    unsigned types[] = {2, 2, 1, 1, 0};
    for (int i = 0; i < 5; i++) {
        unsigned type;
        int is_managed, ordinal;
        int names[] = {ORIEL_CU_POINTER_MEMORY_TYPE, ORIEL_CU_POINTER_IS_MANAGED,
                       ORIEL_CU_POINTER_DEVICE_ORDINAL};
        void *values[] = {&type, &is_managed, &ordinal};
        EXPECT_OK(cu.pointer_get_attributes(3, names, values, pointers[i]));
        EXPECT(type == types[i] && is_managed == (i == 1) && ordinal == (i < 4 ? 1 : -2));
        EXPECT_CODE(cu.pointer_get_attribute(&type, names[0], pointers[i]),
                    i < 4 ? ORIEL_CU_SUCCESS : ORIEL_CU_ERROR_INVALID_VALUE);
    }
    EXPECT_OK(cu.memcpy_sync(of(pageable), managed, 8));
    EXPECT(pageable[7] == 1);
    EXPECT_OK(cu.mem_host_unregister(page));
    EXPECT_OK(cu.mem_free_host(pinned));
    EXPECT_OK(cu.mem_free(managed));
}

static void kinds_of_memory_are_known(void **state)
{
    (void)state;
    passes(attributes);
}

static void limits(void)
{
    start();
    oriel_cu_pointer pointer;
    EXPECT_CODE(cu.mem_alloc(&pointer, 5 * MIB), ORIEL_CU_ERROR_OUT_OF_MEMORY);
    uint64_t first = device_memory(2 * MIB);
    device_memory(2 * MIB);
    EXPECT_CODE(cu.mem_alloc(&pointer, 1), ORIEL_CU_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(cu.mem_free(first));
    device_memory(1);
}

static void device_memory_is_limited(void **state)
{
    (void)state;
    passes_with(limits, "STANDIN_MEMORY=4194304");
}

/* ---- devices and contexts ---- */

static void devices(void)
{
    start();
    struct oriel_cu_uuid uuids[2];
    struct oriel_cu_context *context;
    oriel_cu_device device;
    int count, can, version;
    EXPECT_OK(cu.device_get_count(&count));
    EXPECT_OK(cu.device_get_uuid(&uuids[0], 0));
    EXPECT_OK(cu.device_get_uuid(&uuids[1], 1));
    EXPECT(count == 2 && memcmp(&uuids[0], &uuids[1], sizeof uuids[0]) != 0);
    EXPECT_CODE(cu.device_get(&device, 2), ORIEL_CU_ERROR_INVALID_DEVICE);
    EXPECT_OK(cu.device_can_access_peer(&can, 0, 1));
    EXPECT(can == !getenv("STANDIN_PEER"));
    EXPECT_CODE(cu.ctx_enable_peer_access(contexts[1], 0),
                can ? ORIEL_CU_SUCCESS : ORIEL_CU_ERROR_PEER_ACCESS_UNSUPPORTED);
    EXPECT_OK(cu.driver_get_version(&version));
    EXPECT(version == (getenv("STANDIN_VERSION") ? 9000 : 12040));
    EXPECT_OK(cu.ctx_push_current(contexts[1]));
    EXPECT_OK(cu.ctx_get_device(&device));
    EXPECT(device == 1);
    EXPECT_OK(cu.ctx_pop_current(&context));
    EXPECT(context == contexts[1]);
    EXPECT_OK(cu.ctx_get_current(&context));
    EXPECT(context == contexts[0]);
    EXPECT_OK(cu.device_primary_ctx_release(0));
    EXPECT_CODE(cu.ctx_synchronize(), ORIEL_CU_ERROR_CONTEXT_IS_DESTROYED);
}

static void devices_and_contexts(void **state)
{
    (void)state;
    passes(devices);
    passes_with(devices, "STANDIN_PEER=0 STANDIN_VERSION=9000");
}

static void visible(void)
{
    struct oriel_cu_uuid uuid;
    int count;
    load();
    EXPECT_OK(cu.init(0));
    EXPECT_OK(cu.device_get_count(&count));
    EXPECT_OK(cu.device_get_uuid(&uuid, 0));
    EXPECT(count == 2 && uuid.bytes[15] == 4);
}

static void hidden(void)
{
    load();
    EXPECT_CODE(cu.init(0), ORIEL_CU_ERROR_NO_DEVICE);
}

static void visible_devices_are_chosen(void **state)
{
    (void)state;
    passes_with(visible, "STANDIN_DEVICES=4 CUDA_VISIBLE_DEVICES=3,1");
    passes_with(hidden, "CUDA_VISIBLE_DEVICES=");
}

static void no_init(void)
{
    int count;
    load();
    EXPECT_CODE(cu.device_get_count(&count), ORIEL_CU_ERROR_NOT_INITIALIZED);
    EXPECT_OK(cu.init(0));
    oriel_cu_pointer pointer;
    EXPECT_CODE(cu.mem_alloc(&pointer, 8), ORIEL_CU_ERROR_INVALID_CONTEXT);
    pid_t child = fork();
    if (!child) {
        EXPECT_CODE(cu.device_get_count(&count), ORIEL_CU_ERROR_NOT_INITIALIZED);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
}

static void no_context(void)
{
    oriel_cu_pointer pointer;
    load();
    cu.init(0);
    cu.mem_alloc(&pointer, 8);
}

static void init_and_a_context_are_needed(void **state)
{
    (void)state;
    passes(no_init);
    is_misuse(no_context, "STANDIN_STRICT=1", "without a current context");
}

/* ---- misuse ---- */

static void exceed(void)
{
    start();
    char bytes[16] = {0};
    cu.memcpy_sync(device_memory(8) + 1, of(bytes), 8);
}

static void free_twice(void)
{
    start();
    uint64_t pointer = device_memory(8);
    EXPECT_OK(cu.mem_free(pointer));
    EXPECT_CODE(cu.mem_free(pointer), ORIEL_CU_ERROR_INVALID_VALUE);
}

static void stale_copy(void)
{
    start();
    char bytes[8];
    uint64_t pointer = device_memory(4 * MIB);
    EXPECT_OK(cu.mem_free(pointer));
    cu.memcpy_sync(of(bytes), pointer, 8);
}

static void stale_stream(void)
{
    start();
    struct oriel_cu_stream *stream;
    EXPECT_OK(cu.stream_create(&stream, 0));
    EXPECT_OK(cu.stream_destroy(stream));
    cu.stream_synchronize(stream);
}

static void foreign_stream(void)
{
    start();
    struct oriel_cu_stream *stream;
    EXPECT_OK(cu.stream_create(&stream, 0));
    EXPECT_OK(cu.ctx_set_current(contexts[1]));
    EXPECT_CODE(cu.memset_d8_async(device_memory(8), 0, 8, stream), ORIEL_CU_ERROR_INVALID_HANDLE);
}

static void device_as_host(void)
{
    start();
    uint64_t pointer = device_memory(8);
    EXPECT_CODE(cu.memcpy_htod_async(pointer, (void *)(uintptr_t)pointer, 8, NULL),
                ORIEL_CU_ERROR_INVALID_VALUE);
}

static void unregister_early(void)
{
    start();
    char *page = aligned_alloc(4096, 4096);
    EXPECT_OK(cu.mem_host_register(page, 4096, 0));
    EXPECT_OK(cu.memcpy_htod_async(device_memory(4096), page, 4096, NULL));
    cu.mem_host_unregister(page);
}

static void misuse_ends_the_process_with_a_sentence(void **state)
{
    (void)state;
    is_misuse(exceed, "", "exceed the allocation of 8 bytes");
    is_misuse(stale_copy, "", "neither the driver nor the CPU");
    is_misuse(stale_stream, "", "is no stream any more");
    is_misuse(unregister_early, "STANDIN_DELAY_US=1000000", "still use");
}

static void reported_misuse_ends_the_process_in_strict_mode(void **state)
{
    (void)state;
    passes(free_twice);
    passes(foreign_stream);
    passes(device_as_host);
    is_misuse(free_twice, "STANDIN_STRICT=1", "did not return or is freed");
    is_misuse(foreign_stream, "STANDIN_STRICT=1", "current context is of device 1");
    is_misuse(device_as_host, "STANDIN_STRICT=1", "is no host pointer");
}

/* ---- streams ---- */

static void in_flight(void)
{
    start();
    struct oriel_cu_stream *streams[2];
    struct oriel_cu_event *event;
    void *memory;
    EXPECT_OK(cu.stream_create(&streams[0], ORIEL_CU_STREAM_NON_BLOCKING));
    EXPECT_OK(cu.stream_create(&streams[1], ORIEL_CU_STREAM_NON_BLOCKING));
    EXPECT_OK(cu.event_create(&event, ORIEL_CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(cu.mem_host_alloc(&memory, 8, 0));
    char *pinned = memory;
    uint64_t pointer = device_memory(8);
    EXPECT_OK(cu.event_query(event));
    EXPECT_OK(cu.memset_d8_async(pointer, 7, 8, streams[0]));
    EXPECT_OK(cu.event_record(event, streams[0]));
    EXPECT_OK(cu.stream_wait_event(streams[1], event, 0));
    EXPECT_OK(cu.memcpy_dtoh_async(pinned, pointer, 8, streams[1]));
    /* each of the four operations sleeps up to half a second */
    EXPECT_CODE(cu.stream_query(streams[1]), ORIEL_CU_ERROR_NOT_READY);
    EXPECT(pinned[0] == 0);
    EXPECT_OK(cu.stream_synchronize(streams[1]));
    EXPECT(pinned[0] == 7);
    EXPECT_OK(cu.event_query(event));
    EXPECT_OK(cu.event_synchronize(event));
    EXPECT_OK(cu.event_destroy(event));
}

static void streams_are_asynchronous_and_ordered_by_events(void **state)
{
    (void)state;
    passes_with(in_flight, "STANDIN_DELAY_US=500000");
}

static void default_stream(void)
{
    start();
    struct oriel_cu_stream *streams[2];
    char byte = 0;
    EXPECT_OK(cu.stream_create(&streams[0], ORIEL_CU_STREAM_DEFAULT));
    EXPECT_OK(cu.stream_create(&streams[1], ORIEL_CU_STREAM_DEFAULT));
    uint64_t pointer = device_memory(1);
    for (int round = 1; round < 30; round++) {
        EXPECT_OK(cu.memset_d8_async(pointer, 99, 1, streams[0]));
        EXPECT_OK(cu.memset_d8_async(pointer, (unsigned char)round, 1, NULL));
        EXPECT_OK(cu.memcpy_dtoh_async(&byte, pointer, 1, streams[1]));
        EXPECT_OK(cu.stream_synchronize(streams[1]));
        EXPECT(byte == round);
    }
}

static void the_default_stream_is_ordered_with_blocking_streams(void **state)
{
    (void)state;
    passes_with(default_stream, "STANDIN_DELAY_US=5000");
}

static void staged(void)
{
    start();
    char bytes[64], back[64] = {0};
    uint64_t pointer = device_memory(64);
    memset(bytes, 'a', 64);
    EXPECT_OK(cu.memcpy_htod_async(pointer, bytes, 64, NULL));
    memset(bytes, 'b', 64);
    EXPECT_OK(cu.memcpy_sync(of(back), pointer, 64));
    EXPECT(back[0] == 'a' && back[63] == 'a');
}

static void a_pageable_source_is_staged(void **state)
{
    (void)state;
    passes_with(staged, "STANDIN_DELAY_US=200000");
}

static void matrix(void)
{
    start();
    char host[8 * 16], back[8 * 5];
    for (int i = 0; i < 8 * 16; i++) {
        host[i] = (char)i;
    }
    uint64_t pointer = device_memory(8 * 20 - 10);
    struct oriel_cu_copy_2d copy = {.source_type = ORIEL_CU_MEMORY_TYPE_HOST,
                                    .source_host = host,
                                    .source_x_bytes = 3,
                                    .source_pitch_bytes = 16,
                                    .target_type = ORIEL_CU_MEMORY_TYPE_DEVICE,
                                    .target_device = pointer,
                                    .target_pitch_bytes = 20,
                                    .width_bytes = 5,
                                    .height = 8};
    EXPECT_OK(cu.memcpy_2d_async(&copy, NULL));
    copy = (struct oriel_cu_copy_2d){.source_type = ORIEL_CU_MEMORY_TYPE_UNIFIED,
                                     .source_device = pointer,
                                     .source_pitch_bytes = 20,
                                     .target_type = ORIEL_CU_MEMORY_TYPE_HOST,
                                     .target_host = back,
                                     .target_pitch_bytes = 5,
                                     .width_bytes = 5,
                                     .height = 8};
    EXPECT_OK(cu.memcpy_2d_unaligned(&copy));
    for (int row = 0; row < 8; row++) {
        for (int column = 0; column < 5; column++) {
            EXPECT(back[row * 5 + column] == row * 16 + 3 + column);
        }
    }
    copy.source_pitch_bytes = 4;
    EXPECT_CODE(cu.memcpy_2d_async(&copy, NULL), ORIEL_CU_ERROR_INVALID_VALUE);
    copy.source_pitch_bytes = 25;
    cu.memcpy_2d_async(&copy, NULL);
}

static void two_dimensional_copies(void **state)
{
    (void)state;
    is_misuse(matrix, "", "180 bytes at");
}

/* ---- injection ---- */

static void injected(void)
{
    start();
    uint64_t pointer = device_memory(8);
    EXPECT_OK(cu.memset_d8_async(pointer, 1, 8, NULL));
    EXPECT_CODE(cu.memset_d8_async(pointer, 1, 8, NULL), ORIEL_CU_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(cu.memset_d8_async(pointer, 1, 8, NULL));
    EXPECT_CODE(cu.memcpy_dtod_async(pointer, pointer, 8, NULL), ORIEL_CU_ERROR_ILLEGAL_ADDRESS);
    EXPECT_CODE(cu.ctx_synchronize(), ORIEL_CU_ERROR_ILLEGAL_ADDRESS);
    EXPECT_CODE(cu.mem_free(pointer), ORIEL_CU_ERROR_ILLEGAL_ADDRESS);
    EXPECT_OK(cu.ctx_set_current(contexts[1]));
    EXPECT_OK(cu.mem_free(device_memory(8)));
}

static void errors_are_injected_and_may_be_sticky(void **state)
{
    (void)state;
    passes_with(injected, "STANDIN_FAIL=cuMemsetD8Async:2:2,cuMemcpyDtoDAsync:1:700");
}

/* ---- other processes ---- */

static int channel; /* to the other process */

/* Forks before cuInit. The child runs importer, this process exporter. */
static void in_two(void (*exporter)(void), void (*importer)(void))
{
    int ends[2], status;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    channel = ends[child ? 0 : 1];
    close(ends[child ? 1 : 0]);
    if (!child) {
        importer();
        _exit(0);
    }
    exporter();
    close(channel);
    EXPECT(waitpid(child, &status, 0) == child);
    if (status) {
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
    }
}

static void give(const void *bytes, size_t len_bytes)
{
    EXPECT(write(channel, bytes, len_bytes) == (ssize_t)len_bytes);
}

static void take(void *bytes, size_t len_bytes)
{
    EXPECT(recv(channel, bytes, len_bytes, MSG_WAITALL) == (ssize_t)len_bytes);
}

static void step_give(void)
{
    give("s", 1);
}

static void step_take(void)
{
    char step;
    take(&step, 1);
}

static uint64_t export(size_t size_bytes)
{
    uint64_t pointer = device_memory(size_bytes);
    struct oriel_cu_ipc_handle handle;
    EXPECT_OK(cu.ipc_get_mem_handle(&handle, pointer));
    give(&handle, sizeof handle);
    return pointer;
}

static uint64_t import(struct oriel_cu_ipc_handle *handle)
{
    oriel_cu_pointer pointer;
    take(handle, sizeof *handle);
    EXPECT_OK(cu.ipc_open_mem_handle(&pointer, *handle, ORIEL_CU_IPC_LAZY_ENABLE_PEER_ACCESS));
    return pointer;
}

static void exporter(void)
{
    start();
    char byte = 0;
    oriel_cu_pointer own;
    device_memory(1000); /* so that the next does not begin its block */
    for (int round = 0; round < 2; round++) {
        uint64_t pointer = export(round ? 3 * MIB : 100);
        struct oriel_cu_ipc_handle handle;
        EXPECT_OK(cu.ipc_get_mem_handle(&handle, pointer));
        EXPECT_CODE(cu.ipc_open_mem_handle(&own, handle, 1), ORIEL_CU_ERROR_INVALID_CONTEXT);
        step_take();
        EXPECT_OK(cu.memcpy_sync(of(&byte), pointer + 99, 1));
        EXPECT(byte == 'I');
        EXPECT_OK(cu.mem_free(pointer));
        step_give();
    }
}

static void importer(void)
{
    start();
    for (int round = 0; round < 2; round++) {
        struct oriel_cu_ipc_handle handle;
        oriel_cu_pointer pointer = import(&handle), again;
        size_t size_bytes;
        EXPECT_OK(cu.ipc_open_mem_handle(&again, handle, 1));
        EXPECT(again == pointer);
        EXPECT_OK(cu.mem_get_address_range(&again, &size_bytes, pointer + 99));
        EXPECT(again == pointer && size_bytes == (round ? 3 * MIB : 100));
        EXPECT_OK(cu.memset_d8_async(pointer + 99, 'I', 1, NULL));
        EXPECT_OK(cu.ctx_synchronize());
        EXPECT_OK(cu.ipc_close_mem_handle(pointer));
        EXPECT_OK(cu.ipc_close_mem_handle(pointer));
        EXPECT_CODE(cu.ipc_close_mem_handle(pointer), ORIEL_CU_ERROR_INVALID_VALUE);
        step_give();
        step_take();
        EXPECT_CODE(cu.ipc_open_mem_handle(&again, handle, 1), ORIEL_CU_ERROR_INVALID_HANDLE);
    }
}

static void two_processes(void)
{
    in_two(exporter, importer);
}

static void handles_open_memory_of_another_process(void **state)
{
    (void)state;
    passes(two_processes);
}

static void wait_and_free(void)
{
    start();
    uint64_t pointer = export(8);
    step_take();
    cu.mem_free(pointer);
}

static void open_and_say(void)
{
    struct oriel_cu_ipc_handle handle;
    start();
    import(&handle);
    step_give();
    step_take();
}

static void free_while_open(void)
{
    in_two(wait_and_free, open_and_say);
}

static void far_device(void)
{
    struct oriel_cu_ipc_handle handle;
    oriel_cu_pointer pointer;
    start();
    EXPECT_OK(cu.ctx_set_current(contexts[1]));
    take(&handle, sizeof handle);
    EXPECT_CODE(cu.ipc_open_mem_handle(&pointer, handle, 1),
                ORIEL_CU_ERROR_PEER_ACCESS_UNSUPPORTED);
    step_give();
}

static void without_peer_access(void)
{
    in_two(wait_and_free, far_device);
}

static void other_process_memory_has_limits(void **state)
{
    (void)state;
    is_misuse(free_while_open, "", "has it open");
    passes_with(without_peer_access, "STANDIN_PEER=0");
}

/* ---- virtual memory management ---- */

static const struct oriel_cu_memory_properties shareable = {
    .type = ORIEL_CU_ALLOCATION_PINNED,
    .handle_types = ORIEL_CU_HANDLE_POSIX_FILE_DESCRIPTOR,
    .location = {ORIEL_CU_LOCATION_DEVICE, 0}};

static uint64_t map(oriel_cu_memory memory, size_t size_bytes)
{
    oriel_cu_pointer pointer;
    struct oriel_cu_access access = {{ORIEL_CU_LOCATION_DEVICE, 0}, ORIEL_CU_ACCESS_READ_WRITE};
    EXPECT_OK(cu.mem_address_reserve(&pointer, size_bytes, 0, 0, 0));
    EXPECT_OK(cu.mem_map(pointer, size_bytes, 0, memory, 0));
    EXPECT_CODE(cu.memset_d8_async(pointer, 0, 1, NULL), ORIEL_CU_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.mem_set_access(pointer, size_bytes, &access, 1));
    return pointer;
}

static void map_and_export(void)
{
    start();
    oriel_cu_memory memory;
    struct oriel_cu_ipc_handle handle;
    int fd, is_capable;
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    EXPECT_OK(cu.mem_create(&memory, 2 * MIB, &shareable, 0));
    uint64_t pointer = map(memory, 2 * MIB);
    EXPECT_CODE(cu.ipc_get_mem_handle(&handle, pointer), ORIEL_CU_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.pointer_get_attribute(&is_capable, ORIEL_CU_POINTER_IS_LEGACY_CUDA_IPC_CAPABLE,
                                       pointer));
    EXPECT(!is_capable);
    EXPECT_OK(cu.mem_release(memory));
    EXPECT_OK(cu.mem_retain_allocation_handle(&memory, (void *)(uintptr_t)(pointer + 5)));
    EXPECT_OK(cu.mem_export_to_shareable_handle(&fd, memory, 1, 0));
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    EXPECT(sendmsg(channel, &message, 0) == 1);
    close(fd);
    step_take();
    EXPECT_OK(cu.memcpy_sync(of(&byte), pointer + 2 * MIB - 1, 1));
    EXPECT(byte == 'V');
    EXPECT_OK(cu.mem_unmap(pointer, 2 * MIB));
    EXPECT_OK(cu.mem_address_free(pointer, 2 * MIB));
    EXPECT_OK(cu.mem_release(memory));
    EXPECT_CODE(cu.mem_release(memory), ORIEL_CU_ERROR_INVALID_VALUE);
}

static void receive_and_map(void)
{
    start();
    oriel_cu_memory memory;
    int fd;
    char byte, control[CMSG_SPACE(sizeof fd)];
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    EXPECT(recvmsg(channel, &message, 0) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    EXPECT_OK(cu.mem_import_from_shareable_handle(&memory, (void *)(intptr_t)fd, 1));
    close(fd);
    uint64_t pointer = map(memory, 2 * MIB);
    EXPECT_OK(cu.mem_release(memory));
    EXPECT_OK(cu.memset_d8_async(pointer, 'V', 2 * MIB, NULL));
    EXPECT_OK(cu.ctx_synchronize());
    EXPECT_OK(cu.mem_unmap(pointer, 2 * MIB));
    step_give();
}

static void share_mapped(void)
{
    in_two(map_and_export, receive_and_map);
}

static void free_mapped(void)
{
    start();
    oriel_cu_memory memory;
    EXPECT_OK(cu.mem_create(&memory, 2 * MIB, &shareable, 0));
    cu.mem_address_free(map(memory, 2 * MIB), 2 * MIB);
}

static void mapped_memory_is_exported_by_descriptors(void **state)
{
    (void)state;
    passes(share_mapped);
    is_misuse(free_mapped, "", "addresses that have memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_is_copied),
        cmocka_unit_test(cpu_faults_on_device_memory),
        cmocka_unit_test(small_allocations_are_neighbours_and_addresses_are_used_again),
        cmocka_unit_test(kinds_of_memory_are_known),
        cmocka_unit_test(device_memory_is_limited),
        cmocka_unit_test(devices_and_contexts),
        cmocka_unit_test(visible_devices_are_chosen),
        cmocka_unit_test(init_and_a_context_are_needed),
        cmocka_unit_test(misuse_ends_the_process_with_a_sentence),
        cmocka_unit_test(reported_misuse_ends_the_process_in_strict_mode),
        cmocka_unit_test(streams_are_asynchronous_and_ordered_by_events),
        cmocka_unit_test(the_default_stream_is_ordered_with_blocking_streams),
        cmocka_unit_test(a_pageable_source_is_staged),
        cmocka_unit_test(two_dimensional_copies),
        cmocka_unit_test(errors_are_injected_and_may_be_sticky),
        cmocka_unit_test(handles_open_memory_of_another_process),
        cmocka_unit_test(other_process_memory_has_limits),
        cmocka_unit_test(mapped_memory_is_exported_by_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
