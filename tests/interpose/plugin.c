/* A library that is linked to MPI and loaded while the program runs: it calls MPI_Put, and looks up what others have. */
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

/* In front of the C library's, for RTLD_NEXT. */
pid_t getppid(void)
{
    return 1;
}

/* Not by a jump: the return address decides whose lookup it is. */
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
