/* madvise in front of libc's, since promoted memory is the kernel's shared memory and the program's
 * private memory (memory/discard.h).  Programs and allocators call, from their first instruction
 * on: before this library's constructor has run, and where the loader knows no other madvise, the
 * kernel is called directly.  libc's posix_madvise gives up nothing, and process_madvise only where
 * it reaches other processes or newer kernels. */
#include "api/api.h"
#include "base/atomic.h"
#include "memory/discard.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int advise_kernel(void *start, size_t len_bytes, int advice)
{
    return (int)syscall(SYS_madvise, start, len_bytes, advice);
}

static _Atomic(oriel_advise *) next = advise_kernel;

/* Of libc's madvise those hear who watch it for registered memory: it is called where it can be. */
__attribute__((constructor)) static void find_madvise(void)
{
    oriel_advise *found = (oriel_advise *)oriel_host_symbol("madvise");
    if (found != NULL)
        atomic_store_explicit(&next, found, memory_order_relaxed);
}

/* With libc's version, and not as the default: programs that were linked to libc's madvise find
 * this one, dlsym does not.  Those who change the code of libc's madvise in order to watch it (UCX,
 * Open MPI) look for it by dlsym, and theirs calls the kernel. */
#if defined(__x86_64__)
#define LIBC_VERSION "GLIBC_2.2.5"
#else
#define LIBC_VERSION "GLIBC_2.17"
#endif
__asm__(".symver oriel_madvise, madvise@" LIBC_VERSION);

ORIEL_EXPORT int oriel_madvise(void *start, size_t len_bytes, int advice);

ORIEL_EXPORT int oriel_madvise(void *start, size_t len_bytes, int advice)
{
    return oriel_discard(start, len_bytes, advice,
                         atomic_load_explicit(&next, memory_order_relaxed));
}
