/* Computes with 16-bit reals as floats (half.h). A float holds the exact product of two, and a sum
 * that is rounded to 24 bits and then to 11 equals the sum that is rounded once. */
#include "reduce/half.h"

#include "reduce/clones.h"

#include <stdatomic.h>
#include <string.h>

#define SIGN         UINT32_C(0x8000)
#define INFINITE     UINT32_C(0x7c00)
#define NOT_A_NUMBER UINT32_C(0x7e00)
/* of a float */
#define FLOAT_INFINITE UINT32_C(0x7f800000)
#define FLOAT_NORMAL   UINT32_C(0x38800000) /* 2^-14: the smallest with 11 bits in a half */
#define FLOAT_HALF     UINT32_C(0x3f000000) /* 0.5 */

enum { LOWER_BITS = 13 /* of a float, which a half lacks */ };

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Exact. The exponents differ by 112: a multiplication adds them, and normalises small numbers. */
static inline float half_widen(uint16_t half)
{
    const uint32_t magnitude = half & (SIGN - 1);
    const uint32_t finite = bits_of(float_of(magnitude << LOWER_BITS) * 0x1p112f);
    const uint32_t special = FLOAT_INFINITE | magnitude << LOWER_BITS;
    return float_of((magnitude < INFINITE ? finite : special) | (half & SIGN) << 16);
}

/* Rounds to the nearest, ties to even. */
static inline uint16_t half_narrow(float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t magnitude = bits & (FLOAT_INFINITE | ((UINT32_C(1) << 23) - 1));
    const uint32_t half_unit = (UINT32_C(1) << (LOWER_BITS - 1)) - 1;
    const uint32_t rounded = magnitude + half_unit + (magnitude >> LOWER_BITS & 1);
    const uint32_t normal = (rounded >> LOWER_BITS) - (UINT32_C(112) << 10);
    /* the units of 0.5 are those of the smallest halves, so the sum rounds to them */
    const uint32_t small = bits_of(float_of(magnitude) + 0.5F) - FLOAT_HALF;
    uint32_t half = magnitude < FLOAT_NORMAL ? small : normal;
    half = half > INFINITE ? INFINITE : half;
    half = magnitude > FLOAT_INFINITE ? NOT_A_NUMBER : half;
    return (uint16_t)(half | (bits >> 16 & SIGN));
}

/* a: the target's element, b: the origin's */
#define EXPRESSION_max  (a > b ? a : b)
#define EXPRESSION_min  (a < b ? a : b)
#define EXPRESSION_sum  (a + b)
#define EXPRESSION_prod (a * b)

#define ELEMENT(operator)                                                                          \
    const uint16_t old = *(const anywhere *)(const void *)(target + i * sizeof old);               \
    const float a = half_widen(old);                                                               \
    const float b = half_widen(*(const anywhere *)(const void *)(origin + i * sizeof old));        \
    const uint16_t updated = half_narrow(EXPRESSION_##operator);

/* Compilers name the clones of exported functions differently. */
#define PLAIN(name, operator, parts)                                                               \
    ORIEL_CLONES static void name##_cloned(char *target, const char *origin, char *result,         \
                                           uint64_t count)                                         \
    {                                                                                              \
        typedef uint16_t anywhere __attribute__((aligned(1), may_alias));                          \
        count *= parts;                                                                            \
        for (uint64_t i = 0; result == NULL && i < count; i++) {                                   \
            ELEMENT(operator)                                                                      \
            *(anywhere *)(void *)(target + i * sizeof old) = updated;                              \
        }                                                                                          \
        for (uint64_t i = 0; result != NULL && i < count; i++) {                                   \
            ELEMENT(operator)                                                                      \
            *(anywhere *)(void *)(result + i * sizeof old) = old;                                  \
            *(anywhere *)(void *)(target + i * sizeof old) = updated;                              \
        }                                                                                          \
    }                                                                                              \
    void name(char *target, const char *origin, char *result, uint64_t count)                      \
    {                                                                                              \
        name##_cloned(target, origin, result, count);                                              \
    }

PLAIN(oriel_half_max, max, 1)
PLAIN(oriel_half_min, min, 1)
PLAIN(oriel_half_sum, sum, 1)
PLAIN(oriel_half_prod, prod, 1)
PLAIN(oriel_half_complex_sum, sum, 2)

/* By C's product, which handles infinities (C17, G.5.1). */
void oriel_half_complex_prod(char *target, const char *origin, char *result, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint16_t old[2];
        uint16_t factor[2];
        memcpy(old, target + i * sizeof old, sizeof old);
        memcpy(factor, origin + i * sizeof factor, sizeof factor);
        float parts[2][2] = {{half_widen(old[0]), half_widen(old[1])},
                             {half_widen(factor[0]), half_widen(factor[1])}};
        oriel_float_complex a;
        oriel_float_complex b;
        memcpy(&a, parts[0], sizeof a);
        memcpy(&b, parts[1], sizeof b);
        a *= b;
        memcpy(parts[0], &a, sizeof a);
        if (result != NULL)
            memcpy(result + i * sizeof old, old, sizeof old);
        const uint16_t updated[2] = {half_narrow(parts[0][0]), half_narrow(parts[0][1])};
        memcpy(target + i * sizeof old, updated, sizeof updated);
    }
}

#define NATIVE(operator)                                                                           \
    int oriel_half_##operator##_native(char *target, const char *origin, char *result,             \
                                       _Atomic uint32_t *inside)                                   \
    {                                                                                              \
        _Atomic uint16_t *word = (_Atomic uint16_t *)(void *)target;                               \
        uint16_t operand;                                                                          \
        memcpy(&operand, origin, sizeof operand);                                                  \
        const float b = half_widen(operand);                                                       \
        uint16_t old = atomic_load_explicit(word, memory_order_relaxed);                           \
        for (bool stored = false; !stored;) {                                                      \
            const float a = half_widen(old);                                                       \
            stored = atomic_compare_exchange_weak_explicit(                                        \
                word, &old, half_narrow(EXPRESSION_##operator), memory_order_acq_rel,              \
                memory_order_relaxed);                                                             \
        }                                                                                          \
        if (result != NULL)                                                                        \
            memcpy(result, &old, sizeof old);                                                      \
        atomic_store_explicit(inside, 0, memory_order_release);                                    \
        return 0;                                                                                  \
    }

NATIVE(max)
NATIVE(min)
NATIVE(sum)
NATIVE(prod)
