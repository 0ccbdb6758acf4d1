/* Every form of an operation with windows and buffers in the memory of a GPU, dynamic windows, and
 * the extensions that refuse it. */
#include "device.h"
#include "places.h"

#include "../mpi/harness.h"

#include "oriel/ext.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGS = 64, BYTES = LONGS * 8 };

static int right(void)
{
    return (world_rank + 1) % world_size;
}

static int left(void)
{
    return (world_rank + world_size - 1) % world_size;
}

/* The window and buffers of a case: BYTES of each rank, and two buffers of BYTES. */
struct scene {
    enum place window_place, buffer_place;
    MPI_Win win;
    int64_t *memory, *origin, *result;
    char what[60];
};

static void longs_check(const struct scene *scene, const char *form, const int64_t *got,
                        int64_t first, int64_t step, int count)
{
    for (int i = 0; i < count; i++)
        if (!CHECK(got[i] == first + i * step, "%s, %s: element %d is %lld, not %lld", scene->what,
                   form, i, (long long)got[i], (long long)(first + i * step)))
            return;
}

/* first, first + step, ... */
static void longs_set(int64_t *longs, int64_t first, int64_t step)
{
    for (int i = 0; i < LONGS; i++)
        longs[i] = first + i * step;
}

static void origin_set(const struct scene *scene, int64_t first, int64_t step)
{
    int64_t longs[LONGS];
    longs_set(longs, first, step);
    place_write(scene->buffer_place, scene->origin, longs, BYTES);
}

static void memory_set(const struct scene *scene, int64_t first, int64_t step)
{
    int64_t longs[LONGS];
    longs_set(longs, first, step);
    place_write(scene->window_place, scene->memory, longs, BYTES);
}

static void memory_check(const struct scene *scene, const char *form, int64_t first, int64_t step,
                         int count)
{
    int64_t longs[LONGS];
    place_read(scene->window_place, longs, scene->memory, BYTES);
    longs_check(scene, form, longs, first, step, count);
}

static void result_check(const struct scene *scene, const char *form, int64_t first, int64_t step,
                         int count)
{
    int64_t longs[LONGS];
    place_read(scene->buffer_place, longs, scene->result, BYTES);
    longs_check(scene, form, longs, first, step, count);
}

static struct scene scene_make(enum place window_place, enum place buffer_place)
{
    struct scene scene = {.window_place = window_place, .buffer_place = buffer_place};
    MPI_Info info;
    snprintf(scene.what, sizeof scene.what, "window %s, buffer %s", place_names[window_place],
             place_names[buffer_place]);
    scene.memory = place_alloc(window_place, BYTES);
    scene.origin = place_alloc(buffer_place, BYTES);
    scene.result = place_alloc(buffer_place, BYTES);
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "2");
    CHECK_OK(MPI_Win_create(scene.memory, BYTES, 8, info, MPI_COMM_WORLD, &scene.win));
    MPI_Info_free(&info);
    window_watch(scene.win);
    return scene;
}

static void scene_free(struct scene *scene)
{
    CHECK_OK(MPI_Win_free(&scene->win));
    place_free(scene->window_place, scene->memory, BYTES);
    place_free(scene->buffer_place, scene->origin, BYTES);
    place_free(scene->buffer_place, scene->result, BYTES);
}

/* Windows that other ranks map, and that only their owner accesses. */
static void over_scenes(void (*run)(struct scene *scene))
{
    static const enum place windows[] = {ON_DEVICE, PRIVATE, MANAGED, ON_HOST};
    static const enum place buffers[] = {ON_DEVICE, ON_HOST};
    for (unsigned w = 0; w < COUNT_OF(windows); w++)
        for (unsigned b = 0; b < COUNT_OF(buffers); b++) {
            if (windows[w] == ON_HOST && buffers[b] == ON_HOST)
                continue;
            struct scene scene = scene_make(windows[w], buffers[b]);
            run(&scene);
            scene_free(&scene);
        }
}

static void waitall(MPI_Request *requests, int count)
{
    MPI_Status statuses[5];
    MPI_Waitall(count, requests, statuses);
}

static void requests_at(struct scene *scene)
{
    MPI_Request requests[2];
    origin_set(scene, 1000 * world_rank, 1);
    memory_set(scene, 0, 0);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, scene->win);
    MPI_Rput(scene->origin, 32, MPI_INT64_T, right(), 0, 32, MPI_INT64_T, scene->win, requests);
    MPI_Raccumulate(scene->origin, 32, MPI_INT64_T, right(), 32, 32, MPI_INT64_T, MPI_SUM,
                    scene->win, requests + 1);
    waitall(requests, 2);
    MPI_Win_flush(right(), scene->win);
    MPI_Rget(scene->result, 64, MPI_INT64_T, right(), 0, 64, MPI_INT64_T, scene->win, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    result_check(scene, "MPI_Rput", 1000 * world_rank, 1, 32);
    MPI_Rget_accumulate(scene->origin, 32, MPI_INT64_T, scene->result, 32, MPI_INT64_T, right(), 32,
                        32, MPI_INT64_T, MPI_SUM, scene->win, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    result_check(scene, "MPI_Rget_accumulate", 1000 * world_rank, 1, 32);
    MPIX_Rfetch_and_op(scene->origin + 1, scene->result + 1, MPI_INT64_T, right(), 0, MPI_REPLACE,
                       scene->win, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPIX_Rcompare_and_swap(scene->origin + 2, scene->origin + 1, scene->result, MPI_INT64_T,
                           right(), 1, scene->win, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    result_check(scene, "MPIX_Rcompare_and_swap", 1000 * world_rank + 1, -1, 2);
    MPI_Win_unlock_all(scene->win);
    barrier(MPI_COMM_WORLD);
    memory_check(scene, "after the requests", 1000 * left() + 1, 1, 2);
    barrier(MPI_COMM_WORLD);
}

static void requests(enum window_kind kind)
{
    (void)kind;
    over_scenes(requests_at);
}

static void extensions_at(struct scene *scene)
{
    MPI_Request requests[5];
    MPI_Aint disps[LONGS];
    int64_t words[4];
    origin_set(scene, 10 * world_rank, 1);
    memory_set(scene, 0, 0);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, scene->win);
    MPIX_Put_notify(scene->origin, 8, MPI_INT64_T, right(), 0, 8, MPI_INT64_T, 0, scene->win);
    MPIX_Accumulate_notify(scene->origin, 8, MPI_INT64_T, right(), 8, 8, MPI_INT64_T, MPI_SUM, 1,
                           scene->win);
    MPIX_Win_notify_wait(scene->win, 0, 1);
    MPIX_Win_notify_wait(scene->win, 1, 1);
    memory_check(scene, "MPIX_Put_notify", 10 * left(), 1, 8);
    MPI_Win_flush_all(scene->win);
    MPIX_Get_notify(scene->result, 8, MPI_INT64_T, right(), 8, 8, MPI_INT64_T, 1, scene->win);
    MPI_Win_flush_all(scene->win);
    MPIX_Win_notify_wait(scene->win, 1, 1);
    result_check(scene, "MPIX_Get_notify", 10 * world_rank, 1, 8);

    MPIX_Put_init(scene->origin, 8, MPI_INT64_T, right(), 16, 8, MPI_INT64_T, scene->win,
                  &requests[0]);
    MPIX_Accumulate_init(scene->origin, 8, MPI_INT64_T, right(), 24, 8, MPI_INT64_T, MPI_SUM,
                         scene->win, &requests[1]);
    MPIX_Get_accumulate_init(scene->origin, 8, MPI_INT64_T, scene->result + 8, 8, MPI_INT64_T,
                             right(), 32, 8, MPI_INT64_T, MPI_SUM, scene->win, &requests[2]);
    MPIX_Fetch_and_op_init(scene->origin + 1, scene->result + 16, MPI_INT64_T, right(), 40, MPI_SUM,
                           scene->win, &requests[3]);
    MPIX_Get_init(scene->result, 8, MPI_INT64_T, right(), 16, 8, MPI_INT64_T, scene->win,
                  &requests[4]);
    for (int round = 1; round <= 2; round++) {
        origin_set(scene, 10 * world_rank + round, 1);
        MPI_Startall(4, requests);
        waitall(requests, 4);
        MPI_Win_flush_all(scene->win);
        MPI_Start(&requests[4]);
        MPI_Wait(&requests[4], MPI_STATUS_IGNORE);
        result_check(scene, "MPIX_Put_init", 10 * world_rank + round, 1, 8);
    }
    for (int i = 0; i < 5; i++)
        MPI_Request_free(&requests[i]);
    place_read(scene->buffer_place, words, scene->result + 8, sizeof words);
    longs_check(scene, "MPIX_Get_accumulate_init", words, 10 * world_rank + 1, 1, 4);
    place_read(scene->buffer_place, words, scene->result + 16, sizeof words[0]);
    longs_check(scene, "MPIX_Fetch_and_op_init", words, 10 * world_rank + 2, 1, 1);

    origin_set(scene, 1, 0);
    for (int i = 0; i < 16; i++)
        disps[i] = 40 + i % 8;
    barrier(MPI_COMM_WORLD);
    MPI_Accumulate(scene->origin, 1, MPI_INT64_T, right(), 40, 1, MPI_INT64_T, MPI_REPLACE,
                   scene->win);
    MPI_Win_flush_all(scene->win);
    MPIX_Fetch_and_op_list(scene->origin, scene->result, 16, MPI_INT64_T, right(), disps, MPI_SUM,
                           scene->win);
    MPI_Win_flush_all(scene->win);
    MPIX_Fetch_and_op_list(scene->origin, scene->result, 0, MPI_INT64_T, right(), disps, MPI_SUM,
                           scene->win);
    MPI_Win_flush_all(scene->win);
    place_read(scene->buffer_place, words, scene->result + 7, sizeof words);
    CHECK(words[0] == 0 && words[1] == 2 && words[2] == 1 && words[3] == 1,
          "%s: MPIX_Fetch_and_op_list gave %lld %lld %lld %lld", scene->what, (long long)words[0],
          (long long)words[1], (long long)words[2], (long long)words[3]);

    const int64_t swapped[] = {3, 2, 77, 78};
    place_write(scene->buffer_place, scene->origin, swapped, sizeof swapped);
    MPIX_Compare_and_swap_128(scene->origin + 2, scene->origin, scene->result, right(), 40,
                              scene->win);
    MPI_Win_flush_all(scene->win);
    place_read(scene->buffer_place, words, scene->result, 16);
    longs_check(scene, "the result of MPIX_Compare_and_swap_128", words, 3, -1, 2);
    MPI_Win_unlock_all(scene->win);
    barrier(MPI_COMM_WORLD);
    place_read(scene->window_place, words, scene->memory + 40, 16);
    longs_check(scene, "MPIX_Compare_and_swap_128", words, 77, 1, 2);
    barrier(MPI_COMM_WORLD);
}

static void extensions(enum window_kind kind)
{
    (void)kind;
    if (!through_oriel()) {
        harness_skip("the host has no extensions");
        return;
    }
    over_scenes(extensions_at);
}

/* A put, its read by a get, in each kind of epoch. Pairs with gaps between them too. */
static void epochs_at(struct scene *scene)
{
    MPI_Group world, to, from;
    int rank_right = right(), rank_left = left();
    const struct {
        double value;
        int index;
    } mine[2] = {{world_rank + 0.5, world_rank}, {-1, 3}};
    memory_set(scene, 0, 0);
    origin_set(scene, 7 + world_rank, 1);
    barrier(MPI_COMM_WORLD);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &rank_right, &to);
    MPI_Group_incl(world, 1, &rank_left, &from);
    MPI_Win_post(from, 0, scene->win);
    MPI_Win_start(to, 0, scene->win);
    MPI_Put(scene->origin, 8, MPI_INT64_T, right(), 0, 8, MPI_INT64_T, scene->win);
    MPI_Win_complete(scene->win);
    MPI_Win_wait(scene->win);
    memory_check(scene, "post, start, complete, wait", 7 + left(), 1, 8);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, scene->win);
    MPI_Put(scene->origin, 8, MPI_INT64_T, right(), 1, 8, MPI_INT64_T, scene->win);
    MPI_Win_flush_local(right(), scene->win);
    origin_set(scene, 100 + world_rank, 1);
    MPI_Put(scene->origin, 8, MPI_INT64_T, right(), 9, 8, MPI_INT64_T, scene->win);
    MPI_Win_flush(right(), scene->win);
    MPI_Get(scene->result, 16, MPI_INT64_T, right(), 1, 16, MPI_INT64_T, scene->win);
    MPI_Win_unlock(right(), scene->win);
    result_check(scene, "lock, flush, unlock", 7 + world_rank, 1, 8);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, scene->win);
    place_write(scene->buffer_place, scene->origin, mine, sizeof mine);
    for (int rank = 0; rank < world_size; rank++)
        MPI_Accumulate(scene->origin, 2, MPI_DOUBLE_INT, rank, 32, 2, MPI_DOUBLE_INT, MPI_MAXLOC,
                       scene->win);
    MPI_Win_fence(0, scene->win);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE_INT, scene->result, 2, MPI_DOUBLE_INT, right(), 32, 2,
                       MPI_DOUBLE_INT, MPI_NO_OP, scene->win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, scene->win);
    struct {
        double value;
        int index;
    } got[2];
    place_read(scene->buffer_place, got, scene->result, sizeof got);
    CHECK(got[0].value == world_size - 0.5 && got[0].index == world_size - 1 && got[1].value == 0,
          "%s: MPI_MAXLOC gave %g %d, %g %d", scene->what, got[0].value, got[0].index, got[1].value,
          got[1].index);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Group_free(&world);
}

static void epochs(enum window_kind kind)
{
    (void)kind;
    over_scenes(epochs_at);
}

/* Absolute addresses of a buffer in device memory, and a target's in a dynamic window. */
struct attached {
    enum place place;
    int64_t *memory;
    MPI_Aint addresses[8]; /* of all ranks */
};

static struct attached attach(MPI_Win win, enum place place)
{
    struct attached attached = {place, place_alloc(place, BYTES), {0}};
    MPI_Aint own;
    int64_t longs[LONGS];
    longs_set(longs, 0, 0);
    place_write(place, attached.memory, longs, BYTES);
    CHECK_OK(MPI_Win_attach(win, attached.memory, BYTES));
    MPI_Get_address(attached.memory, &own);
    MPI_Allgather(&own, 1, MPI_AINT, attached.addresses, 1, MPI_AINT, MPI_COMM_WORLD);
    return attached;
}

static void attached_check(const struct attached *attached, const char *form, int at, int64_t first,
                           int count)
{
    int64_t longs[LONGS];
    place_read(attached->place, longs, attached->memory, BYTES);
    for (int i = 0; i < count; i++)
        if (!CHECK(longs[at + i] == first + i, "%s, %s: element %d is %lld, not %lld",
                   place_names[attached->place], form, at + i, (long long)longs[at + i],
                   (long long)(first + i)))
            return;
}

static const enum place attached_places[] = {ON_HOST, ON_DEVICE, MAPPED, PRIVATE, MANAGED};
enum { ATTACHED = COUNT_OF(attached_places) };

static void regions_one_by_one(MPI_Win win, const struct attached *attached, int64_t *origin,
                               int64_t *result, enum place buffer)
{
    int64_t longs[LONGS];
    for (int i = 0; i < ATTACHED; i++) {
        const MPI_Aint at = attached[i].addresses[right()];
        longs_set(longs, 100 * i + world_rank, 1);
        place_write(buffer, origin, longs, BYTES);
        MPI_Put(origin, 8, MPI_INT64_T, right(), at, 8, MPI_INT64_T, win);
        MPI_Accumulate(origin, 8, MPI_INT64_T, right(), MPI_Aint_add(at, 64), 8, MPI_INT64_T,
                       MPI_SUM, win);
        MPI_Fetch_and_op(origin, result, MPI_INT64_T, right(), MPI_Aint_add(at, 128), MPI_SUM, win);
        MPI_Win_flush(right(), win);
        MPI_Get(result, 17, MPI_INT64_T, right(), at, 17, MPI_INT64_T, win);
        MPI_Win_flush(right(), win);
        place_read(buffer, longs, result, BYTES);
        for (int j = 0; j < 17; j++)
            CHECK(longs[j] == 100 * i + world_rank + j % 8, "%s: element %d is %lld",
                  place_names[attached[i].place], j, (long long)longs[j]);
    }
}

/* One put to all regions, and one get. */
static void regions_at_once(MPI_Win win, const struct attached *attached, int64_t *origin,
                            int64_t *result, enum place buffer)
{
    MPI_Aint addresses[ATTACHED];
    int lengths[ATTACHED];
    MPI_Datatype all;
    int64_t longs[LONGS];
    for (int i = 0; i < ATTACHED; i++) {
        addresses[i] = MPI_Aint_add(attached[i].addresses[right()], 256);
        lengths[i] = 2 + i;
    }
    MPI_Type_create_hindexed(ATTACHED, lengths, addresses, MPI_INT64_T, &all);
    MPI_Type_commit(&all);
    longs_set(longs, 1000 + world_rank, 1);
    place_write(buffer, origin, longs, BYTES);
    MPI_Put(origin, 20, MPI_INT64_T, right(), 0, 1, all, win);
    MPI_Win_flush(right(), win);
    MPI_Get(result, 20, MPI_INT64_T, right(), 0, 1, all, win);
    MPI_Win_flush(right(), win);
    place_read(buffer, longs, result, BYTES);
    for (int i = 0; i < 20; i++)
        CHECK(longs[i] == 1000 + world_rank + i, "a get of all regions: element %d is %lld", i,
              (long long)longs[i]);
    MPI_Accumulate(origin, 20, MPI_INT64_T, right(), 0, 1, all, MPI_SUM, win);
    MPI_Win_flush(right(), win);
    MPI_Type_free(&all);
}

static void dynamic(enum window_kind kind)
{
    MPI_Win win;
    struct attached attached[ATTACHED];
    (void)kind;
    device_open();
    CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    window_watch(win);
    for (int i = 0; i < ATTACHED; i++)
        attached[i] = attach(win, attached_places[i]);
    for (int buffer = ON_HOST; buffer <= ON_DEVICE; buffer++) {
        int64_t *origin = place_alloc(buffer, BYTES), *result = place_alloc(buffer, BYTES);
        int64_t zeros[LONGS] = {0};
        for (int i = 0; i < ATTACHED; i++)
            place_write(attached[i].place, attached[i].memory, zeros, BYTES);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, win);
        regions_one_by_one(win, attached, origin, result, buffer);
        regions_at_once(win, attached, origin, result, buffer);
        MPI_Win_unlock_all(win);
        barrier(MPI_COMM_WORLD);
        for (int i = 0, at = 0; i < ATTACHED; at += 2 + i++) {
            int64_t longs[LONGS];
            attached_check(&attached[i], "a put to one region", 0, 100 * i + left(), 8);
            place_read(attached[i].place, longs, attached[i].memory, BYTES);
            CHECK(longs[32] == 2 * (1000 + left() + at), "%s: an operation on all regions: %lld",
                  place_names[attached[i].place], (long long)longs[32]);
        }
        place_free(buffer, origin, BYTES);
        place_free(buffer, result, BYTES);
        barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < ATTACHED; i++)
        CHECK_OK(MPI_Win_detach(win, attached[i].memory));
    CHECK_OK(MPI_Win_free(&win));
    for (int i = 0; i < ATTACHED; i++)
        place_free(attached[i].place, attached[i].memory, BYTES);
}

/* Accumulates over the end of one of two attached memories, which are next to each other in their
 * owner only. */
static void adjacent(enum window_kind kind)
{
    enum { HALF = LONGS / 2 };
    size_t first_bytes;
    char *two = device_map_two(BYTES, &first_bytes);
    int64_t *origin = device_alloc(BYTES), *result = device_alloc(BYTES), longs[LONGS];
    char *middle = two + first_bytes - BYTES / 2; /* half of the elements are before the end */
    MPI_Aint own, all[8];
    MPI_Win win;
    (void)kind;
    CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    window_watch(win);
    CHECK_OK(MPI_Win_attach(win, two, (MPI_Aint)first_bytes));
    CHECK_OK(MPI_Win_attach(win, two + first_bytes, (MPI_Aint)first_bytes));
    longs_set(longs, 0, 0);
    device_write(middle, longs, BYTES / 2);
    device_write(middle + BYTES / 2, longs, BYTES / 2);
    device_write(result, longs, BYTES);
    longs_set(longs, 1000 * world_rank, 1);
    device_write(origin, longs, BYTES);
    MPI_Get_address(middle, &own);
    MPI_Allgather(&own, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Accumulate(origin, LONGS, MPI_INT64_T, right(), all[right()], LONGS, MPI_INT64_T,
                   MPI_REPLACE, win);
    MPI_Accumulate(origin, LONGS, MPI_INT64_T, right(), all[right()], LONGS, MPI_INT64_T, MPI_SUM,
                   win);
    MPI_Get_accumulate(NULL, 0, MPI_INT64_T, result, LONGS, MPI_INT64_T, right(), all[right()],
                       LONGS, MPI_INT64_T, MPI_NO_OP, win);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    device_read(longs, result, BYTES);
    for (int i = 0; i < LONGS; i++)
        CHECK(longs[i] == 2 * (1000 * world_rank + i), "MPI_Get_accumulate: element %d is %lld", i,
              (long long)longs[i]);
    device_read(longs, middle, BYTES / 2);
    device_read(longs + HALF, middle + BYTES / 2, BYTES / 2);
    for (int i = 0; i < LONGS; i++)
        CHECK(longs[i] == 2 * (1000 * left() + i), "MPI_Accumulate: element %d is %lld", i,
              (long long)longs[i]);
    CHECK_OK(MPI_Win_detach(win, two));
    CHECK_OK(MPI_Win_detach(win, two + first_bytes));
    CHECK_OK(MPI_Win_free(&win));
    device_free(origin);
    device_free(result);
}

/* The driver may give new memory the address of freed memory. */
static void reused(enum window_kind kind)
{
    enum { ROUNDS = 4 };
    int64_t sent[LONGS], got[LONGS];
    (void)kind;
    device_open();
    for (int round = 0; round < ROUNDS; round++) {
        const enum place place = round % 2 == 0 ? ON_DEVICE : MAPPED;
        int64_t *memory = place_alloc(place, BYTES);
        MPI_Win win;
        CHECK_OK(MPI_Win_create(memory, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        window_watch(win);
        longs_set(sent, 50 * round + world_rank, 1);
        MPI_Win_fence(0, win);
        MPI_Put(sent, LONGS, MPI_INT64_T, right(), 0, LONGS, MPI_INT64_T, win);
        MPI_Win_fence(0, win);
        place_read(place, got, memory, BYTES);
        CHECK(got[5] == 50 * round + left() + 5, "round %d: %lld", round, (long long)got[5]);
        CHECK_OK(MPI_Win_free(&win));
        place_free(place, memory, BYTES);
    }
}

/* A buffer at the address of a shorter one, which was used and freed. */
static void regrown(enum window_kind kind)
{
    struct scene scene = scene_make(ON_DEVICE, ON_HOST);
    bool is_reused = false;
    (void)kind;
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, scene.win);
    for (int round = 0; round < 8 && !is_reused; round++) {
        char *shorter = device_alloc(8);
        CHECK_OK(MPI_Put(shorter, 8, MPI_BYTE, right(), 0, 8, MPI_BYTE, scene.win));
        MPI_Win_flush(right(), scene.win);
        device_free(shorter);
        char *longer = device_alloc(BYTES);
        is_reused = longer == shorter;
        CHECK_OK(MPI_Put(longer, BYTES, MPI_BYTE, right(), 0, BYTES, MPI_BYTE, scene.win));
        MPI_Win_flush(right(), scene.win);
        device_free(longer);
    }
    MPI_Win_unlock(right(), scene.win);
    scene_free(&scene);
}

static void absolute(enum window_kind kind)
{
    struct scene scene = scene_make(ON_DEVICE, ON_DEVICE);
    MPI_Aint addresses[2];
    const int lengths[] = {4, 4};
    MPI_Datatype type;
    (void)kind;
    MPI_Get_address(scene.origin + 20, &addresses[0]);
    MPI_Get_address(scene.origin + 2, &addresses[1]);
    MPI_Type_create_hindexed(2, lengths, addresses, MPI_INT64_T, &type);
    MPI_Type_commit(&type);
    origin_set(&scene, 0, 1);
    MPI_Win_fence(0, scene.win);
    MPI_Put(MPI_BOTTOM, 1, type, right(), 0, 8, MPI_INT64_T, scene.win);
    MPI_Win_fence(0, scene.win);
    memory_check(&scene, "MPI_BOTTOM", 20, 1, 4);
    origin_set(&scene, 0, 0);
    MPI_Get(MPI_BOTTOM, 1, type, right(), 0, 8, MPI_INT64_T, scene.win);
    MPI_Win_fence(0, scene.win);
    MPI_Accumulate(MPI_BOTTOM, 1, type, right(), 32, 8, MPI_INT64_T, MPI_REPLACE, scene.win);
    MPI_Win_fence(0, scene.win);
    int64_t longs[LONGS];
    place_read(scene.buffer_place, longs, scene.origin, BYTES);
    CHECK(longs[2] == 2 && longs[5] == 5 && longs[20] == 20 && longs[6] == 0,
          "a get to MPI_BOTTOM: %lld %lld %lld %lld", (long long)longs[2], (long long)longs[5],
          (long long)longs[20], (long long)longs[6]);
    MPI_Type_free(&type);
    scene_free(&scene);
}

static void refused(enum window_kind kind)
{
    struct scene scene = scene_make(ON_DEVICE, ON_DEVICE);
    MPIX_Memory_handle handle;
    int64_t value = 1;
    int flag;
    (void)kind;
    if (through_oriel()) {
        MPI_Win_set_errhandler(scene.win, MPI_ERRORS_RETURN);
        CHECK_CLASS(MPI_ERR_UNSUPPORTED_OPERATION,
                    MPIX_Win_memory_handle_create(scene.win, 1, 8, &handle));
        CHECK(strstr(oriel_error_text(), "GPU") != NULL, "%s", oriel_error_text());
        CHECK_CLASS(MPI_ERR_UNSUPPORTED_OPERATION,
                    MPIX_Win_wait_until(scene.win, 1, MPI_INT64_T, MPIX_CMP_EQ, &value));
        CHECK(strstr(oriel_error_text(), "device memory") != NULL, "%s", oriel_error_text());
        CHECK_CLASS(MPI_ERR_UNSUPPORTED_OPERATION,
                    MPIX_Win_test_until(scene.win, 1, MPI_INT64_T, MPIX_CMP_EQ, &value, &flag));
        window_watch(scene.win);
    }
    scene_free(&scene);
}

static const struct test_case cases[] = {
    CASE(requests, KIND_ANY, 1), CASE(extensions, KIND_ANY, 1), CASE(epochs, KIND_ANY, 1),
    CASE(dynamic, KIND_ANY, 1),  CASE(adjacent, KIND_ANY, 1),   CASE(reused, KIND_ANY, 1),
    CASE(regrown, KIND_ANY, 1),  CASE(absolute, KIND_ANY, 1),   CASE(refused, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
