/* A profiling tool to be preloaded: its MPI_Put prints a line and passes the call on to the next
 * definition by RTLD_NEXT. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int MPI_Put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp,
            int target_count, MPI_Datatype target_type, MPI_Win window)
{
    __typeof__(MPI_Put) *next = (__typeof__(MPI_Put) *)dlsym(RTLD_NEXT, "MPI_Put");
    printf("tool: MPI_Put\n");
    return next(origin, count, type, target, disp, target_count, target_type, window);
}
