/* Chooses the means and keeps signals from the calling thread: a handler of the program would write into the range and wait for
 * itself, or write into pages that were copied already.  promote.c and transfer.c call. */
#include "memory/freeze.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MASK_BYTES = 8 }; /* the kernel's signal set; libc's functions leave out two signals of its own */

enum oriel_status oriel_freeze_open(enum oriel_means means, struct oriel_freeze *out)
{
    *out = (struct oriel_freeze){.means = ORIEL_MEANS_QUIESCE, .fd = -1};
    if (means == ORIEL_MEANS_QUIESCE)
        return ORIEL_OK;
    if (oriel_protect_open(out)) {
        out->means = ORIEL_MEANS_PROTECT;
        return ORIEL_OK;
    }
    return means == ORIEL_MEANS_AUTO ? ORIEL_OK : oriel_fail(ORIEL_E_OTHER, "%s", out->reason);
}

/* Closing the userfaultfd also ends what it protects and wakes who waits. */
void oriel_freeze_close(struct oriel_freeze *freeze)
{
    if (freeze->fd >= 0)
        close(freeze->fd);
    freeze->fd = -1;
}

bool oriel_freeze_begin(struct oriel_freeze *freeze, uintptr_t start, uint64_t len_bytes, bool private_pages)
{
    uint64_t all = UINT64_MAX;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &freeze->mask, MASK_BYTES);
    bool frozen = freeze->means == ORIEL_MEANS_PROTECT ? oriel_protect_begin(freeze, start, len_bytes, private_pages)
                                                       : oriel_quiesce_begin(freeze, start, len_bytes);
    if (!frozen)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &freeze->mask, NULL, MASK_BYTES);
    return frozen;
}

void oriel_freeze_end(struct oriel_freeze *freeze, uintptr_t start, uint64_t len_bytes, bool replaced)
{
    if (freeze->means == ORIEL_MEANS_PROTECT)
        oriel_protect_end(freeze, start, len_bytes, replaced);
    else
        oriel_quiesce_end(freeze);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &freeze->mask, NULL, MASK_BYTES);
}

void oriel_freeze_fill(struct oriel_freeze *freeze, uintptr_t start, uintptr_t from, uint64_t len_bytes)
{
    if (freeze->means == ORIEL_MEANS_PROTECT)
        oriel_protect_fill(freeze, start, from, len_bytes);
    else
        oriel_quiesce_fill(start, from, len_bytes);
}

bool oriel_freeze_is_watched(uintptr_t start, uint64_t len_bytes)
{
    return oriel_protect_is_watched(start, len_bytes);
}

bool oriel_freeze_uses(uintptr_t start, uintptr_t end)
{
    return oriel_quiesce_uses(start, end);
}
