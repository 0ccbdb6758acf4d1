/* Windows and buffers in the memory of a GPU, against the same operations on host memory. */
#include "places.h"

#include "../mpi/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTS = 4096, BYTES = INTS * (int)sizeof(int), GUARD = 0x5a };

static int right(void)
{
    return (world_rank + 1) % world_size;
}

static void ints_fill(int *ints, int seed)
{
    for (int i = 0; i < INTS; i++)
        ints[i] = seed * 1000003 + i * 7;
}

static bool ints_equal(const int *got, const int *wanted, int count, const char *what)
{
    for (int i = 0; i < count; i++)
        if (!CHECK(got[i] == wanted[i], "%s: int %d is %d, not %d", what, i, got[i], wanted[i]))
            return false;
    return true;
}

/* A window over memory at a place. */
struct place_window {
    MPI_Win win;
    enum place place;
    void *memory;
};

static struct place_window place_window_make(enum place place)
{
    struct place_window window = {.place = place, .memory = place_alloc(place, BYTES)};
    int ints[INTS];
    memset(ints, GUARD, sizeof ints);
    place_write(place, window.memory, ints, sizeof ints);
    CHECK_OK(MPI_Win_create(window.memory, BYTES, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                            &window.win));
    window_watch(window.win);
    return window;
}

static void place_window_free(struct place_window *window)
{
    CHECK_OK(MPI_Win_free(&window->win));
    place_free(window->place, window->memory, BYTES);
}

/* Every place of the window with every place of the buffer. */
static void over_places(void (*run)(struct place_window *window, enum place buffer,
                                    const char *what))
{
    char what[60];
    for (enum place there = ON_HOST; there < PLACES; there++) {
        struct place_window window = place_window_make(there);
        for (enum place here = ON_HOST; here < PLACES; here++) {
            snprintf(what, sizeof what, "window %s, buffer %s", place_names[there],
                     place_names[here]);
            run(&window, here, what);
        }
        place_window_free(&window);
    }
}

static void put_get_at(struct place_window *window, enum place place, const char *what)
{
    static int sent[INTS], got[INTS];
    int *buffer = place_alloc(place, BYTES);
    ints_fill(sent, world_rank + 1);
    place_write(place, buffer, sent, BYTES);
    MPI_Win_fence(0, window->win);
    MPI_Put(buffer, INTS, MPI_INT, right(), 0, INTS, MPI_INT, window->win);
    MPI_Win_fence(0, window->win);
    ints_fill(sent, (world_rank + world_size - 1) % world_size + 1);
    place_read(window->place, got, window->memory, BYTES);
    ints_equal(got, sent, INTS, what);
    memset(got, GUARD, sizeof got);
    place_write(place, buffer, got, BYTES);
    MPI_Win_fence(0, window->win);
    MPI_Get(buffer + 8, INTS - 16, MPI_INT, right(), 4, INTS - 16, MPI_INT, window->win);
    MPI_Win_fence(0, window->win);
    ints_fill(sent, world_rank + 1);
    place_read(place, got, buffer, BYTES);
    ints_equal(got + 8, sent + 4, INTS - 16, what);
    CHECK(got[7] == 0x5a5a5a5a && got[INTS - 8] == 0x5a5a5a5a, "%s: wrote beyond the buffer", what);
    place_free(place, buffer, BYTES);
}

static void put_get(enum window_kind kind)
{
    (void)kind;
    over_places(put_get_at);
}

/* Buffers with more room than data: the rest of the buffer stays, also that of an item in part. */
static void room_at(struct place_window *window, enum place place, const char *what)
{
    enum { DATA = 20 };
    static int sent[INTS], before[INTS], got[INTS], wanted[INTS];
    MPI_Datatype vector;
    int *buffer = place_alloc(place, BYTES);
    MPI_Type_vector(5, 3, 8, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    ints_fill(sent, world_rank + 1);
    place_write(window->place, window->memory, sent, BYTES);
    ints_fill(sent, right() + 1);
    ints_fill(before, world_rank + 101);
    memcpy(wanted, before, sizeof wanted);
    for (int i = 0; i < DATA; i++) { /* 15 ints of an item, in runs of 3, and 5 of the next one */
        wanted[i] = wanted[1000 + i] = sent[100 + i];
        wanted[2000 + i / 15 * 35 + i % 15 / 3 * 8 + i % 3] = sent[100 + i];
        wanted[3000 + i / 15 * 35 + i % 15 / 3 * 8 + i % 3] = sent[100 + i];
    }
    place_write(place, buffer, before, BYTES);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window->win);
    MPI_Get(buffer, 900, MPI_INT, right(), 100, DATA, MPI_INT, window->win);
    MPI_Get_accumulate(NULL, 0, MPI_INT, buffer + 1000, 900, MPI_INT, right(), 100, DATA, MPI_INT,
                       MPI_NO_OP, window->win);
    MPI_Get(buffer + 2000, 10, vector, right(), 100, DATA, MPI_INT, window->win);
    MPI_Get_accumulate(NULL, 0, MPI_INT, buffer + 3000, 10, vector, right(), 100, DATA, MPI_INT,
                       MPI_NO_OP, window->win);
    MPI_Win_unlock(right(), window->win);
    place_read(place, got, buffer, BYTES);
    ints_equal(got, wanted, INTS, what);
    MPI_Type_free(&vector);
    place_free(place, buffer, BYTES);
    barrier(MPI_COMM_WORLD);
}

static void room(enum window_kind kind)
{
    (void)kind;
    over_places(room_at);
}

/* Every second of the first count of items, against the same on host memory. */
static void derived_at(struct place_window *window, enum place place, const char *what)
{
    static int sent[INTS], got[INTS], wanted[INTS];
    MPI_Datatype vector, list;
    int lengths[] = {3, 1, 5, 2}, offsets[] = {70, 2, 20, 40};
    int *buffer = place_alloc(place, BYTES);
    MPI_Type_vector(5, 3, 8, MPI_INT, &vector);
    MPI_Type_indexed(4, lengths, offsets, MPI_INT, &list);
    MPI_Type_commit(&vector);
    MPI_Type_commit(&list);
    ints_fill(sent, world_rank + 17);
    place_write(place, buffer, sent, BYTES);
    memset(got, GUARD, sizeof got);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window->win);
    MPI_Put(got, INTS, MPI_INT, right(), 0, INTS, MPI_INT, window->win);
    MPI_Win_flush(right(), window->win);
    MPI_Put(buffer, 3, vector, right(), 100, 45, MPI_INT, window->win);
    MPI_Put(buffer, 11, MPI_INT, right(), 400, 1, list, window->win);
    MPI_Put(buffer, 1, list, right(), 600, 1, list, window->win);
    MPI_Win_unlock(right(), window->win);
    memset(wanted, GUARD, sizeof wanted);
    for (int item = 0, at = 100; item < 3; item++)
        for (int run = 0; run < 5; run++)
            for (int i = 0; i < 3; i++)
                wanted[at++] = sent[item * 35 + run * 8 + i];
    for (int block = 0, at = 0; block < 4; block++)
        for (int i = 0; i < lengths[block]; i++) {
            wanted[400 + offsets[block] + i] = sent[at++];
            wanted[600 + offsets[block] + i] = sent[offsets[block] + i];
        }
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window->win);
    MPI_Get(got, INTS, MPI_INT, right(), 0, INTS, MPI_INT, window->win);
    MPI_Win_unlock(right(), window->win);
    ints_equal(got, wanted, INTS, what);
    memset(got, GUARD, sizeof got);
    place_write(place, buffer, got, BYTES);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window->win);
    MPI_Get(buffer + 200, 1, list, right(), 600, 1, list, window->win);
    MPI_Get(buffer + 1000, 3, vector, right(), 100, 45, MPI_INT, window->win);
    MPI_Win_unlock(right(), window->win);
    memset(wanted, GUARD, sizeof wanted);
    for (int block = 0; block < 4; block++)
        for (int i = 0; i < lengths[block]; i++)
            wanted[200 + offsets[block] + i] = sent[offsets[block] + i];
    for (int item = 0; item < 3; item++)
        for (int run = 0; run < 5; run++)
            for (int i = 0; i < 3; i++)
                wanted[1000 + item * 35 + run * 8 + i] = sent[item * 35 + run * 8 + i];
    place_read(place, got, buffer, BYTES);
    ints_equal(got, wanted, INTS, what);
    MPI_Type_free(&vector);
    MPI_Type_free(&list);
    place_free(place, buffer, BYTES);
    barrier(MPI_COMM_WORLD);
}

static void derived(enum window_kind kind)
{
    (void)kind;
    over_places(derived_at);
}

static void accumulates_at(struct place_window *window, enum place place, const char *what)
{
    static int ones[INTS], got[INTS], wanted[INTS];
    int *buffer = place_alloc(place, BYTES);
    int *result = place_alloc(place, BYTES);
    for (int i = 0; i < INTS; i++)
        ones[i] = i + 1;
    place_write(place, buffer, ones, BYTES);
    memset(got, 0, sizeof got);
    place_write(window->place, window->memory, got, BYTES);
    MPI_Win_fence(0, window->win);
    for (int rank = 0; rank < world_size; rank++)
        MPI_Accumulate(buffer, INTS, MPI_INT, rank, 0, INTS, MPI_INT, MPI_SUM, window->win);
    MPI_Win_fence(0, window->win);
    place_read(window->place, got, window->memory, BYTES);
    for (int i = 0; i < INTS; i++)
        wanted[i] = (i + 1) * world_size;
    ints_equal(got, wanted, INTS, what);
    MPI_Win_fence(0, window->win);
    if (world_rank == 0)
        MPI_Get_accumulate(buffer, 100, MPI_INT, result, 100, MPI_INT, right(), 10, 100, MPI_INT,
                           MPI_MAX, window->win);
    MPI_Win_fence(0, window->win);
    if (world_rank == 0) {
        place_read(place, got, result, 400);
        ints_equal(got, wanted + 10, 100, what);
    }
    place_free(place, buffer, BYTES);
    place_free(place, result, BYTES);
}

static void accumulates(enum window_kind kind)
{
    (void)kind;
    over_places(accumulates_at);
}

/* All ranks draw numbers from rank 0, some through device buffers: each number comes once. */
static void atomics_at(struct place_window *window, enum place place, const char *what)
{
    enum { DRAWS = 20 };
    int *buffers = place_alloc(place, 3 * sizeof(int));
    const int mine[3] = {1, 0, 0};
    int got[3], zero = 0, sum = 0, total = 0;
    place_write(place, buffers, mine, sizeof mine);
    place_write(window->place, window->memory, &zero, sizeof zero);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window->win);
    for (int i = 0; i < DRAWS; i++) {
        MPI_Fetch_and_op(buffers, buffers + 1, MPI_INT, 0, 0, MPI_SUM, window->win);
        MPI_Win_flush(0, window->win);
        place_read(place, got, buffers, sizeof got);
        sum += got[1];
        /* adds 1 by a swap */
        for (int seen = -1, wanted = 0; seen != wanted;) {
            MPI_Fetch_and_op(NULL, &wanted, MPI_INT, 0, 1, MPI_NO_OP, window->win);
            MPI_Win_flush(0, window->win);
            const int next[3] = {wanted + 1, wanted, -1};
            place_write(place, buffers, next, sizeof next);
            MPI_Compare_and_swap(buffers, buffers + 1, buffers + 2, MPI_INT, 0, 1, window->win);
            MPI_Win_flush(0, window->win);
            place_read(place, got, buffers, sizeof got);
            seen = got[2];
        }
        place_write(place, buffers, mine, sizeof mine);
    }
    MPI_Win_unlock_all(window->win);
    MPI_Reduce(&sum, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (world_rank == 0) {
        int count = DRAWS * world_size;
        int words[2];
        place_read(window->place, words, window->memory, sizeof words);
        CHECK(total == count * (count - 1) / 2, "%s: the numbers' sum is %d", what, total);
        CHECK(words[0] == count && words[1] - 0x5a5a5a5a == count * (1 + (int)place),
              "%s: %d and %d draws, not %d", what, words[0], words[1] - 0x5a5a5a5a, count);
    }
    place_free(place, buffers, 3 * sizeof(int));
    barrier(MPI_COMM_WORLD);
}

static void atomics(enum window_kind kind)
{
    (void)kind;
    over_places(atomics_at);
}

/* Two windows over one allocation, which is mapped once: the end of one does not end the other. */
static void one_allocation(enum window_kind kind)
{
    static int sent[INTS], got[INTS];
    (void)kind;
    for (enum place place = ON_DEVICE; place <= MAPPED; place++) {
        struct place_window window = place_window_make(place);
        MPI_Win second;
        CHECK_OK(MPI_Win_create(window.memory, BYTES, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                                &second));
        window_watch(second);
        for (int seed = 1; seed <= 2; seed++) {
            ints_fill(sent, seed);
            MPI_Win_fence(0, second);
            MPI_Put(sent, INTS, MPI_INT, right(), 0, INTS, MPI_INT, second);
            MPI_Win_fence(0, second);
            place_read(place, got, window.memory, BYTES);
            ints_equal(got, sent, INTS, seed == 1 ? "two windows" : "after one has ended");
            barrier(MPI_COMM_WORLD);
            if (seed == 1)
                CHECK_OK(MPI_Win_free(&window.win));
        }
        CHECK_OK(MPI_Win_free(&second));
        place_free(place, window.memory, BYTES);
    }
}

static const struct test_case cases[] = {
    CASE(put_get, KIND_ANY, 1),     CASE(room, KIND_ANY, 1),    CASE(derived, KIND_ANY, 1),
    CASE(accumulates, KIND_ANY, 1), CASE(atomics, KIND_ANY, 1), CASE(one_allocation, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
