/* PROTECT: userfaultfd.  A range is registered for both sorts of faults: writes to present pages (write protection) and any
 * access to pages that were never touched, which write protection does not cover in anonymous memory.  freeze.c calls. */
#include "memory/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

static bool fail(struct oriel_freeze *freeze, const char *step)
{
    snprintf(freeze->reason, sizeof freeze->reason, "userfaultfd: %s: %s", step, strerror(errno));
    return false;
}

/* The full mode only: in the user mode a write by the kernel (read into the range) fails instead of waiting. */
static int open_full(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        return fd;
    int refusal = errno;
    int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (device >= 0) {
        fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
        close(device);
    }
    errno = refusal;
    return fd;
}

/* A userfaultfd serves one promotion: the program may close descriptors that it does not know. */
bool oriel_protect_open(struct oriel_freeze *freeze)
{
    freeze->fd = open_full();
    if (freeze->fd < 0)
        return fail(freeze, "refused");
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
    if (ioctl(freeze->fd, UFFDIO_API, &api) == 0)
        return true;
    fail(freeze, "write protection of shared memory (Linux 5.19)");
    close(freeze->fd);
    freeze->fd = -1;
    return false;
}

static void unregister(const struct oriel_freeze *freeze, struct uffdio_range range)
{
    ioctl(freeze->fd, UFFDIO_UNREGISTER, &range); /* takes the protection away, too */
    ioctl(freeze->fd, UFFDIO_WAKE, &range);
}

/* Pages that the file does not hold need no second sort: the kernel marks their entries. */
bool oriel_protect_begin(struct oriel_freeze *freeze, uintptr_t start, uint64_t len_bytes, bool private_pages)
{
    uint64_t mode = UFFDIO_REGISTER_MODE_WP | (private_pages ? UFFDIO_REGISTER_MODE_MISSING : 0);
    struct uffdio_register range = {.range = {.start = start, .len = len_bytes}, .mode = mode};
    struct uffdio_writeprotect protect = {.range = range.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    if (ioctl(freeze->fd, UFFDIO_REGISTER, &range) != 0)
        return fail(freeze, "registering a range");
    if (ioctl(freeze->fd, UFFDIO_WRITEPROTECT, &protect) == 0)
        return true;
    fail(freeze, "write-protecting a range");
    unregister(freeze, range.range);
    return false;
}

void oriel_protect_end(struct oriel_freeze *freeze, uintptr_t start, uint64_t len_bytes, bool replaced)
{
    struct uffdio_range range = {.start = start, .len = len_bytes};
    if (replaced)
        ioctl(freeze->fd, UFFDIO_WAKE, &range); /* the registered mapping is gone */
    else
        unregister(freeze, range);
}
