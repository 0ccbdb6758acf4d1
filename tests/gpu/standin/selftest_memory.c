/* Memory, devices and contexts, and misuse of them. */
#include "selftest.h"

#include <signal.h>
#include <sys/wait.h>

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

void device_memory_is_copied(void **state)
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

void cpu_faults_on_device_memory(void **state)
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

void small_allocations_are_neighbours_and_addresses_are_used_again(void **state)
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
    unsigned types[] = {2, 1 + !(managed >> 12 & 1), 1, 1, 0};
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
    uint64_t base;
    size_t size_bytes;
    EXPECT_OK(cu.mem_get_address_range(&base, &size_bytes, device));
    EXPECT_CODE(cu.mem_get_address_range(&base, &size_bytes, managed), ORIEL_CU_ERROR_NOT_FOUND);
    EXPECT_OK(cu.ctx_set_current(contexts[0]));
    EXPECT_CODE(cu.mem_get_address_range(&base, &size_bytes, device), ORIEL_CU_ERROR_NOT_FOUND);
    unsigned access;
    EXPECT_OK(cu.pointer_get_attribute(&access, ORIEL_CU_POINTER_ACCESS_FLAGS, device));
    EXPECT(access == ORIEL_CU_ACCESS_NONE);
    EXPECT_OK(cu.ctx_enable_peer_access(contexts[1], 0));
    EXPECT_OK(cu.pointer_get_attribute(&access, ORIEL_CU_POINTER_ACCESS_FLAGS, device));
    EXPECT(access == ORIEL_CU_ACCESS_READ_WRITE);
    EXPECT_OK(cu.ctx_set_current(contexts[1]));
    EXPECT_OK(cu.mem_host_unregister(page));
    EXPECT_OK(cu.mem_free_host(pinned));
    EXPECT_OK(cu.mem_free(managed));
}

void kinds_of_memory_are_known(void **state)
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

void device_memory_is_limited(void **state)
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

void devices_and_contexts(void **state)
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

void visible_devices_are_chosen(void **state)
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

void init_and_a_context_are_needed(void **state)
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

void misuse_ends_the_process_with_a_sentence(void **state)
{
    (void)state;
    is_misuse(exceed, "", "exceed the allocation of 8 bytes");
    is_misuse(stale_copy, "", "neither the driver nor the CPU");
    is_misuse(stale_stream, "", "is no stream any more");
    is_misuse(unregister_early, "STANDIN_DELAY_US=1000000", "still use");
}

void reported_misuse_ends_the_process_in_strict_mode(void **state)
{
    (void)state;
    passes(free_twice);
    passes(foreign_stream);
    passes(device_as_host);
    is_misuse(free_twice, "STANDIN_STRICT=1", "did not return or is freed");
    is_misuse(foreign_stream, "STANDIN_STRICT=1", "current context is of device 1");
    is_misuse(device_as_host, "STANDIN_STRICT=1", "is no host pointer");
}
