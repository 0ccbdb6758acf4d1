/* Functions of libc that copy, fill and compare memory. Compilers leave these calls as they are, or
 * call __tsan_memcpy and so on. Only calls from instrumented code are recorded; all pass on to
 * libc. Any code may use them, from the process's first instruction on. */
#include "check/common/slow_copies.h"
#include "check/tsan/find_checker.h"

#include <dlfcn.h>
#include <stdatomic.h>

typedef void *copy_fn(void *to, const void *from, size_t len_bytes);
typedef void *fill_fn(void *to, int value, size_t len_bytes);
typedef int compare_fn(const void *a, const void *b, size_t len_bytes);

/* Used until libc's functions are found, like those of slow_copies.h. */
static int compare_slowly(const void *a, const void *b, size_t len_bytes)
{
    const volatile unsigned char *first = a;
    const volatile unsigned char *second = b;
    for (size_t i = 0; i < len_bytes; i++)
        if (first[i] != second[i])
            return first[i] < second[i] ? -1 : 1;
    return 0;
}

static _Atomic(copy_fn *) copy = oriel_slow_copy;
static _Atomic(copy_fn *) move = oriel_slow_copy;
static _Atomic(fill_fn *) fill = oriel_slow_fill;
static _Atomic(compare_fn *) compare = compare_slowly;

__attribute__((constructor)) static void find_libc(void)
{
    copy_fn *libc_copy = (copy_fn *)(uintptr_t)dlsym(RTLD_NEXT, "memcpy");
    copy_fn *libc_move = (copy_fn *)(uintptr_t)dlsym(RTLD_NEXT, "memmove");
    fill_fn *libc_fill = (fill_fn *)(uintptr_t)dlsym(RTLD_NEXT, "memset");
    compare_fn *libc_compare = (compare_fn *)(uintptr_t)dlsym(RTLD_NEXT, "memcmp");
    if (libc_copy == NULL || libc_move == NULL || libc_fill == NULL || libc_compare == NULL)
        return;
    atomic_store_explicit(&copy, libc_copy, memory_order_relaxed);
    atomic_store_explicit(&move, libc_move, memory_order_relaxed);
    atomic_store_explicit(&fill, libc_fill, memory_order_relaxed);
    atomic_store_explicit(&compare, libc_compare, memory_order_relaxed);
}

static inline __attribute__((always_inline)) void range_record(const void *at, size_t len_bytes,
                                                               bool writes, const void *caller)
{
    if (len_bytes > 0 && __builtin_expect(oriel_tsan_sees(at, len_bytes), 0) &&
        oriel_tsan_is_instrumented(caller))
        oriel_tsan_watch->accessed(at, len_bytes, writes, false, caller);
}

static inline __attribute__((always_inline)) void copy_record(void *to, const void *from,
                                                              size_t len_bytes, const void *caller)
{
    range_record(from, len_bytes, false, caller);
    range_record(to, len_bytes, true, caller);
}

/* The checker's functions, which follow (intercept/libc_accesses.c), then find that they are called
 * from here, and do not record the same access. */
#define NO_TAIL_CALL __asm__ volatile("")

#define COPY(name, function)                                                                       \
    ORIEL_TSAN_ENTRY void *name(void *to, const void *from, size_t len_bytes);                     \
    ORIEL_TSAN_ENTRY void *name(void *to, const void *from, size_t len_bytes)                      \
    {                                                                                              \
        copy_record(to, from, len_bytes, ORIEL_TSAN_CALLER);                                       \
        void *result = atomic_load_explicit(&function, memory_order_relaxed)(to, from, len_bytes); \
        NO_TAIL_CALL;                                                                              \
        return result;                                                                             \
    }
COPY(memcpy, copy)
COPY(memmove, move)
COPY(__tsan_memcpy, copy)
COPY(__tsan_memmove, move)

#define FILL(name)                                                                                 \
    ORIEL_TSAN_ENTRY void *name(void *to, int value, size_t len_bytes);                            \
    ORIEL_TSAN_ENTRY void *name(void *to, int value, size_t len_bytes)                             \
    {                                                                                              \
        range_record(to, len_bytes, true, ORIEL_TSAN_CALLER);                                      \
        void *result = atomic_load_explicit(&fill, memory_order_relaxed)(to, value, len_bytes);    \
        NO_TAIL_CALL;                                                                              \
        return result;                                                                             \
    }
FILL(memset)
FILL(__tsan_memset)

/* With _FORTIFY_SOURCE; room_bytes: the size of the object at `to`. */
_Noreturn void __chk_fail(void);

#define COPY_CHECKED(name, function)                                                               \
    ORIEL_TSAN_ENTRY void *name(void *to, const void *from, size_t len_bytes, size_t room_bytes);  \
    ORIEL_TSAN_ENTRY void *name(void *to, const void *from, size_t len_bytes, size_t room_bytes)   \
    {                                                                                              \
        if (len_bytes > room_bytes)                                                                \
            __chk_fail();                                                                          \
        copy_record(to, from, len_bytes, ORIEL_TSAN_CALLER);                                       \
        void *result = atomic_load_explicit(&function, memory_order_relaxed)(to, from, len_bytes); \
        NO_TAIL_CALL;                                                                              \
        return result;                                                                             \
    }
COPY_CHECKED(__memcpy_chk, copy)
COPY_CHECKED(__memmove_chk, move)

ORIEL_TSAN_ENTRY void *__memset_chk(void *to, int value, size_t len_bytes, size_t room_bytes);
ORIEL_TSAN_ENTRY void *__memset_chk(void *to, int value, size_t len_bytes, size_t room_bytes)
{
    if (len_bytes > room_bytes)
        __chk_fail();
    range_record(to, len_bytes, true, ORIEL_TSAN_CALLER);
    void *result = atomic_load_explicit(&fill, memory_order_relaxed)(to, value, len_bytes);
    NO_TAIL_CALL;
    return result;
}

ORIEL_TSAN_ENTRY int memcmp(const void *a, const void *b, size_t len_bytes);
ORIEL_TSAN_ENTRY int memcmp(const void *a, const void *b, size_t len_bytes)
{
    int order = atomic_load_explicit(&compare, memory_order_relaxed)(a, b, len_bytes);
    range_record(a, len_bytes, false, ORIEL_TSAN_CALLER);
    range_record(b, len_bytes, false, ORIEL_TSAN_CALLER);
    return order;
}
