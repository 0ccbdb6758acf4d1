/* What the first window sets up and MPI_Finalize takes down: the memory file, the fork handler, the finaliser on
 * MPI_COMM_SELF.  Set-up happens once; a second initialisation of MPI does not exist.  Creation and MPI_Alloc_mem call. */
#include "base/log.h"
#include "base/options.h"
#include "host/host.h"
#include "memory/file.h"
#include "memory/peer.h"
#include "ops/datatype.h"
#include "window/create.h"
#include "window/handle.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static bool stopped;

/* MPI-4.1, 11.2.4: attributes of MPI_COMM_SELF are deleted first of all at MPI_Finalize, while MPI still works. */
static int finalise(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    (void)extra;
    stopped = true;
    oriel_host_carrier_stop();
    oriel_peer_stop();
    oriel_file_stop();
    return MPI_SUCCESS;
}

static void attach_finaliser(void)
{
    int world_model = 0;
    int keyval;
    oriel_host()->Initialized(&world_model);
    if (world_model && oriel_host()->Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalise, &keyval, NULL) == MPI_SUCCESS) {
        oriel_host()->Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
        oriel_host()->Comm_free_keyval(&keyval);
    }
}

enum oriel_status oriel_window_start(void)
{
    pthread_mutex_lock(&mutex);
    enum oriel_status status = ORIEL_OK;
    if (stopped)
        status = oriel_fail(ORIEL_E_OTHER, "MPI has been finalised");
    else if (!started)
        status = oriel_file_start();
    if (status == ORIEL_OK && !started) {
        oriel_handle_watch_fork();
        oriel_type_start();
        attach_finaliser();
        started = true;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}
