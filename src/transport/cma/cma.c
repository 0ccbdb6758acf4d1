/* Cross-memory attach: the kernel copies between two address spaces, without help of the other
 * process. At every call it checks that this process may trace the target. A call may move less
 * than requested; the rest is requested again. Each call is short, and announced to the target
 * unless the memory is in its memory file (remote_writers.h). */
#include "transport/transport.h"

#include "transport/remote_writers.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define CHUNK_BYTES                                                                                \
    (UINT64_C(16) << 20) /* some milliseconds, during which the target may not move pages */

enum { PIECES = 1024 }; /* the kernel's limit (UIO_MAXIOV) */

typedef ssize_t transfer(pid_t pid, const struct iovec *local, unsigned long local_count,
                         const struct iovec *remote, unsigned long remote_count,
                         unsigned long flags);

/* One system call, announced to the target. local and remote have equal numbers of parts. */
static ssize_t call_announced(transfer *call, const struct oriel_remote *target,
                              const struct iovec *local, const struct iovec *remote, unsigned count)
{
    if (target->writers == NULL)
        return call(target->pid, local, count, remote, count, 0);
    struct oriel_remote_writers_slot *slot = oriel_remote_writers_enter(target->writers);
    if (slot == NULL) {
        errno = ENXIO; /* oriel_remote_writers_enter has set the message */
        return -1;
    }
    ssize_t moved = call(target->pid, local, count, remote, count, 0);
    oriel_remote_writers_leave(slot);
    return moved;
}

static enum oriel_status cma_error(const struct oriel_remote *target, uint64_t address, int error)
{
    if (error == ENXIO)
        return ORIEL_E_OTHER;
    if (error == ESRCH)
        return oriel_fail(ORIEL_E_PEER, "process %d has died", (int)target->pid);
    if (error == EFAULT)
        return oriel_fail(ORIEL_E_RANGE,
                          "address %#lx of process %d, or the origin's buffer, is not mapped",
                          (unsigned long)address, (int)target->pid);
    return oriel_fail(ORIEL_E_OTHER, "the kernel cannot copy to or from process %d: %s",
                      (int)target->pid, strerror(error));
}

static enum oriel_status cma_move(transfer *call, const struct oriel_remote *target, void *buffer,
                                  uint64_t len_bytes)
{
    for (uint64_t done = 0; done < len_bytes;) {
        uint64_t now = len_bytes - done < CHUNK_BYTES ? len_bytes - done : CHUNK_BYTES;
        struct iovec local = {(char *)buffer + done, now};
        struct iovec remote = {(void *)(uintptr_t)(target->address + done), now};
        ssize_t moved = call_announced(call, target, &local, &remote, 1);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return cma_error(target, target->address + done, moved < 0 ? errno : EFAULT);
        done += (uint64_t)moved;
    }
    return ORIEL_OK;
}

static enum oriel_status write_cma(const struct oriel_remote *to, const void *from,
                                   uint64_t len_bytes)
{
    return cma_move(process_vm_writev, to, (void *)(uintptr_t)from, len_bytes);
}

static enum oriel_status read_cma(const struct oriel_remote *from, void *to, uint64_t len_bytes)
{
    return cma_move(process_vm_readv, from, to, len_bytes);
}

/* The number of leading pieces that fit into one call. */
static unsigned pieces_fitting(const struct oriel_piece *pieces, unsigned count,
                               uint64_t *total_bytes)
{
    unsigned taken = 0;
    *total_bytes = 0;
    while (taken < count && pieces[taken].len_bytes <= CHUNK_BYTES - *total_bytes)
        *total_bytes += pieces[taken++].len_bytes;
    return taken;
}

/* One call for many pieces. If the kernel stops early, each piece is copied alone, which finds the
 * reason. So is a piece that is too long. */
static enum oriel_status cma_move_pieces(transfer *call, const struct oriel_remote *target,
                                         const struct oriel_piece *pieces, unsigned count)
{
    struct iovec local[PIECES];
    struct iovec remote[PIECES];
    uint64_t total_bytes = 0;
    if (count > PIECES)
        return oriel_fail(ORIEL_E_OTHER, "%u pieces in one transfer", count);
    enum oriel_status status = ORIEL_OK;
    for (unsigned taken; count > 0 && status == ORIEL_OK; pieces += taken, count -= taken) {
        taken = pieces_fitting(pieces, count, &total_bytes);
        for (unsigned i = 0; i < taken; i++) {
            local[i] = (struct iovec){pieces[i].here, pieces[i].len_bytes};
            remote[i].iov_base =
                (void *)(uintptr_t)(target->address + (uint64_t)pieces[i].offset_bytes);
            remote[i].iov_len = pieces[i].len_bytes;
        }
        if (taken > 0 && call_announced(call, target, local, remote, taken) == (ssize_t)total_bytes)
            continue;
        taken += taken == 0;
        for (unsigned i = 0; i < taken && status == ORIEL_OK; i++) {
            struct oriel_remote piece = *target;
            piece.address += (uint64_t)pieces[i].offset_bytes;
            status = cma_move(call, &piece, pieces[i].here, pieces[i].len_bytes);
        }
    }
    return status;
}

static enum oriel_status write_pieces_cma(const struct oriel_remote *to,
                                          const struct oriel_piece *pieces, unsigned count)
{
    return cma_move_pieces(process_vm_writev, to, pieces, count);
}

static enum oriel_status read_pieces_cma(const struct oriel_remote *from,
                                         const struct oriel_piece *pieces, unsigned count)
{
    return cma_move_pieces(process_vm_readv, from, pieces, count);
}

const struct oriel_transport oriel_transport_cma = {
    .name = "CMA",
    .write = write_cma,
    .read = read_cma,
    .write_pieces = write_pieces_cma,
    .read_pieces = read_pieces_cma,
};
