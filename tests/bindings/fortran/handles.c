/* What C makes of a Fortran window handle: its size and its base, and the handle that comes back.
 * The handle is the same window in both languages: this changes nothing of it.
 * Called by the Fortran test programs. */
#include <mpi.h>
#include <stddef.h>

/* Stores the window's size and the first int of its memory; returns the Fortran handle of what C took it for. */
MPI_Fint look_at_window(MPI_Fint handle, MPI_Aint *size, int *first);

MPI_Fint look_at_window(MPI_Fint handle, MPI_Aint *size, int *first)
{
    MPI_Win win = MPI_Win_f2c(handle);
    MPI_Aint *bytes = NULL;
    int *base = NULL, found = 0;
    *size =
        MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &found) == MPI_SUCCESS && found ? *bytes : -1;
    *first =
        MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found) == MPI_SUCCESS && found ? *base : -1;
    return MPI_Win_c2f(win);
}
