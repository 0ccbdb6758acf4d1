/* Compare-and-swap of one aligned element with a CPU instruction. Inlined into the data path. For
 * 16 bytes ask oriel_swap_has_wide first: early x86-64 processors lack the instruction. */
#ifndef ORIEL_REDUCE_CPU_SWAP_H
#define ORIEL_REDUCE_CPU_SWAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined __x86_64__
#include <cpuid.h>
#endif

/* The largest element, and the largest predefined one that the CPU swaps. */
enum { ORIEL_SWAP_BYTES = 16, ORIEL_SWAP_NATIVE_BYTES = 8 };

#define ORIEL_SWAP(type)                                                                           \
    {                                                                                              \
        type expected;                                                                             \
        type desired;                                                                              \
        memcpy(&expected, compare, sizeof expected);                                               \
        memcpy(&desired, origin, sizeof desired);                                                  \
        atomic_compare_exchange_strong_explicit((_Atomic type *)target, &expected, desired,        \
                                                memory_order_acq_rel, memory_order_acquire);       \
        memcpy(result, &expected, sizeof expected);                                                \
        return;                                                                                    \
    }

/* len_bytes is 1, 2, 4 or 8. result may be the buffer of origin or compare. */
static inline void oriel_swap_native(void *target, const void *origin, const void *compare,
                                     void *result, uint64_t len_bytes)
{
    switch (len_bytes) {
    case 8: ORIEL_SWAP(uint64_t)
    case 4: ORIEL_SWAP(uint32_t)
    case 2: ORIEL_SWAP(uint16_t)
    default: ORIEL_SWAP(uint8_t)
    }
}

#undef ORIEL_SWAP

#if defined __x86_64__
static inline bool oriel_swap_has_wide(void)
{
    static _Atomic uint32_t features; /* a mark that it is known, and CPUID's word */
    uint32_t known = atomic_load_explicit(&features, memory_order_relaxed);
    if (known == 0) {
        unsigned eax, ebx, ecx = 0, edx;
        __get_cpuid(1, &eax, &ebx, &ecx, &edx);
        known = (ecx & (unsigned)bit_CMPXCHG16B) | 1;
        atomic_store_explicit(&features, known, memory_order_relaxed);
    }
    return (known & (unsigned)bit_CMPXCHG16B) != 0;
}

/* As oriel_swap_native, for 16 bytes. */
static inline void oriel_swap_wide(void *target, const void *origin, const void *compare,
                                   void *result)
{
    uint64_t found[2];
    uint64_t desired[2];
    memcpy(found, compare, sizeof found);
    memcpy(desired, origin, sizeof desired);
    __asm__ volatile("lock cmpxchg16b (%2)"
                     : "+a"(found[0]), "+d"(found[1])
                     : "r"(target), "b"(desired[0]), "c"(desired[1])
                     : "memory", "cc");
    memcpy(result, found, sizeof found);
}
#elif defined __aarch64__
static inline bool oriel_swap_has_wide(void)
{
    return true;
}

/* Stores in any case: only then are the two words that were loaded one value. */
static inline void oriel_swap_wide(void *target, const void *origin, const void *compare,
                                   void *result)
{
    uint64_t wanted[2];
    uint64_t desired[2];
    uint64_t found[2];
    uint64_t stored[2];
    uint32_t failed;
    memcpy(wanted, compare, sizeof wanted);
    memcpy(desired, origin, sizeof desired);
    __asm__ volatile("1: ldaxp %0, %1, [%5]\n"
                     "cmp %0, %6\n"
                     "ccmp %1, %7, #0, eq\n"
                     "csel %2, %8, %0, eq\n"
                     "csel %3, %9, %1, eq\n"
                     "stlxp %w4, %2, %3, [%5]\n"
                     "cbnz %w4, 1b"
                     : "=&r"(found[0]), "=&r"(found[1]), "=&r"(stored[0]), "=&r"(stored[1]),
                       "=&r"(failed)
                     : "r"(target), "r"(wanted[0]), "r"(wanted[1]), "r"(desired[0]), "r"(desired[1])
                     : "memory", "cc");
    memcpy(result, found, sizeof found);
}
#else
static inline bool oriel_swap_has_wide(void)
{
    return false;
}

static inline void oriel_swap_wide(void *target, const void *origin, const void *compare,
                                   void *result)
{
    (void)target, (void)origin, (void)compare, (void)result;
}
#endif

#endif
