/* Atomic operations: the compiler replaces them by calls of its runtime library. They are performed
 * here with the strongest memory order, independent of the requested one. On watched memory they
 * order processes, and anywhere they order threads. GIVE publishes the clock before a store. TAKE
 * acquires the clock that a load has seen, after it. Instrumented code uses these entry points. */
#include "check/tsan/thread_calls.h"

#include "reduce/kind.h"

#define GIVE(at, size) atomic_give(at, size, ORIEL_TSAN_CALLER)
#define TAKE(at, size) atomic_take(at, size, ORIEL_TSAN_CALLER)

static inline __attribute__((always_inline)) void atomic_give(const volatile void *at, size_t size,
                                                              const void *caller)
{
    oriel_tsan_access(at, size, true, true, caller);
    oriel_tsan_give(ORIEL_TSAN_ADDRESS, ORIEL_TSAN_AT(at), caller);
}

static inline __attribute__((always_inline)) void atomic_take(const volatile void *at, size_t size,
                                                              const void *caller)
{
    oriel_tsan_access(at, size, false, true, caller);
    oriel_tsan_take(ORIEL_TSAN_ADDRESS, ORIEL_TSAN_AT(at), caller);
}

#define FETCH(bits, type, name, combine)                                                           \
    ORIEL_TSAN_ENTRY type __tsan_atomic##bits##_##name(volatile type *at, type value, int order);  \
    ORIEL_TSAN_ENTRY type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)   \
    {                                                                                              \
        (void)order;                                                                               \
        GIVE(at, sizeof *at);                                                                      \
        type old = read_##bits(at);                                                                \
        for (;;) {                                                                                 \
            type seen = swap_##bits(at, old, (type)(combine));                                     \
            if (seen == old)                                                                       \
                break;                                                                             \
            old = seen;                                                                            \
        }                                                                                          \
        TAKE(at, sizeof *at);                                                                      \
        return old;                                                                                \
    }

#define SWAP(bits, type, strength)                                                                 \
    ORIEL_TSAN_ENTRY int __tsan_atomic##bits##_compare_exchange_##strength(                        \
        volatile type *at, type *expected, type value, int order, int order_failed);               \
    ORIEL_TSAN_ENTRY int __tsan_atomic##bits##_compare_exchange_##strength(                        \
        volatile type *at, type *expected, type value, int order, int order_failed)                \
    {                                                                                              \
        (void)order, (void)order_failed;                                                           \
        GIVE(at, sizeof *at);                                                                      \
        type old = swap_##bits(at, *expected, value);                                              \
        TAKE(at, sizeof *at);                                                                      \
        if (old == *expected)                                                                      \
            return 1;                                                                              \
        *expected = old;                                                                           \
        return 0;                                                                                  \
    }

#define ATOMICS(bits, type)                                                                        \
    static inline type swap_##bits(volatile type *at, type expected, type value)                   \
    {                                                                                              \
        return __sync_val_compare_and_swap(at, expected, value);                                   \
    }                                                                                              \
    static inline type read_##bits(volatile type *at)                                              \
    {                                                                                              \
        return READ_##bits(at);                                                                    \
    }                                                                                              \
    ORIEL_TSAN_ENTRY type __tsan_atomic##bits##_load(const volatile type *at, int order);          \
    ORIEL_TSAN_ENTRY type __tsan_atomic##bits##_load(const volatile type *at, int order)           \
    {                                                                                              \
        (void)order;                                                                               \
        type value = read_##bits((volatile type *)(uintptr_t)at);                                  \
        TAKE(at, sizeof *at);                                                                      \
        return value;                                                                              \
    }                                                                                              \
    ORIEL_TSAN_ENTRY void __tsan_atomic##bits##_store(volatile type *at, type value, int order);   \
    ORIEL_TSAN_ENTRY void __tsan_atomic##bits##_store(volatile type *at, type value, int order)    \
    {                                                                                              \
        (void)order;                                                                               \
        GIVE(at, sizeof *at);                                                                      \
        type old = read_##bits(at);                                                                \
        for (type seen; (seen = swap_##bits(at, old, value)) != old;)                              \
            old = seen;                                                                            \
    }                                                                                              \
    ORIEL_TSAN_ENTRY type __tsan_atomic##bits##_compare_exchange_val(                              \
        volatile type *at, type expected, type value, int order, int order_failed);                \
    ORIEL_TSAN_ENTRY type __tsan_atomic##bits##_compare_exchange_val(                              \
        volatile type *at, type expected, type value, int order, int order_failed)                 \
    {                                                                                              \
        (void)order, (void)order_failed;                                                           \
        GIVE(at, sizeof *at);                                                                      \
        type old = swap_##bits(at, expected, value);                                               \
        TAKE(at, sizeof *at);                                                                      \
        return old;                                                                                \
    }                                                                                              \
    FETCH(bits, type, exchange, value)                                                             \
    FETCH(bits, type, fetch_add, old + value)                                                      \
    FETCH(bits, type, fetch_sub, old - value)                                                      \
    FETCH(bits, type, fetch_and, old &value)                                                       \
    FETCH(bits, type, fetch_or, old | value)                                                       \
    FETCH(bits, type, fetch_xor, old ^ value)                                                      \
    FETCH(bits, type, fetch_nand, ~(old & value))                                                  \
    SWAP(bits, type, strong)                                                                       \
    SWAP(bits, type, weak)

#define READ_8(at)  __atomic_load_n(at, __ATOMIC_SEQ_CST)
#define READ_16(at) READ_8(at)
#define READ_32(at) READ_8(at)
#define READ_64(at) READ_8(at)
/* As libatomic does where the processor has no 16-byte load: the memory is writable. */
#define READ_128(at) swap_128(at, 0, 0)

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
#if ORIEL_HAS_INT128
ATOMICS(128, oriel_uint128)
#endif

ORIEL_TSAN_ENTRY void __tsan_atomic_thread_fence(int order);
ORIEL_TSAN_ENTRY void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    /* around a fence, plain variables may carry order */
    oriel_tsan_give(ORIEL_TSAN_FENCE, 0, ORIEL_TSAN_CALLER);
    atomic_thread_fence(memory_order_seq_cst);
    oriel_tsan_take(ORIEL_TSAN_FENCE, 0, ORIEL_TSAN_CALLER);
}

ORIEL_TSAN_ENTRY void __tsan_atomic_signal_fence(int order);
ORIEL_TSAN_ENTRY void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    atomic_signal_fence(memory_order_seq_cst);
}
