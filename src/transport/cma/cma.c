/* Cross-memory attach: the kernel copies between two address spaces, with no help from the other process.  The kernel
 * checks the right to trace the target at every call.  A call may move less than asked for; the rest is asked for again.
 * ops/ calls; memory/reach.c probes. */
#include "transport/transport.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define CHUNK_BYTES (UINT64_C(1) << 30) /* the kernel moves less than 2 GiB at a time */

typedef ssize_t transfer(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
                         unsigned long remote_count, unsigned long flags);

static enum oriel_status failed(const struct oriel_remote *there, uint64_t address, int error)
{
    if (error == ESRCH)
        return oriel_fail(ORIEL_E_PEER, "process %d has died", (int)there->pid);
    if (error == EFAULT)
        return oriel_fail(ORIEL_E_RANGE, "address %#lx of process %d, or the origin's buffer, is not mapped",
                          (unsigned long)address, (int)there->pid);
    return oriel_fail(ORIEL_E_OTHER, "the kernel refuses to copy to or from process %d: %s", (int)there->pid,
                      strerror(error));
}

static enum oriel_status move(transfer *call, const struct oriel_remote *there, void *here, uint64_t len_bytes)
{
    for (uint64_t done = 0; done < len_bytes;) {
        uint64_t now = len_bytes - done < CHUNK_BYTES ? len_bytes - done : CHUNK_BYTES;
        struct iovec local = {(char *)here + done, now};
        struct iovec remote = {(void *)(uintptr_t)(there->address + done), now};
        ssize_t moved = call(there->pid, &local, 1, &remote, 1, 0);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return failed(there, there->address + done, moved < 0 ? errno : EFAULT);
        done += (uint64_t)moved;
    }
    return ORIEL_OK;
}

static enum oriel_status write_cma(const struct oriel_remote *to, const void *from, uint64_t len_bytes)
{
    return move(process_vm_writev, to, (void *)(uintptr_t)from, len_bytes);
}

static enum oriel_status read_cma(const struct oriel_remote *from, void *to, uint64_t len_bytes)
{
    return move(process_vm_readv, from, to, len_bytes);
}

const struct oriel_transport oriel_transport_cma = {
    .name = "CMA",
    .write = write_cma,
    .read = read_cma,
};
