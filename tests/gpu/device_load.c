/* The driver is loaded when windows exist already, by several threads, while another one uses the
 * windows. */
#include "device.h"

#include "../mpi/harness.h"

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
    /* a window of later, over device memory */
    int64_t *device = device_alloc(BYTES), value = 5 + world_rank, got = 0;
    MPI_Win win;
    CHECK_OK(MPI_Win_create(device, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT64_T, right(), 1, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    device_read(&got, device + 1, 8);
    CHECK(got == 5 + (world_rank + world_size - 1) % world_size, "got %lld", (long long)got);
    CHECK_OK(MPI_Win_free(&win));
    device_free(device);
    window_free(&window);
}

static const struct test_case cases[] = {CASE(late, KINDS_BOTH, 1)};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
