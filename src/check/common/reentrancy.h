/* How deep this thread is in calls of MPI: the checker looks at the program's own calls only. Every
 * exported wrapper asks first, and counts itself while the next function runs. Calls that the host
 * or its libraries make there pass unchecked. Calls by the program's own functions that the host
 * calls back there are checked (callbacks.h). */
#ifndef ORIEL_CHECK_COMMON_REENTRANCY_H
#define ORIEL_CHECK_COMMON_REENTRANCY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union oriel_check_where {
    uint64_t any; /* 0: certainly in the program's own code */
    struct {
        uint32_t depth;
        /* of the program, which the host has called inside calls of this thread */
        uint32_t functions;
    } in;
};
extern _Thread_local union oriel_check_where oriel_check_where
    __attribute__((visibility("hidden")));

/* The outermost call of MPI that this thread is in. Valid while the depth is not 0. Calls inside it
 * have frames below `stack`. A later call whose frame is above it was reached by a jump out of this
 * one. */
struct oriel_check_call {
    uintptr_t stack;      /* lower end of the wrapper's frame */
    const void *address;  /* to which the wrapper returns */
    const char *function; /* the wrapper: "PMPI_Send"; NULL: not known */
};
extern _Thread_local struct oriel_check_call oriel_check_call __attribute__((visibility("hidden")));

/* Whether the checker works in this process: between MPI_Init and MPI_Finalize, with shared memory,
 * and not in a forked child. */
extern _Atomic bool oriel_check_running __attribute__((visibility("hidden")));

/* A call of this rank was left by a jump (callback_scope.h): the rank is no longer checked, and
 * oriel_check_running is false. It still takes part in the checker's collective steps, so that no
 * other rank waits for it. */
extern _Atomic bool oriel_check_left __attribute__((visibility("hidden")));

/* Whether several threads of this process may run checker code at once: the program may call from
 * all its threads, or one thread serves other nodes. Set before the first call that is checked. */
extern bool oriel_check_many_threads __attribute__((visibility("hidden")));

/* Whether one thread makes all calls. Its own cached data then stays valid. */
extern bool oriel_check_one_thread __attribute__((visibility("hidden")));

/* Whether loads and stores are watched, of whatever thread of the program. */
extern bool oriel_check_watches __attribute__((visibility("hidden")));

/* What the program's next checked call does first; NULL: nothing. Owned by pending_slot.c. */
extern void (*oriel_check_pending)(void) __attribute__((visibility("hidden")));

/* Changes with each call that may change what the checker knows of windows, epochs and buffers: all
 * checked calls except those that pending_slot.h does in full. Where one thread makes all calls,
 * cached results are valid as long as this number is the same. */
extern _Atomic uint64_t oriel_check_changes __attribute__((visibility("hidden")));

static inline void oriel_check_change(void)
{
    uint64_t before = atomic_load_explicit(&oriel_check_changes, memory_order_relaxed);
    /* with several threads nothing reads it */
    atomic_store_explicit(&oriel_check_changes, before + 1, memory_order_relaxed);
}

/* Inlined also without optimisation: part of the exported function itself. */
#define ORIEL_CHECK_INLINE static inline __attribute__((always_inline))

ORIEL_CHECK_INLINE uintptr_t oriel_check_frame_low(void)
{
#ifdef __x86_64__
    uintptr_t low;
    __asm__ volatile("mov %%rsp, %0" : "=r"(low));
    return low;
#else
    /* imprecise: a call left by a jump may not be noticed */
    return (uintptr_t)__builtin_frame_address(0);
#endif
}

/* The slow path of oriel_check_is_programs. address: to which the call returns; frame: the upper
 * end of its wrapper's frame. In callbacks.c. */
bool oriel_check_is_programs_yet(const void *address, uintptr_t frame)
    __attribute__((visibility("hidden")));

/* Whether this call is the program's, and is checked. */
ORIEL_CHECK_INLINE bool oriel_check_is_programs(const void *address)
{
    if (__builtin_expect(oriel_check_where.any != 0, 0))
        return oriel_check_is_programs_yet(address, (uintptr_t)__builtin_dwarf_cfa());
    return oriel_check_running;
}

/* The call is checked. */
static inline void oriel_check_look(void)
{
    if (__builtin_expect(oriel_check_pending != NULL, 0))
        oriel_check_pending();
    oriel_check_change();
}

/* Looks for local variables of functions that have returned among the buffers that are still
 * needed. frame: as in oriel_check_is_programs_yet, the caller's stack pointer. In
 * local/stack_frames.c. */
void oriel_check_frames(const void *address, uintptr_t frame) __attribute__((visibility("hidden")));

/* Both: for all calls except those that pending_slot.h names. frame: the upper end of the exported
 * function's. */
ORIEL_CHECK_INLINE bool oriel_check_looks_from(const void *address, uintptr_t frame)
{
    if (!oriel_check_is_programs(address))
        return false;
    oriel_check_look();
    oriel_check_frames(address, frame);
    return true;
}

/* in an exported function only */
#define oriel_check_looks()                                                                        \
    oriel_check_looks_from(__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa())

/* Inlined into an exported function, whose frame lasts until oriel_check_leave. */
ORIEL_CHECK_INLINE void oriel_check_enter_from(const char *function, const void *address)
{
    if (oriel_check_where.in.depth == 0)
        oriel_check_call = (struct oriel_check_call){oriel_check_frame_low(), address, function};
    oriel_check_where.in.depth++;
}

#define oriel_check_enter() oriel_check_enter_from(__func__, __builtin_return_address(0))

static inline void oriel_check_leave(void)
{
    oriel_check_where.in.depth--;
}

#endif
