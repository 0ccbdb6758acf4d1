/* Streams, events, copies and injected errors. */
#include "selftest.h"

#include <sched.h>

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
    usleep(10000); /* they would end now, if they were not held */
    EXPECT(pinned[0] == 0);
    EXPECT_CODE(cu.stream_query(streams[1]), ORIEL_CU_ERROR_NOT_READY);
    EXPECT_OK(cu.stream_synchronize(streams[1]));
    EXPECT(pinned[0] == 7);
    EXPECT_OK(cu.event_query(event));
    /* questions, too, let them begin */
    EXPECT_OK(cu.memset_d8_async(pointer, 8, 8, streams[1]));
    while (cu.stream_query(streams[1]) == ORIEL_CU_ERROR_NOT_READY) {
        sched_yield();
    }
    EXPECT_OK(cu.event_record(event, streams[1]));
    while (cu.event_query(event) == ORIEL_CU_ERROR_NOT_READY) {
        sched_yield();
    }
    EXPECT_OK(cu.event_synchronize(event));
    EXPECT_OK(cu.event_destroy(event));
}

void streams_are_asynchronous_and_ordered_by_events(void **state)
{
    (void)state;
    passes_with(in_flight, "STANDIN_HOLD=1");
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

void the_default_stream_is_ordered_with_blocking_streams(void **state)
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

void a_pageable_source_is_staged(void **state)
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

void two_dimensional_copies(void **state)
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

void errors_are_injected_and_may_be_sticky(void **state)
{
    (void)state;
    passes_with(injected, "STANDIN_FAIL=cuMemsetD8Async:2:2,cuMemcpyDtoDAsync:1:700");
}
