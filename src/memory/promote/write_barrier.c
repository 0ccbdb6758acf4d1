/* Chooses the method and blocks signals in the calling thread. Otherwise a handler of the program
 * could write to the range and wait for its own thread, or write to pages that were already copied.
 */
#include "memory/promote/write_barrier.h"

#include "memory/promote/futex_waiters.h"
#include "memory/promote/syscall_restart.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MASK_BYTES = 8
}; /* the kernel's signal set; libc's functions exclude two signals of its own */

static void hold_signals(struct oriel_write_barrier *freeze)
{
    uint64_t all = UINT64_MAX;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &freeze->mask, MASK_BYTES);
}

static void give_signals(const struct oriel_write_barrier *freeze)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &freeze->mask, NULL, MASK_BYTES);
}

enum oriel_status oriel_write_barrier_open(enum oriel_means means, struct oriel_write_barrier *out)
{
    oriel_interrupted_prepare();
    *out = (struct oriel_write_barrier){.means = ORIEL_MEANS_QUIESCE, .fd = -1};
    if (means == ORIEL_MEANS_QUIESCE)
        return ORIEL_OK;
    if (oriel_protect_open(out)) {
        out->means = ORIEL_MEANS_PROTECT;
        return ORIEL_OK;
    }
    return means == ORIEL_MEANS_AUTO ? ORIEL_OK : oriel_fail(ORIEL_E_OTHER, "%s", out->reason);
}

/* Closing the userfaultfd ends its protection and wakes the threads that wait for a page. Then the
 * threads that wait on moved futexes restart. */
void oriel_write_barrier_close(struct oriel_write_barrier *freeze)
{
    if (freeze->fd >= 0)
        close(freeze->fd);
    freeze->fd = -1;
    if (freeze->moved_start < freeze->moved_end)
        oriel_waiters_restart(freeze->moved_start, freeze->moved_end);
    freeze->moved_start = freeze->moved_end = 0;
}

void oriel_write_barrier_nudge(bool (*is_wanted)(const struct oriel_call *call,
                                                 const void *context),
                               const void *context)
{
    struct oriel_write_barrier freeze = {.means = ORIEL_MEANS_QUIESCE, .fd = -1};
    hold_signals(&freeze);
    oriel_quiesce_nudge(&freeze, is_wanted, context);
    give_signals(&freeze);
}

bool oriel_write_barrier_begin(struct oriel_write_barrier *freeze, uintptr_t start,
                               uint64_t len_bytes, bool private_pages)
{
    hold_signals(freeze);
    bool frozen = freeze->means == ORIEL_MEANS_PROTECT
                      ? oriel_protect_begin(freeze, start, len_bytes, private_pages)
                      : oriel_quiesce_begin(freeze, start, len_bytes);
    if (!frozen)
        give_signals(freeze);
    return frozen;
}

static void note_moved(struct oriel_write_barrier *freeze, uintptr_t start, uintptr_t end)
{
    bool is_first = freeze->moved_start == freeze->moved_end;
    if (is_first || start < freeze->moved_start)
        freeze->moved_start = start;
    if (is_first || end > freeze->moved_end)
        freeze->moved_end = end;
}

void oriel_write_barrier_end(struct oriel_write_barrier *freeze, uintptr_t start,
                             uint64_t len_bytes, bool replaced)
{
    if (freeze->means == ORIEL_MEANS_PROTECT) {
        oriel_protect_end(freeze, start, len_bytes, replaced);
        if (replaced)
            note_moved(freeze, start, start + len_bytes);
    } else {
        oriel_quiesce_end(freeze);
    }
    give_signals(freeze);
}

/* Zero pages stay untouched. This writes the program's memory, parts of which a sanitiser may have
 * poisoned. */
__attribute__((no_sanitize("address", "thread"))) static void fill(uintptr_t start, uintptr_t from,
                                                                   uint64_t len_bytes)
{
    const uint64_t *source = (const uint64_t *)from;
    uint64_t *target = (uint64_t *)start;
    for (uint64_t i = 0; i < len_bytes / sizeof *source; i++)
        if (source[i] != 0)
            *(volatile uint64_t *)&target[i] = source[i];
}

void oriel_write_barrier_fill(struct oriel_write_barrier *freeze, uintptr_t start, uintptr_t from,
                              uint64_t len_bytes)
{
    if (freeze->means == ORIEL_MEANS_PROTECT)
        oriel_protect_fill(freeze, start, from, len_bytes);
    else
        fill(start, from, len_bytes);
}

bool oriel_write_barrier_is_watched(uintptr_t start, uint64_t len_bytes)
{
    return oriel_protect_is_watched(start, len_bytes);
}

bool oriel_write_barrier_uses(uintptr_t start, uintptr_t end)
{
    return oriel_quiesce_uses(start, end);
}
