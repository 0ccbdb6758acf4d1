/* A library that is not linked to MPI and defines its own MPI_Put. */
#include "lookups.h"

int MPI_Put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp,
            int target_count, MPI_Datatype target_type, MPI_Win window)
{
    (void)origin, (void)count, (void)type, (void)target, (void)disp, (void)target_count,
        (void)target_type, (void)window;
    return ALONE;
}
