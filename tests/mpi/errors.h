/* Shared parts of the error tests: a window full of a guard pattern, and checks that an error
 * changed nothing. The window's handler is MPI_ERRORS_RETURN, so the test sees each call's class.
 */
#ifndef ORIEL_TESTS_ERRORS_H
#define ORIEL_TESTS_ERRORS_H

#include "harness.h"

#include <string.h>

enum {
    GUARD_BYTES = 256,
    GUARD_BYTE = 0x5a,
    SCRATCH_WORD = GUARD_BYTES / 8 - 1,
    RANGE_WORDS = GUARD_BYTES / 8
};

/* RANGE_WORDS words of 8 bytes on every rank; the last one is for guarded_works. */
static inline struct window guarded_make(enum window_kind kind)
{
    struct window window = window_make(kind, GUARD_BYTES, 8, MPI_COMM_WORLD);
    memset(window.base, GUARD_BYTE, GUARD_BYTES);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    barrier(MPI_COMM_WORLD);
    return window;
}

static inline int guarded_target(void)
{
    return (world_rank + 1) % world_size;
}

/* Collective: the memory is unchanged, and the window still works. */
static inline void guarded_free(struct window *window)
{
    int64_t value = 7000 + world_rank, seen = 0;
    int target = guarded_target();
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < SCRATCH_WORD * 8; i++)
        if (!CHECK(window->base[i] == GUARD_BYTE, "byte %d changed by a call that failed", i))
            break;
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window->win));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, target, SCRATCH_WORD, 1, MPI_INT64_T, window->win));
    CHECK_OK(MPI_Win_flush(target, window->win));
    CHECK_OK(MPI_Get(&seen, 1, MPI_INT64_T, target, SCRATCH_WORD, 1, MPI_INT64_T, window->win));
    CHECK_OK(MPI_Win_unlock(target, window->win));
    CHECK_EQUAL(seen, value);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_fence(0, window->win));
    window_free(window);
}

#endif
