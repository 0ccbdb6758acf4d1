/* Memory of other processes: handles, and descriptors of virtual memory management. */
#include "selftest.h"

#include <sys/socket.h>
#include <sys/wait.h>

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

static void open_two(void)
{
    struct oriel_cu_ipc_handle handle;
    start();
    uint64_t first = import(&handle), second = import(&handle);
    EXPECT(second == first + 512);
    EXPECT_OK(cu.memset_d8_async(first, 'a', 8, NULL));
    EXPECT_OK(cu.memset_d8_async(second, 'b', 8, NULL));
    EXPECT_OK(cu.ctx_synchronize());
    EXPECT_OK(cu.ipc_close_mem_handle(first));
    EXPECT_OK(cu.ipc_close_mem_handle(second));
    step_give();
}

static void export_two(void)
{
    char bytes[2];
    start();
    uint64_t first = export(8), second = export(8);
    step_take();
    EXPECT_OK(cu.memcpy_sync(of(&bytes[0]), first, 1));
    EXPECT_OK(cu.memcpy_sync(of(&bytes[1]), second, 1));
    EXPECT(bytes[0] == 'a' && bytes[1] == 'b');
    EXPECT_OK(cu.mem_free(first));
    EXPECT_OK(cu.mem_free(second));
}

static void two_of_a_block(void)
{
    in_two(export_two, open_two);
}

void handles_open_memory_of_another_process(void **state)
{
    (void)state;
    passes(two_processes);
    passes(two_of_a_block);
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

void other_process_memory_has_limits(void **state)
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

/* Two mappings in a reservation with room for three. */
static void ranges(void)
{
    start();
    oriel_cu_pointer pointer, base, found;
    oriel_cu_memory memory;
    struct oriel_cu_access access = {{ORIEL_CU_LOCATION_DEVICE, 0}, ORIEL_CU_ACCESS_READ_WRITE};
    size_t size_bytes;
    EXPECT_OK(cu.mem_address_reserve(&pointer, 6 * MIB, 0, 0, 0));
    EXPECT_OK(cu.mem_create(&memory, 2 * MIB, &shareable, 0));
    EXPECT_OK(cu.mem_map(pointer, 2 * MIB, 0, memory, 0));
    EXPECT_OK(cu.mem_map(pointer + 2 * MIB, 2 * MIB, 0, memory, 0));
    EXPECT_CODE(cu.mem_map(pointer + 2 * MIB, 2 * MIB, 0, memory, 0), ORIEL_CU_ERROR_INVALID_VALUE);
    EXPECT_CODE(cu.mem_map(pointer + 6 * MIB, 2 * MIB, 0, memory, 0), ORIEL_CU_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.mem_set_access(pointer, 4 * MIB, &access, 1));
    EXPECT_OK(cu.mem_get_address_range(&found, &size_bytes, pointer + 3 * MIB));
    EXPECT(found == pointer + 2 * MIB && size_bytes == 2 * MIB);
    for (int i = 0; i < 2; i++) {
        int is_mapped, names[] = {ORIEL_CU_POINTER_RANGE_START_ADDR, ORIEL_CU_POINTER_RANGE_SIZE,
                                  ORIEL_CU_POINTER_MAPPED};
        void *values[] = {&base, &size_bytes, &is_mapped};
        EXPECT_OK(cu.pointer_get_attributes(3, names, values, pointer + (i ? 5 : 3) * MIB));
        EXPECT(base == pointer && size_bytes == 6 * MIB && is_mapped == !i);
    }
    EXPECT_CODE(cu.mem_unmap(pointer, 3 * MIB), ORIEL_CU_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.mem_unmap(pointer, 4 * MIB));
    EXPECT_OK(cu.mem_release(memory));
}

static void free_mapped(void)
{
    start();
    oriel_cu_memory memory;
    EXPECT_OK(cu.mem_create(&memory, 2 * MIB, &shareable, 0));
    cu.mem_address_free(map(memory, 2 * MIB), 2 * MIB);
}

void mapped_memory_is_exported_by_descriptors(void **state)
{
    (void)state;
    passes(share_mapped);
    passes(ranges);
    is_misuse(free_mapped, "", "addresses that have memory");
}
