/* A library that is linked to MPI and loaded at run time: it calls MPI_Put and looks up functions
 * of other libraries. */
#include "lookups.h"

#include <dlfcn.h>
#include <unistd.h>

int plugin_put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp,
               int target_count, MPI_Datatype target_type, MPI_Win window);
void *plugin_next(const char *name);
void *plugin_default(const char *name);

int plugin_put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp,
               int target_count, MPI_Datatype target_type, MPI_Win window)
{
    return MPI_Put(origin, count, type, target, disp, target_count, target_type, window);
}

/* Precedes the C library's definition, for RTLD_NEXT. */
pid_t getppid(void)
{
    return 1;
}

/* Not a tail call: dlsym identifies the calling library by the return address. */
void *plugin_next(const char *name)
{
    void *volatile found = dlsym(RTLD_NEXT, name);
    return found;
}

void *plugin_default(const char *name)
{
    void *volatile found = dlsym(RTLD_DEFAULT, name);
    return found;
}
