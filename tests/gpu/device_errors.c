/* Wrong uses of device memory, and GPUs that fail: an error class and a sentence, and what is not
 * concerned goes on. */
#include "device.h"
#include "places.h"

#include "../mpi/harness.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LONGS = 64, BYTES = LONGS * 8 };

static int right(void)
{
    return (world_rank + 1) % world_size;
}

/* The last call must have given the class, with a sentence that has these words. */
static void error_check(int code, int wanted_class, const char *call, const char *word,
                        const char *second)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    const char *text = oriel_error_text();
    CHECK(class == wanted_class, "%s gave class %d, not %d: %s", call, class, wanted_class, text);
    CHECK(strstr(text, word) != NULL && strstr(text, second) != NULL,
          "%s: the message has not \"%s\" and \"%s\": %s", call, word, second, text);
    const char *access = strstr(text, "access to rank");
    CHECK(access == NULL || strstr(access + 1, "access to rank") == NULL, "twice the same: %s",
          text);
}

static MPI_Win window_over(void *memory, size_t size_bytes)
{
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_create(memory, (MPI_Aint)size_bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return win;
}

/* A put and a get of host memory through the window. */
static void window_works(MPI_Win win, const char *after)
{
    int64_t sent = world_rank + 1000, got = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
    CHECK_OK(MPI_Put(&sent, 1, MPI_INT64_T, right(), 3, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_flush(right(), win));
    CHECK_OK(MPI_Get(&got, 1, MPI_INT64_T, right(), 3, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_unlock(right(), win));
    CHECK(got == sent, "after %s: got %lld, not %lld", after, (long long)got, (long long)sent);
    barrier(MPI_COMM_WORLD);
}

/* On the window, and after the flush that completes it if the target is on another node. */
static int put(const void *buffer, MPI_Win win)
{
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
    int code = MPI_Put(buffer, 8, MPI_INT64_T, right(), 8, 8, MPI_INT64_T, win);
    const int flushed = MPI_Win_unlock(right(), win);
    return code != MPI_SUCCESS ? code : flushed;
}

/* Each operation with the buffer that was freed as origin, as result or for comparison. */
static void freed_refused(int64_t *freed, MPI_Win win)
{
    int64_t mine[8] = {0};
    const int to = right();
    error_check(put(freed, win), MPI_ERR_BUFFER, "a put of freed memory", "freed", "MPI_Put");
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
    error_check(MPI_Get(freed, 8, MPI_INT64_T, to, 8, 8, MPI_INT64_T, win), MPI_ERR_BUFFER, "a get",
                "freed", "MPI_Get");
    error_check(MPI_Accumulate(freed, 8, MPI_INT64_T, to, 8, 8, MPI_INT64_T, MPI_SUM, win),
                MPI_ERR_BUFFER, "an accumulate", "freed", "MPI_Accumulate");
    error_check(MPI_Get_accumulate(mine, 8, MPI_INT64_T, freed, 8, MPI_INT64_T, to, 8, 8,
                                   MPI_INT64_T, MPI_REPLACE, win),
                MPI_ERR_BUFFER, "a result", "freed", "MPI_Get_accumulate");
    error_check(MPI_Fetch_and_op(freed, mine, MPI_INT64_T, to, 8, MPI_SUM, win), MPI_ERR_BUFFER,
                "an operand", "freed", "MPI_Fetch_and_op");
    error_check(MPI_Fetch_and_op(mine, freed, MPI_INT64_T, to, 8, MPI_SUM, win), MPI_ERR_BUFFER,
                "a result", "freed", "MPI_Fetch_and_op");
    error_check(MPI_Compare_and_swap(mine, freed, mine + 1, MPI_INT64_T, to, 8, win),
                MPI_ERR_BUFFER, "a comparison", "freed", "MPI_Compare_and_swap");
    CHECK_OK(MPI_Win_unlock(to, win));
}

static void freed_buffer(enum window_kind kind)
{
    int64_t *memory = device_alloc(BYTES), *host = calloc(LONGS, 8);
    MPI_Win win = window_over(memory, BYTES), host_win = window_over(host, BYTES);
    int64_t *buffer = device_map(BYTES, true);
    (void)kind;
    device_fill(buffer, 1, BYTES);
    CHECK_OK(put(buffer, win));
    CHECK_OK(put(buffer, host_win));
    barrier(MPI_COMM_WORLD);
    device_unmap(buffer, BYTES);
    freed_refused(buffer, win);
    freed_refused(buffer, host_win);
    barrier(MPI_COMM_WORLD);
    window_works(win, "a freed buffer");
    window_works(host_win, "a freed buffer");
    CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Win_free(&host_win));
    device_free(memory);
    free(host);
}

/* Only the last rank's memory is wrong: all ranks get the error, and its class. */
static void create_fails(void *memory, size_t size_bytes, int wanted_class, const char *word)
{
    MPI_Win win = MPI_WIN_NULL;
    int64_t host[LONGS] = {0};
    const bool is_mine = world_rank == world_size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int code = MPI_Win_create(is_mine ? memory : host, is_mine ? (MPI_Aint)size_bytes : BYTES,
                                    8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    char rank[20];
    snprintf(rank, sizeof rank, "rank %d", world_size - 1);
    error_check(code, wanted_class, "MPI_Win_create", is_mine ? word : rank, "MPI_Win_create");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    barrier(MPI_COMM_WORLD);
}

static void attach_fails(void *memory, size_t size_bytes, int wanted_class, const char *word)
{
    MPI_Win win;
    CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    error_check(MPI_Win_attach(win, memory, (MPI_Aint)size_bytes), wanted_class, "MPI_Win_attach",
                word, "MPI_Win_attach");
    CHECK_OK(MPI_Win_free(&win));
}

static void wrong_memory(enum window_kind kind)
{
    size_t first_bytes;
    char *small = device_alloc(4096);
    char *two = device_map_two(4096, &first_bytes);
    void *freed = device_map(BYTES, true);
    (void)kind;
    create_fails(small + 4000, 200, MPI_ERR_BASE, "one allocation");
    attach_fails(small + 4000, 200, MPI_ERR_BASE, "one allocation");
    create_fails(two + first_bytes - 64, 128, MPI_ERR_BASE, "one allocation");
    attach_fails(two + first_bytes - 64, 128, MPI_ERR_BASE, "one allocation");
    MPI_Win win = window_over(freed, BYTES);
    window_works(win, "refused windows");
    CHECK_OK(MPI_Win_free(&win));
    device_unmap(freed, BYTES);
    create_fails(freed, BYTES, MPI_ERR_BASE, "freed");
    attach_fails(freed, BYTES, MPI_ERR_BASE, "freed");
    win = window_over(two + first_bytes, 4096);
    window_works(win, "refused windows");
    CHECK_OK(MPI_Win_free(&win));
    device_free(small);
}

/* More than the buffer has: its allocation ends before the operation does. Nothing is done. */
static void beyond_buffer(enum window_kind kind)
{
    enum { MANY = 1 << 20 };
    void *buffer = device_map(BYTES, true);
    (void)kind;
    for (enum place place = ON_HOST; place <= ON_DEVICE; place++) {
        int64_t *memory = place_alloc(place, MANY * 8), *got = calloc(MANY, 8);
        place_write(place, memory, got, MANY * 8);
        device_fill(buffer, 1, BYTES);
        MPI_Win win = window_over(memory, MANY * 8);
        MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
        int code = MPI_Put(buffer, MANY, MPI_INT64_T, right(), 0, MANY, MPI_INT64_T, win);
        error_check(code, MPI_ERR_BUFFER, "a put beyond the buffer", "allocation", "MPI_Put");
        code =
            MPI_Accumulate(buffer, MANY, MPI_INT64_T, right(), 0, MANY, MPI_INT64_T, MPI_SUM, win);
        error_check(code, MPI_ERR_BUFFER, "an accumulate", "allocation", "MPI_Accumulate");
        MPI_Win_unlock(right(), win);
        barrier(MPI_COMM_WORLD);
        place_read(place, got, memory, MANY * 8);
        CHECK(got[0] == 0, "the window has %lld", (long long)got[0]);
        window_works(win, "operations beyond the buffer");
        CHECK_OK(MPI_Win_free(&win));
        place_free(place, memory, MANY * 8);
        free(got);
    }
    device_unmap(buffer, BYTES);
}

/* A driver that refuses to map others' memory: the owner copies. */
static void not_mapped(enum window_kind kind)
{
    int64_t *memory = device_alloc(BYTES);
    (void)kind;
    if (!device_fail("cuIpcOpenMemHandle:*:217")) {
        harness_skip("the driver is real");
        device_free(memory);
        return;
    }
    MPI_Win win = window_over(memory, BYTES);
    window_works(win, "a refused mapping");
    if (ranks_share_memory()) {
        int64_t host[8] = {0};
        device_fail("cuIpcOpenMemHandle:*:217,cuMemcpyAsync:*:2");
        barrier(MPI_COMM_WORLD);
        error_check(put(host, win), MPI_ERR_OTHER, "MPI_Put", "the agent of process",
                    "cannot copy: the GPU driver's cuMemcpyAsync failed: CUDA_ERROR_OUT_OF_MEMORY");
        barrier(MPI_COMM_WORLD);
        device_fail("");
        barrier(MPI_COMM_WORLD);
        window_works(win, "an agent's failure");
    }
    CHECK_OK(MPI_Win_free(&win));
    device_fail("");
    device_free(memory);
}

/* The owner's driver does not give its memory to others: no rank has the window. */
static void not_shared(enum window_kind kind)
{
    static const char *const calls[] = {"cuDeviceGetUuid", "cuMemRetainAllocationHandle",
                                        "cuMemExportToShareableHandle"};
    int64_t *memory = device_map(BYTES, true);
    (void)kind;
    if (!ranks_share_memory() || !device_fail("")) {
        harness_skip("the driver is real, or no ranks share memory");
        device_unmap(memory, BYTES);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        char error[60];
        snprintf(error, sizeof error, "%s:*:999", calls[i]);
        device_fail(error);
        create_fails(memory, BYTES, MPI_ERR_OTHER, calls[i]);
    }
    device_fail("");
    MPI_Win win = window_over(memory, BYTES);
    window_works(win, "a refusal to share");
    CHECK_OK(MPI_Win_free(&win));
    device_unmap(memory, BYTES);
}

/* The driver does not say what an address is: memory that the CPU reads is host memory, and the
 * driver copies the rest. */
static void unanswered(enum window_kind kind)
{
    int64_t *known = device_alloc(BYTES), *unknown = device_alloc(BYTES), *host = calloc(LONGS, 8);
    int64_t *const buffers[] = {known, unknown, host};
    int64_t *memory = calloc(LONGS, 8), sent[8];
    MPI_Win win = window_over(memory, BYTES);
    (void)kind;
    CHECK_OK(put(known, win));
    barrier(MPI_COMM_WORLD);
    for (int64_t i = 0; i < 3; i++) {
        for (int64_t j = 0; j < 8; j++)
            sent[j] = 10 * i + j;
        if (buffers[i] == host)
            memcpy(host, sent, sizeof sent);
        else
            device_write(buffers[i], sent, sizeof sent);
        if (!device_fail("cuPointerGetAttributes:*:999,cuPointerGetAttribute:*:999"))
            harness_skip("the driver is real");
        CHECK_OK(put(buffers[i], win));
        barrier(MPI_COMM_WORLD);
        device_fail("");
        CHECK(memory[8] == 10 * i && memory[15] == 10 * i + 7, "%d: got %lld and %lld", (int)i,
              (long long)memory[8], (long long)memory[15]);
        barrier(MPI_COMM_WORLD);
    }
    CHECK_OK(MPI_Win_free(&win));
    device_free(known);
    device_free(unknown);
    free(host);
    free(memory);
}

/* An address of device memory that was freed may then be one of host memory. */
static void address_reused(enum window_kind kind)
{
    int64_t *memory = calloc(LONGS, 8), *buffer = device_map(BYTES, true);
    MPI_Win win = window_over(memory, BYTES);
    (void)kind;
    device_fill(buffer, 1, BYTES);
    CHECK_OK(put(buffer, win));
    device_unmap(buffer, BYTES);
    int64_t *again = mmap(buffer, BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (again == buffer) {
        again[7] = 77;
        barrier(MPI_COMM_WORLD);
        CHECK_OK(put(again, win));
        barrier(MPI_COMM_WORLD);
        CHECK(memory[15] == 77, "got %lld", (long long)memory[15]);
        munmap(again, BYTES);
    } else {
        harness_skip("the driver keeps the address");
        barrier(MPI_COMM_WORLD);
        barrier(MPI_COMM_WORLD);
    }
    CHECK_OK(MPI_Win_free(&win));
    free(memory);
}

static void accumulate_works(MPI_Win win, int *memory, int *ones, int wanted, const char *after)
{
    enum { INTS = 8192 };
    int got[INTS];
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
    CHECK_OK(MPI_Accumulate(ones, INTS, MPI_INT, right(), 0, INTS, MPI_INT, MPI_SUM, win));
    CHECK_OK(MPI_Win_unlock(right(), win));
    barrier(MPI_COMM_WORLD);
    device_read(got, memory, sizeof got);
    CHECK(got[0] == wanted && got[INTS - 1] == wanted, "after %s: %d and %d, not %d", after, got[0],
          got[INTS - 1], wanted);
    barrier(MPI_COMM_WORLD);
}

/* The driver does not know Oriel's stream any more: the next copy and the next kernel have a new
 * one. What a kernel on it needs may be missing; then the CPU computes. */
static void lost_stream(enum window_kind kind)
{
    static const struct {
        const char *errors, *what;
    } next[] = {{"", "a lost stream"},
                {"cuDeviceGetAttribute:*:999", "a device without a width"},
                {"cuMemAlloc:*:2", "a device without memory"}};
    enum { INTS = 8192 };
    int *memory = device_alloc(INTS * sizeof *memory), *ones = malloc(INTS * sizeof *ones);
    int64_t *buffer = device_alloc(BYTES);
    MPI_Win win = window_over(memory, INTS * sizeof *memory);
    (void)kind;
    device_fill(memory, 0, INTS * sizeof *memory);
    for (int i = 0; i < INTS; i++)
        ones[i] = 1;
    barrier(MPI_COMM_WORLD);
    accumulate_works(win, memory, ones, 1, "nothing");
    for (size_t i = 0; i < COUNT_OF(next) && device_fail(""); i++) {
        device_fail("cuMemcpyAsync:*:400");
        barrier(MPI_COMM_WORLD);
        error_check(put(buffer, win), MPI_ERR_OTHER, "MPI_Put", "INVALID_HANDLE", "MPI_Put");
        barrier(MPI_COMM_WORLD);
        device_fail(next[i].errors);
        barrier(MPI_COMM_WORLD);
        accumulate_works(win, memory, ones, (int)i + 2, next[i].what);
        device_fail("");
        barrier(MPI_COMM_WORLD);
        CHECK_OK(put(buffer, win));
        barrier(MPI_COMM_WORLD);
    }
    if (!device_fail(""))
        harness_skip("the driver is real");
    CHECK_OK(MPI_Win_free(&win));
    device_free(memory);
    device_free(buffer);
    free(ones);
}

/* What the driver has no name for; a stream that it does not know; no context. */
static void odd_refusals(enum window_kind kind)
{
    int64_t *memory = calloc(LONGS, 8), *buffer = device_alloc(BYTES);
    MPI_Win win = window_over(memory, BYTES);
    MPI_Info info;
    void *stream = device_stream_make(), *wanted = NULL;
    char text[32];
    (void)kind;
    if (!device_fail("cuMemcpyAsync:*:12345")) {
        harness_skip("the driver is real");
        goto end;
    }
    barrier(MPI_COMM_WORLD);
    error_check(put(buffer, win), MPI_ERR_OTHER, "MPI_Put", "an unknown error (12345)",
                "no description");
    barrier(MPI_COMM_WORLD);
    device_fail("");
    barrier(MPI_COMM_WORLD);
    snprintf(text, sizeof text, "%p", stream);
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_cuda_stream", text);
    CHECK_OK(MPI_Win_set_info(win, info));
    MPI_Info_free(&info);
    device_fail("cuStreamGetCtx:*:400");
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
    error_check(MPI_Accumulate(memory, 8, MPI_INT64_T, right(), 8, 8, MPI_INT64_T, MPI_SUM, win),
                MPI_ERR_OTHER, "MPI_Accumulate", "cuStreamGetCtx", "INVALID_HANDLE");
    MPI_Win_unlock(right(), win);
    device_fail("cuCtxGetCurrent:*:201");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_memory_alloc_kinds", "cuda:device");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    error_check(MPI_Alloc_mem(BYTES, info, &wanted), MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Alloc_mem",
                "no current context", "MPI_Alloc_mem");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
    device_fail("");
end:
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&win));
    device_stream_free(stream);
    device_free(buffer);
    free(memory);
}

/* Rank 0's memory for a rank that has no context and cannot find the device: the owner copies. */
static void invisible_device(enum window_kind kind)
{
    int64_t *memory = device_map(BYTES, true), host[LONGS] = {0};
    (void)kind;
    if (device_fail("")) {
        if (world_rank == 1)
            device_fail("cuCtxGetCurrent:*:201,cuDeviceGetCount:*:999");
        MPI_Win win = window_over(world_rank == 0 ? memory : host, BYTES);
        window_works(win, "a device that one rank cannot see");
        device_fail("");
        CHECK_OK(MPI_Win_free(&win));
    } else {
        harness_skip("the driver is real");
    }
    device_unmap(memory, BYTES);
}

/* ORIEL_AGENT=never, and memory that other ranks cannot map: all ranks get the error. */
static void no_agent(enum window_kind kind)
{
    void *memory = device_map(BYTES, false);
    (void)kind;
    if (getenv("ORIEL_AGENT") == NULL) {
        harness_skip("agents are allowed");
    } else {
        MPI_Win win = MPI_WIN_NULL;
        int64_t host[LONGS] = {0};
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        error_check(MPI_Win_create(world_rank == 0 ? memory : host, BYTES, 8, MPI_INFO_NULL,
                                   MPI_COMM_WORLD, &win),
                    MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Win_create", "rank 0", "GPU");
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    device_unmap(memory, BYTES);
}

/* No memory on the device, for one operation. */
static void out_of_memory(enum window_kind kind)
{
    int64_t *memory = device_alloc(BYTES), *buffer = device_alloc(BYTES);
    MPI_Win win = window_over(memory, BYTES);
    int64_t value = 1;
    (void)kind;
    const bool fails = device_fail("cuMemcpyAsync:*:2");
    barrier(MPI_COMM_WORLD); /* the target may be the one that copies */
    if (fails) {
        char rank[20];
        snprintf(rank, sizeof rank, "rank %d", right());
        error_check(put(buffer, win), MPI_ERR_NO_MEM, "MPI_Put", "OUT_OF_MEMORY", "MPI_Put");
        MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
        int code = MPI_Accumulate(&value, 1, MPI_INT64_T, right(), 0, 1, MPI_INT64_T, MPI_SUM, win);
        const int unlocked = MPI_Win_unlock(right(), win);
        error_check(code != MPI_SUCCESS ? code : unlocked, MPI_ERR_NO_MEM, "MPI_Accumulate",
                    "OUT_OF_MEMORY", rank);
        barrier(MPI_COMM_WORLD);
        device_fail("");
    } else {
        harness_skip("the driver is real");
    }
    barrier(MPI_COMM_WORLD);
    window_works(win, "a device without memory");
    CHECK_OK(MPI_Win_free(&win));
    device_free(memory);
    device_free(buffer);
}

/* A kernel has crashed, which makes the context of every rank but the first fail for good. The last
 * case: no device memory can be used after it. */
static void lost_context(enum window_kind kind)
{
    int64_t *memory = device_alloc(BYTES), *buffer = device_alloc(BYTES);
    int64_t *unknown = device_alloc(BYTES), *host = calloc(LONGS, 8);
    MPI_Win win = window_over(memory, BYTES), host_win = window_over(host, BYTES), late;
    (void)kind;
    window_works(win, "nothing");
    CHECK_OK(put(buffer, win));
    barrier(MPI_COMM_WORLD);
    if (!device_fail("")) {
        harness_skip("the driver is real");
        goto end;
    }
    if (world_rank > 0) {
        device_fail("cuMemcpyAsync:1:700");
        error_check(put(buffer, host_win), MPI_ERR_OTHER, "MPI_Put", "ILLEGAL_ADDRESS", "MPI_Put");
        device_fail("");
        error_check(put(buffer, host_win), MPI_ERR_OTHER, "MPI_Put", "ILLEGAL_ADDRESS", "MPI_Put");
        error_check(put(unknown, host_win), MPI_ERR_OTHER, "MPI_Put", "ILLEGAL_ADDRESS", "MPI_Put");
    }
    barrier(MPI_COMM_WORLD);
    window_works(host_win, "a lost context");
    create_fails(memory, BYTES, MPI_ERR_OTHER, "ILLEGAL_ADDRESS");
    MPI_Win_allocate(BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &host, &late);
    window_works(late, "a lost context");
    CHECK_OK(MPI_Win_free(&late));
end:
    CHECK_OK(MPI_Win_free(&host_win));
    CHECK_OK(MPI_Win_free(&win));
}

static const struct test_case cases[] = {
    CASE(freed_buffer, KIND_ANY, 1),   CASE(wrong_memory, KIND_ANY, 1),
    CASE(beyond_buffer, KIND_ANY, 1),  CASE(not_mapped, KIND_ANY, 1),
    CASE(no_agent, KIND_ANY, 2),       CASE(out_of_memory, KIND_ANY, 1),
    CASE(not_shared, KIND_ANY, 2),     CASE(unanswered, KIND_ANY, 1),
    CASE(address_reused, KIND_ANY, 1), CASE(lost_stream, KIND_ANY, 1),
    CASE(odd_refusals, KIND_ANY, 1),   CASE(invisible_device, KIND_ANY, 2),
    CASE(lost_context, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
