/* The kernel identifies a process-shared futex by the kind of its page: a private page by process
 * and address, a page of the memory file by file and offset. A thread that sleeps on one identity
 * is not found by a wake-up on the other. So promotion and demotion would lose wake-ups of
 * process-shared semaphores, mutexes and condition variables in window memory.
 *
 * A stopped thread restarts its call afterwards, through the kernel or syscall_restart.c, and waits
 * on the new identity. With stop_threads.c this holds for all threads. With uffd.c no thread is
 * stopped, so the threads that wait in the pages are stopped once, after all pages have moved.
 *
 * Not covered is a thread that has looked up its futex before the move and falls asleep after the
 * scan. It would have to lose its processor inside the kernel for as long as both take. A thread
 * that blocks all signals cannot be stopped either. */
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

static bool waits_in_moved(const struct oriel_syscall *call, const void *context)
{
    const struct moved *moved = context;
    switch (call->number) {
    case SYS_futex:
        return (call->arguments[1] & FUTEX_PRIVATE_FLAG) == 0 &&
               call->arguments[0] >= moved->start && call->arguments[0] < moved->end;
#ifdef SYS_futex_waitv
    case SYS_futex_waitv: /* its futexes are listed in memory that may change meanwhile */
        return true;
#endif
    default: return false;
    }
}

/* Returns false, which ends the visit, at the first waiter. */
static bool waits_elsewhere(int32_t tid, void *context)
{
    struct oriel_syscall call;
    oriel_syscall_restart_read_call(tid, &call);
    return !waits_in_moved(&call, context);
}

void oriel_futex_waiters_restart(uintptr_t start, uintptr_t end)
{
    struct moved moved = {start, end};
    int error;
    if (!oriel_thread_list_visit(waits_elsewhere, &moved, &error) && error == 0)
        oriel_write_barrier_restart_calls(waits_in_moved, &moved);
}
