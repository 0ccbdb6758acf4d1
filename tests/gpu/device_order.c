/* The order of copies on the streams of a GPU: which calls complete them, and that a window's
 * operations are in the order of the stream that the program has named. The rows on the stand-in
 * hold what is on a stream until a call waits for it, so a call that does not wait is found. And
 * device memory that MPI allocates. */
#include "device.h"
#include "places.h"

#include "../mpi/harness.h"

#include "oriel/ext.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 16, SLOT_BYTES = 256, BYTES = SLOTS * SLOT_BYTES };

static int right(void)
{
    return (world_rank + 1) % world_size;
}

static int left(void)
{
    return (world_rank + world_size - 1) % world_size;
}

static bool bytes_are(const char *bytes, int wanted, size_t len_bytes, const char *what)
{
    for (size_t i = 0; i < len_bytes; i++)
        if (!CHECK((unsigned char)bytes[i] == (unsigned char)wanted, "%s: byte %zu is %d, not %d",
                   what, i, (unsigned char)bytes[i], wanted))
            return false;
    return true;
}

/* Device buffers, and a window over device memory. */
struct device_window {
    MPI_Win win;
    char *memory;
    char *buffer;
};

static struct device_window device_window_make(MPI_Info info)
{
    struct device_window window = {.memory = device_alloc(BYTES), .buffer = device_alloc(BYTES)};
    device_fill(window.memory, 1, BYTES);
    device_fill(window.buffer, 2 + world_rank, BYTES);
    CHECK_OK(MPI_Win_create(window.memory, BYTES, 1, info, MPI_COMM_WORLD, &window.win));
    window_watch(window.win);
    return window;
}

static void device_window_free(struct device_window *window)
{
    CHECK_OK(MPI_Win_free(&window->win));
    device_free(window->memory);
    device_free(window->buffer);
}

static void memory_expect(const struct device_window *window, int wanted, const char *what)
{
    char bytes[BYTES];
    device_read(bytes, window->memory, BYTES);
    bytes_are(bytes, wanted, BYTES, what);
    barrier(MPI_COMM_WORLD);
    device_fill(window->memory, 1, BYTES);
    barrier(MPI_COMM_WORLD);
}

static void put_slots(const struct device_window *window)
{
    for (int i = 0; i < SLOTS; i++)
        MPI_Put(window->buffer + i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, right(), i * SLOT_BYTES,
                SLOT_BYTES, MPI_BYTE, window->win);
}

/* Each call that completes puts at the target. */
static void puts_complete(enum window_kind kind)
{
    struct device_window window = device_window_make(MPI_INFO_NULL);
    const int from_left = 2 + left();
    MPI_Group world, group;
    (void)kind;
    MPI_Win_fence(0, window.win);
    put_slots(&window);
    MPI_Win_fence(0, window.win);
    memory_expect(&window, from_left, "fence");
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window.win);
    put_slots(&window);
    MPI_Win_unlock(right(), window.win);
    barrier(MPI_COMM_WORLD);
    memory_expect(&window, from_left, "unlock");
    MPI_Win_lock_all(0, window.win);
    put_slots(&window);
    MPI_Win_flush(right(), window.win);
    barrier(MPI_COMM_WORLD);
    memory_expect(&window, from_left, "flush");
    put_slots(&window);
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    memory_expect(&window, from_left, "flush_all");
    put_slots(&window);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    memory_expect(&window, from_left, "unlock_all");
    int ranks[2] = {left(), right()};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, left() == right() ? 1 : 2, ranks, &group);
    MPI_Win_post(group, 0, window.win);
    MPI_Win_start(group, 0, window.win);
    put_slots(&window);
    MPI_Win_complete(window.win);
    MPI_Win_wait(window.win);
    memory_expect(&window, from_left, "complete");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    device_window_free(&window);
}

static void put_slots_notified(const struct device_window *window)
{
    for (int i = 0; i < SLOTS; i++)
        MPIX_Put_notify(window->buffer + i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, right(),
                        i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, 0, window->win);
}

/* Gets to memory of another GPU are on another stream than the puts. */
static void slots_put_and_got_in_order(const struct device_window *window)
{
    static char got[BYTES];
    char *other = device_alloc_on_next(BYTES);
    device_fill(window->buffer, 80, BYTES);
    /* of the streams that the flush has left to wait for, that of the gets is the first */
    MPI_Get(other, SLOT_BYTES, MPI_BYTE, right(), 0, SLOT_BYTES, MPI_BYTE, window->win);
    for (int i = 0; i < SLOTS; i++) {
        MPI_Put(window->buffer + i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, right(), i * SLOT_BYTES,
                SLOT_BYTES, MPI_BYTE, window->win);
        MPIX_Win_order(right(), window->win);
        MPI_Get(other + i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, right(), i * SLOT_BYTES, SLOT_BYTES,
                MPI_BYTE, window->win);
    }
    MPI_Win_flush_all(window->win);
    device_read(got, other, BYTES);
    bytes_are(got, 80, BYTES, "get after MPIX_Win_order");
    device_free(other);
}

/* Completed requests let the program change the buffers. */
static void put_slots_persistent(const struct device_window *window)
{
    MPI_Request requests[SLOTS];
    device_fill(window->buffer, 90, BYTES);
    for (int i = 0; i < SLOTS; i++) {
        MPIX_Put_init(window->buffer + i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, right(),
                      i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, window->win, &requests[i]);
        MPI_Start(&requests[i]);
        request_await(&requests[i]);
        device_fill(window->buffer + i * SLOT_BYTES, 91, SLOT_BYTES);
    }
    MPI_Win_flush_all(window->win);
    for (int i = 0; i < SLOTS; i++)
        MPI_Request_free(&requests[i]);
}

/* The extensions that promise an order. */
static void extensions_complete(enum window_kind kind)
{
    MPI_Info info;
    (void)kind;
    if (!through_oriel()) {
        harness_skip("the host has no extensions");
        return;
    }
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    struct device_window window = device_window_make(info);
    MPI_Info_free(&info);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    put_slots_notified(&window);
    MPIX_Win_notify_wait(window.win, 0, SLOTS);
    memory_expect(&window, 2 + left(), "MPIX_Win_notify_wait");
    slots_put_and_got_in_order(&window);
    barrier(MPI_COMM_WORLD);
    memory_expect(&window, 80, "MPIX_Win_order");
    put_slots_persistent(&window);
    barrier(MPI_COMM_WORLD);
    memory_expect(&window, 90, "wait for MPIX_Put_init");
    MPI_Win_unlock_all(window.win);
    device_window_free(&window);
}

/* Each call that completes gets, or lets the program reuse the buffer of a put. */
static void buffers_complete(enum window_kind kind)
{
    struct device_window window = device_window_make(MPI_INFO_NULL);
    static char got[BYTES];
    MPI_Request requests[SLOTS];
    (void)kind;
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int round = 0; round < 3; round++) {
        device_fill(window.buffer, 0, BYTES);
        for (int i = 0; i < SLOTS; i++)
            MPI_Rget(window.buffer + i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, right(), i * SLOT_BYTES,
                     SLOT_BYTES, MPI_BYTE, window.win, &requests[i]);
        for (int i = 0; i < SLOTS; i++)
            request_await(&requests[i]);
        device_read(got, window.buffer, BYTES);
        bytes_are(got, 1, BYTES, "wait for a get");
        device_fill(window.buffer, 0, BYTES);
        for (int i = 0; i < SLOTS; i++)
            MPI_Get(window.buffer + i * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, right(), i * SLOT_BYTES,
                    SLOT_BYTES, MPI_BYTE, window.win);
        MPI_Win_flush_local(right(), window.win);
        device_read(got, window.buffer, BYTES);
        bytes_are(got, 1, BYTES, "flush_local after a get");
    }
    barrier(MPI_COMM_WORLD);
    device_fill(window.buffer, 7, BYTES);
    put_slots(&window);
    MPI_Win_flush_local_all(window.win);
    device_fill(window.buffer, 9, BYTES);
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    memory_expect(&window, 7, "flush_local_all before the buffer changes");
    MPI_Win_unlock_all(window.win);
    device_window_free(&window);
}

static MPI_Info stream_info(const void *stream)
{
    MPI_Info info;
    char text[32];
    snprintf(text, sizeof text, "%p", stream);
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_cuda_stream", text);
    return info;
}

/* The buffer gets its contents on the program's stream, without a wait for it. */
static void stream_named(enum window_kind kind)
{
    void *stream = device_stream_make();
    MPI_Info info = stream_info(stream);
    struct device_window window = device_window_make(info);
    char got[BYTES], one = 1;
    int flag = 0;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    MPI_Info used;
    (void)kind;
    MPI_Info_free(&info);
    MPI_Win_get_info(window.win, &used);
    MPI_Info_get(used, "oriel_cuda_stream", MPI_MAX_INFO_VAL, value, &flag);
    CHECK(flag && strtoull(value, NULL, 0) == (unsigned long long)(uintptr_t)stream,
          "oriel_cuda_stream is %s", value);
    MPI_Info_free(&used);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    device_stream_fill(stream, window.buffer, 40, BYTES);
    put_slots(&window);
    device_stream_fill(stream, window.buffer, 41, BYTES); /* after the puts have read it */
    MPI_Win_flush(right(), window.win);
    barrier(MPI_COMM_WORLD);
    memory_expect(&window, 40, "put after a kernel");
    /* in the first round Oriel's kernels are loaded, which may take as long as the wait */
    for (int round = 0; round < 4; round++) {
        device_stream_wait(stream);
        device_stream_fill(stream, window.buffer, 3 + round, BYTES);
        MPI_Accumulate(window.buffer, BYTES, MPI_SIGNED_CHAR, right(), 0, BYTES, MPI_SIGNED_CHAR,
                       MPI_SUM, window.win);
        MPI_Win_flush(right(), window.win);
        barrier(MPI_COMM_WORLD);
        memory_expect(&window, 4 + round, "accumulate after a kernel");
    }
    /* what is enqueued after a get sees its result */
    MPI_Get(window.buffer, BYTES, MPI_BYTE, right(), 0, BYTES, MPI_BYTE, window.win);
    char *copy = device_alloc(BYTES);
    device_stream_copy(stream, copy, window.buffer, BYTES);
    device_stream_wait(stream);
    device_read(got, copy, BYTES);
    bytes_are(got, one, BYTES, "kernel after a get");
    device_free(copy);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    device_window_free(&window);
    device_stream_free(stream);
}

/* A window over memory at a place, with a named stream, on which bytes come from device memory. */
struct ordered {
    void *stream;
    MPI_Win win;
    char *memory; /* of the window */
    char *source; /* on the device: 60 + the rank, which the stream copies */
    char *seen;   /* on the device, as source */
};

static void order_check(const char *device, int wanted, size_t len_bytes, const char *form,
                        enum place there, enum place here)
{
    char got[BYTES], what[80];
    snprintf(what, sizeof what, "%s, window %s, buffer %s", form, place_names[there],
             place_names[here]);
    device_read(got, device, len_bytes);
    bytes_are(got, wanted, len_bytes, what);
}

static void host_buffer_at(const struct ordered *ordered, enum place there, enum place here)
{
    char ones[BYTES], got[BYTES];
    char *buffer = place_alloc(here, BYTES);
    MPI_Datatype pieces;
    MPI_Type_vector(8, 4, 16, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    memset(ones, 1, sizeof ones);
    memset(buffer, 1, BYTES);
    place_write(there, ordered->memory, ones, BYTES);
    barrier(MPI_COMM_WORLD);
    device_stream_copy(ordered->stream, buffer, ordered->source, BYTES);
    MPI_Put(buffer, BYTES, MPI_BYTE, right(), 0, BYTES, MPI_BYTE, ordered->win);
    device_stream_fill(ordered->stream, buffer, 2, BYTES); /* after the put has read it */
    MPI_Win_flush(right(), ordered->win);
    barrier(MPI_COMM_WORLD);
    place_read(there, got, ordered->memory, BYTES);
    device_write(ordered->seen, got, BYTES);
    order_check(ordered->seen, 60 + left(), BYTES, "put after a kernel", there, here);
    /* a get writes the buffer when the stream has read it, and before it does again */
    device_stream_copy(ordered->stream, ordered->seen, buffer, BYTES);
    MPI_Get(buffer, BYTES, MPI_BYTE, right(), 0, BYTES, MPI_BYTE, ordered->win);
    device_stream_copy(ordered->stream, ordered->source, buffer, BYTES);
    MPI_Win_flush(right(), ordered->win);
    device_stream_wait(ordered->stream);
    order_check(ordered->seen, 2, BYTES, "get after a kernel", there, here);
    order_check(ordered->source, 60 + world_rank, BYTES, "kernel after a get", there, here);
    /* pieces of the rank's own window, which the stream writes */
    barrier(MPI_COMM_WORLD);
    if (there != ON_HOST)
        device_stream_fill(ordered->stream, ordered->memory, 3, BYTES);
    MPI_Get(got, 32, MPI_BYTE, world_rank, 0, 1, pieces, ordered->win);
    MPI_Win_flush(world_rank, ordered->win);
    if (there != ON_HOST)
        bytes_are(got, 3, 32, "get of pieces after a kernel");
    device_stream_wait(ordered->stream);
    MPI_Type_free(&pieces);
    place_free(here, buffer, BYTES);
}

/* Buffers that the processor accesses. */
static void stream_named_host_buffers(enum window_kind kind)
{
    (void)kind;
    for (enum place there = ON_HOST; there < PLACES; there++) {
        struct ordered ordered = {.stream = device_stream_make(),
                                  .memory = place_alloc(there, BYTES),
                                  .source = device_alloc(BYTES),
                                  .seen = device_alloc(BYTES)};
        MPI_Info info = stream_info(ordered.stream);
        device_fill(ordered.source, 60 + world_rank, BYTES);
        CHECK_OK(MPI_Win_create(ordered.memory, BYTES, 1, info, MPI_COMM_WORLD, &ordered.win));
        window_watch(ordered.win);
        MPI_Info_free(&info);
        MPI_Win_lock_all(0, ordered.win);
        for (enum place here = MANAGED; here <= PINNED; here++)
            host_buffer_at(&ordered, there, here);
        MPI_Win_unlock_all(ordered.win);
        CHECK_OK(MPI_Win_free(&ordered.win));
        place_free(there, ordered.memory, BYTES);
        device_free(ordered.source);
        device_free(ordered.seen);
        device_stream_free(ordered.stream);
    }
}

/* One put to two kinds of memory of a dynamic window. */
static void stream_named_regions(enum window_kind kind)
{
    void *stream = device_stream_make();
    MPI_Info info = stream_info(stream);
    MPI_Win win;
    char *source = device_alloc(BYTES), *buffer = device_alloc_managed(BYTES);
    char *regions[2] = {device_alloc(BYTES), malloc(BYTES)}, got[BYTES];
    MPI_Aint own[2], all[16], there[2];
    const int lengths[2] = {SLOT_BYTES, SLOT_BYTES};
    MPI_Datatype both;
    (void)kind;
    device_fill(source, 60 + world_rank, BYTES);
    memset(buffer, 1, BYTES);
    CHECK_OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win));
    window_watch(win);
    MPI_Info_free(&info);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(MPI_Win_attach(win, regions[i], BYTES));
        MPI_Get_address(regions[i], &own[i]);
    }
    MPI_Allgather(own, 2, MPI_AINT, all, 2, MPI_AINT, MPI_COMM_WORLD);
    there[0] = all[2 * right()];
    there[1] = all[2 * right() + 1];
    MPI_Type_create_hindexed(2, lengths, there, MPI_BYTE, &both);
    MPI_Type_commit(&both);
    MPI_Win_lock_all(0, win);
    device_stream_copy(stream, buffer, source, BYTES);
    MPI_Put(buffer, 2 * SLOT_BYTES, MPI_BYTE, right(), 0, 1, both, win);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    device_read(got, regions[0], SLOT_BYTES);
    bytes_are(got, 60 + left(), SLOT_BYTES, "device memory of a dynamic window");
    bytes_are(regions[1], 60 + left(), SLOT_BYTES, "host memory of a dynamic window");
    for (int i = 0; i < 2; i++)
        CHECK_OK(MPI_Win_detach(win, regions[i]));
    CHECK_OK(MPI_Win_free(&win));
    MPI_Type_free(&both);
    device_stream_wait(stream);
    device_free(regions[0]);
    free(regions[1]);
    device_free(source);
    device_free(buffer);
    device_stream_free(stream);
}

/* MPI_Win_allocate and MPI_Alloc_mem of device memory. */
static void allocated(enum window_kind kind)
{
    MPI_Info info;
    char *base = NULL, *memory = NULL, got[BYTES];
    MPI_Win win;
    (void)kind;
    device_open();
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_memory_alloc_kinds", "cuda:device");
    CHECK_OK(MPI_Win_allocate(BYTES, 1, info, MPI_COMM_WORLD, &base, &win));
    window_watch(win);
    CHECK_OK(MPI_Alloc_mem(BYTES, info, &memory));
    MPI_Info_free(&info);
    device_fill(base, 1, BYTES); /* fails if it is not device memory */
    device_fill(memory, 60 + world_rank, BYTES);
    MPI_Win_fence(0, win);
    MPI_Put(memory, BYTES, MPI_BYTE, right(), 0, BYTES, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    device_read(got, base, BYTES);
    bytes_are(got, 60 + left(), BYTES, "put");
    CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Free_mem(memory));
}

static const struct test_case cases[] = {
    CASE(puts_complete, KIND_ANY, 1),
    CASE(buffers_complete, KIND_ANY, 1),
    CASE(extensions_complete, KIND_ANY, 1),
    CASE(stream_named, KIND_ANY, 1),
    CASE(stream_named_host_buffers, KIND_ANY, 1),
    CASE(stream_named_regions, KIND_ANY, 1),
    CASE(allocated, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
