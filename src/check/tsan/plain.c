/* Loads and stores that the compiler announces: gcc's and clang's names for every size. Those of
 * volatile objects, which compilers distinguish on request, count as atomic, because programs poll
 * with them. Instrumented code uses these entry points. */
#include "check/tsan/thread_calls.h"

static void volatile_order(const void *at, bool writes)
{
    const struct oriel_thread_hooks *hooks = oriel_tsan_hooks();
    if (hooks == NULL)
        return;
    (writes ? hooks->give
            : hooks->take_soon)(oriel_tsan_object(ORIEL_TSAN_ADDRESS, ORIEL_TSAN_AT(at)));
}

/* One entry point with an address; and one that also has the instruction's address. */
#define ACCESS(name, size, writes, atomic)                                                         \
    ORIEL_TSAN_ENTRY void __tsan_##name##size(void *at);                                           \
    ORIEL_TSAN_ENTRY void __tsan_##name##size(void *at)                                            \
    {                                                                                              \
        oriel_tsan_access(at, size, writes, atomic, ORIEL_TSAN_CALLER);                            \
        if (atomic)                                                                                \
            volatile_order(at, writes);                                                            \
    }
#define ACCESS_PC(name, size, writes)                                                              \
    ORIEL_TSAN_ENTRY void __tsan_##name##size##_pc(void *at, void *pc);                            \
    ORIEL_TSAN_ENTRY void __tsan_##name##size##_pc(void *at, void *pc)                             \
    {                                                                                              \
        oriel_tsan_access(at, size, writes, false, pc);                                            \
    }
#define UPDATE(name, size)                                                                         \
    ORIEL_TSAN_ENTRY void __tsan_##name##size(void *at);                                           \
    ORIEL_TSAN_ENTRY void __tsan_##name##size(void *at)                                            \
    {                                                                                              \
        oriel_tsan_access(at, size, false, false, ORIEL_TSAN_CALLER);                              \
        oriel_tsan_access(at, size, true, false, ORIEL_TSAN_CALLER);                               \
    }
#define SIZES(DO, name, ...)                                                                       \
    DO(name, 1, __VA_ARGS__)                                                                       \
    DO(name, 2, __VA_ARGS__)                                                                       \
    DO(name, 4, __VA_ARGS__) DO(name, 8, __VA_ARGS__) DO(name, 16, __VA_ARGS__)

SIZES(ACCESS, read, false, false)
SIZES(ACCESS, write, true, false)
SIZES(ACCESS, unaligned_read, false, false)
SIZES(ACCESS, unaligned_write, true, false)
SIZES(ACCESS, volatile_read, false, true)
SIZES(ACCESS, volatile_write, true, true)
SIZES(ACCESS, unaligned_volatile_read, false, true)
SIZES(ACCESS, unaligned_volatile_write, true, true)
SIZES(ACCESS_PC, read, false)
SIZES(ACCESS_PC, write, true)
UPDATE(read_write, 1)
UPDATE(read_write, 2)
UPDATE(read_write, 4)
UPDATE(read_write, 8)
UPDATE(read_write, 16)
UPDATE(unaligned_read_write, 2)
UPDATE(unaligned_read_write, 4)
UPDATE(unaligned_read_write, 8)
UPDATE(unaligned_read_write, 16)

#define RANGE(name, writes)                                                                        \
    ORIEL_TSAN_ENTRY void __tsan_##name##_range(void *at, unsigned long len_bytes);                \
    ORIEL_TSAN_ENTRY void __tsan_##name##_range(void *at, unsigned long len_bytes)                 \
    {                                                                                              \
        oriel_tsan_access(at, len_bytes, writes, false, ORIEL_TSAN_CALLER);                        \
    }                                                                                              \
    ORIEL_TSAN_ENTRY void __tsan_##name##_range_pc(void *at, unsigned long len_bytes, void *pc);   \
    ORIEL_TSAN_ENTRY void __tsan_##name##_range_pc(void *at, unsigned long len_bytes, void *pc)    \
    {                                                                                              \
        oriel_tsan_access(at, len_bytes, writes, false, pc);                                       \
    }
RANGE(read, false)
RANGE(write, true)

ORIEL_TSAN_ENTRY void __tsan_vptr_read(void **at);
ORIEL_TSAN_ENTRY void __tsan_vptr_read(void **at)
{
    oriel_tsan_access(at, sizeof *at, false, false, ORIEL_TSAN_CALLER);
}

ORIEL_TSAN_ENTRY void __tsan_vptr_update(void **at, void *value);
ORIEL_TSAN_ENTRY void __tsan_vptr_update(void **at, void *value)
{
    if (*at != value)
        oriel_tsan_access(at, sizeof *at, true, false, ORIEL_TSAN_CALLER);
}
