/* Kernels: which types have which operators; that plain and native updates never meet on one
 * element; and the results for types that hosts rarely support. MPI tests check the other types,
 * against a model. Each test owns its elements. */
#include "reduce/kind.h"

#include "base/valgrind.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "cmocka_all.h"

/* Either every operator updates an element natively or none does: a mixture would lose updates. */
static void kernels_of_a_kind_are_all_native_or_all_plain(void **state)
{
    (void)state;
    for (int kind = 0; kind < ORIEL_KIND_COUNT; kind++) {
        const struct oriel_kind_properties *properties = &oriel_kinds[kind];
        bool native = properties->native[ORIEL_OPERATOR_REPLACE] != NULL;
        for (int op = 0; op < ORIEL_OPERATOR_COUNT; op++) {
            if (properties->plain[op] == NULL)
                assert_null(properties->native[op]);
            else
                assert_int_equal(properties->native[op] != NULL, native);
        }
    }
}

static void every_kind_moves(void **state)
{
    (void)state;
    for (int kind = 0; kind < ORIEL_KIND_COUNT; kind++) {
        assert_non_null(oriel_kinds[kind].plain[ORIEL_OPERATOR_REPLACE]);
        assert_non_null(oriel_kinds[kind].plain[ORIEL_OPERATOR_NO_OP]);
    }
}

/* A native element is a machine word, so alignment to its size suffices for the CPU. */
static void native_elements_are_machine_words(void **state)
{
    (void)state;
    for (int kind = 0; kind < ORIEL_KIND_COUNT; kind++) {
        uint32_t bytes = oriel_kinds[kind].extent_bytes;
        if (oriel_kinds[kind].native[ORIEL_OPERATOR_REPLACE] != NULL)
            assert_true(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    }
}

static void pairs_have_their_fields_inside(void **state)
{
    (void)state;
    for (int kind = 0; kind < ORIEL_KIND_COUNT; kind++) {
        const struct oriel_kind_properties *properties = &oriel_kinds[kind];
        uint32_t fields = properties->value_bytes + properties->index_bytes;
        assert_true(properties->index_offset + properties->index_bytes <= properties->extent_bytes);
        assert_int_equal(properties->padded, fields != properties->extent_bytes);
        assert_int_equal(properties->index_bytes != 0,
                         properties->plain[ORIEL_OPERATOR_MINLOC] != NULL);
    }
}

/* Misaligned, with the old elements as the result. */
static void apply(enum oriel_kind kind, enum oriel_operator operator, void * target,
                  const void *origin)
{
    char elements[65] = {0};
    char operand[65] = {0};
    char result[65] = {0};
    uint32_t bytes = oriel_kinds[kind].extent_bytes;
    memcpy(elements + 1, target, bytes);
    memcpy(elements + 1 + bytes, target, bytes);
    memcpy(operand + 1, origin, bytes);
    memcpy(operand + 1 + bytes, origin, bytes);
    oriel_kinds[kind].plain[operator](elements + 1, operand + 1, result + 1, 2);
    assert_memory_equal(result + 1, target, bytes);
    assert_memory_equal(result + 1 + bytes, target, bytes);
    assert_memory_equal(elements + 1, elements + 1 + bytes, bytes);
    memcpy(target, elements + 1, bytes);
}

#if ORIEL_HAS_INT128
static oriel_int128 wide(int64_t high, uint64_t low)
{
    return (oriel_int128)((oriel_uint128)(uint64_t)high << 64 | low);
}

static void expect_wide(enum oriel_operator operator, oriel_int128 target, oriel_int128 origin,
                        oriel_int128 wanted)
{
    apply(ORIEL_KIND_INT128, operator, & target, &origin);
    assert_memory_equal(&target, &wanted, sizeof wanted);
}
#endif

static void integers_of_16_bytes_compute(void **state)
{
    (void)state;
#if ORIEL_HAS_INT128
    expect_wide(ORIEL_OPERATOR_SUM, wide(1, UINT64_MAX), wide(0, 1), wide(2, 0));
    expect_wide(ORIEL_OPERATOR_SUM, wide(INT64_MAX, UINT64_MAX), wide(0, 1), wide(INT64_MIN, 0));
    expect_wide(ORIEL_OPERATOR_PROD, wide(0, UINT64_C(1) << 63), wide(0, 6), wide(3, 0));
    expect_wide(ORIEL_OPERATOR_PROD, wide(-1, (uint64_t)-3), wide(0, 5), wide(-1, (uint64_t)-15));
    expect_wide(ORIEL_OPERATOR_MAX, wide(-1, 5), wide(0, 4), wide(0, 4));
    expect_wide(ORIEL_OPERATOR_MAX, wide(1, 0), wide(0, UINT64_MAX), wide(1, 0));
    expect_wide(ORIEL_OPERATOR_MIN, wide(-1, 5), wide(-1, 4), wide(-1, 4));
    expect_wide(ORIEL_OPERATOR_BAND, wide(6, 12), wide(3, 10), wide(2, 8));
    expect_wide(ORIEL_OPERATOR_BOR, wide(6, 12), wide(3, 10), wide(7, 14));
    expect_wide(ORIEL_OPERATOR_BXOR, wide(6, 12), wide(3, 10), wide(5, 6));
    expect_wide(ORIEL_OPERATOR_LAND, wide(6, 0), wide(0, 9), wide(0, 1));
    expect_wide(ORIEL_OPERATOR_LXOR, wide(6, 0), wide(0, 9), wide(0, 0));
    expect_wide(ORIEL_OPERATOR_REPLACE, wide(6, 0), wide(3, 9), wide(3, 9));
    expect_wide(ORIEL_OPERATOR_NO_OP, wide(6, 1), wide(3, 9), wide(6, 1));
#else
    print_message("skipped: the compiler has no type of 16 bytes\n");
    skip();
#endif
}

/* Bits beyond those of a long double, so no narrower type passes. */
static void reals_of_16_bytes_compute_in_their_own_precision(void **state)
{
    (void)state;
#if ORIEL_HAS_QUAD
    oriel_quad tiny = (oriel_quad)1 / 4503599627370496 / 4503599627370496; /* 2^-104 */
    oriel_quad a = 1;
    apply(ORIEL_KIND_QUAD, ORIEL_OPERATOR_SUM, &a, &tiny);
    assert_true(a == 1 + tiny && a != 1);
    oriel_quad one = 1;
    apply(ORIEL_KIND_QUAD, ORIEL_OPERATOR_MIN, &a, &one);
    assert_true(a == 1);
    oriel_quad above = 1 + tiny;
    apply(ORIEL_KIND_QUAD, ORIEL_OPERATOR_MAX, &a, &above);
    assert_true(a == above);
    oriel_quad three = 3;
    apply(ORIEL_KIND_QUAD, ORIEL_OPERATOR_PROD, &a, &three);
    assert_true(a == 3 + 3 * tiny);
    oriel_quad left[2] = {1, tiny};
    oriel_quad right[2] = {0, 2};
    apply(ORIEL_KIND_QUAD_COMPLEX, ORIEL_OPERATOR_PROD, left, right);
    assert_true(left[0] == -2 * tiny && left[1] == 2);
    apply(ORIEL_KIND_QUAD_COMPLEX, ORIEL_OPERATOR_SUM, left, right);
    assert_true(left[0] == -2 * tiny && left[1] == 4);
#else
    print_message("skipped: the compiler has no real type of 16 bytes\n");
    skip();
#endif
}

/* A signalling NaN and a long double's padding are bytes like others. */
static void replaced_bits_arrive_unchanged(void **state)
{
    (void)state;
    for (int kind = 0; kind < ORIEL_KIND_COUNT; kind++) {
        uint32_t bytes = oriel_kinds[kind].extent_bytes;
        unsigned char origin[64];
        unsigned char target[64] = {0};
        for (unsigned i = 0; i < sizeof origin; i++)
            origin[i] = (unsigned char)(0xa1 + 7 * i);
        if (bytes >= 8)
            memcpy(origin + bytes - 8, (unsigned char[]){1, 0, 0, 0, 0, 0, 0xf4, 0x7f}, 8);
        if (oriel_kinds[kind].padded || oriel_kinds[kind].index_bytes != 0)
            continue;
        oriel_kinds[kind].plain[ORIEL_OPERATOR_REPLACE]((char *)target, (const char *)origin, NULL,
                                                        1);
        assert_memory_equal(target, origin, bytes);
    }
}

/* All finite as reals. */
static void fill(char *bytes, size_t len_bytes, unsigned seed)
{
    for (size_t i = 0; i < len_bytes; i++) {
        seed = seed * 1103515245 + 12345;
        bytes[i] = (char)(seed >> 16 & 0x3f);
    }
}

enum { MOST = 70, ROOM = MOST * 64 };

/* One after the other, by the kernel for many elements or by the one for a word. */
static void update_one_by_one(enum oriel_kind number, enum oriel_operator operator, bool native,
                              char *target, const char *origin, char *result, uint64_t count)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[number];
    for (uint64_t at = 0; at < count * kind->extent_bytes; at += kind->extent_bytes) {
        _Atomic uint32_t inside = 1;
        if (!native)
            kind->plain[operator](target + at, origin + at, result + at, 1);
        else
            assert_int_equal(
                kind->native[operator](target + at, origin + at, result + at, &inside) |
                    (int)inside,
                0);
    }
}

/* The padding of long doubles: its contents after a store are up to the compiler. */
static void wipe_unused(enum oriel_kind kind, char *bytes, uint64_t count)
{
    enum { USED_BYTES = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double) };
    uint64_t values = kind == ORIEL_KIND_LONG_DOUBLE || kind == ORIEL_KIND_LONG_DOUBLE_INT ? 1
                      : kind == ORIEL_KIND_LONG_DOUBLE_COMPLEX                             ? 2
                                                                                           : 0;
    for (uint64_t at = 0; at < count * oriel_kinds[kind].extent_bytes;
         at += oriel_kinds[kind].extent_bytes)
        for (uint64_t i = 0; i < values; i++)
            memset(bytes + at + i * sizeof(long double) + USED_BYTES, 0,
                   sizeof(long double) - USED_BYTES);
}

static void assert_same_values(enum oriel_kind kind, char *bytes, char *wanted, unsigned shift,
                               uint64_t count)
{
    wipe_unused(kind, bytes + shift, count);
    wipe_unused(kind, wanted + shift, count);
    assert_memory_equal(bytes, wanted, ROOM);
}

/* Counts around the widths of registers, misaligned by shift bytes; also with the result in place
 * of the operands. */
static void compare(enum oriel_kind kind, enum oriel_operator operator, uint64_t count,
                    unsigned shift)
{
    static char target[ROOM], origin[ROOM], result[ROOM], wanted[ROOM], wanted_result[ROOM];
    bool native = shift == 0 && oriel_kinds[kind].native[operator] != NULL;
    fill(target, sizeof target, (unsigned)count + 1);
    fill(origin, sizeof origin, (unsigned)kind);
    memcpy(wanted, target, sizeof target);
    memcpy(wanted_result, origin, sizeof origin);
    memcpy(result, origin, sizeof origin);
    update_one_by_one(kind, operator, native, wanted + shift, origin + shift, wanted_result + shift,
                      count);
    static char saved[ROOM];
    memcpy(saved, target, sizeof saved);
    oriel_kinds[kind].plain[operator](target + shift, origin + shift, NULL, count);
    assert_same_values(kind, target, wanted, shift, count);
    memcpy(target, saved, sizeof target);
    oriel_kinds[kind].plain[operator](target + shift, result + shift, result + shift, count);
    assert_same_values(kind, target, wanted, shift, count);
    assert_same_values(kind, result, wanted_result, shift, count);
}

static void many_are_updated_as_one_by_one(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < ORIEL_KIND_COUNT; kind++)
        for (unsigned op = 0; op < ORIEL_OPERATOR_COUNT; op++)
            for (uint64_t count = 0; count < MOST - 1 && oriel_kinds[kind].plain[op] != NULL;
                 count++)
                for (unsigned shift = 0; shift < 6; shift += 5)
                    compare((enum oriel_kind)kind, (enum oriel_operator)op, count, shift);
}

/* Each type with CPU instructions, from each offset within a vector, around the count at which it
 * is split. */
static void many_are_updated_alike_wherever_vectors_begin(void **state)
{
    (void)state;
    static _Alignas(ORIEL_KERNEL_VECTOR_BYTES) char target[ROOM];
    static char before[ROOM], wanted[ROOM], origin[ROOM], result[ROOM];
    fill(origin, sizeof origin, 3);
    fill(before, sizeof before, 4);
    for (unsigned kind = 0; kind < ORIEL_KIND_COUNT; kind++) {
        const uint32_t bytes = oriel_kinds[kind].extent_bytes;
        const enum oriel_operator operator= oriel_kinds[kind].plain[ORIEL_OPERATOR_BXOR] != NULL
            ? ORIEL_OPERATOR_BXOR
        : oriel_kinds[kind].plain[ORIEL_OPERATOR_SUM] != NULL ? ORIEL_OPERATOR_SUM
                                                              : ORIEL_OPERATOR_REPLACE;
        if (oriel_kinds[kind].native[ORIEL_OPERATOR_REPLACE] == NULL)
            continue;
        oriel_kernel *kernel = oriel_kinds[kind].plain[operator];
        for (uint64_t at = 0; at < ORIEL_KERNEL_VECTOR_BYTES; at += bytes)
            for (uint64_t count = ORIEL_KERNEL_SPLIT_BYTES / bytes - 1;
                 count < ORIEL_KERNEL_SPLIT_BYTES / bytes + 9; count++)
                for (int fetches = 0; fetches < 2; fetches++) {
                    memcpy(target, before, ROOM);
                    memcpy(wanted, before, ROOM);
                    memset(result, 0, ROOM);
                    kernel(wanted + at, origin, NULL, count);
                    oriel_kernel_many(kernel, bytes, target + at, origin, fetches ? result : NULL,
                                      count);
                    assert_memory_equal(target, wanted, ROOM);
                    assert_memory_equal(fetches ? result : before + at, before + at, count * bytes);
                }
    }
}

/* C's own product of each, one of them with an infinity for which a plain formula gives NaN (C17,
 * G.5.1), at any position. */
#define INFINITIES(name, type, real)                                                               \
    static void infinite_products_of_##name(uint64_t count, uint64_t unusual, bool has_result)     \
    {                                                                                              \
        const real wild[2] = {(real)INFINITY, (real)NAN};                                          \
        type target[MOST], origin[MOST], before[MOST], result[MOST];                               \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            const real a[2] = {(real)i + 1, (real)-2}, b[2] = {(real)3, (real)i + 1};              \
            memcpy(&target[i], i == unusual ? wild : a, sizeof a);                                 \
            memcpy(&origin[i], b, sizeof b);                                                       \
        }                                                                                          \
        memcpy(before, target, sizeof before);                                                     \
        oriel_kinds[ORIEL_KIND_##name].plain[ORIEL_OPERATOR_PROD](                                 \
            (char *)target, (const char *)origin, has_result ? (char *)result : NULL, count);      \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            const type wanted = before[i] * origin[i];                                             \
            real parts[2], want[2];                                                                \
            memcpy(parts, &target[i], sizeof parts);                                               \
            memcpy(want, &wanted, sizeof want);                                                    \
            assert_true(i == unusual ? isinf(parts[0]) && isinf(parts[1]) && parts[0] == want[0]   \
                                     : parts[0] == want[0] && parts[1] == want[1]);                \
        }                                                                                          \
        if (has_result)                                                                            \
            wipe_unused(ORIEL_KIND_##name, (char *)result, count);                                 \
        wipe_unused(ORIEL_KIND_##name, (char *)before, count);                                     \
        if (has_result)                                                                            \
            assert_memory_equal(result, before, count * sizeof(type));                             \
    }
INFINITIES(FLOAT_COMPLEX, oriel_float_complex, float)
INFINITIES(DOUBLE_COMPLEX, oriel_double_complex, double)
INFINITIES(LONG_DOUBLE_COMPLEX, oriel_long_double_complex, long double)

static void complex_products_find_infinities(void **state)
{
    (void)state;
    for (uint64_t count = 1; count <= MOST; count += 3)
        for (uint64_t unusual = 0; unusual <= count; unusual++) { /* the last: there is none */
            infinite_products_of_FLOAT_COMPLEX(count, unusual, count % 2 != 0);
            infinite_products_of_DOUBLE_COMPLEX(count, unusual, count % 2 == 0);
            /* valgrind computes long doubles in 64 bits when they do not stay in registers */
            if (!oriel_is_under_valgrind())
                infinite_products_of_LONG_DOUBLE_COMPLEX(count, unusual, count % 2 != 0);
        }
}

/* A product does not depend on the number of elements per call. The imaginary part of z times its
 * conjugate cancels out, unless a multiplication and an addition are fused. */
#define CONJUGATES(name, type, real)                                                               \
    static void conjugate_products_of_##name(void)                                                 \
    {                                                                                              \
        type target[MOST], origin[MOST];                                                           \
        for (uint64_t i = 0; i < MOST; i++) {                                                      \
            const real a[2] = {(real)(0.1 + (double)i), (real)0.3},                                \
                       b[2] = {(real)(0.1 + (double)i), (real)-0.3};                               \
            memcpy(&target[i], a, sizeof a);                                                       \
            memcpy(&origin[i], b, sizeof b);                                                       \
        }                                                                                          \
        oriel_kinds[ORIEL_KIND_##name].plain[ORIEL_OPERATOR_PROD](                                 \
            (char *)target, (const char *)origin, NULL, MOST);                                     \
        for (uint64_t i = 0; i < MOST; i++) {                                                      \
            real parts[2];                                                                         \
            memcpy(parts, &target[i], sizeof parts);                                               \
            assert_true(parts[1] == 0);                                                            \
        }                                                                                          \
    }
CONJUGATES(FLOAT_COMPLEX, oriel_float_complex, float)
CONJUGATES(DOUBLE_COMPLEX, oriel_double_complex, double)
CONJUGATES(LONG_DOUBLE_COMPLEX, oriel_long_double_complex, long double)

static void complex_products_are_rounded_after_each_operation(void **state)
{
    (void)state;
    conjugate_products_of_FLOAT_COMPLEX();
    conjugate_products_of_DOUBLE_COMPLEX();
    conjugate_products_of_LONG_DOUBLE_COMPLEX();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_a_kind_are_all_native_or_all_plain),
        cmocka_unit_test(every_kind_moves),
        cmocka_unit_test(native_elements_are_machine_words),
        cmocka_unit_test(pairs_have_their_fields_inside),
        cmocka_unit_test(integers_of_16_bytes_compute),
        cmocka_unit_test(reals_of_16_bytes_compute_in_their_own_precision),
        cmocka_unit_test(replaced_bits_arrive_unchanged),
        cmocka_unit_test(many_are_updated_as_one_by_one),
        cmocka_unit_test(complex_products_find_infinities),
        cmocka_unit_test(complex_products_are_rounded_after_each_operation),
        cmocka_unit_test(many_are_updated_alike_wherever_vectors_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
