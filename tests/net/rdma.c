/* Every kind of operation and synchronisation works, with all data checked, between ranks that an
 * RDMA device alone connects. The counters of the device that TEST_DEVICE names prove that it
 * carried the data. A plain MPI program for the rows' mode rdma. */
#include "../mpi/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 1 << 19, ROUNDS = 20 };

/* Packets that the device has sent so far; 0 where TEST_DEVICE names none. */
static long long packets(void)
{
    const char *device = getenv("TEST_DEVICE");
    char path[128];
    long long count = 0;
    if (device == NULL)
        return 0;
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/hw_counters/sent_pkts", device);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fscanf(file, "%lld", &count) == 1, "no number in %s", path);
    if (file != NULL)
        fclose(file);
    return count;
}

static int right(void)
{
    return (world_rank + 1) % world_size;
}
static int left(void)
{
    return (world_rank + world_size - 1) % world_size;
}

static char byte_of(int from, int size, int i)
{
    return (char)(from * 7 + size + i * 13 + i / 256);
}

/* Each rank puts into its right neighbour's memory and gets the data back. */
static void the_device_carries_puts_and_gets(enum window_kind kind)
{
    struct window window = window_make(kind, LARGEST, 1, MPI_COMM_WORLD);
    char *sent = malloc(LARGEST), *back = malloc(LARGEST);
    const long long before = packets();
    int64_t bytes = 0;
    MPI_Win_lock_all(0, window.win);
    for (int size = 1; size <= LARGEST; size *= 8) {
        for (int i = 0; i < size; i++)
            sent[i] = byte_of(world_rank, size, i);
        memset(back, 0, (size_t)size);
        CHECK_OK(MPI_Put(sent, size, MPI_BYTE, right(), 0, size, MPI_BYTE, window.win));
        CHECK_OK(MPI_Win_flush(right(), window.win));
        CHECK_OK(MPI_Get(back, size, MPI_BYTE, right(), 0, size, MPI_BYTE, window.win));
        CHECK_OK(MPI_Win_flush(right(), window.win));
        CHECK(memcmp(sent, back, (size_t)size) == 0, "%d bytes were returned changed", size);
        bytes += 2 * size;
        MPI_Win_sync(window.win);
        barrier(MPI_COMM_WORLD);
        int wrong = 0;
        for (int i = 0; i < size; i++)
            wrong += window.base[i] != byte_of(left(), size, i);
        CHECK(wrong == 0, "%d of %d bytes from rank %d are wrong", wrong, size, left());
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window.win);
    const long long count = packets() - before;
    CHECK(getenv("TEST_DEVICE") == NULL || count >= bytes / 4096,
          "%lld packets of 4 KiB at most for %lld bytes", count, (long long)bytes);
    window_free(&window);
    free(sent);
    free(back);
}

static void atomics_of_all_add_up(enum window_kind kind)
{
    struct window window = window_make(kind, 4 * sizeof(int64_t), sizeof(int64_t), MPI_COMM_WORLD);
    const int64_t values[2] = {3, 5}, one = 1;
    int64_t old, last = -1;
    memset(window.base, 0, 4 * sizeof(int64_t));
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < ROUNDS; i++) {
        for (int to = 0; to < world_size; to++)
            CHECK_OK(
                MPI_Accumulate(values, 2, MPI_INT64_T, to, 0, 2, MPI_INT64_T, MPI_SUM, window.win));
        CHECK_OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 2, MPI_SUM, window.win));
        CHECK_OK(MPI_Win_flush(0, window.win));
        CHECK(old > last && old < (int64_t)world_size * ROUNDS, "%lld after %lld", (long long)old,
              (long long)last);
        last = old;
    }
    const int64_t wanted = world_rank, next = world_rank + 1; /* each rank sets it once, in order */
    do {
        CHECK_OK(MPI_Compare_and_swap(&next, &wanted, &old, MPI_INT64_T, 0, 3, window.win));
        CHECK_OK(MPI_Win_flush(0, window.win));
    } while (old != wanted && !harness_failed());
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    const int64_t *words = (const int64_t *)(void *)window.base;
    CHECK_EQUAL(words[0], values[0] * ROUNDS * world_size);
    CHECK_EQUAL(words[1], values[1] * ROUNDS * world_size);
    CHECK_EQUAL(words[2], world_rank == 0 ? ROUNDS * world_size : 0);
    CHECK_EQUAL(words[3], world_rank == 0 ? world_size : 0);
    MPI_Win_unlock(world_rank, window.win);
    window_free(&window);
}

static void a_lock_lets_one_in(enum window_kind kind)
{
    struct window window = window_make(kind, sizeof(int64_t), sizeof(int64_t), MPI_COMM_WORLD);
    memset(window.base, 0, sizeof(int64_t));
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t word = -1;
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
        CHECK_OK(MPI_Get(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win));
        CHECK_OK(MPI_Win_flush(0, window.win));
        word++;
        CHECK_OK(MPI_Put(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win));
        CHECK_OK(MPI_Win_unlock(0, window.win));
    }
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    CHECK_EQUAL(*(int64_t *)(void *)window.base,
                world_rank == 0 ? (int64_t)ROUNDS * world_size : 0);
    MPI_Win_unlock(world_rank, window.win);
    window_free(&window);
}

static void fences_and_pscw_epochs_deliver_puts(enum window_kind kind)
{
    struct window window = window_make(kind, 2 * sizeof(int64_t), sizeof(int64_t), MPI_COMM_WORLD);
    const int64_t *words = (const int64_t *)(void *)window.base;
    const int to = right(), from = left();
    MPI_Group all, targets, origins;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &to, &targets);
    MPI_Group_incl(all, 1, &from, &origins);
    for (int64_t i = 0; i < ROUNDS; i++) {
        const int64_t word = world_rank * 1000 + i;
        CHECK_OK(MPI_Win_fence(0, window.win));
        CHECK_OK(MPI_Put(&word, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, window.win));
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        CHECK_EQUAL(words[0], from * 1000 + i);
        CHECK_OK(MPI_Win_post(origins, 0, window.win));
        CHECK_OK(MPI_Win_start(targets, 0, window.win));
        CHECK_OK(MPI_Put(&word, 1, MPI_INT64_T, to, 1, 1, MPI_INT64_T, window.win));
        CHECK_OK(MPI_Win_complete(window.win));
        CHECK_OK(MPI_Win_wait(window.win));
        CHECK_EQUAL(words[1], from * 1000 + i);
    }
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
    MPI_Group_free(&all);
    window_free(&window);
}

static void fill(char *bytes, int turn)
{
    for (int i = 0; i < LARGEST; i++)
        bytes[i] = byte_of(world_rank, turn, i);
}

static void expect_from_left(const struct window *window, int turn, const char *after)
{
    int wrong = 0;
    for (int i = 0; i < LARGEST; i++)
        wrong += window->base[i] != byte_of(left(), turn, i);
    CHECK(wrong == 0, "%d of %d bytes have not arrived after %s", wrong, (int)LARGEST, after);
}

/* The message that ends the epoch overtakes outstanding work of the device, unless the message
 * waits. The first connection of the device delays that work most. */
static void much_has_arrived_when_an_epoch_ends(enum window_kind kind)
{
    struct window window = window_make(kind, LARGEST, 1, MPI_COMM_WORLD);
    char *sent = malloc(LARGEST);
    const int to = right(), from = left();
    MPI_Group all, targets, origins;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &to, &targets);
    MPI_Group_incl(all, 1, &from, &origins);
    for (int turn = 0; turn < 12; turn += 4) {
        fill(sent, turn);
        CHECK_OK(MPI_Win_fence(0, window.win));
        CHECK_OK(MPI_Put(sent, LARGEST, MPI_BYTE, to, 0, LARGEST, MPI_BYTE, window.win));
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        expect_from_left(&window, turn, "a fence");
        fill(sent, turn + 1);
        CHECK_OK(MPI_Win_post(origins, 0, window.win));
        CHECK_OK(MPI_Win_start(targets, 0, window.win));
        CHECK_OK(MPI_Put(sent, LARGEST, MPI_BYTE, to, 0, LARGEST, MPI_BYTE, window.win));
        CHECK_OK(MPI_Win_complete(window.win));
        CHECK_OK(MPI_Win_wait(window.win));
        expect_from_left(&window, turn + 1, "complete and wait");
        barrier(MPI_COMM_WORLD);
        fill(sent, turn + 2);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win));
        CHECK_OK(MPI_Put(sent, LARGEST, MPI_BYTE, to, 0, LARGEST, MPI_BYTE, window.win));
        CHECK_OK(MPI_Win_unlock(to, window.win));
        barrier(MPI_COMM_WORLD);
        expect_from_left(&window, turn + 2, "unlock");
        barrier(MPI_COMM_WORLD);
        fill(sent, turn + 3);
        CHECK_OK(MPI_Win_lock_all(0, window.win));
        CHECK_OK(MPI_Put(sent, LARGEST, MPI_BYTE, to, 0, LARGEST, MPI_BYTE, window.win));
        CHECK_OK(MPI_Win_flush_all(window.win));
        barrier(MPI_COMM_WORLD);
        expect_from_left(&window, turn + 3, "flush_all");
        CHECK_OK(MPI_Win_unlock_all(window.win));
        barrier(MPI_COMM_WORLD);
    }
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
    MPI_Group_free(&all);
    window_free(&window);
    free(sent);
}

static const struct test_case cases[] = {
    CASE(much_has_arrived_when_an_epoch_ends, KINDS_BOTH, 2), /* first: no connection exists yet */
    CASE(the_device_carries_puts_and_gets, KINDS_BOTH, 2),
    CASE(atomics_of_all_add_up, KIND_ALLOCATE, 2),
    CASE(a_lock_lets_one_in, KIND_ALLOCATE, 2),
    CASE(fences_and_pscw_epochs_deliver_puts, KIND_ALLOCATE, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
