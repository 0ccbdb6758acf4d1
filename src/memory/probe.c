/* Tries each mechanism with one real operation. A probe releases everything that it opens, maps or
 * forks. It reports the first step that failed. */
#include "memory/probe.h"

#include "base/file_limit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Older kernel headers lack this flag. A kernel that does not know it fails with EINVAL. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static const char sample[] = "oriel";

static void probe_set_result(struct oriel_probe *out, bool available, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void probe_set_result(struct oriel_probe *out, bool available, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out->available = available;
    vsnprintf(out->detail, sizeof out->detail, format, args);
    va_end(args);
}

/* Describes a kernel setting: "NAME is VALUE", or that this kernel does not have it. */
static void setting_read(const char *path, const char *name, char *text, size_t text_bytes)
{
    char value[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, value, sizeof value - 1);
    if (fd >= 0)
        close(fd);
    if (len < 0) {
        snprintf(text, text_bytes, "this kernel has no %s", name);
        return;
    }
    value[strcspn(value, "\n")] = '\0';
    snprintf(text, text_bytes, "%s is %s", name, value);
}

/* Opens the file again as a peer would, through /proc, and compares its contents. */
static void memfd_reopen(int fd, size_t page, struct oriel_probe *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    if (again < 0) {
        probe_set_result(out, false, "open %s: %s", path, strerror(errno));
        return;
    }
    char *seen = mmap(NULL, page, PROT_READ, MAP_SHARED, again, 0);
    if (seen == MAP_FAILED) {
        probe_set_result(out, false, "map the reopened file: %s", strerror(errno));
    } else {
        bool equal = memcmp(seen, sample, sizeof sample) == 0;
        probe_set_result(out, equal,
                         equal ? "created, mapped, reopened through /proc and read back"
                               : "the file reopened through /proc contains other data");
        munmap(seen, page);
    }
    close(again);
}

void oriel_probe_memfd(struct oriel_probe *out)
{
    out->name = "memfd";
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = memfd_create("oriel-probe", MFD_CLOEXEC);
    if (fd < 0) {
        probe_set_result(out, false, "memfd_create: %s", strerror(errno));
        return;
    }
    char *map = MAP_FAILED;
    if (oriel_file_resize(fd, page))
        map = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        probe_set_result(out, false, "size and map one page: %s", strerror(errno));
    } else {
        memcpy(map, sample, sizeof sample);
        memfd_reopen(fd, page, out);
        munmap(map, page);
    }
    close(fd);
}

/* The child's report: the step that failed and its errno, or a NULL step. */
struct cma_report {
    const char *refused;
    int reason;
};

/* Runs in the child: reads the parent's word, from which its own copy differs, and overwrites the
 * parent's. The copy goes from child to parent because ranks are not ancestors of each other, and
 * some systems grant ancestors more. */
static struct cma_report cma_copy(pid_t parent, uint64_t *word)
{
    const uint64_t before = *word;
    uint64_t copied = 0;
    struct iovec local = {.iov_base = &copied, .iov_len = sizeof copied};
    struct iovec remote = {.iov_base = word, .iov_len = sizeof *word};
    *word = 0;
    if (process_vm_readv(parent, &local, 1, &remote, 1, 0) != (ssize_t)sizeof copied)
        return (struct cma_report){"process_vm_readv", errno};
    if (copied != before)
        return (struct cma_report){"process_vm_readv", EIO};
    copied = ~before;
    if (process_vm_writev(parent, &local, 1, &remote, 1, 0) != (ssize_t)sizeof copied)
        return (struct cma_report){"process_vm_writev", errno};
    return (struct cma_report){NULL, 0};
}

/* Forks the child and waits for its report. Returns false when there is none. */
static bool cma_try(uint64_t *word, struct cma_report *out)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        struct cma_report report = cma_copy(parent, word);
        _exit(write(ends[1], &report, sizeof report) == (ssize_t)sizeof report ? 0 : 1);
    }
    close(ends[1]);
    bool reported = child > 0 && read(ends[0], out, sizeof *out) == (ssize_t)sizeof *out;
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return reported;
}

void oriel_probe_cma(struct oriel_probe *out)
{
    out->name = "cma";
    const uint64_t before = UINT64_C(0x6f7269656c);
    uint64_t word = before;
    struct cma_report report = {NULL, 0};
    char setting[96];
    setting_read("/proc/sys/kernel/yama/ptrace_scope", "kernel.yama.ptrace_scope", setting,
                 sizeof setting);
    if (!cma_try(&word, &report))
        probe_set_result(out, false, "cannot create a child process: %s", strerror(errno));
    else if (report.refused != NULL)
        probe_set_result(out, false, "%s by another process: %s (%s)", report.refused,
                         strerror(report.reason), setting);
    else if (word != ~before)
        probe_set_result(out, false, "data written by process_vm_writev did not arrive (%s)",
                         setting);
    else
        probe_set_result(out, true, "memory read and written by another process (%s)", setting);
}

/* Write-protects one anonymous page through fd. Returns NULL, or the step that failed, with errno
 * set. */
static const char *userfaultfd_protect(int fd)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    if (ioctl(fd, UFFDIO_API, &api) != 0)
        return "agreeing on write protection";
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return "mapping a page";
    map[0] = 1; /* a page that was never touched has nothing to protect */

    const char *refused = NULL;
    struct uffdio_register range = {.range = {.start = (uintptr_t)map, .len = page},
                                    .mode = UFFDIO_REGISTER_MODE_WP};
    struct uffdio_writeprotect protect = {.range = range.range,
                                          .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    if (ioctl(fd, UFFDIO_REGISTER, &range) != 0)
        refused = "registering a page";
    else if (ioctl(fd, UFFDIO_WRITEPROTECT, &protect) != 0)
        refused = "write-protecting a page";
    int reason = errno;
    munmap(map, page);
    errno = reason;
    return refused;
}

/* Tries one of the two modes. */
static bool userfaultfd_try(int mode, char *text, size_t text_bytes)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | mode);
    if (fd < 0) {
        snprintf(text, text_bytes, "%s", strerror(errno));
        return false;
    }
    const char *refused = userfaultfd_protect(fd);
    if (refused != NULL)
        snprintf(text, text_bytes, "%s: %s", refused, strerror(errno));
    else
        snprintf(text, text_bytes, "one page write-protected");
    close(fd);
    return refused == NULL;
}

void oriel_probe_userfaultfd(struct oriel_probe *out)
{
    out->name = "userfaultfd";
    char full[80];
    char user[80];
    char setting[64];
    setting_read("/proc/sys/vm/unprivileged_userfaultfd", "vm.unprivileged_userfaultfd", setting,
                 sizeof setting);
    bool full_granted = userfaultfd_try(0, full, sizeof full);
    bool user_granted = userfaultfd_try(UFFD_USER_MODE_ONLY, user, sizeof user);
    if (full_granted)
        probe_set_result(out, true, "full mode: %s (%s)", full, setting);
    else
        probe_set_result(out, false, "full mode: %s; user mode %s: %s (%s)", full,
                         user_granted ? "only" : "too", user, setting);
}

void oriel_probe_xpmem(struct oriel_probe *out)
{
    out->name = "xpmem";
    int fd = open("/dev/xpmem", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        probe_set_result(out, false, "open /dev/xpmem: %s", strerror(errno));
        return;
    }
    probe_set_result(out, true, "opened /dev/xpmem");
    close(fd);
}

void oriel_probe_ucx(struct oriel_probe *out)
{
    out->name = "ucx";
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        probe_set_result(out, false, "%s", dlerror());
        return;
    }
    const char *(*version)(void) = NULL;
    void *symbol = dlsym(library, "ucp_get_version_string");
    memcpy(&version, &symbol,
           sizeof version); /* ISO C cannot cast an object pointer to a function pointer */
    if (version == NULL)
        probe_set_result(out, false, "libucp.so.0 has no ucp_get_version_string");
    else
        probe_set_result(out, true, "libucp.so.0, version %s", version());
    dlclose(library);
}

void (*const oriel_probes[])(struct oriel_probe *out) = {
    oriel_probe_memfd, oriel_probe_cma, oriel_probe_userfaultfd, oriel_probe_xpmem, oriel_probe_ucx,
};
const size_t oriel_probes_count = sizeof oriel_probes / sizeof oriel_probes[0];
