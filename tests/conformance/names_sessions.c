/* MPI sessions, of hosts that have them. Each function does nothing when it is the broken one. */
#include "breaker.h"

#ifdef MPI_SESSION_NULL

typedef int initialiser(MPI_Info info, MPI_Errhandler handler, MPI_Session *session);
typedef int finaliser(MPI_Session *session);

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

#endif
