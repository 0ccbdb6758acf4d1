/* Finds the host's functions: the next definitions after Oriel in the dynamic linker's order. The
 * table is filled once and never changes. */
#include "host/host.h"

#include "base/code_address.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct oriel_host_calls oriel_host_calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool is_filled;

void *oriel_host_symbol(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static const void *module_of(const void *address)
{
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* The module of a function of the host's; slot, NULL at first, keeps it. */
static const void *module_kept(_Atomic(const void *) *slot, const char *name)
{
    const void *module = atomic_load_explicit(slot, memory_order_relaxed);
    if (module == NULL) {
        module = module_of(oriel_host_symbol(name));
        atomic_store_explicit(slot, module, memory_order_relaxed);
    }
    return module;
}

bool oriel_host_is_on_stack(void)
{
    enum { FRAMES = 64 };
    static _Atomic(const void *) module_of_init, module_of_rank;
    void *frames[FRAMES];
    const void *init = module_kept(&module_of_init, "PMPI_Init");
    const void *rank = module_kept(&module_of_rank, "PMPI_Comm_rank");
    int count = oriel_code_address_stack(frames, FRAMES);
    for (int i = 0; i < count; i++) {
        const void *module = module_of(frames[i]);
        if (module != NULL && (module == init || module == rank))
            return true;
    }
    return false;
}

static void host_functions_find(void)
{
#define FUNCTION(name, parameters, arguments) CALL(name)
#define FORWARD                               FUNCTION
#define LARGE                                 FUNCTION
#define CALL(name)                                                                                 \
    oriel_host_calls.name = (__typeof__(oriel_host_calls.name))oriel_host_symbol("PMPI_" #name);
#include "host/functions.def"
#include "host/calls.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#undef CALL
    atomic_store_explicit(&is_filled, true, memory_order_release);
}

const struct oriel_host_calls *oriel_host(void)
{
    if (!atomic_load_explicit(&is_filled, memory_order_acquire))
        pthread_once(&once, host_functions_find);
    return &oriel_host_calls;
}

bool oriel_host_has_world(void)
{
    int has_world = 0;
    oriel_host()->Initialized(&has_world);
    return has_world != 0;
}
