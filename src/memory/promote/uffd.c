/* Catches writes with userfaultfd. A private range is registered for accesses to missing pages: all
 * accesses wait once its pages are moved away. In a range of the memory file, writes wait (write
 * protection) while its pages are read. */
#include "memory/promote/write_barrier.h"

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

static bool uffd_error(struct oriel_write_barrier *barrier, const char *step)
{
    snprintf(barrier->reason, sizeof barrier->reason, "userfaultfd: %s: %s", step, strerror(errno));
    return false;
}

/* Only the full mode is used. In user mode, a write by the kernel (a read into the range) fails
 * instead of waiting. */
static int uffd_open_full(void)
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

/* One userfaultfd per promotion, because the program may close descriptors that it does not
 * know. */
bool oriel_uffd_open(struct oriel_write_barrier *barrier)
{
    barrier->fd = uffd_open_full();
    if (barrier->fd < 0)
        return uffd_error(barrier, "refused");
    struct uffdio_api api = {.api = UFFD_API,
                             .features =
                                 UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
    if (ioctl(barrier->fd, UFFDIO_API, &api) == 0)
        return true;
    uffd_error(barrier, "write protection of shared memory (Linux 5.19)");
    close(barrier->fd);
    barrier->fd = -1;
    return false;
}

static void uffd_unregister(const struct oriel_write_barrier *barrier, struct uffdio_range range)
{
    ioctl(barrier->fd, UFFDIO_UNREGISTER, &range); /* also removes the protection */
    ioctl(barrier->fd, UFFDIO_WAKE, &range);
}

bool oriel_uffd_begin(struct oriel_write_barrier *barrier, uintptr_t start, uint64_t len_bytes,
                      bool private_pages)
{
    uint64_t mode = private_pages ? UFFDIO_REGISTER_MODE_MISSING : UFFDIO_REGISTER_MODE_WP;
    struct uffdio_register range = {.range = {.start = start, .len = len_bytes}, .mode = mode};
    struct uffdio_writeprotect protect = {.range = range.range,
                                          .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    if (ioctl(barrier->fd, UFFDIO_REGISTER, &range) != 0)
        return uffd_error(barrier, "registering a range");
    if (private_pages || ioctl(barrier->fd, UFFDIO_WRITEPROTECT, &protect) == 0)
        return true;
    uffd_error(barrier, "write-protecting a range");
    uffd_unregister(barrier, range.range);
    return false;
}

void oriel_uffd_end(struct oriel_write_barrier *barrier, uintptr_t start, uint64_t len_bytes,
                    bool replaced)
{
    struct uffdio_range range = {.start = start, .len = len_bytes};
    if (replaced)
        ioctl(barrier->fd, UFFDIO_WAKE, &range); /* the registered mapping is gone */
    else
        uffd_unregister(barrier, range);
}

/* Does not wake waiters; the end does. */
void oriel_uffd_fill(struct oriel_write_barrier *barrier, uintptr_t start, uintptr_t from,
                     uint64_t len_bytes)
{
    for (uint64_t done = 0; done < len_bytes;) {
        struct uffdio_copy copy = {.dst = start + done,
                                   .src = from + done,
                                   .len = len_bytes - done,
                                   .mode = UFFDIO_COPY_MODE_DONTWAKE};
        if (ioctl(barrier->fd, UFFDIO_COPY, &copy) != 0 && copy.copy <= 0 && errno != EAGAIN)
            return; /* no memory at all */
        done += copy.copy > 0 ? (uint64_t)copy.copy : 0;
    }
}

/* The kernel refuses a second registration. Write protection without protected pages disturbs no
 * thread meanwhile. */
bool oriel_uffd_is_watched(uintptr_t start, uint64_t len_bytes)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    struct uffdio_register range = {.range = {.start = start, .len = len_bytes},
                                    .mode = UFFDIO_REGISTER_MODE_WP};
    int fd = uffd_open_full();
    if (fd < 0)
        fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0)
        return false;
    bool is_watched = ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &range) != 0 &&
                      errno == EBUSY;
    close(fd);
    return is_watched;
}
