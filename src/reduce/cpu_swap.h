/* Compare-and-swap of one aligned element with a CPU instruction. Inlined into the data path. */
#ifndef ORIEL_REDUCE_CPU_SWAP_H
#define ORIEL_REDUCE_CPU_SWAP_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* The largest element, and the largest that the CPU swaps. */
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
#endif
