/* Notices when the program loads a GPU's driver. Runtimes load it at their first call, by name, at
 * any time. From then on a buffer may be device memory, also of a window that exists already. So
 * this library interposes the C library's `dlopen`.
 *
 * 1. If the program asks for a driver, it is loaded once more ahead of the program's own call, and
 *    Oriel looks it up. So no thread can have a pointer to device memory before Oriel knows the
 *    driver. The reference is kept: drivers do not support being unloaded.
 * 2. Every call is passed on with a jump, because the C library finds the caller's search path and
 *    namespace by the return address.
 * 3. A driver that comes as a dependency of another library is noticed when the program looks up a
 *    function of a library by its handle: the first step to use what it has loaded. Without such a
 *    lookup it is noticed when the next window is created.
 *
 * The compiler's sanitisers call dlopen before they have started, so this file is not
 * instrumented. */
#include "base/pass_on.h"
#include "gpu/gpu.h"
#include "host/host.h"

#include <dlfcn.h>
#include <string.h>

typedef void *load_fn(const char *name, int flags);

struct oriel_passed_on oriel_dlopen_decide(const char *name, int flags, const void *caller);

static const char *const drivers[] = {"libcuda.so"};

static bool is_driver(const char *name)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strstr(name, drivers[i]) != NULL)
            return true;
    return false;
}

static load_fn *next_dlopen(void)
{
    static _Atomic(load_fn *) known;
    load_fn *next = atomic_load_explicit(&known, memory_order_relaxed);
    if (next == NULL) {
        next = (load_fn *)(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
        atomic_store_explicit(&known, next, memory_order_relaxed);
    }
    return next;
}

__attribute__((constructor)) static void lookups_watch(void)
{
    oriel_dlsym_watch = oriel_gpu_look;
}

__attribute__((used)) struct oriel_passed_on oriel_dlopen_decide(const char *name, int flags,
                                                                 const void *caller)
{
    load_fn *next = next_dlopen();
    (void)caller;
    if (name != NULL && is_driver(name) && !(flags & RTLD_NOLOAD) &&
        next(name, RTLD_LAZY | RTLD_LOCAL) != NULL)
        oriel_gpu_look();
    return (struct oriel_passed_on){.next = (void *)(uintptr_t)next};
}

ORIEL_PASS_ON(dlopen, oriel_dlopen_decide, const char *, int)
