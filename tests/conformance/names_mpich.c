/* The names that only MPICH has among Oriel's: the functions by which its Fortran wrappers get and
 * set attributes. Each does nothing when it is the broken one. The host's Fortran library calls
 * them. */
#include "breaker.h"

typedef int getter(MPI_Win win, int keyval, void *value, int *flag, int kind);
typedef int setter(MPI_Win win, int keyval, void *value, int kind);

int MPII_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag, int kind);

int MPII_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag, int kind)
{
    getter *get = (getter *)breaker_next("MPII_Win_get_attr");
    return breaker_breaks("MPII_Win_get_attr") ? MPI_SUCCESS : get(win, keyval, value, flag, kind);
}

int MPII_Win_set_attr(MPI_Win win, int keyval, void *value, int kind);

int MPII_Win_set_attr(MPI_Win win, int keyval, void *value, int kind)
{
    setter *set = (setter *)breaker_next("MPII_Win_set_attr");
    return breaker_breaks("MPII_Win_set_attr") ? MPI_SUCCESS : set(win, keyval, value, kind);
}
