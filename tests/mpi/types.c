/* The predefined datatypes with a model of their values, one table row for each type. Values are
 * small or single bits, so every operator's result is exact in every type of its group. */
#include "types.h"

#include <complex.h>
#include <string.h>
#include <wchar.h>

#define PLAIN(mpi, c, group)                                                                       \
    {                                                                                              \
#mpi, mpi, group, sizeof(c), group, sizeof(c), 0, 0, false, false                          \
    }
#define FORTRAN(mpi, c)                                                                            \
    {                                                                                              \
#mpi, mpi, GROUP_SIGNED, sizeof(c), GROUP_SIGNED, sizeof(c), 0, 0, true, false             \
    }
#define MULTI(mpi, c)                                                                              \
    {                                                                                              \
#mpi, mpi, GROUP_SIGNED, sizeof(c), GROUP_SIGNED, sizeof(c), 0, 0, false, true             \
    }
#define PAIR(mpi, pair, value_group, c, index)                                                     \
    {                                                                                              \
#mpi, mpi, GROUP_PAIR, sizeof(struct pair), value_group, sizeof(c),                        \
            offsetof(struct pair, at), sizeof(index), false, false                                 \
    }

struct float_int {
    float value;
    int at;
};
struct double_int {
    double value;
    int at;
};
struct long_int {
    long value;
    int at;
};
struct two_int {
    int value;
    int at;
};
struct short_int {
    short value;
    int at;
};
struct long_double_int {
    long double value;
    int at;
};
struct two_float {
    float value;
    float at;
};
struct two_double {
    double value;
    double at;
};

#if defined __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif
struct quad_complex {
    quad parts[2];
};

const struct test_type test_types[] = {
#include "types.def"
};
const size_t test_type_count = COUNT_OF(test_types);

const struct test_op test_ops[] = {
    {"MPI_MAX", MPI_MAX},         {"MPI_MIN", MPI_MIN},       {"MPI_SUM", MPI_SUM},
    {"MPI_PROD", MPI_PROD},       {"MPI_LAND", MPI_LAND},     {"MPI_LOR", MPI_LOR},
    {"MPI_LXOR", MPI_LXOR},       {"MPI_BAND", MPI_BAND},     {"MPI_BOR", MPI_BOR},
    {"MPI_BXOR", MPI_BXOR},       {"MPI_MINLOC", MPI_MINLOC}, {"MPI_MAXLOC", MPI_MAXLOC},
    {"MPI_REPLACE", MPI_REPLACE},
};
const size_t test_op_count = COUNT_OF(test_ops);

static bool is_logical_op(MPI_Op op)
{
    return op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR;
}
static bool is_bit_op(MPI_Op op)
{
    return op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR;
}
static bool is_order_op(MPI_Op op)
{
    return op == MPI_MAX || op == MPI_MIN;
}
static bool is_ring_op(MPI_Op op)
{
    return op == MPI_SUM || op == MPI_PROD;
}
static bool is_location_op(MPI_Op op)
{
    return op == MPI_MINLOC || op == MPI_MAXLOC;
}

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
    case GROUP_FLOATING:
    case GROUP_QUAD: return is_order_op(op) || is_ring_op(op);
    case GROUP_COMPLEX:
    case GROUP_QUAD_COMPLEX: return is_ring_op(op);
    case GROUP_LOGICAL: return is_logical_op(op);
    case GROUP_BYTE: return is_bit_op(op);
    case GROUP_PAIR: return is_location_op(op);
    default: return false;
    }
}

bool type_is_letters(const struct test_type *type)
{
    return type->group == GROUP_MOVED && type->extent_bytes == 1;
}

bool type_tolerates(const struct test_type *type, MPI_Op op)
{
    if (type->group == GROUP_BYTE || type_is_letters(type))
        return !type_allows(type, op) && !is_location_op(op);
    return is_logical_op(op) && (type->fortran_integer || type->multi_language);
}

bool type_exists(const struct test_type *type)
{
    int size_bytes = 0;
    if (type->type == MPI_DATATYPE_NULL || MPI_Type_size(type->type, &size_bytes) != MPI_SUCCESS)
        return false;
    return (size_t)size_bytes == type->value_bytes + type->index_bytes;
}

bool type_is_padding(const struct test_type *type, size_t byte)
{
    return type->group == GROUP_PAIR && byte >= type->value_bytes &&
           (byte < type->index_offset_bytes ||
            byte >= type->index_offset_bytes + type->index_bytes);
}

bool type_allows_swap(const struct test_type *type)
{
    return type->group == GROUP_SIGNED || type->group == GROUP_UNSIGNED ||
           type->group == GROUP_LOGICAL || type->group == GROUP_BYTE;
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

/* Little-endian, like every platform of these tests. */
static void integer_store(void *at, size_t bytes, int64_t value)
{
    memcpy(at, &value, bytes);
}

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

static long double quad_load(const void *at)
{
    quad value;
    memcpy(&value, at, sizeof value);
    return (long double)value;
}

static void quad_store(void *at, long double value)
{
    quad wide = value;
    memcpy(at, &wide, sizeof wide);
}

/* One part of a real or complex element. */
static long double part_load(enum type_group group, const void *at, size_t bytes)
{
    bool is_quad = group == GROUP_QUAD || group == GROUP_QUAD_COMPLEX;
    return is_quad ? quad_load(at) : floating_load(at, bytes);
}

static void part_store(enum type_group group, void *at, size_t bytes, long double value)
{
    if (group == GROUP_QUAD || group == GROUP_QUAD_COMPLEX)
        quad_store(at, value);
    else
        floating_store(at, bytes, value);
}

static bool is_complex(const struct test_type *type)
{
    return type->group == GROUP_COMPLEX || type->group == GROUP_QUAD_COMPLEX;
}

static void value_store(enum type_group group, void *at, size_t bytes, struct random *random)
{
    int64_t small = (int64_t)random_below(random, 21) - 10;
    if (group == GROUP_SIGNED)
        integer_store(at, bytes, random_below(random, 3) ? small : (int64_t)random_next(random));
    else if (group == GROUP_FLOATING || group == GROUP_QUAD)
        part_store(group, at, bytes, (long double)small / 2);
    else if (group == GROUP_LOGICAL)
        integer_store(at, bytes, small > 0);
    else
        for (size_t done = 0; done < bytes; done += sizeof(int64_t))
            integer_store((char *)at + done, bytes - done < 8 ? bytes - done : 8,
                          (int64_t)random_next(random));
}

/* Fortran's pairs of reals have a real index. */
static enum type_group index_group(const struct test_type *type)
{
    bool real = type->type == MPI_2REAL || type->type == MPI_2DOUBLE_PRECISION;
    return real ? GROUP_FLOATING : GROUP_SIGNED;
}

void type_fill(const struct test_type *type, void *element, struct random *random,
               unsigned char padding)
{
    char *at = element;
    memset(at, padding, type->extent_bytes);
    if (is_complex(type)) {
        enum type_group parts = type->group == GROUP_COMPLEX ? GROUP_FLOATING : GROUP_QUAD;
        value_store(parts, at, type->extent_bytes / 2, random);
        value_store(parts, at + type->extent_bytes / 2, type->extent_bytes / 2, random);
        return;
    }
    value_store(type->value_group, at, type->value_bytes, random);
    if (type->group == GROUP_PAIR)
        value_store(index_group(type), at + type->index_offset_bytes, type->index_bytes, random);
}

static void field_set(enum type_group group, char *at, size_t bytes, int value)
{
    if (group == GROUP_FLOATING || group == GROUP_QUAD)
        part_store(group, at, bytes, value);
    else
        integer_store(at, bytes, value);
}

void type_set(const struct test_type *type, void *element, int value)
{
    char *at = element;
    memset(at, 0, type->extent_bytes);
    if (type->group == GROUP_COMPLEX) {
        field_set(GROUP_FLOATING, at, type->extent_bytes / 2, value);
    } else if (type->group == GROUP_QUAD_COMPLEX) {
        field_set(GROUP_QUAD, at, type->extent_bytes / 2, value);
    } else {
        field_set(type->value_group, at, type->value_bytes, value);
        if (type->group == GROUP_PAIR)
            field_set(index_group(type), at + type->index_offset_bytes, type->index_bytes, value);
    }
}

static int64_t integer_combine(MPI_Op op, int64_t old, int64_t new)
{
    if (op == MPI_MAX)
        return old > new ? old : new;
    if (op == MPI_MIN)
        return old < new ? old : new;
    if (op == MPI_SUM)
        return (int64_t)((uint64_t)old + (uint64_t) new);
    if (op == MPI_PROD)
        return (int64_t)((uint64_t)old * (uint64_t) new);
    if (op == MPI_LAND)
        return old && new;
    if (op == MPI_LOR)
        return old || new;
    if (op == MPI_LXOR)
        return !old != !new;
    if (op == MPI_BAND)
        return old & new;
    if (op == MPI_BOR)
        return old | new;
    return old ^ new;
}

/* Sums, products and bits are the same in two's complement; only the order differs. */
static uint64_t unsigned_combine(MPI_Op op, uint64_t old, uint64_t new)
{
    if (op == MPI_MAX)
        return old > new ? old : new;
    if (op == MPI_MIN)
        return old < new ? old : new;
    if (op == MPI_SUM)
        return old + new;
    if (op == MPI_PROD)
        return old * new;
    return (uint64_t)integer_combine(op, (int64_t)old, (int64_t) new);
}

static long double floating_combine(MPI_Op op, long double old, long double new)
{
    if (op == MPI_MAX)
        return old > new ? old : new;
    if (op == MPI_MIN)
        return old < new ? old : new;
    return op == MPI_SUM ? old + new : old *new;
}

static void complex_apply(const struct test_type *type, MPI_Op op, char *target,
                          const char *operand)
{
    enum type_group group = type->group;
    size_t bytes = type->extent_bytes / 2;
    long double a = part_load(group, target, bytes), b = part_load(group, target + bytes, bytes);
    long double c = part_load(group, operand, bytes), d = part_load(group, operand + bytes, bytes);
    part_store(group, target, bytes, op == MPI_SUM ? a + c : a * c - b * d);
    part_store(group, target + bytes, bytes, op == MPI_SUM ? b + d : a * d + b * c);
}

static void pair_copy(const struct test_type *type, char *target, const char *operand)
{
    memcpy(target, operand, type->value_bytes);
    memcpy(target + type->index_offset_bytes, operand + type->index_offset_bytes,
           type->index_bytes);
}

static int field_compare(enum type_group group, size_t bytes, const char *left, const char *right)
{
    if (group == GROUP_FLOATING) {
        long double a = floating_load(left, bytes), b = floating_load(right, bytes);
        return (a > b) - (a < b);
    }
    int64_t a = integer_load(left, bytes), b = integer_load(right, bytes);
    return (a > b) - (a < b);
}

static int value_compare(const struct test_type *type, const char *left, const char *right)
{
    return field_compare(type->value_group, type->value_bytes, left, right);
}

static void pair_apply(const struct test_type *type, MPI_Op op, char *target, const char *operand)
{
    int order = value_compare(type, operand, target);
    bool lower =
        field_compare(index_group(type), type->index_bytes, operand + type->index_offset_bytes,
                      target + type->index_offset_bytes) < 0;
    if (order == 0 ? lower : op == MPI_MINLOC ? order < 0 : order > 0)
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
    } else if (is_complex(type)) {
        complex_apply(type, op, target, operand);
    } else if (type->group == GROUP_FLOATING || type->group == GROUP_QUAD) {
        long double old = part_load(type->group, target, bytes),
                    new = part_load(type->group, operand, bytes);
        part_store(type->group, target, bytes, floating_combine(op, old, new));
    } else if (type->group == GROUP_UNSIGNED || type->group == GROUP_BYTE) {
        uint64_t result =
            unsigned_combine(op, unsigned_load(target, bytes), unsigned_load(operand, bytes));
        integer_store(target, bytes, (int64_t)result);
    } else {
        integer_store(
            target, bytes,
            integer_combine(op, integer_load(target, bytes), integer_load(operand, bytes)));
    }
}

bool type_equal(const struct test_type *type, const void *left, const void *right)
{
    const char *a = left, *b = right;
    size_t bytes = type->extent_bytes;
    if (type->group == GROUP_FLOATING || type->group == GROUP_QUAD)
        return part_load(type->group, a, bytes) == part_load(type->group, b, bytes);
    if (is_complex(type))
        return part_load(type->group, a, bytes / 2) == part_load(type->group, b, bytes / 2) &&
               part_load(type->group, a + bytes / 2, bytes / 2) ==
                   part_load(type->group, b + bytes / 2, bytes / 2);
    if (type->group == GROUP_PAIR && type->value_bytes == sizeof(long double)) {
        size_t tail = type->index_offset_bytes + type->index_bytes;
        return value_compare(type, a, b) == 0 &&
               memcmp(a + type->index_offset_bytes, b + type->index_offset_bytes,
                      type->index_bytes) == 0 &&
               memcmp(a + tail, b + tail, bytes - tail) == 0;
    }
    return memcmp(a, b, bytes) == 0;
}
