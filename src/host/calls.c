/* Finds the host's functions: those that the dynamic linker has behind Oriel.  The table is filled once and never changes.
 * Everything that needs the host calls. */
#include "host/host.h"

#include <dlfcn.h>
#include <pthread.h>

static struct oriel_host_calls calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void *oriel_host_symbol(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void find_all(void)
{
#define FUNCTION(name, parameters, arguments) calls.name = (__typeof__(calls.name))oriel_host_symbol("PMPI_" #name);
#define FORWARD FUNCTION
#define LARGE FUNCTION
#define CALL(name) calls.name = (__typeof__(calls.name))oriel_host_symbol("PMPI_" #name);
#include "api/functions.def"
#include "host/calls.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#undef CALL
}

const struct oriel_host_calls *oriel_host(void)
{
    pthread_once(&once, find_all);
    return &calls;
}
