/* A typical linked profiling tool: it intercepts MPI_Put, prints a line, and forwards the call to
 * PMPI_Put. */
#include <mpi.h>
#include <stdio.h>

int MPI_Put(const void *origin, int origin_count, MPI_Datatype origin_type, int target,
            MPI_Aint target_disp, int target_count, MPI_Datatype target_type, MPI_Win win)
{
    printf("tool: MPI_Put of %d\n", origin_count);
    return PMPI_Put(origin, origin_count, origin_type, target, target_disp, target_count,
                    target_type, win);
}
