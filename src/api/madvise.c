/* madvise and mremap in front of libc's, since promoted memory is shared memory to the kernel and
 * private memory to the program (memory/promote/discard.h). Programs and allocators call them from
 * their first instruction on. Before this library's constructor has run, and if the loader finds no
 * other definitions, they call the kernel directly. libc's posix_madvise discards nothing.
 * process_madvise does so only for other processes or on newer kernels. */
#include "api/api.h"
#include "base/atomic.h"
#include "memory/promote/discard.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

ORIEL_EARLY static int advise_kernel(void *start, size_t len_bytes, int advice)
{
    return (int)syscall(SYS_madvise, start, len_bytes, advice);
}

typedef void *remap_fn(void *start, size_t old_bytes, size_t new_bytes, int flags, ...);

ORIEL_EARLY static void *remap_target(int flags, va_list arguments)
{
    return (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 ? va_arg(arguments, void *) : NULL;
}

ORIEL_EARLY static void *remap_kernel(void *start, size_t old_bytes, size_t new_bytes, int flags,
                                      ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *place = remap_target(flags, arguments);
    va_end(arguments);
    return (void *)syscall(SYS_mremap, start, old_bytes, new_bytes, flags, place);
}

static _Atomic(oriel_discard_advise *) next = advise_kernel;
static _Atomic(remap_fn *) next_remap = remap_kernel;

/* Libraries that register memory with a device intercept libc's functions, so those are called if
 * possible. */
__attribute__((constructor)) static void find_next(void)
{
    oriel_discard_advise *advise = (oriel_discard_advise *)oriel_host_symbol("madvise");
    remap_fn *remap = (remap_fn *)oriel_host_symbol("mremap");
    if (advise != NULL)
        atomic_store_explicit(&next, advise, memory_order_relaxed);
    if (remap != NULL)
        atomic_store_explicit(&next_remap, remap, memory_order_relaxed);
}

/* These symbols have libc's version and are not the default version. So programs linked to libc's
 * functions bind to them, and dlsym does not find them. UCX and Open MPI find libc's functions by
 * dlsym and patch their code to intercept them; the patched code calls the kernel. */
#if defined(__x86_64__)
#define LIBC_VERSION "GLIBC_2.2.5"
#else
#define LIBC_VERSION "GLIBC_2.17"
#endif
__asm__(".symver oriel_madvise, madvise@" LIBC_VERSION);
__asm__(".symver oriel_mremap, mremap@" LIBC_VERSION);

ORIEL_EXPORT int oriel_madvise(void *start, size_t len_bytes, int advice);

ORIEL_EARLY ORIEL_EXPORT int oriel_madvise(void *start, size_t len_bytes, int advice)
{
    return oriel_discard(start, len_bytes, advice,
                         atomic_load_explicit(&next, memory_order_relaxed));
}

ORIEL_EXPORT void *oriel_mremap(void *start, size_t old_bytes, size_t new_bytes, int flags, ...);

ORIEL_EARLY ORIEL_EXPORT void *oriel_mremap(void *start, size_t old_bytes, size_t new_bytes,
                                            int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *place = remap_target(flags, arguments);
    va_end(arguments);
    if (!oriel_discard_may_remap(start, old_bytes, new_bytes))
        return MAP_FAILED;
    return atomic_load_explicit(&next_remap, memory_order_relaxed)(start, old_bytes, new_bytes,
                                                                   flags, place);
}
