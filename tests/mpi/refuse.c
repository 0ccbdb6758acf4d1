/* Preloaded by the tests: refuses one of liboriel's own acquisitions (memory, mappings, files, descriptors, threads), the n-th
 * after refuse_arm(n) has been called; and, with TEST_INTERRUPTS, ends every second wait of liboriel as a signal would (EINTR).
 * acquisitions.c calls; what other libraries do is left alone: the hosts do not stand signals while they connect. */
#include <dlfcn.h>
#include <errno.h>
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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void refuse_arm(int which);
bool refuse_disarm(void);

static bool interrupts;
static _Atomic int left; /* 0: not armed */
static _Atomic uintptr_t from, to; /* liboriel's code */

static int note_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (strstr(info->dlpi_name, "/liboriel.so") == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            atomic_store(&from, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            atomic_store(&to, atomic_load(&from) + info->dlpi_phdr[i].p_memsz);
        }
    return 1;
}

/* From 1 on. */
void refuse_arm(int which)
{
    dl_iterate_phdr(note_library, NULL);
    atomic_store(&left, which);
}

/* Whether there were so many. */
bool refuse_disarm(void)
{
    return atomic_exchange(&left, 0) <= 0;
}

static bool is_refused(const void *caller, int error)
{
    uintptr_t at = (uintptr_t)caller;
    int before = atomic_load(&left);
    if (before <= 0 || at < atomic_load(&from) || at >= atomic_load(&to))
        return false;
    if (before == 1)
        atomic_store(&left, -1); /* once */
    else
        atomic_store(&left, before - 1);
    errno = before == 1 ? error : errno;
    return before == 1;
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

int memfd_create(const char *name, unsigned flags)
{
    static int (*real)(const char *, unsigned);
    if (is_refused(CALLER, EMFILE))
        return -1;
    if (real == NULL)
        *(void **)&real = next("memfd_create");
    return real(name, flags);
}

int eventfd(unsigned value, int flags)
{
    static int (*real)(unsigned, int);
    if (is_refused(CALLER, EMFILE))
        return -1;
    if (real == NULL)
        *(void **)&real = next("eventfd");
    return real(value, flags);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    static int (*real)(int, int, off_t, off_t);
    if (is_refused(CALLER, ENOSPC))
        return -1;
    if (real == NULL)
        *(void **)&real = next("fallocate");
    return real(fd, mode, offset, length);
}

int ftruncate(int fd, off_t length)
{
    static int (*real)(int, off_t);
    if (is_refused(CALLER, ENOSPC))
        return -1;
    if (real == NULL)
        *(void **)&real = next("ftruncate");
    return real(fd, length);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (is_refused(CALLER, EAGAIN))
        return EAGAIN;
    if (real == NULL)
        *(void **)&real = next("pthread_create");
    return real(thread, attributes, run, argument);
}

/* Every second wait ends at once, as if by a signal's handler. */
static bool is_interrupted(const void *caller)
{
    static _Atomic unsigned waits;
    uintptr_t at = (uintptr_t)caller;
    if (!interrupts || at < atomic_load(&from) || at >= atomic_load(&to) || atomic_fetch_add(&waits, 1) % 2 == 0)
        return false;
    errno = EINTR;
    return true;
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
    if (number == SYS_futex && (words[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && is_interrupted(CALLER))
        return -1;
    if (real == NULL)
        *(void **)&real = next("syscall");
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *limit, const sigset_t *mask)
{
    static int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    if (is_interrupted(CALLER))
        return -1;
    if (real == NULL)
        *(void **)&real = next("ppoll");
    return real(files, count, limit, mask);
}

int sem_wait(sem_t *semaphore)
{
    static int (*real)(sem_t *);
    if (is_interrupted(CALLER))
        return -1;
    if (real == NULL)
        *(void **)&real = next("sem_wait");
    return real(semaphore);
}

__attribute__((constructor)) static void start(void)
{
    interrupts = getenv("TEST_INTERRUPTS") != NULL;
    if (interrupts)
        dl_iterate_phdr(note_library, NULL);
}
