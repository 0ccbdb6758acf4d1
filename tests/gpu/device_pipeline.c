/* Puts and gets between nodes with large buffers in device memory, which pass through a few pinned
 * buffers: sizes around theirs, datatypes, several threads, errors in the middle, and how much
 * memory is used. The stand-in delays what is on a stream, so a buffer that is used too early has
 * wrong bytes. */
#include "device.h"
#include "places.h"

#include "../mpi/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* As in src/rma/device_pipeline.h; other sizes would only test less. */
enum { PART_BYTES = 4 * (63 << 10), BUFFERS = 4, MOST_BYTES = 10 * PART_BYTES, GUARD = 0x5a };

static int right(void)
{
    return (world_rank + 1) % world_size;
}

static int left(void)
{
    return (world_rank + world_size - 1) % world_size;
}

/* Whether each rank is a node of its own. */
static bool ranks_are_nodes(void)
{
    int size, most;
    MPI_Comm node = node_comm();
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    MPI_Allreduce(&size, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return most == 1;
}

/* Bytes that differ from those at other places and of other seeds. */
static void bytes_fill(char *bytes, size_t len_bytes, int seed)
{
    for (size_t i = 0; i < len_bytes; i += 4) {
        const uint32_t word = ((uint32_t)i + (uint32_t)seed * 100000007U) * 2654435761U;
        memcpy(bytes + i, &word, len_bytes - i < 4 ? len_bytes - i : 4);
    }
}

static bool bytes_equal(const char *got, const char *wanted, size_t len_bytes, const char *what)
{
    size_t at = 0;
    if (memcmp(got, wanted, len_bytes) == 0)
        return true;
    while (got[at] == wanted[at])
        at++;
    return CHECK(false, "%s: byte %zu of %zu is %d, not %d", what, at, len_bytes,
                 (unsigned char)got[at], (unsigned char)wanted[at]);
}

/* The last call must have given the class, with a sentence that has these words. */
static void error_check(int code, int wanted_class, const char *call, const char *word)
{
    int class = MPI_SUCCESS;
    char rank[20];
    snprintf(rank, sizeof rank, "rank %d", right());
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    const char *text = oriel_error_text();
    CHECK(class == wanted_class, "%s gave class %d, not %d: %s", call, class, wanted_class, text);
    CHECK(strstr(text, word) != NULL && strstr(text, rank) != NULL && strstr(text, call) != NULL,
          "%s: the message has not \"%s\" and \"%s\": %s", call, word, rank, text);
}

static MPI_Win window_over(void *memory, size_t size_bytes)
{
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_create(memory, (MPI_Aint)size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    window_watch(win);
    return win;
}

/* --- sizes --- */

/* A window of MOST_BYTES, a buffer in device memory, and host memory for what is wanted and got. */
struct scene {
    MPI_Win win;
    enum place place;
    char *memory, *buffer, *wanted, *got;
};

static struct scene scene_make(enum place place)
{
    struct scene scene = {.place = place,
                          .memory = place_alloc(place, MOST_BYTES),
                          .buffer = device_alloc(MOST_BYTES),
                          .wanted = malloc(MOST_BYTES),
                          .got = malloc(MOST_BYTES)};
    scene.win = window_over(scene.memory, MOST_BYTES);
    return scene;
}

static void scene_free(struct scene *scene)
{
    CHECK_OK(MPI_Win_free(&scene->win));
    place_free(scene->place, scene->memory, MOST_BYTES);
    device_free(scene->buffer);
    free(scene->wanted);
    free(scene->got);
}

static void memory_guard(const struct scene *scene)
{
    memset(scene->got, GUARD, MOST_BYTES);
    place_write(scene->place, scene->memory, scene->got, MOST_BYTES);
    barrier(MPI_COMM_WORLD);
}

/* The window has this rank's bytes of a seed from a byte on, and none elsewhere. */
static void memory_check(const struct scene *scene, size_t at, size_t len_bytes, int seed,
                         const char *what)
{
    memset(scene->wanted, GUARD, MOST_BYTES);
    bytes_fill(scene->wanted + at, len_bytes, seed);
    place_read(scene->place, scene->got, scene->memory, MOST_BYTES);
    bytes_equal(scene->got, scene->wanted, MOST_BYTES, what);
    barrier(MPI_COMM_WORLD);
}

static void buffer_set(const struct scene *scene, size_t at, size_t len_bytes, int seed)
{
    memset(scene->wanted, GUARD, MOST_BYTES);
    bytes_fill(scene->wanted + at, len_bytes, seed);
    device_write(scene->buffer, scene->wanted, MOST_BYTES);
}

static void buffer_check(const struct scene *scene, size_t at, size_t len_bytes, int seed,
                         const char *what)
{
    memset(scene->wanted, GUARD, MOST_BYTES);
    bytes_fill(scene->wanted + at, len_bytes, seed);
    device_read(scene->got, scene->buffer, MOST_BYTES);
    bytes_equal(scene->got, scene->wanted, MOST_BYTES, what);
}

static void size_at(const struct scene *scene, size_t len_bytes)
{
    char what[80];
    MPI_Request request;
    const int count = (int)len_bytes, seed = (int)len_bytes + 1;
    snprintf(what, sizeof what, "put of %zu bytes, window %s", len_bytes,
             place_names[scene->place]);
    memory_guard(scene);
    buffer_set(scene, 5, len_bytes, seed + world_rank);
    MPI_Win_fence(0, scene->win);
    MPI_Put(scene->buffer + 5, count, MPI_BYTE, right(), 3, count, MPI_BYTE, scene->win);
    MPI_Win_fence(0, scene->win);
    memory_check(scene, 3, len_bytes, seed + left(), what);
    buffer_set(scene, 0, 0, 0);
    memcpy(what, "get", 3);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, scene->win);
    MPI_Rget(scene->buffer + 9, count, MPI_BYTE, right(), 3, count, MPI_BYTE, scene->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    buffer_check(scene, 9, len_bytes, seed + world_rank, what);
    MPI_Win_unlock(right(), scene->win);
    barrier(MPI_COMM_WORLD);
}

static void sizes(enum window_kind kind)
{
    static const size_t list[] = {
        0,
        1,
        PART_BYTES - 1,
        PART_BYTES,
        PART_BYTES + 1,
        2 * PART_BYTES,
        BUFFERS * PART_BYTES - 1,
        BUFFERS * PART_BYTES,
        (BUFFERS + 1) * PART_BYTES + 1,
        (2 * BUFFERS + 1) * PART_BYTES + 12345,
    };
    (void)kind;
    for (enum place place = ON_HOST; place <= ON_DEVICE; place++) {
        struct scene scene = scene_make(place);
        for (unsigned i = 0; i < COUNT_OF(list); i++)
            size_at(&scene, list[i]);
        scene_free(&scene);
    }
}

/* The driver refuses to pin the buffers: one message, and nothing else is different. */
static void not_pinned(enum window_kind kind)
{
    uint64_t pinned = 1;
    char text[1 << 14];
    (void)kind;
    if (getenv("STANDIN_FAIL") == NULL) {
        harness_skip("the driver does not refuse");
        return;
    }
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    struct scene scene = scene_make(ON_HOST);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    size_at(&scene, 3 * PART_BYTES);
    size_at(&scene, 6 * PART_BYTES);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    int said = 0, all = 0; /* one rank speaks for all that say the same */
    for (const char *at = text; (at = strstr(at, "NOT_SUPPORTED")) != NULL; said++)
        at = strstr(at, "[O33]") != NULL ? strstr(at, "[O33]") : text + strlen(text);
    MPI_Allreduce(&said, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == 1, "%d messages, here: %s", all, text);
    CHECK(device_counted("standinPinned", &pinned) && pinned == 0, "memory is pinned");
    scene_free(&scene);
    fclose(file);
}

/* Windows that RDMA devices reach, where there are any. */
static void allocated(enum window_kind kind)
{
    struct scene scene = {.place = ON_HOST,
                          .buffer = device_alloc(MOST_BYTES),
                          .wanted = malloc(MOST_BYTES),
                          .got = malloc(MOST_BYTES)};
    (void)kind;
    CHECK_OK(
        MPI_Win_allocate(MOST_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &scene.memory, &scene.win));
    window_watch(scene.win);
    size_at(&scene, PART_BYTES + 1);
    size_at(&scene, (BUFFERS + 2) * PART_BYTES + 77);
    CHECK_OK(MPI_Win_free(&scene.win));
    device_free(scene.buffer);
    free(scene.wanted);
    free(scene.got);
}

/* --- completion --- */

/* A buffer is the program's again after a local flush, and the bytes are at the target after the
 * flush. */
static void completion(enum window_kind kind)
{
    enum { LEN_BYTES = 5 * PART_BYTES + 77 };
    MPI_Request request;
    (void)kind;
    for (enum place place = ON_HOST; place <= ON_DEVICE; place++) {
        struct scene scene = scene_make(place);
        memory_guard(&scene);
        MPI_Win_lock_all(0, scene.win);
        buffer_set(&scene, 0, LEN_BYTES, 1 + world_rank);
        MPI_Put(scene.buffer, LEN_BYTES, MPI_BYTE, right(), 0, LEN_BYTES, MPI_BYTE, scene.win);
        MPI_Win_flush_local(right(), scene.win);
        device_fill(scene.buffer, 0, MOST_BYTES);
        MPI_Win_flush(right(), scene.win);
        barrier(MPI_COMM_WORLD);
        memory_check(&scene, 0, LEN_BYTES, 1 + left(), "after a flush");
        memory_guard(&scene);
        buffer_set(&scene, 0, LEN_BYTES, 100 + world_rank);
        MPI_Rput(scene.buffer, LEN_BYTES, MPI_BYTE, right(), 0, LEN_BYTES, MPI_BYTE, scene.win,
                 &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        device_fill(scene.buffer, 0, MOST_BYTES);
        MPI_Win_unlock_all(scene.win);
        barrier(MPI_COMM_WORLD);
        memory_check(&scene, 0, LEN_BYTES, 100 + left(), "after unlock_all");
        scene_free(&scene);
    }
}

/* --- datatypes --- */

/* Blocks in no order, most_ints apart and of up to as many ints. Returns the number of ints. */
static int blocks_make(int blocks, int most_ints, MPI_Datatype *type)
{
    int lengths[100], offsets[100], ints = 0;
    for (int i = 0; i < blocks; i++) {
        lengths[i] = most_ints - i % 2 * most_ints / 9;
        offsets[i] = i * 5 % blocks * most_ints;
        ints += lengths[i];
    }
    MPI_Type_indexed(blocks, lengths, offsets, MPI_INT, type);
    return ints;
}

/* Datatypes of three parts, and one of few bytes far apart. Returns the number of ints. */
static int type_make(int which, MPI_Datatype *type)
{
    enum { INTS = 3 * PART_BYTES / 4 + 21 };
    int ints = INTS;
    switch (which) {
    case 0: MPI_Type_contiguous(INTS, MPI_INT, type); break;
    case 1:
        ints = INTS / 70 * 70;
        MPI_Type_vector(INTS / 70, 70, 100, MPI_INT, type);
        break;
    case 2: ints = blocks_make(11, 20001, type); break;
    default: {
        MPI_Datatype few;
        ints = blocks_make(99, 9, &few);
        MPI_Type_create_resized(few, 0, PART_BYTES, type);
        MPI_Type_free(&few);
        MPI_Type_contiguous(2, *type, &few);
        MPI_Type_free(type);
        *type = few;
        ints *= 2;
    }
    }
    MPI_Type_commit(type);
    return ints;
}

/* A put, and a get, of the same from device and from host memory. */
static void types_at(const struct scene *scene, int here, int there)
{
    enum { HALF = MOST_BYTES / 2 };
    char what[60];
    MPI_Datatype origin, target;
    const int origin_ints = type_make(here, &origin), target_ints = type_make(there, &target);
    snprintf(what, sizeof what, "type %d at the origin, %d at the target", here, there);
    if (origin_ints != target_ints) { /* then the other side is ints */
        MPI_Type_free(&target);
        MPI_Type_contiguous(origin_ints, MPI_INT, &target);
        MPI_Type_commit(&target);
    }
    memory_guard(scene);
    buffer_set(scene, 0, HALF, 7 * here + there + world_rank);
    MPI_Win_fence(0, scene->win);
    MPI_Put(scene->buffer, 1, origin, right(), 0, 1, target, scene->win);
    MPI_Put(scene->wanted, 1, origin, right(), HALF, 1, target, scene->win);
    MPI_Win_fence(0, scene->win);
    place_read(scene->place, scene->got, scene->memory, MOST_BYTES);
    bytes_equal(scene->got, scene->got + HALF, HALF, what);
    bytes_fill(scene->got, HALF, there + world_rank);
    place_write(scene->place, scene->memory, scene->got, HALF);
    buffer_set(scene, 0, 0, 0);
    MPI_Win_fence(0, scene->win);
    MPI_Get(scene->buffer, 1, origin, right(), 0, 1, target, scene->win);
    MPI_Get(scene->wanted, 1, origin, right(), 0, 1, target, scene->win);
    MPI_Win_fence(0, scene->win);
    device_read(scene->got, scene->buffer, MOST_BYTES);
    bytes_equal(scene->got, scene->wanted, MOST_BYTES, what);
    MPI_Type_free(&origin);
    MPI_Type_free(&target);
}

static void datatypes(enum window_kind kind)
{
    (void)kind;
    for (enum place place = ON_HOST; place <= ON_DEVICE; place++) {
        struct scene scene = scene_make(place);
        for (int here = 0; here < 4; here++)
            for (int there = 0; there < 4; there++)
                types_at(&scene, here, there);
        scene_free(&scene);
    }
}

/* Elements with padding, which does not move. One of them is in two parts. */
static void padded(enum window_kind kind)
{
    enum { HALF = MOST_BYTES / 2 };
    const int counts[2] = {PART_BYTES / 4 - 4, 50};
    const MPI_Aint offsets[2] = {0, PART_BYTES};
    const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE_INT};
    struct scene scene = scene_make(ON_HOST);
    MPI_Datatype type;
    (void)kind;
    MPI_Type_create_struct(2, counts, offsets, types, &type);
    MPI_Type_commit(&type);
    memory_guard(&scene);
    buffer_set(&scene, 0, HALF, world_rank);
    MPI_Win_fence(0, scene.win);
    MPI_Put(scene.buffer, 2, type, right(), 0, 2, type, scene.win);
    MPI_Put(scene.wanted, 2, type, right(), HALF, 2, type, scene.win);
    MPI_Win_fence(0, scene.win);
    bytes_equal(scene.memory, scene.memory + HALF, HALF, "put of pairs");
    buffer_set(&scene, 0, 0, 0);
    MPI_Win_fence(0, scene.win);
    MPI_Get(scene.buffer, 2, type, right(), 0, 2, type, scene.win);
    MPI_Get(scene.wanted, 2, type, right(), 0, 2, type, scene.win);
    MPI_Win_fence(0, scene.win);
    device_read(scene.got, scene.buffer, MOST_BYTES);
    bytes_equal(scene.got, scene.wanted, MOST_BYTES, "get of pairs");
    MPI_Type_free(&type);
    scene_free(&scene);
}

/* --- threads --- */

enum { THREADS = 3, ROUNDS = 6, SLOT_BYTES = 6 * PART_BYTES, SUM_INTS = PART_BYTES / 4 + 100 };

struct worker {
    pthread_t thread;
    MPI_Win win, sums;
    int number;
    char *memory;
};

static void worker_round(struct worker *worker, char *buffer, char *wanted, char *got, int round)
{
    const size_t slot = (size_t)worker->number * SLOT_BYTES;
    const size_t len_bytes = (size_t)(1 + (round + worker->number) % 5) * PART_BYTES + 13;
    const int seed = 1000 * world_rank + 10 * round + worker->number;
    int *ones = (int *)(void *)(wanted + SLOT_BYTES - SUM_INTS * 4);
    bytes_fill(wanted, SLOT_BYTES - SUM_INTS * 4, seed);
    for (int i = 0; i < SUM_INTS; i++)
        ones[i] = i % 3 + 1;
    device_write(buffer, wanted, SLOT_BYTES);
    MPI_Put(buffer, (int)len_bytes, MPI_BYTE, right(), (MPI_Aint)slot, (int)len_bytes, MPI_BYTE,
            worker->win);
    MPI_Accumulate(buffer + SLOT_BYTES - SUM_INTS * 4, SUM_INTS, MPI_INT, 0, 0, SUM_INTS, MPI_INT,
                   MPI_SUM, worker->sums);
    MPI_Win_flush(right(), worker->win);
    device_fill(buffer, 0, len_bytes);
    MPI_Get(buffer, (int)len_bytes, MPI_BYTE, right(), (MPI_Aint)slot, (int)len_bytes, MPI_BYTE,
            worker->win);
    MPI_Win_flush_local(right(), worker->win);
    device_read(got, buffer, len_bytes);
    bytes_equal(got, wanted, len_bytes, "a thread's get");
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    device_open();
    char *buffer = device_alloc(SLOT_BYTES);
    char *wanted = malloc(SLOT_BYTES), *got = malloc(SLOT_BYTES);
    for (int round = 0; round < ROUNDS && !harness_failed(); round++)
        worker_round(worker, buffer, wanted, got, round);
    device_free(buffer);
    free(wanted);
    free(got);
    return NULL;
}

static void threads(enum window_kind kind)
{
    struct worker workers[THREADS];
    (void)kind;
    if (harness_thread_level() < MPI_THREAD_MULTIPLE) {
        harness_skip("needs MPI_THREAD_MULTIPLE");
        return;
    }
    for (enum place place = ON_HOST; place <= ON_DEVICE; place++) {
        char *memory = place_alloc(place, THREADS * SLOT_BYTES);
        int *sums = calloc(SUM_INTS, sizeof *sums);
        MPI_Win win = window_over(memory, THREADS * SLOT_BYTES);
        MPI_Win sums_win;
        CHECK_OK(MPI_Win_create(sums, SUM_INTS * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &sums_win));
        window_watch(sums_win);
        MPI_Win_lock_all(0, win);
        MPI_Win_lock_all(0, sums_win);
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){.win = win, .sums = sums_win, .number = i};
            const int error = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
            CHECK_EQUAL(error, 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(workers[i].thread, NULL);
        MPI_Win_unlock_all(sums_win);
        MPI_Win_unlock_all(win);
        barrier(MPI_COMM_WORLD);
        for (int i = 0; world_rank == 0 && i < SUM_INTS && !harness_failed(); i++)
            CHECK_EQUAL(sums[i], world_size * THREADS * ROUNDS * (i % 3 + 1));
        CHECK_OK(MPI_Win_free(&sums_win));
        CHECK_OK(MPI_Win_free(&win));
        place_free(place, memory, THREADS * SLOT_BYTES);
        free(sums);
    }
}

/* --- errors --- */

static int transfer(const struct scene *scene, bool is_put, size_t at, int count)
{
    return is_put ? MPI_Put(scene->buffer, count, MPI_BYTE, right(), (MPI_Aint)at, count, MPI_BYTE,
                            scene->win)
                  : MPI_Get(scene->buffer, count, MPI_BYTE, right(), (MPI_Aint)at, count, MPI_BYTE,
                            scene->win);
}

/* The driver fails at a part in the middle. The next operation is right again. */
static void failed_copies(enum window_kind kind)
{
    enum { LEN_BYTES = 7 * PART_BYTES + 1 };
    char failure[40];
    struct scene scene = scene_make(ON_HOST);
    (void)kind;
    MPI_Win_set_errhandler(scene.win, MPI_ERRORS_RETURN);
    if (!device_fail("") || !ranks_are_nodes()) {
        harness_skip("the driver is real, or ranks share memory");
        scene_free(&scene);
        return;
    }
    for (int nth = 1; nth <= 8; nth++) {
        for (int is_put = 0; is_put < 2; is_put++) {
            const char *call = is_put ? "MPI_Put" : "MPI_Get";
            memory_guard(&scene);
            buffer_set(&scene, 0, LEN_BYTES, nth + world_rank);
            snprintf(failure, sizeof failure, "cuMemcpyAsync:%d:2", nth);
            MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, scene.win);
            device_fail(failure);
            error_check(transfer(&scene, is_put, 0, LEN_BYTES), MPI_ERR_NO_MEM, call,
                        "OUT_OF_MEMORY");
            device_fail("");
            CHECK_OK(MPI_Win_flush(right(), scene.win));
            buffer_set(&scene, 0, LEN_BYTES, nth + world_rank);
            CHECK_OK(transfer(&scene, true, 0, LEN_BYTES));
            CHECK_OK(MPI_Win_flush(right(), scene.win));
            buffer_set(&scene, 0, 0, 0);
            CHECK_OK(transfer(&scene, false, 0, LEN_BYTES));
            CHECK_OK(MPI_Win_unlock(right(), scene.win));
            buffer_check(&scene, 0, LEN_BYTES, nth + world_rank, "after a failure");
            barrier(MPI_COMM_WORLD);
        }
    }
    scene_free(&scene);
}

/* The target refuses the parts beyond a piece of a dynamic window. */
static void refused_parts(enum window_kind kind)
{
    enum { LEN_BYTES = 6 * PART_BYTES, ATTACHED_BYTES = 2 * PART_BYTES + 100 };
    struct scene scene = {.buffer = device_alloc(MOST_BYTES),
                          .wanted = malloc(MOST_BYTES),
                          .got = malloc(MOST_BYTES)};
    char *memory = malloc(LEN_BYTES);
    MPI_Aint here, there;
    (void)kind;
    CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &scene.win));
    MPI_Win_set_errhandler(scene.win, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_attach(scene.win, memory, ATTACHED_BYTES));
    MPI_Get_address(memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, left(), 0, &there, 1, MPI_AINT, right(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    bytes_fill(memory, ATTACHED_BYTES, world_rank);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, scene.win);
    error_check(transfer(&scene, false, (size_t)there, LEN_BYTES), MPI_ERR_RMA_RANGE, "MPI_Get",
                "attached");
    CHECK_OK(MPI_Win_flush(right(), scene.win));
    buffer_set(&scene, 0, 0, 0);
    CHECK_OK(transfer(&scene, false, (size_t)there, ATTACHED_BYTES));
    CHECK_OK(MPI_Win_flush(right(), scene.win));
    buffer_check(&scene, 0, ATTACHED_BYTES, right(), "a get after a refused one");
    barrier(MPI_COMM_WORLD);
    const int code = transfer(&scene, true, (size_t)there, LEN_BYTES);
    const int flushed = MPI_Win_flush(right(), scene.win);
    error_check(code != MPI_SUCCESS ? code : flushed, MPI_ERR_RMA_RANGE,
                code != MPI_SUCCESS ? "MPI_Put" : "MPI_Win_flush", "attached");
    MPI_Win_unlock_all(scene.win);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_detach(scene.win, memory));
    CHECK_OK(MPI_Win_free(&scene.win));
    device_free(scene.buffer);
    free(scene.wanted);
    free(scene.got);
    free(memory);
}

/* --- memory --- */

/* Private memory of the process, in bytes. */
static rlim_t data_bytes(void)
{
    char line[200];
    long long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmData: %lld", &kilobytes) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return (rlim_t)kilobytes * 1024;
}

/* Sanitisers need memory of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_LIMITED = 0 };
#else
enum { IS_LIMITED = 1 };
#endif

/* A message of 64 MiB needs the pinned buffers, a copy for each part, and no other memory of its
 * size. */
static void little_memory(enum window_kind kind)
{
    enum { LARGE_BYTES = 64 << 20, SPARE_BYTES = 16 << 20 };
    const uint64_t parts = (LARGE_BYTES + PART_BYTES - 1) / PART_BYTES;
    uint64_t before, after, pinned;
    struct rlimit limit, small;
    (void)kind;
    if (!device_counted("standinCopies", &before) || !ranks_are_nodes()) {
        harness_skip("the driver is real, or ranks share memory");
        return;
    }
    char *memory = malloc(LARGE_BYTES), *wanted = malloc(LARGE_BYTES);
    char *buffer = device_alloc(LARGE_BYTES);
    MPI_Win win = window_over(memory, LARGE_BYTES);
    bytes_fill(wanted, LARGE_BYTES, world_rank);
    memset(memory, 0, LARGE_BYTES);
    device_write(buffer, wanted, LARGE_BYTES);
    MPI_Win_lock_all(0, win);
    MPI_Get(wanted, 1, MPI_BYTE, right(), 0, 1, MPI_BYTE, win); /* connects */
    MPI_Win_flush(right(), win);
    barrier(MPI_COMM_WORLD);
    getrlimit(RLIMIT_DATA, &limit);
    small = limit;
    if (IS_LIMITED)
        small.rlim_cur = data_bytes() + SPARE_BYTES;
    setrlimit(RLIMIT_DATA, &small);
    device_counted("standinCopies", &before);
    CHECK_OK(MPI_Put(buffer, LARGE_BYTES, MPI_BYTE, right(), 0, LARGE_BYTES, MPI_BYTE, win));
    CHECK_OK(MPI_Win_flush(right(), win));
    device_counted("standinCopies", &after);
    CHECK_EQUAL(after - before, parts);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Get(buffer, LARGE_BYTES, MPI_BYTE, right(), 0, LARGE_BYTES, MPI_BYTE, win));
    CHECK_OK(MPI_Win_flush(right(), win));
    device_counted("standinCopies", &before);
    CHECK_EQUAL(before - after, parts);
    barrier(MPI_COMM_WORLD);
    setrlimit(RLIMIT_DATA, &limit);
    device_counted("standinPinned", &pinned);
    CHECK_EQUAL(pinned, BUFFERS * PART_BYTES);
    MPI_Win_unlock_all(win);
    bytes_fill(wanted, LARGE_BYTES, left());
    bytes_equal(memory, wanted, LARGE_BYTES, "a large put");
    bytes_fill(wanted, LARGE_BYTES, world_rank);
    device_read(memory, buffer, LARGE_BYTES);
    bytes_equal(memory, wanted, LARGE_BYTES, "a large get");
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&win));
    device_free(buffer);
    free(memory);
    free(wanted);
}

static const struct test_case cases[] = {
    CASE(little_memory, KIND_ANY, 2), CASE(sizes, KIND_ANY, 1),
    CASE(allocated, KIND_ANY, 1),     CASE(completion, KIND_ANY, 1),
    CASE(datatypes, KIND_ANY, 1),     CASE(padded, KIND_ANY, 1),
    CASE(threads, KIND_ANY, 1),       CASE(failed_copies, KIND_ANY, 2),
    CASE(refused_parts, KIND_ANY, 2), CASE(not_pinned, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    /* then locks travel with their epochs, and waiting ranks serve */
    const bool is_single = getenv("TEST_SINGLE") != NULL;
    return harness_main(argc, argv, is_single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, cases,
                        COUNT_OF(cases));
}
