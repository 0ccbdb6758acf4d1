/* The names that only MPICH has among Oriel's: sessions, and the functions by which its Fortran
 * wrappers get and set attributes. Each does nothing when it is the broken one. Programs and the
 * host's Fortran library call them. */
#include "breaker.h"

typedef int getter(MPI_Win win, int keyval, void *value, int *flag, int kind);
typedef int setter(MPI_Win win, int keyval, void *value, int kind);
typedef int initialiser(MPI_Info info, MPI_Errhandler handler, MPI_Session *session);
typedef int finaliser(MPI_Session *session);

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

int PMPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    initialiser *init = (initialiser *)breaker_next("PMPI_Session_init");
    return breaker_breaks("Session_init") ? MPI_SUCCESS : init(info, handler, session);
}

int PMPI_Session_finalize(MPI_Session *session)
{
    finaliser *finalize = (finaliser *)breaker_next("PMPI_Session_finalize");
    return breaker_breaks("Session_finalize") ? MPI_SUCCESS : finalize(session);
}

int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
    __attribute__((alias("PMPI_Session_init")));
int MPI_Session_finalize(MPI_Session *session) __attribute__((alias("PMPI_Session_finalize")));
