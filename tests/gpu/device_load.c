/* The driver is loaded when windows exist already, by several threads, while another one uses the
 * windows. */
#include "device.h"

#include "../mpi/harness.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LONGS = 64, BYTES = LONGS * 8 };

static MPI_Win shared_win;
static atomic_bool is_over;

static int right(void)
{
    return (world_rank + 1) % world_size;
}

/* Puts and gets of host memory, from before the load until after it. */
static void *user_main(void *rounds)
{
    int64_t sent[2], got[2];
    int64_t round = 0;
    while (!atomic_load(&is_over) || round < 100) {
        sent[0] = sent[1] = ++round;
        MPI_Put(sent, 2, MPI_INT64_T, right(), 0, 2, MPI_INT64_T, shared_win);
        MPI_Win_flush(right(), shared_win);
        MPI_Get(got, 2, MPI_INT64_T, right(), 0, 2, MPI_INT64_T, shared_win);
        MPI_Win_flush(right(), shared_win);
        if (!CHECK(got[0] == round && got[1] == round, "round %lld: %lld", (long long)round,
                   (long long)got[0]))
            break;
    }
    *(int64_t *)rounds = round;
    return NULL;
}

/* Several threads load it at a time, and use device memory at once. */
static void *loader_main(void *at)
{
    int64_t longs[8], got[8] = {0};
    const int place = 8 + 8 * *(int *)at;
    for (int i = 0; i < 8; i++)
        longs[i] = 100 * world_rank + place + i;
    int64_t *device = device_alloc(sizeof longs);
    device_write(device, longs, sizeof longs);
    MPI_Put(device, 8, MPI_INT64_T, right(), place, 8, MPI_INT64_T, shared_win);
    MPI_Win_flush(right(), shared_win);
    device_fill(device, 0, sizeof longs);
    MPI_Get(device, 8, MPI_INT64_T, right(), place, 8, MPI_INT64_T, shared_win);
    MPI_Win_flush(right(), shared_win);
    device_read(got, device, sizeof got);
    CHECK(memcmp(got, longs, sizeof got) == 0, "a put and a get of device memory: %lld",
          (long long)got[0]);
    device_free(device);
    return NULL;
}

/* Only rank 0 has loaded the driver: it copies for the others. They load it afterwards, and use
 * device memory with the same window. */
static void without_driver(enum window_kind kind)
{
    int64_t host[LONGS] = {0}, got[3] = {0}, found;
    const int64_t mine[3] = {world_rank + 1, 7, 0};
    MPI_Win win;
    void *memory = world_rank == 0 ? device_alloc(BYTES) : host;
    (void)kind;
    if (world_rank == 0)
        device_fill(memory, 0, BYTES);
    CHECK_OK(MPI_Win_create(memory, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_lock_all(0, win);
    MPI_Put(mine, 2, MPI_INT64_T, 0, 2 * world_rank + 2, 2, MPI_INT64_T, win);
    MPI_Accumulate(mine + 1, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Compare_and_swap(mine, mine + 2, &found, MPI_INT64_T, 0, 1, win);
    MPI_Win_flush(0, win);
    MPI_Get(got, 2, MPI_INT64_T, 0, 2 * world_rank + 2, 2, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    CHECK(got[0] == world_rank + 1 && got[1] == 7, "got %lld %lld", (long long)got[0],
          (long long)got[1]);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    int64_t *buffer = device_alloc(BYTES);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(buffer, 2, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
    device_read(got, buffer, 16);
    CHECK(got[0] == 7 * world_size && got[1] >= 1 && got[1] <= world_size, "sum %lld, swapped %lld",
          (long long)got[0], (long long)got[1]);
    CHECK_OK(MPI_Win_free(&win));
    device_free(buffer);
    if (world_rank == 0)
        device_free(memory);
}

/* The driver comes with a library that is linked to it, when a window has been used already. */
static void dependency(enum window_kind kind)
{
    struct window window = window_make(kind, BYTES, 8, MPI_COMM_WORLD);
    const char *path = getenv("TEST_PLUGIN");
    int64_t sent[8] = {world_rank, 1, 2, 3, 4, 5, 6, 7}, got[8] = {0};
    if (path == NULL) {
        harness_skip("TEST_PLUGIN names no library");
        window_free(&window);
        return;
    }
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < 2; i++)
        MPI_Put(sent, 8, MPI_INT64_T, right(), 8, 8, MPI_INT64_T, window.win);
    MPI_Win_flush(right(), window.win);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *(*copy)(const void *, size_t) = NULL;
    if (CHECK(plugin != NULL, "%s: %s", path, dlerror()))
        *(void **)&copy = dlsym(plugin, "plugin_copy");
    void *device = copy != NULL ? copy(sent, sizeof sent) : NULL;
    if (CHECK(device != NULL, "no device memory"))
        CHECK_OK(MPI_Put(device, 8, MPI_INT64_T, right(), 0, 8, MPI_INT64_T, window.win));
    CHECK_OK(MPI_Win_flush(right(), window.win));
    MPI_Get(got, 8, MPI_INT64_T, right(), 0, 8, MPI_INT64_T, window.win);
    MPI_Win_unlock_all(window.win);
    CHECK(memcmp(got, sent, sizeof got) == 0, "got %lld", (long long)got[0]);
    window_free(&window);
}

/* A driver that Oriel does not use: one rank prints why (TEST_WARNING), and host memory is not
 * concerned. */
static void wrong_driver(enum window_kind kind)
{
    struct window window = window_make(kind, BYTES, 8, MPI_COMM_WORLD);
    const char *warning = getenv("TEST_WARNING");
    FILE *file;
    if (warning == NULL) {
        harness_skip("the driver is recent enough");
        window_free(&window);
        return;
    }
    const int old = stderr_collect(&file);
    for (int i = 0; i < 2; i++) {
        const int64_t sent = world_rank + 10 * i;
        int64_t got = -1;
        MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window.win);
        MPI_Put(&sent, 1, MPI_INT64_T, right(), 0, 1, MPI_INT64_T, window.win);
        MPI_Win_flush(right(), window.win);
        MPI_Get(&got, 1, MPI_INT64_T, right(), 0, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(right(), window.win);
        CHECK(got == sent, "got %lld", (long long)got);
        device_free(device_alloc(BYTES));
    }
    static bool is_printed; /* by an earlier call of this case */
    barrier(MPI_COMM_WORLD);
    int lines = stderr_count(file, old, warning), all;
    MPI_Allreduce(&lines, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == !is_printed, "%d lines with \"%s\"", all, warning);
    is_printed = true;
    window_free(&window);
}

static void late(enum window_kind kind)
{
    enum { LOADERS = 3 };
    pthread_t user, loaders[LOADERS];
    int places[LOADERS];
    int64_t rounds;
    struct window window = window_make(kind, BYTES, 8, MPI_COMM_WORLD);
    shared_win = window.win;
    atomic_store(&is_over, false);
    MPI_Win_lock_all(0, window.win);
    pthread_create(&user, NULL, user_main, &rounds);
    sleep_us(2000);
    for (int i = 0; i < LOADERS; i++) {
        places[i] = i;
        pthread_create(&loaders[i], NULL, loader_main, &places[i]);
    }
    for (int i = 0; i < LOADERS; i++)
        pthread_join(loaders[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(user, NULL);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    /* a window of later, over memory that only its owner accesses: by an agent that is older than
     * the driver, if the first window needs one */
    int64_t *device = device_map(BYTES, false), value = 5 + world_rank, got = 0;
    MPI_Win win;
    CHECK_OK(MPI_Win_create(device, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT64_T, right(), 1, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    device_read(&got, device + 1, 8);
    CHECK(got == 5 + (world_rank + world_size - 1) % world_size, "got %lld", (long long)got);
    CHECK_OK(MPI_Win_free(&win));
    device_unmap(device, BYTES);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(without_driver, KIND_ANY, 2),
    CASE(late, KINDS_BOTH, 1),
    CASE(dependency, KINDS_BOTH, 1),
    CASE(wrong_driver, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
