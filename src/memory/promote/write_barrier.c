/* Chooses the method and blocks signals in the calling thread. Otherwise a handler of the program
 * could write to the range and wait for its own thread, or write to pages that were already copied.
 */
#include "memory/promote/write_barrier.h"

#include "memory/promote/futex_waiters.h"
#include "memory/promote/syscall_restart.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* size of the kernel's signal set; libc's functions exclude two signals of its own */
enum { MASK_BYTES = 8 };

static void signals_block(struct oriel_write_barrier *barrier)
{
    uint64_t all = UINT64_MAX;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &barrier->mask, MASK_BYTES);
}

static void signals_restore(const struct oriel_write_barrier *barrier)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &barrier->mask, NULL, MASK_BYTES);
}

enum oriel_status oriel_write_barrier_open(enum oriel_barrier_method method,
                                           struct oriel_write_barrier *out)
{
    oriel_syscall_restart_prepare();
    *out = (struct oriel_write_barrier){.method = ORIEL_BARRIER_STOP_THREADS, .fd = -1};
    if (method == ORIEL_BARRIER_STOP_THREADS)
        return ORIEL_OK;
    if (oriel_uffd_open(out)) {
        out->method = ORIEL_BARRIER_UFFD;
        return ORIEL_OK;
    }
    return method == ORIEL_BARRIER_AUTO ? ORIEL_OK : oriel_fail(ORIEL_E_OTHER, "%s", out->reason);
}

/* Closing the userfaultfd ends its protection and wakes the threads that wait for a page. Then the
 * threads that wait on moved futexes restart. */
void oriel_write_barrier_close(struct oriel_write_barrier *barrier)
{
    if (barrier->fd >= 0)
        close(barrier->fd);
    barrier->fd = -1;
    if (barrier->moved_start < barrier->moved_end)
        oriel_futex_waiters_restart(barrier->moved_start, barrier->moved_end);
    barrier->moved_start = barrier->moved_end = 0;
}

void oriel_write_barrier_restart_calls(bool (*is_wanted)(const struct oriel_syscall *call,
                                                         const void *context),
                                       const void *context)
{
    struct oriel_write_barrier barrier = {.method = ORIEL_BARRIER_STOP_THREADS, .fd = -1};
    signals_block(&barrier);
    oriel_stop_threads_interrupt(&barrier, is_wanted, context);
    signals_restore(&barrier);
}

bool oriel_write_barrier_begin(struct oriel_write_barrier *barrier, uintptr_t start,
                               uint64_t len_bytes, bool private_pages)
{
    signals_block(barrier);
    bool frozen = barrier->method == ORIEL_BARRIER_UFFD
                      ? oriel_uffd_begin(barrier, start, len_bytes, private_pages)
                      : oriel_stop_threads_begin(barrier, start, len_bytes);
    if (!frozen)
        signals_restore(barrier);
    return frozen;
}

static void moved_range_extend(struct oriel_write_barrier *barrier, uintptr_t start, uintptr_t end)
{
    bool is_first = barrier->moved_start == barrier->moved_end;
    if (is_first || start < barrier->moved_start)
        barrier->moved_start = start;
    if (is_first || end > barrier->moved_end)
        barrier->moved_end = end;
}

void oriel_write_barrier_end(struct oriel_write_barrier *barrier, uintptr_t start,
                             uint64_t len_bytes, bool replaced)
{
    if (barrier->method == ORIEL_BARRIER_UFFD) {
        oriel_uffd_end(barrier, start, len_bytes, replaced);
        if (replaced)
            moved_range_extend(barrier, start, start + len_bytes);
    } else {
        oriel_stop_threads_end(barrier);
    }
    signals_restore(barrier);
}

/* Zero pages stay untouched. This writes the program's memory, parts of which a sanitiser may have
 * poisoned. */
__attribute__((no_sanitize("address", "thread"))) static void
private_range_fill(uintptr_t start, uintptr_t from, uint64_t len_bytes)
{
    const uint64_t *source = (const uint64_t *)from;
    uint64_t *target = (uint64_t *)start;
    for (uint64_t i = 0; i < len_bytes / sizeof *source; i++)
        if (source[i] != 0)
            *(volatile uint64_t *)&target[i] = source[i];
}

void oriel_write_barrier_fill(struct oriel_write_barrier *barrier, uintptr_t start, uintptr_t from,
                              uint64_t len_bytes)
{
    if (barrier->method == ORIEL_BARRIER_UFFD)
        oriel_uffd_fill(barrier, start, from, len_bytes);
    else
        private_range_fill(start, from, len_bytes);
}

bool oriel_write_barrier_is_watched(uintptr_t start, uint64_t len_bytes)
{
    return oriel_uffd_is_watched(start, len_bytes);
}

bool oriel_write_barrier_owns(uintptr_t start, uintptr_t end)
{
    return oriel_stop_threads_owns(start, end);
}
