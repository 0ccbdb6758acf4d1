/* The life of many windows: hundreds at once, thousands one after the other, memory exhausted on
 * one rank. A freed window's resources are returned: mappings, descriptors and memory are counted
 * in /proc/self. A plain MPI program, run by the test rows. */
#include "footprint.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hundreds_of_windows_live_at_once(enum window_kind kind)
{
    enum { WINDOWS = 200 };
    static struct window windows[WINDOWS];
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    for (int i = 0; i < WINDOWS; i++)
        windows[i] = window_make(kind, 16 + i, 1, MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++) {
        int value = 1000 * world_rank + i;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, windows[i].win);
        MPI_Put(&value, 1, MPI_INT, target, 4, 1, MPI_INT, windows[i].win);
        MPI_Win_unlock(target, windows[i].win);
    }
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++) {
        int value;
        memcpy(&value, windows[i].base + 4, sizeof value);
        CHECK_EQUAL(value, 1000 * origin + i);
    }
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++)
        window_free(&windows[i * 7 % WINDOWS]);
}

/* One window of the kind; every rank's memory is accessed by another rank. */
static void window_use_once(enum window_kind kind, int round)
{
    struct window window = {MPI_WIN_NULL, NULL, kind};
    MPI_Aint size_bytes = 4096 * (1 + round % 16);
    static char heap[16 * 4096];
    if (kind == KIND_ALLOCATE)
        MPI_Win_allocate(size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window.base, &window.win);
    else if (kind == KIND_SHARED)
        MPI_Win_allocate_shared(size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window.base,
                                &window.win);
    else if (kind == KIND_ARENA)
        MPI_Alloc_mem(size_bytes, MPI_INFO_NULL, &window.base);
    else
        window.base = heap;
    if (window.win == MPI_WIN_NULL)
        MPI_Win_create(window.base, size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window.win);
    memset(window.base, round, (size_t)size_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    int target = (world_rank + round) % world_size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    MPI_Put(&round, 1, MPI_INT, target, size_bytes - 4, 1, MPI_INT, window.win);
    MPI_Win_unlock(target, window.win);
    MPI_Win_free(&window.win);
    int seen;
    if (kind == KIND_HEAP || kind == KIND_ARENA) {
        memcpy(&seen, window.base + size_bytes - 4, sizeof seen);
        CHECK_EQUAL(seen, round);
    }
    if (kind == KIND_ARENA)
        MPI_Free_mem(window.base);
}

static void windows_made_and_freed_leave_nothing(enum window_kind kind)
{
    int rounds = world_size <= 2 ? 2000 : scaled_rounds(600);
    for (int round = 0; round < 50; round++)
        window_use_once(kind, round);
    struct footprint before = footprint_read();
    for (int round = 0; round < rounds; round++)
        window_use_once(kind, round);
    struct footprint after = footprint_read();
    CHECK(after.mappings <= before.mappings + 8, "%ld mappings became %ld", before.mappings,
          after.mappings);
    CHECK(after.descriptors <= before.descriptors + 4, "%ld descriptors became %ld",
          before.descriptors, after.descriptors);
    CHECK(after.resident_kib <= before.resident_kib + 4096 + FREED_CACHED_KIB,
          "%ld KiB became %ld KiB", before.resident_kib, after.resident_kib);
}

static void allocations_made_and_freed_leave_nothing(enum window_kind kind)
{
    struct footprint before = {0, 0, 0};
    struct random random = random_start((uint64_t)world_rank);
    enum { LIVE = 64 };
    char *memory[LIVE] = {NULL};
    (void)kind;
    for (int turn = 0; turn < 3000; turn++) {
        int slot = (int)random_below(&random, LIVE);
        size_t len_bytes = 1 + random_below(&random, 40000);
        if (memory[slot])
            MPI_Free_mem(memory[slot]);
        CHECK_OK(MPI_Alloc_mem((MPI_Aint)len_bytes, MPI_INFO_NULL, &memory[slot]));
        memset(memory[slot], slot, len_bytes);
        if (turn == 500)
            before = footprint_read();
    }
    for (int slot = 0; slot < LIVE; slot++) {
        if (!memory[slot])
            continue;
        CHECK_EQUAL(memory[slot][0], slot);
        MPI_Free_mem(memory[slot]);
    }
    struct footprint after = footprint_read();
    CHECK(after.mappings <= before.mappings + 8, "%ld mappings became %ld", before.mappings,
          after.mappings);
    CHECK(after.resident_kib <= before.resident_kib + 8192 + FREED_CACHED_KIB,
          "%ld KiB became %ld KiB", before.resident_kib, after.resident_kib);
}

static int handler_calls, handler_class;

static void note_call(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handler_calls++;
    MPI_Error_class(*code, &handler_class);
}

/* One rank asks for more memory than available; all must get the error, and nothing may be lost. */
static void memory_exhausted_on_one_rank_fails_on_all(enum window_kind kind)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    struct footprint before = {0, 0, 0};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(note_call, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    for (int round = 0; round < 10; round++) {
        MPI_Aint size_bytes = world_rank == world_size - 1 ? (MPI_Aint)1 << 46 : 1 << 20;
        MPI_Win win = MPI_WIN_NULL;
        char *base = NULL;
        handler_calls = 0;
        if (kind == KIND_ALLOCATE)
            CHECK_CLASS(MPI_ERR_NO_MEM,
                        MPI_Win_allocate(size_bytes, 1, MPI_INFO_NULL, comm, &base, &win));
        else
            CHECK_CLASS(MPI_ERR_NO_MEM,
                        MPI_Win_allocate_shared(size_bytes, 1, MPI_INFO_NULL, comm, &base, &win));
        CHECK_EQUAL(handler_calls, 1);
        CHECK_EQUAL(handler_class, MPI_ERR_NO_MEM);
        window_use_once(kind, round);
        if (round == 3)
            before = footprint_read();
    }
    struct footprint after = footprint_read();
    CHECK(after.mappings <= before.mappings + 2, "%ld mappings became %ld", before.mappings,
          after.mappings);
    CHECK(after.resident_kib <= before.resident_kib + 2048 + FREED_CACHED_KIB,
          "%ld KiB became %ld KiB", before.resident_kib, after.resident_kib);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

static void memory_exhausted_in_alloc_mem_is_an_error(enum window_kind kind)
{
    MPI_Errhandler world_handler, self_handler;
    char *memory = NULL;
    (void)kind;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &world_handler);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &self_handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_NO_MEM, MPI_Alloc_mem((MPI_Aint)1 << 46, MPI_INFO_NULL, &memory));
    CHECK_OK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory));
    memset(memory, 1, 1 << 20);
    CHECK_OK(MPI_Free_mem(memory));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, world_handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, self_handler);
    MPI_Errhandler_free(&world_handler);
    MPI_Errhandler_free(&self_handler);
}

static const struct test_case cases[] = {
    CASE(hundreds_of_windows_live_at_once, KINDS_ALL, 1),
    CASE(windows_made_and_freed_leave_nothing, KINDS_ALL, 1),
    CASE(allocations_made_and_freed_leave_nothing, KIND_ANY, 1),
    CASE(memory_exhausted_on_one_rank_fails_on_all, KIND_ALLOCATE | KIND_SHARED, 1),
    CASE(memory_exhausted_in_alloc_mem_is_an_error, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
