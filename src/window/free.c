/* Freeing a window, after a barrier.  The leader's file holds the common words and may hold everybody's memory: they stay until
 * all others have left, which the leader does not wait for but looks at when it next makes or frees a window.  api/ and creation
 * call, from any thread. */
#include "host/host.h"
#include "window/create.h"
#include "window/handle.h"
#include "window/machines.h"
#include "window/objects.h"
#include "window/paths.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct oriel_window *leaving; /* led by this process: others are still in them */

static bool all_have_left(const struct oriel_window *window)
{
    return oriel_load_acquire(&window->common->departed.value) == (uint32_t)window->here - 1;
}

void oriel_window_reclaim(void)
{
    pthread_mutex_lock(&mutex);
    for (struct oriel_window **link = &leaving; *link != NULL;) {
        struct oriel_window *window = *link;
        if (all_have_left(window)) {
            *link = window->next_leaving;
            oriel_window_destroy(window);
        } else {
            link = &window->next_leaving;
        }
    }
    pthread_mutex_unlock(&mutex);
}

enum oriel_status oriel_window_free(struct oriel_window *window, bool *gone)
{
    MPI_Win handle = window->host->handle;
    *gone = false;
    if (window->own_memory != NULL || window->attached != NULL)
        oriel_paths_keep_name(window);
    if (oriel_host()->Win_free(&window->host->handle) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_OTHER, "a delete callback failed: the window stays");
    *gone = true;
    oriel_handle_remove(handle, window);
    oriel_window_release_memory(window); /* the program may free it now */
    oriel_machines_close(window);
    if (window->rank != window->leader) {
        oriel_event_signal(&window->common->departed); /* the last touch */
        oriel_window_destroy(window);
        return ORIEL_OK;
    }
    pthread_mutex_lock(&mutex);
    window->next_leaving = leaving;
    leaving = window;
    pthread_mutex_unlock(&mutex);
    oriel_window_reclaim();
    return ORIEL_OK;
}
