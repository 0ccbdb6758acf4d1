/* State that the first window initialises and that MPI_Finalize, or the end of the last MPI
 * session, releases: the memory file, the fork handler, the finaliser on MPI_COMM_SELF. MPI's world
 * model starts only once; sessions may start again. */
#include "base/log.h"
#include "base/options.h"
#include "create/comm_cache.h"
#include "create/create.h"
#include "datatype/datatype.h"
#include "host/host.h"
#include "memory/agent_area.h"
#include "memory/file.h"
#include "memory/memory_limits.h"
#include "memory/net_address.h"
#include "memory/polled_area.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool started; /* changes only under the mutex */
static bool finalised;

static void stop_locked(void)
{
    if (!started)
        return;
    started = false;
    oriel_type_stop();
    oriel_host_progress_unregister();
    oriel_host_carrier_stop();
    oriel_polled_close();
    oriel_agent_close();
    oriel_net_address_close();
    oriel_file_finalise();
}

void oriel_window_stop(void)
{
    pthread_mutex_lock(&mutex);
    if (oriel_handle_count() == 0) {
        stop_locked();
        /* not in MPI_Finalize: other ranks of a session's communicator may continue to use its
         * rendezvous */
        oriel_comm_cache_stop();
    }
    pthread_mutex_unlock(&mutex);
}

/* Windows that the program has not freed. */
struct left_open {
    unsigned count;
    size_t used;
    bool more; /* than the names have room for */
    char names[600];
};

/* Only rank 0 of a window reports it, so that each window is reported once, or the process that
 * opened it from a memory handle. */
static void left_open_add(struct oriel_window *window, void *context)
{
    struct left_open *open = context;
    char name[MPI_MAX_OBJECT_NAME] = "";
    int name_bytes = 0;
    if (window->rank > 0)
        return;
    open->count++;
    size_t room = sizeof open->names - open->used;
    if (room < sizeof name + sizeof ", (and more)") {
        open->more = true;
        return;
    }
    if (oriel_host()->Win_get_name(window->host->handle, name, &name_bytes) != MPI_SUCCESS ||
        name[0] == '\0')
        strcpy(name, "(unnamed)");
    open->used +=
        (size_t)snprintf(open->names + open->used, room, "%s%s", open->used > 0 ? ", " : "", name);
}

static void left_open_report(void)
{
    struct left_open open = {.count = 0};
    /* The checker, which exports this name, reports each of them as a finding. */
    const bool is_checked = dlsym(RTLD_DEFAULT, "oriel_check_watch") != NULL;
    oriel_handle_visit(left_open_add, &open);
    if (open.count > 0 && !is_checked)
        oriel_warn("MPI_Finalize: %u window%s not freed: %s%s [O29]", open.count,
                   open.count == 1 ? " was" : "s were", open.names,
                   open.more ? ", (and more)" : "");
}

/* MPI-4.1, 11.2.4: MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while MPI still
 * works. */
static int finaliser_callback(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    (void)extra;
    pthread_mutex_lock(&mutex);
    left_open_report();
    stop_locked();
    finalised = true;
    pthread_mutex_unlock(&mutex);
    return MPI_SUCCESS;
}

static void attach_finaliser(void)
{
    int keyval;
    static bool attached;
    if (attached)
        return;
    if (oriel_host_has_world() &&
        oriel_host()->Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finaliser_callback, &keyval,
                                         NULL) == MPI_SUCCESS) {
        oriel_host()->Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
        oriel_host()->Comm_free_keyval(&keyval);
        attached = true;
    }
}

void oriel_window_attach_finaliser(void)
{
    pthread_mutex_lock(&mutex);
    attach_finaliser();
    pthread_mutex_unlock(&mutex);
}

enum oriel_status oriel_window_start(void)
{
    if (started)
        return ORIEL_OK;
    pthread_mutex_lock(&mutex);
    enum oriel_status status = ORIEL_OK;
    if (finalised)
        status = oriel_fail(ORIEL_E_OTHER, "MPI has been finalised");
    else if (!started)
        status = oriel_file_start();
    if (status == ORIEL_OK && !started)
        oriel_memory_limits_set_ranks(oriel_host_node_ranks());
    if (status == ORIEL_OK && !started)
        status = oriel_type_start();
    if (status == ORIEL_OK && !started)
        status = oriel_handle_watch_fork();
    if (status == ORIEL_OK && !started) {
        oriel_comm_cache_start();
        attach_finaliser();
        started = true;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}
