/* The end without MPI_Finalize (tests/mpi/leave.h) for programs in Fortran, which flush their own units before they call it.
 * Called by the Fortran test programs, by the name that Fortran gives a subroutine without an interface. */
#include "../../mpi/leave.h"

/* Collective. Ends the process with status 1 if any rank failed, which *failed says, where tests/launch asks for such an end. */
void leave_without_finalize_(const MPI_Fint *failed);

void leave_without_finalize_(const MPI_Fint *failed)
{
    leave_without_finalize(*failed != 0);
}
