/* Preloaded by the tests: refuses one acquisition of liboriel and the checker (memory, mappings,
 * files, descriptors, sockets, threads, handlers), the n-th after refuse_arm(n). With
 * TEST_INTERRUPTS, it ends every second of their interruptible calls with EINTR.
 * refused_acquisitions.c calls it. Calls of other libraries are unchanged: the hosts fail on
 * signals while they connect. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void refuse_arm(int which);
bool refuse_disarm(void);
int __register_atfork(void (*before)(void), void (*after)(void), void (*child)(void),
                      void *library);

static bool is_reported;    /* by a line on the standard error */
static unsigned interrupts; /* 1: every second call; 2: the first, third and so on */
static _Atomic int left;    /* 0: not armed */
static struct {
    _Atomic uintptr_t from, to;
} code[2]; /* of liboriel and of the checker */

static int note_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    static const char *const names[] = {"/liboriel.so", "/liboriel_check.so"};
    (void)size, (void)unused;
    for (int which = 0; which < 2; which++)
        for (int i = 0; strstr(info->dlpi_name, names[which]) != NULL && i < info->dlpi_phnum; i++)
            if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
                atomic_store(&code[which].from, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
                atomic_store(&code[which].to,
                             atomic_load(&code[which].from) + info->dlpi_phdr[i].p_memsz);
            }
    return 0;
}

static bool is_own(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    for (int which = 0; which < 2; which++)
        if (at >= atomic_load(&code[which].from) && at < atomic_load(&code[which].to))
            return true;
    return false;
}

/* Counts from 1. */
void refuse_arm(int which)
{
    dl_iterate_phdr(note_library, NULL);
    atomic_store(&left, which);
}

/* Returns true if the armed acquisition occurred. */
bool refuse_disarm(void)
{
    return atomic_exchange(&left, 0) <= 0;
}

/* Writes to the standard error, without allocation. */
static void report_refused(void)
{
    static const char line[] = "# refused\n";
    (void)!syscall(SYS_write, STDERR_FILENO, line, sizeof line - 1);
}

static bool is_refused(const void *caller, int error)
{
    int before = atomic_load(&left);
    if (before <= 0 || !is_own(caller))
        return false;
    if (before == 1)
        atomic_store(&left, -1); /* once */
    else
        atomic_store(&left, before - 1);
    if (before == 1 && is_reported)
        report_refused();
    errno = before == 1 ? error : errno;
    return before == 1;
}

/* An interruptible call returns at once, as if after a signal handler; the next one does not. */
static bool is_interrupted(const void *caller)
{
    static _Atomic unsigned waits;
    if (interrupts == 0 || !is_own(caller) || (atomic_fetch_add(&waits, 1) + interrupts) % 2 != 0)
        return false;
    errno = EINTR;
    return true;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
    return is_refused(CALLER, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return is_refused(CALLER, ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return is_refused(CALLER, ENOMEM) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return is_refused(CALLER, ENOMEM) ? NULL : __libc_memalign(alignment, size);
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (is_refused(CALLER, ENOMEM))
        return MAP_FAILED;
    if (real == NULL)
        *(void **)&real = next("mmap");
    return real(address, length, protection, flags, fd, offset);
}

/* A function that fails by -1, or NULL, and errno. */
#define ACQUIRES(Type, failed, error, name, parameters, arguments)                                 \
    Type name parameters                                                                           \
    {                                                                                              \
        static __typeof__(name) *real;                                                             \
        if (is_refused(CALLER, error))                                                             \
            return failed;                                                                         \
        if (real == NULL)                                                                          \
            *(void **)&real = next(#name);                                                         \
        return real arguments;                                                                     \
    }
ACQUIRES(int, -1, EMFILE, memfd_create, (const char *name, unsigned flags), (name, flags))
ACQUIRES(int, -1, EMFILE, eventfd, (unsigned value, int flags), (value, flags))
ACQUIRES(int, -1, EMFILE, epoll_create1, (int flags), (flags))
ACQUIRES(int, -1, EMFILE, socket, (int domain, int type, int protocol), (domain, type, protocol))
ACQUIRES(int, -1, EMFILE, socketpair, (int domain, int type, int protocol, int ends[2]),
         (domain, type, protocol, ends))
ACQUIRES(int, -1, EMFILE, pipe2, (int ends[2], int flags), (ends, flags))
ACQUIRES(int, -1, ENOSPC, epoll_ctl, (int fd, int how, int other, struct epoll_event *event),
         (fd, how, other, event))
ACQUIRES(int, -1, ENOSPC, ftruncate, (int fd, off_t length), (fd, length))
ACQUIRES(FILE *, NULL, EMFILE, fopen, (const char *path, const char *how), (path, how))
ACQUIRES(DIR *, NULL, EMFILE, opendir, (const char *path), (path))

/* Functions that return the error. */
#define ACQUIRES_OR_REPORTS(error, name, parameters, arguments)                                    \
    int name parameters                                                                            \
    {                                                                                              \
        static __typeof__(name) *real;                                                             \
        if (is_refused(CALLER, error))                                                             \
            return error;                                                                          \
        if (real == NULL)                                                                          \
            *(void **)&real = next(#name);                                                         \
        return real arguments;                                                                     \
    }
ACQUIRES_OR_REPORTS(EAGAIN, pthread_key_create, (pthread_key_t * key, void (*end)(void *)),
                    (key, end))
ACQUIRES_OR_REPORTS(EAGAIN, pthread_create,
                    (pthread_t * thread, const pthread_attr_t *how, void *(*run)(void *),
                     void *argument),
                    (thread, how, run, argument))
ACQUIRES_OR_REPORTS(ENOMEM, __register_atfork,
                    (void (*before)(void), void (*after)(void), void (*child)(void), void *library),
                    (before, after, child, library))

char *strdup(const char *text)
{
    size_t room = strlen(text) + 1;
    char *copy = is_refused(CALLER, ENOMEM) ? NULL : __libc_malloc(room);
    return copy == NULL ? NULL : memcpy(copy, text, room);
}

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (is_refused(CALLER, EMFILE))
        return -1;
    if (real == NULL)
        *(void **)&real = next("open");
    return real(path, flags, mode);
}

int fcntl(int fd, int what, ...)
{
    static int (*real)(int, int, ...);
    va_list list;
    va_start(list, what);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (what == F_DUPFD_CLOEXEC && is_refused(CALLER, EMFILE))
        return -1;
    if (real == NULL)
        *(void **)&real = next("fcntl");
    return real(fd, what, argument);
}

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long words[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    bool acquires = number == SYS_mmap || number == SYS_mremap || number == SYS_userfaultfd ||
                    number == SYS_openat || number == SYS_pidfd_open;
    if (acquires &&
        is_refused(CALLER, number == SYS_mmap || number == SYS_mremap ? ENOMEM : EMFILE))
        return -1;
    if (number == SYS_futex && (words[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && is_interrupted(CALLER))
        return -1;
    if (real == NULL)
        *(void **)&real = next("syscall");
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

#define WAITS(Type, name, parameters, arguments)                                                   \
    Type name parameters                                                                           \
    {                                                                                              \
        static __typeof__(name) *real;                                                             \
        if (is_interrupted(CALLER))                                                                \
            return -1;                                                                             \
        if (real == NULL)                                                                          \
            *(void **)&real = next(#name);                                                         \
        return real arguments;                                                                     \
    }
WAITS(int, poll, (struct pollfd * files, nfds_t count, int limit_ms), (files, count, limit_ms))
WAITS(int, ppoll,
      (struct pollfd * files, nfds_t count, const struct timespec *limit, const sigset_t *mask),
      (files, count, limit, mask))
WAITS(int, nanosleep, (const struct timespec *wanted, struct timespec *left_over),
      (wanted, left_over))
WAITS(int, sem_wait, (sem_t * semaphore), (semaphore))
WAITS(int, sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *limit),
      (semaphore, clock, limit))
WAITS(pid_t, waitpid, (pid_t child, int *status, int options), (child, status, options))
WAITS(ssize_t, write, (int fd, const void *bytes, size_t length), (fd, bytes, length))
WAITS(ssize_t, preadv, (int fd, const struct iovec *parts, int count, off_t offset),
      (fd, parts, count, offset))
WAITS(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t offset),
      (fd, parts, count, offset))
WAITS(ssize_t, recv, (int fd, void *bytes, size_t length, int flags), (fd, bytes, length, flags))
WAITS(ssize_t, send, (int fd, const void *bytes, size_t length, int flags),
      (fd, bytes, length, flags))
WAITS(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WAITS(ssize_t, process_vm_readv,
      (pid_t pid, const struct iovec *here, unsigned long count, const struct iovec *there,
       unsigned long parts, unsigned long flags),
      (pid, here, count, there, parts, flags))
WAITS(ssize_t, process_vm_writev,
      (pid_t pid, const struct iovec *here, unsigned long count, const struct iovec *there,
       unsigned long parts, unsigned long flags),
      (pid, here, count, there, parts, flags))

/* Older kernels fail at any signal. */
int fallocate(int fd, int mode, off_t offset, off_t length)
{
    static int (*real)(int, int, off_t, off_t);
    if (is_refused(CALLER, ENOSPC) || is_interrupted(CALLER))
        return -1;
    if (real == NULL)
        *(void **)&real = next("fallocate");
    return real(fd, mode, offset, length);
}

int posix_fallocate(int fd, off_t offset, off_t length)
{
    static int (*real)(int, off_t, off_t);
    if (is_refused(CALLER, ENOSPC))
        return ENOSPC;
    if (is_interrupted(CALLER))
        return EINTR;
    if (real == NULL)
        *(void **)&real = next("posix_fallocate");
    return real(fd, offset, length);
}

/* TEST_REFUSE_FIRST=r:n: refuses the n-th acquisition of rank r, counted from the process's start,
 * the checker's start included. A line reports the refusal. */
static void arm_from_start(const char *wanted)
{
    const char *rank =
        getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    const char *which = strchr(wanted, ':');
    if (rank == NULL || which == NULL || atoi(rank) != atoi(wanted))
        return;
    is_reported = true;
    refuse_arm(atoi(which + 1));
}

__attribute__((constructor)) static void start(void)
{
    interrupts = getenv("TEST_INTERRUPTS") != NULL ? (unsigned)atoi(getenv("TEST_INTERRUPTS")) : 0;
    if (interrupts != 0)
        dl_iterate_phdr(note_library, NULL);
    if (getenv("TEST_REFUSE_FIRST") != NULL)
        arm_from_start(getenv("TEST_REFUSE_FIRST"));
}
