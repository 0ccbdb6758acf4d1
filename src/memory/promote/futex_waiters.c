/* A futex that is not private is known to the kernel by the kind of its page: a private page by the process and the address, one
 * of the memory file by the file and the offset.  Who fell asleep at the one is not found by who wakes the other, so that both
 * ways of a page would lose wake-ups of process-shared semaphores, mutexes and conditions in the window's memory.  A thread that
 * is stopped begins its call anew afterwards, by the kernel or by syscall_restart.c, and waits at what is there now (QUIESCE:
 * all do).  Where writes are caught (PROTECT) nobody is stopped: those that wait in the pages are, once, when all have moved.
 *
 * Not seen is a thread that has looked up its futex before the move and falls asleep after the look: between the two, inside
 * the kernel, it would have to lose its processor for as long as both take.  Nor can a thread be stopped that blocks all signals.
 * write_barrier.c calls. */
#include "memory/promote/futex_waiters.h"

#include "memory/promote/syscall_restart.h"
#include "memory/promote/thread_list.h"
#include "memory/promote/write_barrier.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

struct moved {
    uintptr_t start;
    uintptr_t end;
};

static bool waits_there(const struct oriel_call *call, const void *context)
{
    const struct moved *moved = context;
    switch (call->number) {
    case SYS_futex:
        return (call->arguments[1] & FUTEX_PRIVATE_FLAG) == 0 &&
               call->arguments[0] >= moved->start && call->arguments[0] < moved->end;
#ifdef SYS_futex_waitv
    case SYS_futex_waitv: /* which ones stands in memory that may change meanwhile */ return true;
#endif
    default: return false;
    }
}

/* False for the first that is found. */
static bool is_elsewhere(int32_t tid, void *context)
{
    struct oriel_call call;
    oriel_interrupted_read(tid, &call);
    return !waits_there(&call, context);
}

void oriel_waiters_restart(uintptr_t start, uintptr_t end)
{
    struct moved moved = {start, end};
    int error;
    if (!oriel_threads_visit(is_elsewhere, &moved, &error) && error == 0)
        oriel_write_barrier_nudge(waits_there, &moved);
}
