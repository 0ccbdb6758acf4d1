/* The predefined datatypes with a model of their values, one table row for each type.
 * Values are small or single bits, so that every operator's result is exact in every type of its group.
 * Called by the test programs in this folder. */
#include "types.h"

#include <complex.h>
#include <string.h>
#include <wchar.h>

#define PLAIN(mpi, c, group) { #mpi, mpi, group, sizeof(c), group, sizeof(c), 0, 0, false, false }
#define FORTRAN(mpi, c) { #mpi, mpi, GROUP_SIGNED, sizeof(c), GROUP_SIGNED, sizeof(c), 0, 0, true, false }
#define MULTI(mpi, c) { #mpi, mpi, GROUP_SIGNED, sizeof(c), GROUP_SIGNED, sizeof(c), 0, 0, false, true }
#define PAIR(mpi, pair, value_group, c, index) \
    { #mpi, mpi, GROUP_PAIR, sizeof(struct pair), value_group, sizeof(c), offsetof(struct pair, at), sizeof(index), \
      false, false }

struct float_int { float value; int at; };
struct double_int { double value; int at; };
struct long_int { long value; int at; };
struct two_int { int value; int at; };
struct short_int { short value; int at; };
struct long_double_int { long double value; int at; };

const struct test_type test_types[] = {
    PLAIN(MPI_CHAR, char, GROUP_CHARACTER),
    PLAIN(MPI_WCHAR, wchar_t, GROUP_CHARACTER),
    PLAIN(MPI_CHARACTER, char, GROUP_CHARACTER),
    PLAIN(MPI_BYTE, char, GROUP_BYTE),
    PLAIN(MPI_SIGNED_CHAR, signed char, GROUP_SIGNED),
    PLAIN(MPI_SHORT, short, GROUP_SIGNED),
    PLAIN(MPI_INT, int, GROUP_SIGNED),
    PLAIN(MPI_LONG, long, GROUP_SIGNED),
    PLAIN(MPI_LONG_LONG, long long, GROUP_SIGNED),
    PLAIN(MPI_UNSIGNED_CHAR, unsigned char, GROUP_UNSIGNED),
    PLAIN(MPI_UNSIGNED_SHORT, unsigned short, GROUP_UNSIGNED),
    PLAIN(MPI_UNSIGNED, unsigned, GROUP_UNSIGNED),
    PLAIN(MPI_UNSIGNED_LONG, unsigned long, GROUP_UNSIGNED),
    PLAIN(MPI_UNSIGNED_LONG_LONG, unsigned long long, GROUP_UNSIGNED),
    PLAIN(MPI_INT8_T, int8_t, GROUP_SIGNED),
    PLAIN(MPI_INT16_T, int16_t, GROUP_SIGNED),
    PLAIN(MPI_INT32_T, int32_t, GROUP_SIGNED),
    PLAIN(MPI_INT64_T, int64_t, GROUP_SIGNED),
    PLAIN(MPI_UINT8_T, uint8_t, GROUP_UNSIGNED),
    PLAIN(MPI_UINT16_T, uint16_t, GROUP_UNSIGNED),
    PLAIN(MPI_UINT32_T, uint32_t, GROUP_UNSIGNED),
    PLAIN(MPI_UINT64_T, uint64_t, GROUP_UNSIGNED),
    PLAIN(MPI_FLOAT, float, GROUP_FLOATING),
    PLAIN(MPI_DOUBLE, double, GROUP_FLOATING),
    PLAIN(MPI_LONG_DOUBLE, long double, GROUP_FLOATING),
    PLAIN(MPI_C_BOOL, _Bool, GROUP_LOGICAL),
    PLAIN(MPI_C_FLOAT_COMPLEX, float complex, GROUP_COMPLEX),
    PLAIN(MPI_C_DOUBLE_COMPLEX, double complex, GROUP_COMPLEX),
    PLAIN(MPI_C_LONG_DOUBLE_COMPLEX, long double complex, GROUP_COMPLEX),
    PLAIN(MPI_CXX_BOOL, _Bool, GROUP_LOGICAL),
    PLAIN(MPI_CXX_FLOAT_COMPLEX, float complex, GROUP_COMPLEX),
    PLAIN(MPI_CXX_DOUBLE_COMPLEX, double complex, GROUP_COMPLEX),
    PLAIN(MPI_CXX_LONG_DOUBLE_COMPLEX, long double complex, GROUP_COMPLEX),
    MULTI(MPI_AINT, MPI_Aint),
    MULTI(MPI_OFFSET, MPI_Offset),
    MULTI(MPI_COUNT, MPI_Count),
    FORTRAN(MPI_INTEGER, MPI_Fint),
    FORTRAN(MPI_INTEGER1, int8_t),
    FORTRAN(MPI_INTEGER2, int16_t),
    FORTRAN(MPI_INTEGER4, int32_t),
    FORTRAN(MPI_INTEGER8, int64_t),
    PLAIN(MPI_REAL, float, GROUP_FLOATING),
    PLAIN(MPI_REAL4, float, GROUP_FLOATING),
    PLAIN(MPI_REAL8, double, GROUP_FLOATING),
    PLAIN(MPI_DOUBLE_PRECISION, double, GROUP_FLOATING),
    PLAIN(MPI_LOGICAL, MPI_Fint, GROUP_LOGICAL),
    PLAIN(MPI_COMPLEX, float complex, GROUP_COMPLEX),
    PLAIN(MPI_DOUBLE_COMPLEX, double complex, GROUP_COMPLEX),
    PLAIN(MPI_COMPLEX8, float complex, GROUP_COMPLEX),
    PLAIN(MPI_COMPLEX16, double complex, GROUP_COMPLEX),
    PAIR(MPI_FLOAT_INT, float_int, GROUP_FLOATING, float, int),
    PAIR(MPI_DOUBLE_INT, double_int, GROUP_FLOATING, double, int),
    PAIR(MPI_LONG_INT, long_int, GROUP_SIGNED, long, int),
    PAIR(MPI_2INT, two_int, GROUP_SIGNED, int, int),
    PAIR(MPI_SHORT_INT, short_int, GROUP_SIGNED, short, int),
    PAIR(MPI_LONG_DOUBLE_INT, long_double_int, GROUP_FLOATING, long double, int),
    PAIR(MPI_2INTEGER, two_int, GROUP_SIGNED, MPI_Fint, MPI_Fint),
};
const size_t test_type_count = COUNT_OF(test_types);

const struct test_op test_ops[] = {
    { "MPI_MAX", MPI_MAX }, { "MPI_MIN", MPI_MIN }, { "MPI_SUM", MPI_SUM }, { "MPI_PROD", MPI_PROD },
    { "MPI_LAND", MPI_LAND }, { "MPI_LOR", MPI_LOR }, { "MPI_LXOR", MPI_LXOR },
    { "MPI_BAND", MPI_BAND }, { "MPI_BOR", MPI_BOR }, { "MPI_BXOR", MPI_BXOR },
    { "MPI_MINLOC", MPI_MINLOC }, { "MPI_MAXLOC", MPI_MAXLOC }, { "MPI_REPLACE", MPI_REPLACE },
};
const size_t test_op_count = COUNT_OF(test_ops);

static bool is_logical_op(MPI_Op op) { return op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR; }
static bool is_bit_op(MPI_Op op) { return op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR; }
static bool is_order_op(MPI_Op op) { return op == MPI_MAX || op == MPI_MIN; }
static bool is_ring_op(MPI_Op op) { return op == MPI_SUM || op == MPI_PROD; }
static bool is_location_op(MPI_Op op) { return op == MPI_MINLOC || op == MPI_MAXLOC; }

bool type_allows(const struct test_type *type, MPI_Op op)
{
    if (op == MPI_REPLACE)
        return true;
    switch (type->group) {
    case GROUP_SIGNED:
    case GROUP_UNSIGNED:
        if (is_logical_op(op))
            return !type->fortran_integer && !type->multi_language;
        return is_order_op(op) || is_ring_op(op) || is_bit_op(op);
    case GROUP_FLOATING: return is_order_op(op) || is_ring_op(op);
    case GROUP_COMPLEX: return is_ring_op(op);
    case GROUP_LOGICAL: return is_logical_op(op);
    case GROUP_BYTE: return is_bit_op(op);
    case GROUP_PAIR: return is_location_op(op);
    default: return false;
    }
}

bool type_allows_swap(const struct test_type *type)
{
    return type->group == GROUP_SIGNED || type->group == GROUP_UNSIGNED || type->group == GROUP_LOGICAL ||
           type->group == GROUP_BYTE;
}

static int64_t integer_load(const void *at, size_t bytes)
{
    int8_t one;
    int16_t two;
    int32_t four;
    int64_t eight;
    switch (bytes) {
    case 1: memcpy(&one, at, 1); return one;
    case 2: memcpy(&two, at, 2); return two;
    case 4: memcpy(&four, at, 4); return four;
    default: memcpy(&eight, at, 8); return eight;
    }
}

/* Little-endian, as every machine these tests run on. */
static void integer_store(void *at, size_t bytes, int64_t value) { memcpy(at, &value, bytes); }

static uint64_t unsigned_load(const void *at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static long double floating_load(const void *at, size_t bytes)
{
    float four;
    double eight;
    long double wide;
    switch (bytes) {
    case sizeof(float): memcpy(&four, at, sizeof four); return four;
    case sizeof(double): memcpy(&eight, at, sizeof eight); return eight;
    default: memcpy(&wide, at, sizeof wide); return wide;
    }
}

static void floating_store(void *at, size_t bytes, long double value)
{
    float four = (float)value;
    double eight = (double)value;
    if (bytes == sizeof four)
        memcpy(at, &four, sizeof four);
    else if (bytes == sizeof eight)
        memcpy(at, &eight, sizeof eight);
    else
        memcpy(at, &value, sizeof value);
}

static void value_store(enum type_group group, void *at, size_t bytes, struct random *random)
{
    int64_t small = (int64_t)random_below(random, 21) - 10;
    if (group == GROUP_SIGNED)
        integer_store(at, bytes, small);
    else if (group == GROUP_FLOATING)
        floating_store(at, bytes, (long double)small / 2);
    else if (group == GROUP_LOGICAL)
        integer_store(at, bytes, small > 0);
    else
        integer_store(at, bytes, (int64_t)random_next(random));
}

void type_fill(const struct test_type *type, void *element, struct random *random, unsigned char padding)
{
    char *at = element;
    memset(at, padding, type->extent_bytes);
    if (type->group == GROUP_COMPLEX) {
        value_store(GROUP_FLOATING, at, type->extent_bytes / 2, random);
        value_store(GROUP_FLOATING, at + type->extent_bytes / 2, type->extent_bytes / 2, random);
        return;
    }
    value_store(type->value_group, at, type->value_bytes, random);
    if (type->group == GROUP_PAIR)
        value_store(GROUP_SIGNED, at + type->index_offset_bytes, type->index_bytes, random);
}

static int64_t integer_combine(MPI_Op op, int64_t old, int64_t new)
{
    if (op == MPI_MAX) return old > new ? old : new;
    if (op == MPI_MIN) return old < new ? old : new;
    if (op == MPI_SUM) return old + new;
    if (op == MPI_PROD) return old * new;
    if (op == MPI_LAND) return old && new;
    if (op == MPI_LOR) return old || new;
    if (op == MPI_LXOR) return !old != !new;
    if (op == MPI_BAND) return old & new;
    if (op == MPI_BOR) return old | new;
    return old ^ new;
}

/* Sums, products and bits are the same in two's complement; only the order differs. */
static uint64_t unsigned_combine(MPI_Op op, uint64_t old, uint64_t new)
{
    if (op == MPI_MAX) return old > new ? old : new;
    if (op == MPI_MIN) return old < new ? old : new;
    if (op == MPI_SUM) return old + new;
    if (op == MPI_PROD) return old * new;
    return (uint64_t)integer_combine(op, (int64_t)old, (int64_t)new);
}

static long double floating_combine(MPI_Op op, long double old, long double new)
{
    if (op == MPI_MAX) return old > new ? old : new;
    if (op == MPI_MIN) return old < new ? old : new;
    return op == MPI_SUM ? old + new : old * new;
}

static void complex_apply(size_t part_bytes, MPI_Op op, char *target, const char *operand)
{
    long double a = floating_load(target, part_bytes), b = floating_load(target + part_bytes, part_bytes);
    long double c = floating_load(operand, part_bytes), d = floating_load(operand + part_bytes, part_bytes);
    floating_store(target, part_bytes, op == MPI_SUM ? a + c : a * c - b * d);
    floating_store(target + part_bytes, part_bytes, op == MPI_SUM ? b + d : a * d + b * c);
}

static void pair_copy(const struct test_type *type, char *target, const char *operand)
{
    memcpy(target, operand, type->value_bytes);
    memcpy(target + type->index_offset_bytes, operand + type->index_offset_bytes, type->index_bytes);
}

static int value_compare(const struct test_type *type, const char *left, const char *right)
{
    if (type->value_group == GROUP_FLOATING) {
        long double a = floating_load(left, type->value_bytes), b = floating_load(right, type->value_bytes);
        return (a > b) - (a < b);
    }
    int64_t a = integer_load(left, type->value_bytes), b = integer_load(right, type->value_bytes);
    return (a > b) - (a < b);
}

static void pair_apply(const struct test_type *type, MPI_Op op, char *target, const char *operand)
{
    int order = value_compare(type, operand, target);
    int64_t old_index = integer_load(target + type->index_offset_bytes, type->index_bytes);
    int64_t new_index = integer_load(operand + type->index_offset_bytes, type->index_bytes);
    if (order == 0 ? new_index < old_index : op == MPI_MINLOC ? order < 0 : order > 0)
        pair_copy(type, target, operand);
}

void type_apply(const struct test_type *type, MPI_Op op, void *target, const void *operand)
{
    size_t bytes = type->extent_bytes;
    if (type->group == GROUP_PAIR) {
        if (op == MPI_REPLACE)
            pair_copy(type, target, operand);
        else
            pair_apply(type, op, target, operand);
    } else if (op == MPI_REPLACE) {
        memcpy(target, operand, bytes);
    } else if (type->group == GROUP_COMPLEX) {
        complex_apply(bytes / 2, op, target, operand);
    } else if (type->group == GROUP_FLOATING) {
        floating_store(target, bytes, floating_combine(op, floating_load(target, bytes), floating_load(operand, bytes)));
    } else if (type->group == GROUP_UNSIGNED) {
        uint64_t result = unsigned_combine(op, unsigned_load(target, bytes), unsigned_load(operand, bytes));
        integer_store(target, bytes, (int64_t)result);
    } else {
        integer_store(target, bytes, integer_combine(op, integer_load(target, bytes), integer_load(operand, bytes)));
    }
}

bool type_equal(const struct test_type *type, const void *left, const void *right)
{
    const char *a = left, *b = right;
    size_t bytes = type->extent_bytes;
    if (type->group == GROUP_FLOATING)
        return floating_load(a, bytes) == floating_load(b, bytes);
    if (type->group == GROUP_COMPLEX)
        return floating_load(a, bytes / 2) == floating_load(b, bytes / 2) &&
               floating_load(a + bytes / 2, bytes / 2) == floating_load(b + bytes / 2, bytes / 2);
    if (type->group == GROUP_PAIR && type->value_bytes == sizeof(long double)) {
        size_t tail = type->index_offset_bytes + type->index_bytes;
        return value_compare(type, a, b) == 0 &&
               memcmp(a + type->index_offset_bytes, b + type->index_offset_bytes, type->index_bytes) == 0 &&
               memcmp(a + tail, b + tail, bytes - tail) == 0;
    }
    return memcmp(a, b, bytes) == 0;
}
