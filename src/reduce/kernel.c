/* The kernels of accumulate, get_accumulate and fetch_and_op, generated from kinds.def.
 *
 * Atomicity. Elements of 1, 2, 4 or 8 bytes, aligned, in memory that the CPU can access: native
 * kernels update single elements and plain kernels update many at once, and the two exclude each
 * other (sync/atomic_mode.h). All other elements: plain kernels, always under the target's
 * accumulate lock. Which case applies depends only on the element's kind and alignment. Both are
 * equal for all origins that may access it at the same time (MPI-4.1, 13.7.1: concurrent
 * accumulates of one location use one predefined type).
 *
 * Plain kernels load and store elements at any address, because a displacement may misalign them.
 * Both operands of an element are loaded before anything is stored: result may be the buffer of
 * origin. */
#include "reduce/kind.h"

#include "reduce/clones.h"
#include "reduce/half.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* a: the target's element, b: the origin's; wide: integers compute modulo a power of 2, so nothing
 * overflows */
#define EXPRESSION_MAX(type, wide)  (type)(a > b ? a : b)
#define EXPRESSION_MIN(type, wide)  (type)(a < b ? a : b)
#define EXPRESSION_SUM(type, wide)  (type)((wide)a + (wide)b)
#define EXPRESSION_PROD(type, wide) (type)((wide)a * (wide)b)
#define EXPRESSION_LAND(type, wide) (type)(a && b)
#define EXPRESSION_LOR(type, wide)  (type)(a || b)
#define EXPRESSION_LXOR(type, wide) (type)(!a != !b)
#define EXPRESSION_BAND(type, wide) (type)(a & b)
#define EXPRESSION_BOR(type, wide)  (type)(a | b)
#define EXPRESSION_BXOR(type, wide) (type)(a ^ b)

/* Elements are loaded and stored in place. With a variable and memcpy, an x87 number would be
 * stored in one width and loaded in another, so each load would wait for the store. */
#define ANYWHERE(type) typedef type anywhere __attribute__((aligned(1), may_alias))

#define PLAIN_ELEMENT(operator, type, wide)                                                        \
    const type a = *(const anywhere *)(const void *)(target + i * sizeof(type));                   \
    const type b = *(const anywhere *)(const void *)(origin + i * sizeof(type));                   \
    const type updated = EXPRESSION_##operator(type, wide);

/* An element has `parts` parts of this type, which are all computed alike. */
#define PLAIN_PARTS(operator, name, type, wide, parts)                                             \
    ORIEL_CLONES static void plain_##operator##_##name(char *target, const char *origin,           \
                                                       char *result, uint64_t count)               \
    {                                                                                              \
        ANYWHERE(type);                                                                            \
        count *= parts;                                                                            \
        for (uint64_t i = 0; result == NULL && i < count; i++) {                                   \
            PLAIN_ELEMENT(operator, type, wide)                                                    \
            *(anywhere *)(void *)(target + i * sizeof a) = updated;                                \
        }                                                                                          \
        for (uint64_t i = 0; result != NULL && i < count; i++) {                                   \
            PLAIN_ELEMENT(operator, type, wide)                                                    \
            memcpy(result + i * sizeof a, target + i * sizeof a, sizeof a);                        \
            *(anywhere *)(void *)(target + i * sizeof a) = updated;                                \
        }                                                                                          \
    }

#define PLAIN(operator, name, type, wide) PLAIN_PARTS(operator, name, type, wide, 1)

/* Copies the bytes of one of two elements: the x87 loads and compares a long double fast, but
 * stores it slowly. */
#define PLAIN_CHOICE(operator, name, type, target_wins)                                            \
    static void plain_##operator##_##name(char *target, const char *origin, char *result,          \
                                          uint64_t count)                                          \
    {                                                                                              \
        ANYWHERE(type);                                                                            \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            char chosen[sizeof(type)];                                                             \
            const type a = *(const anywhere *)(const void *)target;                                \
            const type b = *(const anywhere *)(const void *)origin;                                \
            memcpy(chosen, target_wins ? target : origin, sizeof chosen);                          \
            if (result != NULL)                                                                    \
                memcpy(result + i * sizeof chosen, target, sizeof chosen);                         \
            memcpy(target, chosen, sizeof chosen);                                                 \
            target += sizeof chosen;                                                               \
            origin += sizeof chosen;                                                               \
        }                                                                                          \
    }

/* Products of complex numbers, in small batches. If a result of the batch is a NaN, C's own product
 * recomputes the batch: it handles infinities (C17, G.5.1). Without that test in each element the
 * compiler vectorises the loop, if the CPU has vectors. AVX-512 is excluded: with it, compilers
 * fuse multiplications and additions even if contraction is off, and the result would depend on the
 * count. */
enum { PRODUCTS = 32 };

#define COMPLEX_PROD(name, type, real)                                                             \
    ORIEL_CLONES_UNFUSED static void plain_PROD_##name(char *target, const char *origin,           \
                                                       char *result, uint64_t count)               \
    {                                                                                              \
        ANYWHERE(real);                                                                            \
        typedef type whole __attribute__((aligned(1), may_alias));                                 \
        type products[PRODUCTS];                                                                   \
        real *const product = (real *)products;                                                    \
        for (uint64_t now; count > 0; count -= now) {                                              \
            const anywhere *const a = (const anywhere *)(const void *)target;                      \
            const anywhere *const b = (const anywhere *)(const void *)origin;                      \
            unsigned unusual = 0;                                                                  \
            now = count < PRODUCTS ? count : PRODUCTS;                                             \
            for (uint64_t i = 0; i < 2 * now; i += 2) {                                            \
                product[i] = a[i] * b[i] - a[i + 1] * b[i + 1];                                    \
                product[i + 1] = a[i] * b[i + 1] + a[i + 1] * b[i];                                \
            }                                                                                      \
            for (uint64_t i = 0; i < 2 * now; i++)                                                 \
                unusual |= product[i] != product[i];                                               \
            for (uint64_t i = 0; unusual != 0 && i < now; i++)                                     \
                products[i] = *(const whole *)(const void *)(target + i * sizeof(type)) *          \
                              *(const whole *)(const void *)(origin + i * sizeof(type));           \
            if (result != NULL) {                                                                  \
                memcpy(result, target, now * sizeof(type));                                        \
                result += now * sizeof(type);                                                      \
            }                                                                                      \
            memcpy(target, products, now * sizeof(type));                                          \
            target += now * sizeof(type);                                                          \
            origin += now * sizeof(type);                                                          \
        }                                                                                          \
    }

#define NATIVE(operator, name, type, wide)                                                         \
    static int native_##operator##_##name(char *target, const char *origin, char *result,          \
                                          _Atomic uint32_t *inside)                                \
    {                                                                                              \
        _Atomic type *word = (_Atomic type *)(void *)target;                                       \
        type b;                                                                                    \
        memcpy(&b, origin, sizeof b);                                                              \
        type a = atomic_load_explicit(word, memory_order_relaxed);                                 \
        while (!atomic_compare_exchange_weak_explicit(word, &a, EXPRESSION_##operator(type, wide), \
                                                      memory_order_acq_rel, memory_order_relaxed)) \
            continue;                                                                              \
        if (result != NULL)                                                                        \
            memcpy(result, &a, sizeof a);                                                          \
        atomic_store_explicit(inside, 0, memory_order_release);                                    \
        return 0;                                                                                  \
    }

/* Operators that are a single CPU instruction. */
#define NATIVE_FETCH(operator, name, type, fetch)                                                  \
    static int native_##operator##_##name(char *target, const char *origin, char *result,          \
                                          _Atomic uint32_t *inside)                                \
    {                                                                                              \
        type b;                                                                                    \
        memcpy(&b, origin, sizeof b);                                                              \
        type a = fetch((_Atomic type *)(void *)target, b, memory_order_acq_rel);                   \
        if (result != NULL)                                                                        \
            memcpy(result, &a, sizeof a);                                                          \
        atomic_store_explicit(inside, 0, memory_order_release);                                    \
        return 0;                                                                                  \
    }

#define NATIVE_NO_OP(name, type)                                                                   \
    static int native_NO_OP_##name(char *target, const char *origin, char *result,                 \
                                   _Atomic uint32_t *inside)                                       \
    {                                                                                              \
        (void)origin;                                                                              \
        if (result != NULL) {                                                                      \
            type a = atomic_load_explicit((_Atomic type *)(void *)target, memory_order_acquire);   \
            memcpy(result, &a, sizeof a);                                                          \
        }                                                                                          \
        atomic_store_explicit(inside, 0, memory_order_release);                                    \
        return 0;                                                                                  \
    }

/* The size is a constant, so a single element needs no call. */
static inline __attribute__((always_inline)) void move_elements(char *to, const char *from,
                                                                uint64_t count, uint64_t size_bytes)
{
    if (count == 1)
        memcpy(to, from, size_bytes);
    else
        memmove(to, from, count * size_bytes);
}

#define PLAIN_NO_OP(name, type)                                                                    \
    static void plain_NO_OP_##name(char *target, const char *origin, char *result, uint64_t count) \
    {                                                                                              \
        (void)origin;                                                                              \
        if (result != NULL)                                                                        \
            move_elements(result, target, count, sizeof(type));                                    \
    }

/* Moves bytes, not values: a long double's padding and a signalling NaN arrive unchanged. */
#define PLAIN_REPLACE(name, type)                                                                  \
    static void plain_REPLACE_##name(char *target, const char *origin, char *result,               \
                                     uint64_t count)                                               \
    {                                                                                              \
        for (uint64_t i = 0; result != NULL && i < count; i++) {                                   \
            char b[sizeof(type)];                                                                  \
            memcpy(b, origin + i * sizeof b, sizeof b);                                            \
            memcpy(result + i * sizeof b, target + i * sizeof b, sizeof b);                        \
            memcpy(target + i * sizeof b, b, sizeof b);                                            \
        }                                                                                          \
        if (result == NULL)                                                                        \
            move_elements(target, origin, count, sizeof(type));                                    \
    }

#define PLAIN_MOVES(name, type)                                                                    \
    PLAIN_REPLACE(name, type)                                                                      \
    PLAIN_NO_OP(name, type)

#define NATIVE_MOVES(name, type)                                                                   \
    NATIVE_FETCH(REPLACE, name, type, atomic_exchange_explicit)                                    \
    NATIVE_NO_OP(name, type)

#define LOGICAL_KERNELS(make, name, type)                                                          \
    make(LAND, name, type, type) make(LOR, name, type, type) make(LXOR, name, type, type)

/* Pairs: both fields move; the padding between and after them does not. */
#define PAIR_KERNEL(operator, name, type, index_type, takes_b)                                     \
    static void plain_##operator##_##name(char *target, const char *origin, char *result,          \
                                          uint64_t count)                                          \
    {                                                                                              \
        struct pair_##name {                                                                       \
            type value;                                                                            \
            index_type index;                                                                      \
        };                                                                                         \
        const size_t index_at = offsetof(struct pair_##name, index);                               \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            char *at = target + i * sizeof(struct pair_##name);                                    \
            const char *from = origin != NULL ? origin + i * sizeof(struct pair_##name) : at;      \
            struct pair_##name a;                                                                  \
            struct pair_##name b;                                                                  \
            memcpy(&a.value, at, sizeof a.value);                                                  \
            memcpy(&a.index, at + index_at, sizeof a.index);                                       \
            memcpy(&b.value, from, sizeof b.value);                                                \
            memcpy(&b.index, from + index_at, sizeof b.index);                                     \
            if (result != NULL) {                                                                  \
                memcpy(result + i * sizeof a, &a.value, sizeof a.value);                           \
                memcpy(result + i * sizeof a + index_at, &a.index, sizeof a.index);                \
            }                                                                                      \
            if (takes_b) {                                                                         \
                memcpy(at, &b.value, sizeof b.value);                                              \
                memcpy(at + index_at, &b.index, sizeof b.index);                                   \
            }                                                                                      \
        }                                                                                          \
    }

#define TIE_TAKES_LOWER (a.value == b.value && b.index < a.index)

#define PLAIN_INTEGER(name, type, wide)                                                            \
    PLAIN(MAX, name, type, type)                                                                   \
    PLAIN(MIN, name, type, type)                                                                   \
    PLAIN(SUM, name, type, wide)                                                                   \
    PLAIN(PROD, name, type, wide)                                                                  \
    PLAIN(BAND, name, type, type)                                                                  \
    PLAIN(BOR, name, type, type)                                                                   \
    PLAIN(BXOR, name, type, type)                                                                  \
    LOGICAL_KERNELS(PLAIN, name, type)                                                             \
    PLAIN_MOVES(name, type)
#define INTEGER(name, type, unsigned_type)                                                         \
    PLAIN_INTEGER(name, type, uint64_t)                                                            \
    NATIVE(MAX, name, type, type)                                                                  \
    NATIVE(MIN, name, type, type)                                                                  \
    NATIVE_FETCH(SUM, name, type, atomic_fetch_add_explicit)                                       \
    NATIVE(PROD, name, type, uint64_t)                                                             \
    NATIVE_FETCH(BAND, name, type, atomic_fetch_and_explicit)                                      \
    NATIVE_FETCH(BOR, name, type, atomic_fetch_or_explicit)                                        \
    NATIVE_FETCH(BXOR, name, type, atomic_fetch_xor_explicit)                                      \
    LOGICAL_KERNELS(NATIVE, name, type)                                                            \
    NATIVE_MOVES(name, type)
#define WIDE(name, type, unsigned_type) PLAIN_INTEGER(name, type, unsigned_type)
#define CHOICES_OF_REALS(name, type)                                                               \
    PLAIN(MAX, name, type, type)                                                                   \
    PLAIN(MIN, name, type, type)
#define CHOICES_FLOAT(name, type)  CHOICES_OF_REALS(name, type)
#define CHOICES_DOUBLE(name, type) CHOICES_OF_REALS(name, type)
#define CHOICES_QUAD(name, type)   CHOICES_OF_REALS(name, type)
#define CHOICES_LONG_DOUBLE(name, type)                                                            \
    PLAIN_CHOICE(MAX, name, type, a > b)                                                           \
    PLAIN_CHOICE(MIN, name, type, a < b)
#define REAL(name, type)                                                                           \
    CHOICES_##name(name, type) PLAIN(SUM, name, type, type) PLAIN(PROD, name, type, type)          \
        PLAIN_MOVES(name, type)
#define PROD_FLOAT_COMPLEX(name, type, real)       COMPLEX_PROD(name, type, real)
#define PROD_DOUBLE_COMPLEX(name, type, real)      COMPLEX_PROD(name, type, real)
#define PROD_LONG_DOUBLE_COMPLEX(name, type, real) PLAIN(PROD, name, type, type)
#define PROD_QUAD_COMPLEX(name, type, real)        PLAIN(PROD, name, type, type)
#define COMPLEX(name, type, real)                                                                  \
    PLAIN_PARTS(SUM, name, real, real, 2)                                                          \
    PROD_##name(name, type, real) PLAIN_MOVES(name, type)
#define HALF(name, parts)
#define PAIR(name, type, index_type)                                                               \
    PAIR_KERNEL(MINLOC, name, type, index_type, b.value < a.value || TIE_TAKES_LOWER)              \
    PAIR_KERNEL(MAXLOC, name, type, index_type, b.value > a.value || TIE_TAKES_LOWER)              \
    PAIR_KERNEL(REPLACE, name, type, index_type, true)                                             \
    PAIR_KERNEL(NO_OP, name, type, index_type, false)
#define COMPOSED(name, type, index_type) PAIR(name, type, index_type)
#define LOGICAL(name, type)                                                                        \
    LOGICAL_KERNELS(PLAIN, name, type)                                                             \
    PLAIN_MOVES(name, type)                                                                        \
    LOGICAL_KERNELS(NATIVE, name, type)                                                            \
    NATIVE_MOVES(name, type)
#define BITS(name, type, like)
#define LETTERS(name, type, like)
#define OPAQUE(name, type) PLAIN_MOVES(name, type)
#include "reduce/kinds.def"

/* Reals and opaque kinds that fit into a machine word. */
NATIVE(MAX, FLOAT, float, float)
NATIVE(MIN, FLOAT, float, float)
NATIVE(SUM, FLOAT, float, float)
NATIVE(PROD, FLOAT, float, float)
NATIVE_MOVES(FLOAT, float)
NATIVE(MAX, DOUBLE, double, double)
NATIVE(MIN, DOUBLE, double, double)
NATIVE(SUM, DOUBLE, double, double)
NATIVE(PROD, DOUBLE, double, double)
NATIVE_MOVES(DOUBLE, double)
PLAIN_MOVES(HALF, uint16_t)
NATIVE_MOVES(HALF, uint16_t)
PLAIN_MOVES(HALF_COMPLEX, uint32_t)
NATIVE_MOVES(OPAQUE16, uint16_t)
NATIVE_MOVES(OPAQUE32, uint32_t)
NATIVE_MOVES(OPAQUE64, uint64_t)

#define SLOT(variant, operator, name)                                                              \
    .variant[ORIEL_OPERATOR_##operator] = variant##_##operator##_##name
#define MOVE_SLOTS(variant, name) SLOT(variant, REPLACE, name), SLOT(variant, NO_OP, name)
#define ARITHMETIC_SLOTS(variant, name)                                                            \
    SLOT(variant, MAX, name), SLOT(variant, MIN, name), SLOT(variant, SUM, name),                  \
        SLOT(variant, PROD, name)
#define LOGICAL_SLOTS(variant, name)                                                               \
    SLOT(variant, LAND, name), SLOT(variant, LOR, name), SLOT(variant, LXOR, name)
#define BIT_SLOTS(variant, name)                                                                   \
    SLOT(variant, BAND, name), SLOT(variant, BOR, name), SLOT(variant, BXOR, name)
#define INTEGER_SLOTS(variant, name)                                                               \
    ARITHMETIC_SLOTS(variant, name), LOGICAL_SLOTS(variant, name), BIT_SLOTS(variant, name),       \
        MOVE_SLOTS(variant, name)
#define WHOLE(type)         .extent_bytes = sizeof(type), .value_bytes = sizeof(type)
#define NATIVE_SLOTS_FLOAT  ARITHMETIC_SLOTS(native, FLOAT), MOVE_SLOTS(native, FLOAT),
#define NATIVE_SLOTS_DOUBLE ARITHMETIC_SLOTS(native, DOUBLE), MOVE_SLOTS(native, DOUBLE),
#define NATIVE_SLOTS_LONG_DOUBLE
#define NATIVE_SLOTS_INT128
#define NATIVE_SLOTS_QUAD
#define NATIVE_SLOTS_QUAD_COMPLEX
#define NATIVE_SLOTS_OPAQUE16 MOVE_SLOTS(native, OPAQUE16),
#define NATIVE_SLOTS_OPAQUE32 MOVE_SLOTS(native, OPAQUE32),
#define NATIVE_SLOTS_OPAQUE64 MOVE_SLOTS(native, OPAQUE64),
#define NATIVE_SLOTS_OPAQUE128
#define NATIVE_SLOTS_OPAQUE256
#define INTEGER(name, type, unsigned_type)                                                         \
    [ORIEL_KIND_##name] = {WHOLE(type), INTEGER_SLOTS(plain, name), INTEGER_SLOTS(native, name)},
#define WIDE(name, type, unsigned_type)                                                            \
    [ORIEL_KIND_##name] = {WHOLE(type), INTEGER_SLOTS(plain, name)},
#define REAL(name, type)                                                                           \
    [ORIEL_KIND_##name] = {WHOLE(type), NATIVE_SLOTS_##name ARITHMETIC_SLOTS(plain, name),         \
                           MOVE_SLOTS(plain, name)},
#define COMPLEX(name, type, real)                                                                  \
    [ORIEL_KIND_##name] = {WHOLE(type), SLOT(plain, SUM, name), SLOT(plain, PROD, name),           \
                           MOVE_SLOTS(plain, name)},
#define HALF_SLOTS_HALF                                                                            \
    .plain[ORIEL_OPERATOR_MAX] = oriel_half_max, .plain[ORIEL_OPERATOR_MIN] = oriel_half_min,      \
    .plain[ORIEL_OPERATOR_SUM] = oriel_half_sum, .plain[ORIEL_OPERATOR_PROD] = oriel_half_prod,    \
    .native[ORIEL_OPERATOR_MAX] = oriel_half_max_native,                                           \
    .native[ORIEL_OPERATOR_MIN] = oriel_half_min_native,                                           \
    .native[ORIEL_OPERATOR_SUM] = oriel_half_sum_native,                                           \
    .native[ORIEL_OPERATOR_PROD] = oriel_half_prod_native, MOVE_SLOTS(native, HALF),
#define HALF_SLOTS_HALF_COMPLEX                                                                    \
    .plain[ORIEL_OPERATOR_SUM] = oriel_half_complex_sum,                                           \
    .plain[ORIEL_OPERATOR_PROD] = oriel_half_complex_prod,
#define HALF(name, parts)                                                                          \
    [ORIEL_KIND_##name] = {.extent_bytes = 2 * (parts),                                            \
                           .value_bytes = 2 * (parts),                                             \
                           HALF_SLOTS_##name MOVE_SLOTS(plain, name)},
#define PAIR_OF(name, type, index_type, is_composed)                                               \
    [ORIEL_KIND_##name] = {.composed = is_composed,                                                \
                           .extent_bytes = sizeof(struct {                                         \
                               type value;                                                         \
                               index_type index;                                                   \
                           }),                                                                     \
                           .value_bytes = sizeof(type),                                            \
                           .index_offset = offsetof(                                               \
                               struct {                                                            \
                                   type value;                                                     \
                                   index_type index;                                               \
                               },                                                                  \
                               index),                                                             \
                           .index_bytes = sizeof(index_type),                                      \
                           .padded = sizeof(struct {                                               \
                                         type value;                                               \
                                         index_type index;                                         \
                                     }) != sizeof(type) + sizeof(index_type),                      \
                           SLOT(plain, MINLOC, name),                                              \
                           SLOT(plain, MAXLOC, name),                                              \
                           MOVE_SLOTS(plain, name)},
#define PAIR(name, type, index_type)     PAIR_OF(name, type, index_type, false)
#define COMPOSED(name, type, index_type) PAIR_OF(name, type, index_type, true)
#define LOGICAL(name, type)                                                                        \
    [ORIEL_KIND_##name] = {WHOLE(type), LOGICAL_SLOTS(plain, name), MOVE_SLOTS(plain, name),       \
                           LOGICAL_SLOTS(native, name), MOVE_SLOTS(native, name)},
#define BITS(name, type, like)                                                                     \
    [ORIEL_KIND_##name] = {WHOLE(type), .tolerant = true, INTEGER_SLOTS(plain, like),              \
                           INTEGER_SLOTS(native, like)},
#define LETTERS(name, type, like) BITS(name, type, like)
#define OPAQUE(name, type)                                                                         \
    [ORIEL_KIND_##name] = {WHOLE(type), NATIVE_SLOTS_##name MOVE_SLOTS(plain, name)},

const struct oriel_kind_properties oriel_kinds[ORIEL_KIND_COUNT] = {
#include "reduce/kinds.def"
};

static bool is_bit_operator(enum oriel_operator op)
{
    return op == ORIEL_OPERATOR_BAND || op == ORIEL_OPERATOR_BOR || op == ORIEL_OPERATOR_BXOR;
}

bool oriel_kind_defines(enum oriel_kind kind, enum oriel_operator op)
{
    if (!oriel_kinds[kind].tolerant || op == ORIEL_OPERATOR_REPLACE || op == ORIEL_OPERATOR_NO_OP)
        return oriel_kinds[kind].plain[op] != NULL;
    return kind == ORIEL_KIND_BYTE && is_bit_operator(op);
}
