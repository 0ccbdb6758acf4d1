/* Whether the program has loaded a driver meanwhile. */
#include "gpu/gpu.h"

#include "base/tls_cache.h"
#include "gpu/vendor.h"

#include <link.h>

/* The number of libraries that were loaded so far. */
static int count_loads(struct dl_phdr_info *info, size_t len_bytes, void *loads)
{
    (void)len_bytes;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

/* A thread that finds nothing new returns only after another one has searched the same libraries,
 * because its caller may use the driver next. No lock is held meanwhile: the search needs the
 * loader's lock, which the caller may hold already. */
void oriel_gpu_look(void)
{
    static _Atomic unsigned long long searched; /* number of loads before the last whole search */
    static _Thread_local bool looks;            /* the search itself looks functions up */
    unsigned long long loads = 0;
    if (looks || oriel_gpu_is_loaded())
        return;
    dl_iterate_phdr(count_loads, &loads);
    if (atomic_load_explicit(&searched, memory_order_acquire) == loads)
        return;
    looks = true;
    const struct oriel_gpu_vendor *found = oriel_gpu_cuda();
    looks = false;
    if (found != NULL) {
        atomic_store_explicit(&oriel_gpu_vendor, found, memory_order_release);
        oriel_tls_cache_invalidate(); /* windows that are in it have the fast paths */
    }
    atomic_store_explicit(&searched, loads, memory_order_release);
}
