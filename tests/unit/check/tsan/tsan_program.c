/* The part of tsan_entries.c that is compiled with -fsanitize=thread: only loads, stores, copies
 * and atomics. The other part checks the reports. */
#include "check/tsan/tsan_program.h"

#include <string.h>

#ifdef FORTIFIED /* as with -D_FORTIFY_SOURCE */
#define memcpy(to, from, len_bytes)  __builtin___memcpy_chk(to, from, len_bytes, 4096)
#define memset(to, value, len_bytes) __builtin___memset_chk(to, value, len_bytes, 4096)
#endif

int64_t program_load(const void *at, int size)
{
    switch (size) {
    case 1: return *(const int8_t *)at;
    case 2: return *(const int16_t *)at;
    case 4: return *(const int32_t *)at;
    default: return *(const int64_t *)at;
    }
}

void program_store(void *at, int size, int64_t value)
{
    switch (size) {
    case 1: *(int8_t *)at = (int8_t)value; break;
    case 2: *(int16_t *)at = (int16_t)value; break;
    case 4: *(int32_t *)at = (int32_t)value; break;
    default: *(int64_t *)at = value;
    }
}

int32_t program_load_unaligned(const struct odd *at)
{
    return at->second;
}

void program_store_unaligned(struct odd *at)
{
    at->third = 3;
}

void program_copy_struct(struct large *to, const struct large *from)
{
    *to = *from;
}

void program_copy(void *to, const void *from, size_t len_bytes)
{
    memcpy(to, from, len_bytes);
}

void program_fill(void *to, size_t len_bytes)
{
    memset(to, 7, len_bytes);
}

int32_t program_load_volatile(const volatile int32_t *at)
{
    return *at;
}

void program_store_volatile(volatile int32_t *at)
{
    *at = 1;
}

#define ATOMICS(bits, type)                                                                        \
    bool program_atomics_##bits(void *memory)                                                      \
    {                                                                                              \
        type *at = memory;                                                                         \
        type expected = 2;                                                                         \
        __atomic_store_n(at, 5, __ATOMIC_RELEASE);                                                 \
        bool right = __atomic_load_n(at, __ATOMIC_ACQUIRE) == 5;                                   \
        right &= __atomic_fetch_add(at, 4, __ATOMIC_RELAXED) == 5 && *at == 9;                     \
        right &= __atomic_fetch_sub(at, 1, __ATOMIC_RELAXED) == 9 && *at == 8;                     \
        right &= __atomic_fetch_or(at, 3, __ATOMIC_RELAXED) == 8 && *at == 11;                     \
        right &= __atomic_fetch_and(at, 6, __ATOMIC_RELAXED) == 11 && *at == 2;                    \
        right &= __atomic_fetch_xor(at, 7, __ATOMIC_RELAXED) == 2 && *at == 5;                     \
        right &= __atomic_fetch_nand(at, 4, __ATOMIC_RELAXED) == 5 && *at == (type) ~(type)4;      \
        right &= __atomic_exchange_n(at, 3, __ATOMIC_ACQ_REL) == (type) ~(type)4 && *at == 3;      \
        right &= !__atomic_compare_exchange_n(at, &expected, 9, false, __ATOMIC_SEQ_CST,           \
                                              __ATOMIC_RELAXED) &&                                 \
                 expected == 3;                                                                    \
        right &= __atomic_compare_exchange_n(at, &expected, 9, false, __ATOMIC_SEQ_CST,            \
                                             __ATOMIC_RELAXED) &&                                  \
                 *at == 9;                                                                         \
        right &= __sync_val_compare_and_swap(at, 9, 1) == 9 && *at == 1;                           \
        return right;                                                                              \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

uint64_t program_atomic_load(const void *at)
{
    return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

void program_atomic_store(void *at)
{
    __atomic_store_n((uint64_t *)at, 1, __ATOMIC_RELEASE);
}

uint64_t program_atomic_add(void *at)
{
    return __atomic_fetch_add((uint64_t *)at, 1, __ATOMIC_RELAXED);
}
