/* How an exported wrapper finds the next function: Oriel's or the host's, whichever the dynamic
 * linker has next. */
#ifndef ORIEL_CHECK_INTERCEPT_WRAP_H
#define ORIEL_CHECK_INTERCEPT_WRAP_H

#include "check/common/reentrancy.h"
#include "host/host.h"

#define ORIEL_CHECK_EXPORT __attribute__((visibility("default")))

/* Whether the address is in this library. It calls libc's functions with its locks held. */
static inline bool oriel_check_is_own(const void *address)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden")));
    extern const char etext[] __attribute__((visibility("hidden")));
    return (const char *)address >= __ehdr_start && (const char *)address < etext;
}

/* Opens the definition of both names of an MPI function; NEXT(name) in it is the next one. _X: of
 * an extension. */
#define ORIEL_CHECK_WRAP(name, parameters)   ORIEL_CHECK_WRAP_PREFIX(MPI_, name, parameters)
#define ORIEL_CHECK_WRAP_X(name, parameters) ORIEL_CHECK_WRAP_PREFIX(MPIX_, name, parameters)
#define ORIEL_CHECK_WRAP_PREFIX(prefix, name, parameters)                                          \
    ORIEL_CHECK_EXPORT int P##prefix##name parameters;                                             \
    ORIEL_CHECK_EXPORT int prefix##name parameters                                                 \
        __attribute__((weak, alias("P" #prefix #name)));                                           \
    static _Atomic(void *) next_##name;                                                            \
    int P##prefix##name parameters

#define NEXT(name)   NEXT_PREFIX(MPI_, name)
#define NEXT_X(name) NEXT_PREFIX(MPIX_, name)
#define NEXT_PREFIX(prefix, name)                                                                  \
    ((__typeof__(&P##prefix##name))oriel_host_symbol_kept(&next_##name, "P" #prefix #name))

static inline int oriel_check_back(int code)
{
    oriel_check_leave();
    return code;
}

/* Calls the next function with the depth raised; an expression with its code, which is also stored
 * in `code`. */
#define ORIEL_CHECK_PASS(code, name, arguments)                                                    \
    (oriel_check_enter(), (code) = oriel_check_back(NEXT(name) arguments))

#endif
