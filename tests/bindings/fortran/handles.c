/* A Fortran window handle in C: the window's size and base, and the handle converted back. The
 * handle denotes the same window in both languages, and the functions do not change the window. */
#include <mpi.h>
#include <stddef.h>

/* Stores the window's size and the first int of its memory; returns the Fortran handle of the
 * converted window. */
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
