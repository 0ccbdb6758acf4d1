/* What the entry points share: the checker's table of watched pages, and the modules compiled with
 * -fsanitize=thread. In a program without the checker every entry point returns at once. Private to
 * src/check/tsan. */
#ifndef ORIEL_CHECK_TSAN_FIND_CHECKER_H
#define ORIEL_CHECK_TSAN_FIND_CHECKER_H

#include "check/local/watched_pages.h"

#include <stddef.h>

#define ORIEL_TSAN_ENTRY  __attribute__((visibility("default")))
#define ORIEL_TSAN_CALLER __builtin_return_address(0)

/* NULL: not watched. */
extern const struct oriel_watched_pages *oriel_tsan_watch __attribute__((visibility("hidden")));

/* Whether the address is in code that was compiled with -fsanitize=thread. */
bool oriel_tsan_is_instrumented(const void *address) __attribute__((visibility("hidden")));

static inline __attribute__((always_inline)) bool oriel_tsan_sees(const volatile void *at,
                                                                  size_t len_bytes)
{
    const struct oriel_watched_pages *watch = oriel_tsan_watch;
    return watch != NULL && oriel_watched_pages_sees(watch, (uint64_t)(uintptr_t)at, len_bytes);
}

static inline __attribute__((always_inline)) void oriel_tsan_access(const volatile void *at,
                                                                    size_t len_bytes, bool writes,
                                                                    bool atomic, const void *caller)
{
    if (oriel_tsan_sees(at, len_bytes))
        oriel_tsan_watch->accessed((const void *)(uintptr_t)at, len_bytes, writes, atomic, caller);
}

#endif
