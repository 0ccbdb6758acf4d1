/* What the files that replace functions of threads share: whether a call is reported, the objects
 * that carry order (check/order/thread_hooks.h), and the next function of that name. Private to
 * src/check/tsan. */
#ifndef ORIEL_CHECK_TSAN_THREAD_CALLS_H
#define ORIEL_CHECK_TSAN_THREAD_CALLS_H

#include "check/tsan/find_checker.h"

#include "check/order/thread_hooks.h"

#include <stdatomic.h>

/* NULL: no checker. */
static inline const struct oriel_thread_hooks *oriel_tsan_hooks(void)
{
    return oriel_tsan_watch == NULL ? NULL : oriel_tsan_watch->threads;
}

/* Kinds of objects. Those without an address have numbers. */
enum oriel_tsan_object {
    ORIEL_TSAN_ADDRESS, /* a lock or an atomic word */
    ORIEL_TSAN_READERS, /* of a lock, by address */
    ORIEL_TSAN_THREAD,  /* by number: what a new thread takes */
    ORIEL_TSAN_ENDED,   /* by pthread_t: what its end gives */
    ORIEL_TSAN_ONCE,    /* by address: what is done once */
    ORIEL_TSAN_FENCE,   /* all fences */
    ORIEL_TSAN_OPENMP,  /* by number */
};

static inline uint64_t oriel_tsan_object(enum oriel_tsan_object kind, uint64_t which)
{
    return (uint64_t)kind << 58 ^ which;
}

/* Whether the address is in code or data of the checker, the library, or this library. */
bool oriel_tsan_is_oriel(const void *address) __attribute__((visibility("hidden")));

/* Whether a call is reported: not one of Oriel's own, or on a lock of Oriel's (the last call of a
 * function returns to that function's caller). */
static inline bool oriel_tsan_reports(uint64_t which, const void *caller)
{
    return oriel_tsan_hooks() != NULL && !oriel_tsan_is_oriel(caller) &&
           !oriel_tsan_is_oriel((const void *)(uintptr_t)which);
}

static inline void oriel_tsan_give(enum oriel_tsan_object kind, uint64_t which, const void *caller)
{
    if (!oriel_tsan_reports(which, caller))
        return;
    oriel_tsan_hooks()->give(oriel_tsan_object(kind, which));
}

static inline void oriel_tsan_take(enum oriel_tsan_object kind, uint64_t which, const void *caller)
{
    if (!oriel_tsan_reports(which, caller))
        return;
    oriel_tsan_hooks()->take(oriel_tsan_object(kind, which));
}

#define ORIEL_TSAN_AT(address) ((uint64_t)(uintptr_t)(address))

/* The next library's function of that name, whose type is the one of the declared function. */
void *oriel_tsan_next(_Atomic(void *) *next, const char *name)
    __attribute__((visibility("hidden")));
#define ORIEL_TSAN_NEXT(name)                                                                      \
    ({                                                                                             \
        static _Atomic(void *) next;                                                               \
        void *found = atomic_load_explicit(&next, memory_order_acquire);                           \
        (__typeof__(&name))(found != NULL ? found : oriel_tsan_next(&next, #name));                \
    })

#endif
