/* The end without MPI_Finalize (tests/mpi/skip_finalize.h) for programs in Fortran, which flush
 * their own units first. The name is the one that Fortran gives a subroutine without an interface.
 */
#include "../../mpi/skip_finalize.h"

/* Collective. Ends the process where tests/launch requests such an end, with status 1 if *failed is
 * set on any rank. */
void leave_without_finalize_(const MPI_Fint *failed);

void leave_without_finalize_(const MPI_Fint *failed)
{
    leave_without_finalize(*failed != 0);
}
