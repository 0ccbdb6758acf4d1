/* Kernels: accumulates that a GPU computes in its own memory, and copies of many pieces. What they
 * do is compared with the same operations on host memory, and they are counted where the driver is
 * the stand-in, so a test fails if the CPU has done the work. */
#include "device.h"

#include "../mpi/harness.h"

#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENT_BYTES = 16, COUNT = 1003, BYTES = (COUNT + 1) * ELEMENT_BYTES };

static int right(void)
{
    return (world_rank + 1) % world_size;
}

/* 0 with a real driver. */
static uint64_t launches(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    uint64_t (*count)(void) = NULL;
    if (library != NULL)
        *(void **)&count = dlsym(library, "standinLaunches");
    return count != NULL ? count() : 0;
}

static bool counts_launches(void)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "standinLaunches") != NULL;
}

/* --- two windows with the same contents: one over device memory, one over host memory --- */

struct twins {
    void *device, *host;
    size_t size_bytes;
    MPI_Win device_win, host_win;
};

static struct twins twins_make(size_t size_bytes)
{
    struct twins twins = {
        .device = device_alloc(size_bytes), .host = malloc(size_bytes), .size_bytes = size_bytes};
    CHECK_OK(MPI_Win_create(twins.device, (MPI_Aint)size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &twins.device_win));
    CHECK_OK(MPI_Win_create(twins.host, (MPI_Aint)size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &twins.host_win));
    window_watch(twins.device_win);
    window_watch(twins.host_win);
    MPI_Win_lock_all(0, twins.device_win);
    MPI_Win_lock_all(0, twins.host_win);
    return twins;
}

static void twins_free(struct twins *twins)
{
    MPI_Win_unlock_all(twins->device_win);
    MPI_Win_unlock_all(twins->host_win);
    CHECK_OK(MPI_Win_free(&twins->device_win));
    CHECK_OK(MPI_Win_free(&twins->host_win));
    device_free(twins->device);
    free(twins->host);
}

static void twins_flush(const struct twins *twins)
{
    MPI_Win_flush(right(), twins->device_win);
    MPI_Win_flush(right(), twins->host_win);
}

static void twins_put(const struct twins *twins, const void *bytes)
{
    const int count = (int)twins->size_bytes;
    MPI_Put(bytes, count, MPI_BYTE, right(), 0, count, MPI_BYTE, twins->device_win);
    MPI_Put(bytes, count, MPI_BYTE, right(), 0, count, MPI_BYTE, twins->host_win);
    twins_flush(twins);
}

static void bytes_equal(const char *got, const char *wanted, size_t len_bytes, const char *what)
{
    for (size_t i = 0; i < len_bytes; i++)
        if (!CHECK(got[i] == wanted[i], "%s: byte %zu of %zu is %#x, not %#x", what, i, len_bytes,
                   (unsigned char)got[i], (unsigned char)wanted[i]))
            return;
}

static void twins_equal(const struct twins *twins, const char *what)
{
    const int count = (int)twins->size_bytes;
    char *got = malloc(twins->size_bytes), *wanted = malloc(twins->size_bytes);
    MPI_Get(got, count, MPI_BYTE, right(), 0, count, MPI_BYTE, twins->device_win);
    MPI_Get(wanted, count, MPI_BYTE, right(), 0, count, MPI_BYTE, twins->host_win);
    twins_flush(twins);
    bytes_equal(got, wanted, twins->size_bytes, what);
    free(got);
    free(wanted);
}

static void launched_check(uint64_t before, uint64_t wanted, const char *what)
{
    const uint64_t launched = launches() - before;
    CHECK(!counts_launches() || launched == wanted, "%s: %llu launches, not %llu", what,
          (unsigned long long)launched, (unsigned long long)wanted);
}

/* --- types and operators --- */

enum sort { INTEGER, REAL, LONG_REAL, COMPLEX, BOOLEAN, RAW, PAIR };

struct element {
    const char *name;
    MPI_Datatype type;
    size_t bytes;
    enum sort sort;
};

enum { ELEMENTS = 16, REDUCTIONS = 12 };

static void elements_list(struct element *out)
{
    const struct element elements[ELEMENTS] = {
        {"int8", MPI_INT8_T, 1, INTEGER},
        {"int16", MPI_INT16_T, 2, INTEGER},
        {"int32", MPI_INT32_T, 4, INTEGER},
        {"int64", MPI_INT64_T, 8, INTEGER},
        {"uint8", MPI_UINT8_T, 1, INTEGER},
        {"uint16", MPI_UINT16_T, 2, INTEGER},
        {"uint32", MPI_UINT32_T, 4, INTEGER},
        {"uint64", MPI_UINT64_T, 8, INTEGER},
        {"float", MPI_FLOAT, sizeof(float), REAL},
        {"double", MPI_DOUBLE, sizeof(double), REAL},
        {"long double", MPI_LONG_DOUBLE, sizeof(long double), LONG_REAL},
        {"float complex", MPI_C_FLOAT_COMPLEX, sizeof(float complex), COMPLEX},
        {"double complex", MPI_C_DOUBLE_COMPLEX, sizeof(double complex), COMPLEX},
        {"bool", MPI_C_BOOL, sizeof(bool), BOOLEAN},
        {"byte", MPI_BYTE, 1, RAW},
        {"two ints", MPI_2INT, 2 * sizeof(int), PAIR},
    };
    memcpy(out, elements, sizeof elements);
}

enum { FOR_INTEGERS = 1, FOR_REALS = 2, FOR_COMPLEX = 4, FOR_BOOLEANS = 8, FOR_BYTES = 16 };

struct reduction {
    const char *name;
    MPI_Op op;
    int sorts;
};

static void reductions_list(struct reduction *out)
{
    const struct reduction reductions[REDUCTIONS] = {
        {"MAX", MPI_MAX, FOR_INTEGERS | FOR_REALS},
        {"MIN", MPI_MIN, FOR_INTEGERS | FOR_REALS},
        {"SUM", MPI_SUM, FOR_INTEGERS | FOR_REALS | FOR_COMPLEX},
        {"PROD", MPI_PROD, FOR_INTEGERS | FOR_REALS | FOR_COMPLEX},
        {"LAND", MPI_LAND, FOR_INTEGERS | FOR_BOOLEANS},
        {"LOR", MPI_LOR, FOR_INTEGERS | FOR_BOOLEANS},
        {"LXOR", MPI_LXOR, FOR_INTEGERS | FOR_BOOLEANS},
        {"BAND", MPI_BAND, FOR_INTEGERS | FOR_BYTES},
        {"BOR", MPI_BOR, FOR_INTEGERS | FOR_BYTES},
        {"BXOR", MPI_BXOR, FOR_INTEGERS | FOR_BYTES},
        {"REPLACE", MPI_REPLACE, ~0},
        {"NO_OP", MPI_NO_OP, ~0},
    };
    memcpy(out, reductions, sizeof reductions);
}

static bool is_allowed(const struct element *element, const struct reduction *reduction)
{
    static const int bits[] = {FOR_INTEGERS, FOR_REALS, FOR_REALS, FOR_COMPLEX,
                               FOR_BOOLEANS, FOR_BYTES, 0};
    return reduction->sorts == ~0 || (reduction->sorts & bits[element->sort]) != 0;
}

/* How many kernels a get_accumulate or an accumulate needs. Operators that only move elements are
 * copies, except for an exchange; no kernel has long doubles or products of complex numbers. */
static uint64_t launches_of(const struct element *element, const struct reduction *reduction,
                            bool has_result)
{
    if (reduction->op == MPI_NO_OP)
        return 0;
    if (reduction->op == MPI_REPLACE)
        return has_result;
    return element->sort != LONG_REAL && !(element->sort == COMPLEX && reduction->op == MPI_PROD);
}

/* Values whose sums and products are exact or rounded, never infinite: processors differ in the
 * bits of a NaN that they make. Those that are only compared may be a NaN or a negative zero. */
static double real_of(struct random *random, bool may_be_nan)
{
    switch (random_below(random, may_be_nan ? 10 : 8)) {
    case 0: return 0x1p-1060 * (double)random_below(random, 9); /* subnormal */
    case 1: return 0x1p-140 * (double)random_below(random, 9);  /* of a float */
    case 8: return (double)NAN;
    case 9: return -0.0;
    default: return ((double)random_below(random, 4001) - 2000) / 3;
    }
}

static void elements_fill(char *bytes, const struct element *element, bool may_be_nan,
                          struct random *random)
{
    const size_t part_bytes = element->sort == COMPLEX ? element->bytes / 2 : element->bytes;
    memset(bytes, 0, BYTES);
    for (size_t at = 0; at + part_bytes <= BYTES; at += part_bytes) {
        const uint64_t word = random_below(random, 4) == 0 ? 0 : random_next(random);
        const double number = real_of(random, may_be_nan);
        const float narrow = (float)number;
        const long double wide = (long double)number;
        if (element->sort == LONG_REAL)
            memcpy(bytes + at, &wide, 10);
        else if (element->sort == REAL || element->sort == COMPLEX)
            memcpy(bytes + at, part_bytes == 4 ? (const void *)&narrow : (const void *)&number,
                   part_bytes);
        else if (element->sort == BOOLEAN)
            bytes[at] = (char)(word & 1);
        else
            memcpy(bytes + at, &word, part_bytes);
    }
}

/* The buffers of an operation, on the device and on the host. */
struct buffers {
    char *origin, *result;
};

/* The operation on both windows, from elements `at` on. */
static void operate(const struct twins *twins, const struct element *element, MPI_Op op,
                    bool has_result, int at, const struct buffers *device,
                    const struct buffers *host)
{
    const MPI_Win wins[] = {twins->device_win, twins->host_win};
    const struct buffers *buffers[] = {device, host};
    const MPI_Aint disp = (MPI_Aint)((size_t)at * element->bytes);
    for (int i = 0; i < 2; i++) {
        const char *origin = buffers[i]->origin + disp;
        if (has_result)
            MPI_Get_accumulate(origin, COUNT, element->type, buffers[i]->result, COUNT,
                               element->type, right(), disp, COUNT, element->type, op, wins[i]);
        else
            MPI_Accumulate(origin, COUNT, element->type, right(), disp, COUNT, element->type, op,
                           wins[i]);
    }
    twins_flush(twins);
}

/* Elements that begin at a multiple of 16 bytes, and one element later. */
static void reduction_check(const struct twins *twins, const struct element *element,
                            const struct reduction *reduction, struct random *random)
{
    static char initial[BYTES], origin[BYTES], result[BYTES], got[BYTES];
    const struct buffers device = {device_alloc(BYTES), device_alloc(BYTES)};
    const struct buffers host = {origin, result};
    const bool compares = reduction->op == MPI_MAX || reduction->op == MPI_MIN;
    const bool moves = reduction->op == MPI_REPLACE || reduction->op == MPI_NO_OP;
    elements_fill(initial, element, compares || moves, random);
    elements_fill(origin, element, compares || moves, random);
    device_write(device.origin, origin, BYTES);
    for (int variant = reduction->op == MPI_NO_OP ? 2 : 0; variant < 4; variant++) {
        const bool has_result = variant >= 2;
        char what[100];
        snprintf(what, sizeof what, "%s of %s, variant %d", reduction->name, element->name,
                 variant);
        twins_put(twins, initial);
        const uint64_t before = launches();
        operate(twins, element, reduction->op, has_result, variant % 2, &device, &host);
        launched_check(before, launches_of(element, reduction, has_result), what);
        twins_equal(twins, what);
        if (has_result) {
            device_read(got, device.result, BYTES);
            bytes_equal(got, result, COUNT * element->bytes, what);
        }
    }
    device_free(device.origin);
    device_free(device.result);
}

static void reductions(enum window_kind kind)
{
    struct element elements[ELEMENTS];
    struct reduction reductions[REDUCTIONS];
    struct random random = random_start((uint64_t)world_rank);
    struct twins twins = twins_make(BYTES);
    (void)kind;
    elements_list(elements);
    reductions_list(reductions);
    for (int i = 0; i < ELEMENTS; i++)
        for (int j = 0; j < REDUCTIONS; j++)
            if (is_allowed(&elements[i], &reductions[j]) && !harness_failed())
                reduction_check(&twins, &elements[i], &reductions[j], &random);
    twins_free(&twins);
}

/* --- buffers that a kernel cannot access --- */

/* get_accumulate SUM of count doubles, each buffer at its own address. */
static void sums_check(const struct twins *twins, int count, double *origin, double *result,
                       MPI_Aint disp, uint64_t wanted, const char *what)
{
    double *wanted_result = calloc((size_t)count, sizeof(double));
    double *numbers = malloc(twins->size_bytes);
    for (size_t i = 0; i < twins->size_bytes / sizeof(double); i++)
        numbers[i] = (double)i + 0.5;
    twins_put(twins, numbers);
    const uint64_t before = launches();
    MPI_Get_accumulate(origin, count, MPI_DOUBLE, result, count, MPI_DOUBLE, right(), disp, count,
                       MPI_DOUBLE, MPI_SUM, twins->device_win);
    twins_flush(twins);
    launched_check(before, wanted, what);
    MPI_Get_accumulate(numbers, count, MPI_DOUBLE, wanted_result, count, MPI_DOUBLE, right(), disp,
                       count, MPI_DOUBLE, MPI_SUM, twins->host_win);
    twins_flush(twins);
    twins_equal(twins, what);
    device_read(numbers, result, (size_t)count * sizeof(double));
    bytes_equal((const char *)numbers, (const char *)wanted_result, (size_t)count * sizeof(double),
                what);
    free(numbers);
    free(wanted_result);
}

/* Elements on the host are computed by the GPU if they are many, and the same where an address is
 * not a multiple of the element; in that case of the target's address, by the CPU. */
static void buffers(enum window_kind kind)
{
    enum { FEW = 2048, MANY = 2500 };
    struct twins twins = twins_make((MANY + 1) * sizeof(double));
    const size_t bytes = (MANY + 1) * sizeof(double);
    char *device_origin = device_alloc(bytes + 8), *device_result = device_alloc(bytes + 8);
    double *host_origin = malloc(bytes), *host_result = malloc(bytes);
    (void)kind;
    for (int i = 0; i <= MANY; i++)
        host_origin[i] = i + 0.5;
    device_write(device_origin, host_origin, bytes);
    double *const origin = (double *)(void *)device_origin;
    double *const result = (double *)(void *)device_result;
    sums_check(&twins, MANY, origin, result, 0, 1, "both on the device");
    sums_check(&twins, MANY, host_origin, host_result, 0, 1, "many on the host");
    sums_check(&twins, MANY, host_origin, result, 0, 1, "origin on the host");
    sums_check(&twins, MANY, origin, host_result, 0, 1, "result on the host");
    sums_check(&twins, FEW, host_origin, host_result, 8, 0, "few on the host");
    sums_check(&twins, MANY, origin, origin, 0, 1, "one buffer for both");
    double *elsewhere = device_alloc_on_next(bytes);
    device_write(elsewhere, host_origin, bytes);
    sums_check(&twins, MANY, elsewhere, result, 0, 1, "origin on another device");
    sums_check(&twins, MANY, host_origin, elsewhere, 0, 1, "result on another device");
    device_free(elsewhere);
    device_write(device_origin + 3, host_origin, bytes);
    sums_check(&twins, 100, (double *)(void *)(device_origin + 3),
               (double *)(void *)(device_result + 5), 8, 1, "no aligned buffer");
    sums_check(&twins, 100, (double *)(void *)(device_origin + 3), result, 4, 0,
               "no aligned target");
    device_free(device_origin);
    device_free(device_result);
    free(host_origin);
    free(host_result);
    twins_free(&twins);
}

/* All ranks add to the same elements at a time: those with an even number by kernels, the others on
 * the CPU. */
static void mixed(enum window_kind kind)
{
    enum { INTS = 200, ROUNDS = 20 };
    int ones[INTS], got[INTS], zeros[INTS] = {0};
    int *memory = device_alloc(sizeof ones), *device = device_alloc(sizeof ones);
    MPI_Win win;
    (void)kind;
    for (int i = 0; i < INTS; i++)
        ones[i] = 1;
    device_write(memory, zeros, sizeof zeros);
    device_write(device, ones, sizeof ones);
    CHECK_OK(MPI_Win_create(memory, sizeof ones, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    window_watch(win);
    const uint64_t before = launches();
    MPI_Win_fence(0, win);
    for (int round = 0; round < ROUNDS; round++)
        MPI_Accumulate(world_rank % 2 == 0 ? device : ones, INTS, MPI_INT, 0, 0, INTS, MPI_INT,
                       MPI_SUM, win);
    MPI_Win_fence(0, win);
    launched_check(before, world_rank % 2 == 0 ? ROUNDS : 0, "sums of all ranks");
    device_read(got, memory, sizeof got);
    for (int i = 0; i < INTS && world_rank == 0; i++)
        if (!CHECK(got[i] == ROUNDS * world_size, "sum %d of all ranks is %d", i, got[i]))
            break;
    CHECK_OK(MPI_Win_free(&win));
    device_free(memory);
    device_free(device);
}

/* An exchange whose result goes to the host in two pieces. */
static void long_result(enum window_kind kind)
{
    enum { LONGS = (4 << 17) + 5001 };
    const size_t bytes = LONGS * sizeof(int64_t);
    int64_t *memory = device_alloc(bytes), *origin = device_alloc(bytes);
    int64_t *sent = malloc(bytes), *got = calloc(LONGS, sizeof *got);
    MPI_Win win;
    (void)kind;
    for (int64_t i = 0; i < LONGS; i++)
        sent[i] = i * 3 + world_rank;
    device_write(memory, sent, bytes);
    device_fill(origin, 7, bytes);
    CHECK_OK(MPI_Win_create(memory, (MPI_Aint)bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    window_watch(win);
    const uint64_t before = launches();
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(origin, LONGS, MPI_INT64_T, got, LONGS, MPI_INT64_T, right(), 0, LONGS,
                       MPI_INT64_T, MPI_REPLACE, win);
    MPI_Win_fence(0, win);
    launched_check(before, 2, "a long result");
    for (int64_t i = 0; i < LONGS; i++)
        sent[i] = i * 3 + right();
    bytes_equal((const char *)got, (const char *)sent, bytes, "a long result");
    device_read(got, memory, bytes);
    memset(sent, 7, bytes);
    bytes_equal((const char *)got, (const char *)sent, bytes, "the target of a long result");
    CHECK_OK(MPI_Win_free(&win));
    device_free(memory);
    device_free(origin);
    free(sent);
    free(got);
}

/* --- copies of many pieces --- */

enum { PIECES = 300, PIECES_BYTES = 60000 };

/* Pieces of up to 100 bytes and some of thousands, with gaps; all of multiples of unit. */
static MPI_Datatype pieces_type(int unit, struct random *random)
{
    int lengths[PIECES];
    MPI_Aint disps[PIECES], at = 0;
    MPI_Datatype type;
    for (int i = 0; i < PIECES; i++) {
        lengths[i] = unit + unit * (int)random_below(random, 100 / (uint64_t)unit);
        lengths[i] += i % 100 == 50 ? 3200 : 0;
        at += unit + unit * (MPI_Aint)random_below(random, 80 / (uint64_t)unit);
        disps[i] = at;
        at += lengths[i];
    }
    CHECK(at <= PIECES_BYTES, "the pieces end at %ld", (long)at);
    MPI_Type_create_hindexed(PIECES, lengths, disps, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Puts and gets with buffers of which a kernel can access the device's and the pinned one. */
static void pieces_check(const struct twins *twins, char *buffer, bool is_device, uint64_t wanted,
                         MPI_Datatype type, const char *what)
{
    static char bytes[PIECES_BYTES], got[PIECES_BYTES], wanted_bytes[PIECES_BYTES];
    int size_bytes;
    MPI_Type_size(type, &size_bytes);
    memset(bytes, 0x5a, sizeof bytes);
    twins_put(twins, bytes);
    for (int i = 0; i < PIECES_BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    device_write(buffer, bytes, sizeof bytes);
    const uint64_t before = launches();
    MPI_Put(buffer, 1, type, right(), 0, 1, type, twins->device_win);
    MPI_Win_flush(right(), twins->device_win);
    /* in batches of 256 */
    launched_check(before, 2 * wanted, what);
    MPI_Put(bytes, 1, type, right(), 0, 1, type, twins->host_win);
    twins_flush(twins);
    twins_equal(twins, what);
    if (is_device) {
        memset(wanted_bytes, 0x33, sizeof wanted_bytes);
        device_write(buffer, wanted_bytes, sizeof wanted_bytes);
        MPI_Get(buffer, size_bytes, MPI_BYTE, right(), 0, 1, type, twins->device_win);
        MPI_Get(wanted_bytes, size_bytes, MPI_BYTE, right(), 0, 1, type, twins->host_win);
        twins_flush(twins);
        launched_check(before, 4 * wanted, what);
        device_read(got, buffer, sizeof got);
        bytes_equal(got, wanted_bytes, sizeof got, what);
    }
}

/* False in a row whose ranks have a GPU each without access to the other. */
static bool kernels_access_peers(void)
{
    const char *peer = getenv("STANDIN_PEER");
    return peer == NULL || strcmp(peer, "0") != 0;
}

static void pieces(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank);
    struct twins twins = twins_make(PIECES_BYTES);
    char *device = device_alloc(PIECES_BYTES), *pinned = device_alloc_pinned(PIECES_BYTES);
    char *host = malloc(PIECES_BYTES);
    (void)kind;
    for (int unit = 1; unit <= 16; unit *= 2) {
        char what[60];
        MPI_Datatype type = pieces_type(unit, &random);
        snprintf(what, sizeof what, "pieces of a multiple of %d", unit);
        pieces_check(&twins, device, true, kernels_access_peers() ? 1 : 0, type, what);
        pieces_check(&twins, pinned, false, 1, type, what);
        pieces_check(&twins, host, false, 0, type, what);
        MPI_Type_free(&type);
    }
    device_free(device);
    device_free_pinned(pinned);
    free(host);
    twins_free(&twins);
}

/* --- failures, which a row injects --- */

/* What the row injects; NULL if that is something else. */
static const char *injected(const char *begin)
{
    const char *name = getenv("TEST_INJECTED");
    if (name != NULL && strncmp(name, begin, strlen(begin)) == 0)
        return name;
    harness_skip("no such error is injected");
    return NULL;
}

/* The driver loads no kernel: everything is computed and copied without, and one rank prints the
 * reason. */
static void refused(enum window_kind kind)
{
    FILE *file;
    (void)kind;
    if (injected("refused") == NULL)
        return;
    struct twins twins = twins_make(BYTES);
    double *origin = device_alloc(BYTES), *result = device_alloc(BYTES);
    double numbers[101];
    for (int i = 0; i <= 100; i++)
        numbers[i] = i + 0.5;
    device_write(origin, numbers, sizeof numbers);
    const int old = stderr_collect(&file);
    sums_check(&twins, 100, origin, result, 0, 0, "without kernels");
    sums_check(&twins, 100, origin, result, 8, 0, "without kernels");
    barrier(MPI_COMM_WORLD);
    int lines = stderr_count(file, old, "[O32]"), all;
    MPI_Allreduce(&lines, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == 1, "%d lines about kernels, not 1", all);
    device_free(origin);
    device_free(result);
    twins_free(&twins);
}

/* Errors of a launch: the call fails with the driver's reason. An error that the GPU reports loses
 * its context for good, so that all later calls on device memory fail as well. Windows over host
 * memory go on. */
static void failed(enum window_kind kind)
{
    enum { INTS = 8192 };
    static int ones[INTS], memory[INTS];
    const char *error = injected("CUDA_ERROR");
    MPI_Win win, host_win;
    (void)kind;
    if (error == NULL)
        return;
    int *device = device_alloc(sizeof ones);
    CHECK_OK(MPI_Win_create(device, sizeof ones, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK_OK(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &host_win));
    window_watch(host_win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < INTS; i++)
        ones[i] = 1;
    MPI_Win_fence(0, win);
    for (int call = 0; call < 2; call++) {
        const int target = call == 0 ? right() : world_rank;
        CHECK_CLASS(MPI_ERR_OTHER,
                    MPI_Accumulate(ones, INTS, MPI_INT, target, 0, INTS, MPI_INT, MPI_SUM, win));
        CHECK(strstr(oriel_error_text(), error) != NULL, "call %d: the message has not %s: %s",
              call, error, oriel_error_text());
    }
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, host_win);
    MPI_Accumulate(ones, INTS, MPI_INT, right(), 0, INTS, MPI_INT, MPI_SUM, host_win);
    MPI_Win_fence(0, host_win);
    CHECK(memory[0] == 1 && memory[INTS - 1] == 1, "the window over host memory has %d and %d",
          memory[0], memory[INTS - 1]);
    MPI_Win_free(&win);
    CHECK_OK(MPI_Win_free(&host_win));
}

static const struct test_case cases[] = {
    CASE(reductions, KIND_ANY, 1),  CASE(buffers, KIND_ANY, 1), CASE(mixed, KIND_ANY, 2),
    CASE(long_result, KIND_ANY, 1), CASE(pieces, KIND_ANY, 1),  CASE(refused, KIND_ANY, 1),
    CASE(failed, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
