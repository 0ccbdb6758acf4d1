/* MPI sessions, of hosts that have them. Windows on communicators of a session need the same state
 * as the world model. It must be released before the last session ends. */
#include <mpi.h>

#ifdef MPI_SESSION_NULL
#include "api/api.h"
#include "api/banner.h"
#include "api/spawn_env.h"
#include "create/create.h"
#include "observe/observe.h"

#include <stdatomic.h>

typedef int initialiser(MPI_Info info, MPI_Errhandler handler, MPI_Session *session);
typedef int finaliser(MPI_Session *session);

static _Atomic int sessions;

ORIEL_EXPORT int PMPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    oriel_spawn_env_enter(ORIEL_CALLER);
    int code = ((initialiser *)oriel_host_symbol("PMPI_Session_init"))(info, handler, session);
    if (code != MPI_SUCCESS)
        return code;
    atomic_fetch_add(&sessions, 1);
    oriel_banner_print();
    oriel_observe_prepare(&oriel_api);
    return code;
}

ORIEL_EXPORT int PMPI_Session_finalize(MPI_Session *session)
{
    if (atomic_fetch_sub(&sessions, 1) == 1 && !oriel_host_has_world())
        oriel_window_stop();
    return ((finaliser *)oriel_host_symbol("PMPI_Session_finalize"))(session);
}

ORIEL_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
    __attribute__((weak, alias("PMPI_Session_init")));
ORIEL_EXPORT int MPI_Session_finalize(MPI_Session *session)
    __attribute__((weak, alias("PMPI_Session_finalize")));
#endif
