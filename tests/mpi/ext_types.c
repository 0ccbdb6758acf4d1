/* Datatypes beyond MPI's: 16-bit reals and complex numbers of them, and pairs with an index of 64
 * bits for MPI_MINLOC and MPI_MAXLOC. A plain MPI program, run by the test rows. */
#include "harness.h"
#include "oriel/ext.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

static bool has_extensions(void)
{
    if (MPIX_Query_oriel())
        return true;
    harness_skip("the program runs without Oriel");
    return false;
}

/* --- 16-bit reals --- */

enum { HALVES = 1500 };

static double half_value(uint16_t half)
{
    const int exponent = half >> 10 & 31;
    const double fraction = half & 1023;
    const double size = exponent == 31  ? (fraction > 0 ? NAN : INFINITY)
                        : exponent == 0 ? ldexp(fraction, -24)
                                        : ldexp(1024 + fraction, exponent - 25);
    return half >> 15 ? -size : size;
}

/* The nearest 16-bit real, by the place of its last bit. */
static uint16_t half_of(double value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    value = fabs(value);
    if (isnan(value) || value == 0)
        return isnan(value) ? 0x7e00 : sign;
    frexp(value, &exponent);
    const int last = isinf(value) || exponent - 11 < -24 ? -24 : exponent - 11;
    const double units = isinf(value) ? INFINITY : rint(ldexp(value, -last));
    if (ldexp(units, last) > 65504)
        return sign | 0x7c00;
    /* 1,024 units of one exponent are the first number of the next */
    return sign | (uint16_t)((last + 24) * 1024 + (int)units);
}

static bool halves_equal(uint16_t left, uint16_t right)
{
    return left == right || (isnan(half_value(left)) && isnan(half_value(right)));
}

static uint16_t half_apply(MPI_Op op, uint16_t old, uint16_t operand)
{
    const double a = half_value(old), b = half_value(operand);
    if (op == MPI_SUM)
        return half_of(a + b);
    if (op == MPI_PROD)
        return half_of(a * b);
    if (op == MPI_MAX)
        return a > b ? old : operand;
    return op == MPI_MIN ? (a < b ? old : operand) : operand;
}

/* Numbers of all sizes, and special ones. */
static uint16_t half_random(struct random *random)
{
    static const uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff,
                                       0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3c00, 0x3c01};
    return random_below(random, 8) == 0 ? special[random_below(random, COUNT_OF(special))]
                                        : (uint16_t)random_next(random);
}

static const MPI_Op half_ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_REPLACE};

static void halves_compute(enum window_kind kind)
{
    static uint16_t old[HALVES], operands[HALVES], seen[HALVES], after[HALVES];
    struct random random = random_start((uint64_t)world_rank + 3);
    MPI_Datatype half;
    if (!has_extensions())
        return;
    CHECK_OK(MPIX_Type_float16(&half));
    struct window window =
        window_make(kind, (MPI_Aint)sizeof old * world_size, sizeof old, MPI_COMM_WORLD);
    const int target = right_of(world_rank);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < COUNT_OF(half_ops); i++) {
        for (int k = 0; k < HALVES; k++) {
            old[k] = half_random(&random);
            operands[k] = half_random(&random);
        }
        MPI_Put(old, HALVES, half, target, world_rank, HALVES, half, window.win);
        MPI_Win_flush(target, window.win);
        CHECK_OK(MPI_Get_accumulate(operands, HALVES, half, seen, HALVES, half, target, world_rank,
                                    HALVES, half, half_ops[i], window.win));
        MPI_Win_flush(target, window.win);
        /* the first few once more: as a short accumulate, and one by one */
        CHECK_OK(MPI_Accumulate(operands, 2, half, target, world_rank, 2, half, half_ops[i],
                                window.win));
        CHECK_OK(
            MPI_Fetch_and_op(operands, after, half, target, world_rank, half_ops[i], window.win));
        MPI_Get(after, HALVES, half, target, world_rank, HALVES, half, window.win);
        MPI_Win_flush(target, window.win);
        for (int k = 0; k < HALVES; k++) {
            uint16_t wanted = half_apply(half_ops[i], old[k], operands[k]);
            for (int again = 0; again < (k == 0 ? 2 : k == 1); again++)
                wanted = half_apply(half_ops[i], wanted, operands[k]);
            if (!CHECK(seen[k] == old[k], "operator %zu fetched %#x, not %#x", i, seen[k], old[k]))
                break;
            if (!CHECK(halves_equal(after[k], wanted),
                       "operator %zu: %#x and %#x give %#x, not %#x", i, old[k], operands[k],
                       after[k], wanted))
                break;
        }
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* All ranks add to the same numbers. */
static void halves_lose_no_update(enum window_kind kind)
{
    const uint16_t ones[8] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00};
    uint16_t seen;
    const int rounds = scaled_rounds(60);
    MPI_Datatype half;
    if (!has_extensions())
        return;
    MPIX_Type_float16(&half);
    struct window window = window_make(kind, 16, 2, MPI_COMM_WORLD);
    const uint16_t *halves = (const uint16_t *)window.base;
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < rounds; i++) {
        MPI_Fetch_and_op(ones, &seen, half, 0, i % 8, MPI_SUM, window.win);
        MPI_Accumulate(ones, 8, half, 0, 0, 8, half, MPI_SUM, window.win);
        MPI_Accumulate(ones, 1, half, 0, (i + 3) % 8, 1, half, MPI_SUM, window.win);
    }
    MPI_Win_flush(0, window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window.win);
    double total = 0;
    for (int i = 0; i < 8; i++)
        total += half_value(halves[i]);
    if (world_rank == 0)
        CHECK_EQUAL((int64_t)total, 10LL * world_size * rounds);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void complex_halves_compute(enum window_kind kind)
{
    uint16_t old[64][2], operands[64][2], seen[64][2], after[64][2];
    struct random random = random_start((uint64_t)world_rank + 4);
    MPI_Datatype type;
    if (!has_extensions())
        return;
    CHECK_OK(MPIX_Type_float16_complex(&type));
    struct window window =
        window_make(kind, (MPI_Aint)sizeof old * world_size, sizeof old, MPI_COMM_WORLD);
    const int target = right_of(world_rank);
    MPI_Win_lock_all(0, window.win);
    for (int product = 0; product < 2; product++) {
        for (int k = 0; k < 128; k++) { /* small numbers: exact results */
            old[k / 2][k % 2] = half_of((double)random_below(&random, 41) - 20);
            operands[k / 2][k % 2] = half_of((double)random_below(&random, 41) - 20);
        }
        MPI_Put(old, 64, type, target, world_rank, 64, type, window.win);
        MPI_Win_flush(target, window.win);
        CHECK_OK(MPI_Get_accumulate(operands, 64, type, seen, 64, type, target, world_rank, 64,
                                    type, product ? MPI_PROD : MPI_SUM, window.win));
        MPI_Win_flush(target, window.win);
        MPI_Get(after, 64, type, target, world_rank, 64, type, window.win);
        MPI_Win_flush(target, window.win);
        CHECK(memcmp(seen, old, sizeof seen) == 0, "the former numbers differ");
        for (int k = 0; k < 64; k++) {
            const double complex a = half_value(old[k][0]) + I * half_value(old[k][1]);
            const double complex b = half_value(operands[k][0]) + I * half_value(operands[k][1]);
            const double complex wanted = product ? a * b : a + b;
            CHECK(half_value(after[k][0]) == creal(wanted) &&
                      half_value(after[k][1]) == cimag(wanted),
                  "complex number %d is %g + %gi, not %g + %gi", k, half_value(after[k][0]),
                  half_value(after[k][1]), creal(wanted), cimag(wanted));
        }
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* A derived datatype of them, and what the host does with them. */
static void halves_are_datatypes(enum window_kind kind)
{
    uint16_t sent[8] = {0x3c00, 1, 0x3c00, 2, 0x3c00, 3, 0x3c00, 4}, got[8] = {0};
    MPI_Datatype half, again, parts, every_second;
    int size_bytes = 0;
    if (!has_extensions())
        return;
    struct window window = window_make(kind, 16, 2, MPI_COMM_WORLD);
    const int target = right_of(world_rank), from = (world_rank + world_size - 1) % world_size;
    CHECK_OK(MPIX_Type_float16(&half));
    CHECK_OK(MPIX_Type_float16(&again));
    CHECK_OK(MPIX_Type_float16_complex(&parts));
    CHECK(half == again, "the second call returns another handle");
    MPI_Type_size(half, &size_bytes);
    CHECK_EQUAL(size_bytes, 2);
    MPI_Type_size(parts, &size_bytes);
    CHECK_EQUAL(size_bytes, 4);
    MPI_Type_vector(4, 1, 2, half, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Win_fence(0, window.win);
    CHECK_OK(
        MPI_Accumulate(sent, 1, every_second, target, 0, 1, every_second, MPI_SUM, window.win));
    CHECK_OK(MPI_Accumulate(sent, 1, every_second, target, 0, 4, half, MPI_SUM, window.win));
    MPI_Win_fence(0, window.win);
    const uint16_t *halves = (const uint16_t *)window.base;
    CHECK_EQUAL(halves[0], 0x4000); /* 2 */
    CHECK_EQUAL(halves[1], 0x3c00);
    CHECK_EQUAL(halves[2], 0x4000);
    CHECK_EQUAL(halves[6], 0x3c00);
    CHECK_EQUAL(halves[5], 0);
    MPI_Sendrecv(sent, 8, half, target, 0, got, 4, parts, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK(memcmp(sent, got, sizeof got) == 0, "a message has other contents");
    MPI_Type_free(&every_second);
    window_free(&window);
}

static void operators_without_meaning_are_refused(enum window_kind kind)
{
    uint32_t number = 0, seen;
    MPI_Datatype half, parts;
    if (!has_extensions())
        return;
    MPIX_Type_float16(&half);
    MPIX_Type_float16_complex(&parts);
    struct window window = window_make(kind, 16, 2, MPI_COMM_WORLD);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_OP, MPI_Accumulate(&number, 1, half, 0, 0, 1, half, MPI_BOR, window.win));
    CHECK_CLASS(MPI_ERR_OP, MPI_Fetch_and_op(&number, &seen, half, 0, 0, MPI_LAND, window.win));
    CHECK_CLASS(MPI_ERR_OP, MPI_Accumulate(&number, 1, parts, 0, 0, 1, parts, MPI_MAX, window.win));
    CHECK_CLASS(MPI_ERR_TYPE,
                MPI_Compare_and_swap(&number, &number, &seen, half, 0, 0, window.win));
    CHECK_CLASS(MPI_ERR_TYPE,
                MPI_Accumulate(&number, 1, half, 0, 0, 1, MPI_INT16_T, MPI_SUM, window.win));
    MPI_Win_unlock_all(window.win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Type_float16(NULL));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Type_float16_complex(NULL));
    window_free(&window);
}

/* --- pairs --- */

#define PAIR(name, c_type)                                                                         \
    struct name {                                                                                  \
        c_type value;                                                                              \
        int64_t at;                                                                                \
    };
PAIR(float_at, float)
PAIR(double_at, double)
PAIR(long_double_at, long double)
PAIR(short_at, short)
PAIR(int_at, int)
PAIR(long_at, long)

enum form { STRUCT, RESIZED, DUPLICATED, FORMS };

static MPI_Datatype pair_type(MPI_Datatype value, MPI_Datatype index, MPI_Aint at_bytes,
                              enum form form, MPI_Aint extent_bytes)
{
    const int lengths[2] = {1, 1};
    const MPI_Aint disps[2] = {0, at_bytes};
    MPI_Datatype types[2] = {value, index}, pair, other;
    MPI_Type_create_struct(2, lengths, disps, types, &pair);
    other = pair;
    if (form == RESIZED)
        MPI_Type_create_resized(pair, 0, extent_bytes, &other);
    else if (form == DUPLICATED)
        MPI_Type_dup(pair, &other);
    if (form != STRUCT)
        MPI_Type_free(&pair);
    MPI_Type_commit(&other);
    return other;
}

/* Writes a pair, offers others with the same value, and reads it: by all forms of accumulate. The
 * datatype is freed before the start of the persistent one. */
#define PAIR_CASE(name, c_type, mpi_value, mpi_index)                                              \
    static void chosen_##name(MPI_Win win, enum form form, MPI_Op op)                              \
    {                                                                                              \
        const struct name stored = {3, INT64_C(1) << 40};                                          \
        struct name offered[3] = {{3, (INT64_C(1) << 40) + 1}, {3, INT64_C(-5)}, {3, 0}};          \
        struct name seen = {0, 0}, last = {0, 0};                                                  \
        const int target = right_of(world_rank);                                                   \
        MPI_Request request;                                                                       \
        MPI_Datatype pair =                                                                        \
            pair_type(mpi_value, mpi_index, offsetof(struct name, at), form, sizeof(struct name)); \
        CHECK_OK(MPI_Accumulate(&stored, 1, pair, target, world_rank, 1, pair, MPI_REPLACE, win)); \
        CHECK_OK(MPI_Accumulate(&offered[0], 1, pair, target, world_rank, 1, pair, op, win));      \
        CHECK_OK(MPI_Get_accumulate(&offered[1], 1, pair, &seen, 1, pair, target, world_rank, 1,   \
                                    pair, op, win));                                               \
        CHECK_OK(MPI_Fetch_and_op(&offered[2], &last, pair, target, world_rank, op, win));         \
        MPI_Win_flush(target, win);                                                                \
        CHECK(seen.value == 3 && seen.at == stored.at, #name ": the index is %lld",                \
              (long long)seen.at);                                                                 \
        CHECK(last.value == 3 && last.at == -5, #name ": the index is %lld", (long long)last.at);  \
        offered[0].value = op == MPI_MINLOC ? 2 : 4;                                               \
        CHECK_OK(MPI_Accumulate(&offered[0], 1, pair, target, world_rank, 1, pair, op, win));      \
        CHECK_OK(MPI_Get_accumulate(NULL, 0, pair, &seen, 1, pair, target, world_rank, 1, pair,    \
                                    MPI_NO_OP, win));                                              \
        MPI_Win_flush(target, win);                                                                \
        CHECK(seen.value == offered[0].value && seen.at == offered[0].at,                          \
              #name ": the index is %lld", (long long)seen.at);                                    \
        CHECK_OK(MPIX_Fetch_and_op_init(&offered[2], &last, pair, target, world_rank, op, win,     \
                                        &request));                                                \
        MPI_Type_free(&pair);                                                                      \
        for (int i = 0; i < 2 && !harness_failed(); i++) {                                         \
            offered[2].value = offered[0].value;                                                   \
            offered[2].at = -6;                                                                    \
            CHECK_OK(MPI_Start(&request));                                                         \
            CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                                       \
            CHECK(last.value == offered[0].value && last.at == (i == 0 ? offered[0].at : -6),      \
                  #name ": the index is %lld", (long long)last.at);                                \
        }                                                                                          \
        if (!harness_failed())                                                                     \
            MPI_Request_free(&request);                                                            \
    }
PAIR_CASE(float_at, float, MPI_FLOAT, MPI_INT64_T)
PAIR_CASE(double_at, double, MPI_DOUBLE, MPI_AINT)
PAIR_CASE(long_double_at, long double, MPI_LONG_DOUBLE, MPI_COUNT)
PAIR_CASE(short_at, short, MPI_SHORT, MPI_LONG)
PAIR_CASE(int_at, int, MPI_INT, MPI_LONG_LONG)
PAIR_CASE(long_at, long, MPI_LONG, MPI_INT64_T)

static void pairs_have_indices_of_64_bits(enum window_kind kind)
{
    static void (*const chosen[])(MPI_Win, enum form, MPI_Op) = {
        chosen_float_at, chosen_double_at, chosen_long_double_at,
        chosen_short_at, chosen_int_at,    chosen_long_at};
    if (!has_extensions())
        return;
    struct window window = window_make(kind, (MPI_Aint)32 * world_size, 32, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < COUNT_OF(chosen); i++)
        for (int form = STRUCT; form < FORMS; form++) {
            chosen[i](window.win, (enum form)form, MPI_MINLOC);
            chosen[i](window.win, (enum form)form, MPI_MAXLOC);
        }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* Many pairs at once, 40 bytes apart; the bytes between their fields never change. */
static void gaps_between_fields_never_change(enum window_kind kind)
{
    enum { MANY = 300, APART = 40 };
    static char bytes[MANY * APART];
    static struct float_at offered[MANY];
    if (!has_extensions())
        return;
    MPI_Datatype apart = pair_type(MPI_FLOAT, MPI_INT64_T, 8, RESIZED, APART);
    MPI_Datatype close = pair_type(MPI_FLOAT, MPI_INT64_T, 8, STRUCT, 0);
    struct window window = window_make(kind, sizeof bytes, 1, MPI_COMM_WORLD);
    const int target = right_of(world_rank);
    memset(window.base, 0x5a, sizeof bytes);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MANY; i++) {
        offered[i].value = (float)i;
        offered[i].at = i;
    }
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(MPI_Accumulate(offered, MANY, close, target, 0, MANY, apart, MPI_REPLACE, window.win));
    for (int i = 0; i < MANY; i++)
        offered[i].at = -i;
    CHECK_OK(MPI_Accumulate(offered, MANY, close, target, 0, MANY, apart, MPI_MAXLOC, window.win));
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MANY && !harness_failed(); i++) {
        struct float_at pair;
        memcpy(&pair, window.base + (size_t)i * APART, sizeof pair);
        CHECK(pair.value == (float)i && pair.at == -i, "pair %d is (%g, %lld)", i,
              (double)pair.value, (long long)pair.at);
        for (int k = 4; k < APART; k++)
            if (k < 8 || k >= 16)
                CHECK_EQUAL(window.base[i * APART + k], 0x5a);
    }
    window_free(&window);
    MPI_Type_free(&apart);
    MPI_Type_free(&close);
}

/* All ranks offer pairs whose index belongs to their value; each reader sees one pair. */
static void pairs_are_atomic(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank + 9);
    const int rounds = scaled_rounds(300);
    if (!has_extensions())
        return;
    MPI_Datatype pair = pair_type(MPI_LONG, MPI_INT64_T, 8, STRUCT, 0);
    struct window window = window_make(kind, 32, 8, MPI_COMM_WORLD);
    const struct long_at first = {INT32_MAX, 7LL * INT32_MAX};
    struct long_at seen;
    if (world_rank == 0)
        memcpy(window.base, &first, sizeof first);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < rounds && !harness_failed(); i++) {
        struct long_at offered = {(long)random_below(&random, INT32_MAX), 0};
        offered.at = 7 * (int64_t)offered.value;
        CHECK_OK(MPI_Get_accumulate(&offered, 1, pair, &seen, 1, pair, 0, 0, 1, pair,
                                    i % 2 ? MPI_REPLACE : MPI_MINLOC, window.win));
        MPI_Win_flush(0, window.win);
        CHECK_EQUAL(seen.at, 7 * (int64_t)seen.value);
        /* one field by itself: adding 0 stores the field */
        CHECK_OK(MPI_Fetch_and_op(&(long){0}, &seen.value, MPI_LONG, 0, 0, MPI_SUM, window.win));
        CHECK_OK(MPI_Get_accumulate(NULL, 0, pair, &seen, 1, pair, 0, 0, 1, pair, MPI_NO_OP,
                                    window.win));
        MPI_Win_flush(0, window.win);
        CHECK_EQUAL(seen.at, 7 * (int64_t)seen.value);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
    MPI_Type_free(&pair);
}

static void other_structs_are_no_pairs(enum window_kind kind)
{
    char bytes[64] = {0};
    MPI_Request request;
    if (!has_extensions())
        return;
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    MPI_Datatype types[] = {
        pair_type(MPI_DOUBLE, MPI_INT64_T, 16, STRUCT, 0),    /* not as in C */
        pair_type(MPI_DOUBLE, MPI_UINT64_T, 8, STRUCT, 0),    /* not signed */
        pair_type(MPI_DOUBLE, MPI_DOUBLE, 8, STRUCT, 0),      /* no index */
        pair_type(MPI_C_BOOL, MPI_INT64_T, 8, STRUCT, 0),     /* no order */
        pair_type(MPI_DOUBLE_INT, MPI_INT64_T, 16, STRUCT, 0) /* a pair and an index */
    };
    MPI_Datatype good = pair_type(MPI_LONG, MPI_INT64_T, 8, STRUCT, 0);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        int code = MPI_Accumulate(bytes, 1, types[i], 0, 0, 1, types[i], MPI_MINLOC, window.win);
        int error_class = MPI_SUCCESS;
        MPI_Error_class(code, &error_class);
        CHECK(error_class == MPI_ERR_TYPE || error_class == MPI_ERR_OP, "struct %zu: class %d", i,
              error_class);
        CHECK_CLASS(MPI_ERR_TYPE, MPIX_Fetch_and_op_init(bytes, bytes, types[i], 0, 0, MPI_MINLOC,
                                                         window.win, &request));
        MPI_Type_free(&types[i]);
    }
    /* a pair of two integers is also two integers */
    CHECK_OK(MPI_Accumulate(bytes, 1, good, 0, 0, 1, good, MPI_SUM, window.win));
    CHECK_OK(MPI_Accumulate(bytes, 1, good, 0, 0, 2, MPI_INT64_T, MPI_SUM, window.win));
    CHECK_CLASS(MPI_ERR_OP,
                MPI_Accumulate(bytes, 1, good, 0, 0, 2, MPI_INT64_T, MPI_MINLOC, window.win));
    /* but not one element */
    CHECK_CLASS(MPI_ERR_OP, MPI_Fetch_and_op(bytes, bytes, good, 0, 0, MPI_SUM, window.win));
    CHECK_CLASS(MPI_ERR_OP,
                MPIX_Fetch_and_op_init(bytes, bytes, good, 0, 0, MPI_SUM, window.win, &request));
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&good);
    window_free(&window);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(halves_compute, KINDS_ALL, 1),
        CASE(halves_lose_no_update, KINDS_BOTH, 1),
        CASE(complex_halves_compute, KINDS_BOTH, 1),
        CASE(halves_are_datatypes, KINDS_BOTH, 1),
        CASE(operators_without_meaning_are_refused, KINDS_BOTH, 1),
        CASE(pairs_have_indices_of_64_bits, KINDS_ALL, 1),
        CASE(gaps_between_fields_never_change, KINDS_BOTH, 1),
        CASE(pairs_are_atomic, KINDS_BOTH, 1),
        CASE(other_structs_are_no_pairs, KINDS_BOTH, 1),
    };
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
