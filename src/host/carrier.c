/* Carrier windows: the host's handles for Oriel's windows. All use one communicator that contains
 * only this process, created with the first window. Under MPI sessions, without MPI_COMM_SELF, it
 * is derived from the first window's communicator. A host takes up to 50,000 instructions to create
 * and free a carrier, so some unmodified ones are cached for the next windows. */
#include "base/wait.h"
#include "host/host.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm singleton = MPI_COMM_NULL;
enum { SPARES = 16 };
static MPI_Win spares[SPARES]; /* the most recently used is last */
static int spare_count;
/* a receive that never matches: testing it makes the host progress */
static MPI_Request progress_request = MPI_REQUEST_NULL;
static pthread_mutex_t progress_mutex = PTHREAD_MUTEX_INITIALIZER;

static int singleton_from_comm(MPI_Comm comm, MPI_Comm *out)
{
    const struct oriel_host_calls *host = oriel_host();
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group self = MPI_GROUP_NULL;
    int rank;
    int code = host->Comm_rank(comm, &rank);
    if (code == MPI_SUCCESS)
        code = host->Comm_group(comm, &all);
    if (code == MPI_SUCCESS)
        code = host->Group_incl(all, 1, &rank, &self);
    if (code == MPI_SUCCESS)
        code = host->Comm_create_group(comm, self, 0, out);
    if (self != MPI_GROUP_NULL)
        host->Group_free(&self);
    if (all != MPI_GROUP_NULL)
        host->Group_free(&all);
    return code;
}

/* MPI_Comm_dup would call the program's copy functions for attributes of MPI_COMM_SELF, and so does
 * Open MPI 4.1's MPI_Comm_create_group. */
static int singleton_from_self(MPI_Comm *out)
{
    return oriel_host()->Comm_split_type(MPI_COMM_SELF, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                                         out);
}

static enum oriel_status singleton_create(MPI_Comm comm)
{
    if (singleton != MPI_COMM_NULL)
        return ORIEL_OK;
    int code = oriel_host_has_world() ? singleton_from_self(&singleton)
                                      : singleton_from_comm(comm, &singleton);
    if (code != MPI_SUCCESS) {
        singleton = MPI_COMM_NULL;
        return oriel_fail(ORIEL_E_NO_MEM, "the host cannot create a communicator of one process");
    }
    oriel_host()->Comm_set_errhandler(singleton, MPI_ERRORS_RETURN);
    if (oriel_host()->Irecv(NULL, 0, MPI_BYTE, 0, 0, singleton, &progress_request) == MPI_SUCCESS)
        oriel_wait_set_progress(oriel_host_progress);
    return ORIEL_OK;
}

/* Some hosts with few handles abort the job if none is left for a window, but return an error for a
 * communicator. */
static bool has_handle_left(uint32_t live_windows)
{
    MPI_Comm probe;
    if (!oriel_host_windows_scarce(live_windows))
        return true;
    if (oriel_host()->Comm_dup(singleton, &probe) != MPI_SUCCESS)
        return false;
    oriel_host()->Comm_free(&probe);
    return true;
}

enum oriel_status oriel_host_singleton_create(MPI_Comm comm)
{
    pthread_mutex_lock(&mutex);
    enum oriel_status status = singleton_create(comm);
    pthread_mutex_unlock(&mutex);
    return status;
}

enum oriel_status oriel_host_carrier(MPI_Comm comm, uint32_t live_windows, MPI_Win *out)
{
    void *nothing = NULL;
    pthread_mutex_lock(&mutex);
    enum oriel_status status = singleton_create(comm);
    if (status == ORIEL_OK && spare_count > 0)
        *out = spares[--spare_count];
    else if (status == ORIEL_OK &&
             (!has_handle_left(live_windows) ||
              oriel_host()->Win_allocate_shared(0, 1, MPI_INFO_NULL, singleton, &nothing, out) !=
                  MPI_SUCCESS))
        status =
            oriel_fail(ORIEL_E_NO_MEM, "the host has no window handle left (%u windows are alive)",
                       live_windows);
    pthread_mutex_unlock(&mutex);
    return status;
}

/* Callbacks of the program may call MPI or never return, so they run without the mutex. Otherwise
 * the mutex is held, as in the creation: MPICH from 4.2 on may crash when threads create and free
 * windows at once. */
bool oriel_host_carrier_free(MPI_Win *carrier, uint32_t changes)
{
    if ((changes & ORIEL_CARRIER_ATTRIBUTED) != 0)
        return oriel_host()->Win_free(carrier) == MPI_SUCCESS;
    pthread_mutex_lock(&mutex);
    const bool is_cached = changes == 0 && spare_count < SPARES;
    if (is_cached)
        spares[spare_count++] = *carrier;
    const bool is_done = is_cached || oriel_host()->Win_free(carrier) == MPI_SUCCESS;
    pthread_mutex_unlock(&mutex);
    return is_done;
}

MPI_Comm oriel_host_singleton(void)
{
    return singleton;
}

void oriel_host_progress(void)
{
    int done;
    if (pthread_mutex_trylock(&progress_mutex) != 0)
        return; /* another thread is doing it */
    if (progress_request != MPI_REQUEST_NULL)
        oriel_host()->Request_get_status(progress_request, &done, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&progress_mutex);
}

static void progress_stop(void)
{
    oriel_wait_set_progress(NULL);
    pthread_mutex_lock(&progress_mutex);
    if (progress_request != MPI_REQUEST_NULL) {
        oriel_host()->Cancel(&progress_request);
        oriel_host()->Wait(&progress_request, MPI_STATUS_IGNORE);
    }
    pthread_mutex_unlock(&progress_mutex);
}

void oriel_host_carrier_stop(void)
{
    progress_stop();
    pthread_mutex_lock(&mutex);
    while (spare_count > 0)
        oriel_host()->Win_free(&spares[--spare_count]);
    if (singleton != MPI_COMM_NULL)
        oriel_host()->Comm_free(&singleton);
    pthread_mutex_unlock(&mutex);
}
