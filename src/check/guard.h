/* How deep this thread is in calls of MPI: the checker looks at the program's own calls only.  Every exported wrapper asks
 * before it looks, and counts itself while the call behind it runs: what a host, a library of it or a callback calls there
 * passes untouched. */
#ifndef ORIEL_CHECK_GUARD_H
#define ORIEL_CHECK_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern _Thread_local int oriel_check_depth __attribute__((visibility("hidden")));

/* Whether the checker is at work in this process: between MPI_Init and MPI_Finalize, with a board, and not in a forked child. */
extern _Atomic bool oriel_check_running __attribute__((visibility("hidden")));

/* Whether several threads of this process may be at work at once: the program may call from all of its own, or one serves other
 * machines.  Set before the first call that is looked at. */
extern bool oriel_check_several __attribute__((visibility("hidden")));

/* Whether one and the same thread makes all calls: what it keeps of its own stays. */
extern bool oriel_check_alone __attribute__((visibility("hidden")));

/* Whether loads and stores are looked at, of whatever thread of the program. */
extern bool oriel_check_watches __attribute__((visibility("hidden")));

/* What is to be done first when the program's next call is looked at; NULL: nothing.  held.c's own. */
extern void (*oriel_check_held)(void) __attribute__((visibility("hidden")));

/* Another number with each call that may change what the checker knows of windows, epochs and buffers: all that are looked at but
 * those that held.h does in full.  Where one thread makes all calls, what was found out stays true as long as the number does. */
extern _Atomic uint64_t oriel_check_changes __attribute__((visibility("hidden")));

static inline void oriel_check_change(void)
{
    uint64_t before = atomic_load_explicit(&oriel_check_changes, memory_order_relaxed);
    atomic_store_explicit(&oriel_check_changes, before + 1, memory_order_relaxed); /* of several threads nobody asks */
}

/* Whether this call is the program's, and to be looked at. */
static inline bool oriel_check_is_programs(void)
{
    return oriel_check_depth == 0 && oriel_check_running;
}

/* The same for all calls but those that held.h names. */
static inline bool oriel_check_looks(void)
{
    if (!oriel_check_is_programs())
        return false;
    if (__builtin_expect(oriel_check_held != NULL, 0))
        oriel_check_held();
    oriel_check_change();
    return true;
}

static inline void oriel_check_enter(void)
{
    oriel_check_depth++;
}

static inline void oriel_check_leave(void)
{
    oriel_check_depth--;
}

#endif
