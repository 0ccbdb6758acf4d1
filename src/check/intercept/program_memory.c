/* The functions with which a program gives up memory, in front of libc's: free, realloc, munmap,
 * and MPI_Free_mem. Memory of a buffer that is still needed, or of a window, is reported, and the
 * call is passed on.
 *
 * Programs, libraries and the loader call free and realloc from their first instruction on, also in
 * forked children and in signal handlers. If no buffer is needed, the call is passed on at once.
 * Inside calls of MPI nothing is checked: that memory is the host's or Oriel's own. */
#include "base/hash_table.h"
#include "check/intercept/wrap.h"
#include "check/local/local_accesses.h"
#include "check/order/order.h"
#include "check/report/call_sites.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void free_fn(void *block);
typedef void *realloc_fn(void *block, size_t len_bytes);
typedef int unmap_fn(void *start, size_t len_bytes);

static _Atomic(free_fn *) next_free;
static _Atomic(realloc_fn *) next_realloc;
static _Atomic(unmap_fn *) next_unmap; /* NULL: the kernel is called directly */
static bool knows_sizes; /* malloc_usable_size belongs to the allocator of next_free */

/* This thread is in dlsym, which may free memory. */
static _Thread_local bool is_searching;

static void *next_find(const char *name)
{
    if (is_searching)
        return NULL;
    is_searching = true;
    void *found = oriel_host_symbol(name);
    is_searching = false;
    return found;
}

static free_fn *free_find(void)
{
    free_fn *next = atomic_load_explicit(&next_free, memory_order_relaxed);
    if (oriel_likely(next != NULL))
        return next;
    next = (free_fn *)next_find("free");
    if (next != NULL)
        atomic_store_explicit(&next_free, next, memory_order_relaxed);
    return next;
}

static realloc_fn *realloc_find(void)
{
    realloc_fn *next = atomic_load_explicit(&next_realloc, memory_order_relaxed);
    if (oriel_likely(next != NULL))
        return next;
    next = (realloc_fn *)next_find("realloc");
    if (next != NULL)
        atomic_store_explicit(&next_realloc, next, memory_order_relaxed);
    return next;
}

/* AddressSanitizer's own free precedes this one. It calls a function for each block. */
int __sanitizer_install_malloc_and_free_hooks(void (*allocates)(const volatile void *, size_t),
                                              void (*frees)(const volatile void *))
    __attribute__((weak));

static void sanitizer_allocates(const volatile void *block, size_t len_bytes);
static void sanitizer_frees(const volatile void *block);

/* Libraries that register memory with a device intercept libc's munmap, so that is called if
 * possible. */
__attribute__((constructor)) static void allocator_find(void)
{
    if (__sanitizer_install_malloc_and_free_hooks != NULL)
        __sanitizer_install_malloc_and_free_hooks(sanitizer_allocates, sanitizer_frees);
    Dl_info frees = {.dli_fbase = NULL};
    Dl_info sizes = {.dli_fbase = NULL};
    atomic_store_explicit(&next_unmap, (unmap_fn *)next_find("munmap"), memory_order_relaxed);
    realloc_find();
    knows_sizes = dladdr((const void *)(uintptr_t)free_find(), &frees) != 0 &&
                  dladdr((const void *)(uintptr_t)malloc_usable_size, &sizes) != 0 &&
                  frees.dli_fbase == sizes.dli_fbase;
}

/* Whether the end of memory from low on can matter. Where one thread makes all calls, the lists of
 * buffers are its own, and it alone may look at them. */
static inline bool may_matter(uint64_t low)
{
    return oriel_unlikely(oriel_local_needs_buffers() || oriel_check_pending != NULL ||
                          low < oriel_regions_bounds.high) &&
           oriel_check_running && oriel_check_where.in.depth == 0 &&
           (oriel_check_call.stack != 0 || oriel_check_many_threads || oriel_check_watches);
}

static __attribute__((noinline)) void memory_end(uint64_t low, uint64_t len_bytes,
                                                 enum oriel_call call, const void *address)
{
    if (oriel_check_is_own(address))
        return;
    if (oriel_check_pending != NULL && oriel_check_call.stack != 0)
        oriel_check_look();
    if (!oriel_local_needs_buffers() && oriel_regions_are_elsewhere(low, low + len_bytes))
        return;
    struct oriel_site site = {.address = (uint64_t)(uintptr_t)address,
                              .world_rank = (uint32_t)oriel_order_rank(),
                              .call = call};
    oriel_local_end_memory(low, low + len_bytes, &site);
}

static inline void block_end(void *block, enum oriel_call call, const void *address)
{
    uint64_t low = (uint64_t)(uintptr_t)block;
    if (block != NULL && may_matter(low))
        memory_end(low, knows_sizes ? malloc_usable_size(block) : 1, call, address);
}

static void sanitizer_allocates(const volatile void *block, size_t len_bytes)
{
    (void)block, (void)len_bytes;
}

static void sanitizer_frees(const volatile void *block)
{
    uint64_t low = (uint64_t)(uintptr_t)block;
    if (block != NULL && may_matter(low))
        memory_end(low, malloc_usable_size((void *)(uintptr_t)block), ORIEL_CALL_free,
                   __builtin_return_address(0));
}

ORIEL_CHECK_EXPORT void free(void *block)
{
    block_end(block, ORIEL_CALL_free, __builtin_return_address(0));
    free_fn *next = free_find();
    if (oriel_likely(next != NULL))
        next(block);
}

ORIEL_CHECK_EXPORT void *realloc(void *block, size_t len_bytes)
{
    block_end(block, ORIEL_CALL_realloc, __builtin_return_address(0));
    realloc_fn *next = realloc_find();
    return oriel_likely(next != NULL) ? next(block, len_bytes) : NULL;
}

/* api/madvise.c explains the version. */
#if defined(__x86_64__)
__asm__(".symver oriel_munmap, munmap@GLIBC_2.2.5");
#else
__asm__(".symver oriel_munmap, munmap@GLIBC_2.17");
#endif

ORIEL_CHECK_EXPORT int oriel_munmap(void *start, size_t len_bytes);

ORIEL_CHECK_EXPORT int oriel_munmap(void *start, size_t len_bytes)
{
    unmap_fn *next = atomic_load_explicit(&next_unmap, memory_order_relaxed);
    if (may_matter((uint64_t)(uintptr_t)start))
        memory_end((uint64_t)(uintptr_t)start, len_bytes, ORIEL_CALL_munmap,
                   __builtin_return_address(0));
    return next != NULL ? next(start, len_bytes) : (int)syscall(SYS_munmap, start, len_bytes);
}

/* --- memory of MPI_Alloc_mem --- */

/* The sizes by address. */
static struct oriel_hash_table sizes = ORIEL_HASH_TABLE_INIT;

ORIEL_CHECK_WRAP(Alloc_mem, (MPI_Aint size, MPI_Info info, void *baseptr))
{
    int code;
    ORIEL_CHECK_PASS(code, Alloc_mem, (size, info, baseptr));
    if (code == MPI_SUCCESS && size > 0)
        oriel_hash_table_set(&sizes, (uint64_t)(uintptr_t) * (void *const *)baseptr,
                             (void *)(uintptr_t)size); /* NOLINT: a number */
    return code;
}

ORIEL_CHECK_WRAP(Free_mem, (void *base))
{
    int code;
    uint64_t low = (uint64_t)(uintptr_t)base;
    void *size = base == NULL ? NULL : oriel_hash_table_find(&sizes, low);
    if (size != NULL && oriel_check_looks())
        memory_end(low, (uint64_t)(uintptr_t)size, ORIEL_CALL_Free_mem,
                   __builtin_return_address(0));
    if (size != NULL)
        oriel_hash_table_remove(&sizes, low, size);
    ORIEL_CHECK_PASS(code, Free_mem, (base));
    return code;
}
