/* Frees a window after a barrier. The leader's file contains the common words and may contain the
 * memory of all ranks. Both stay until all other ranks have left. The leader does not wait for
 * that; it checks when it next creates or frees a window.
 *
 * After a death there is no barrier. A rank that frees the window sets abandoned in its own words.
 * It frees its memory when all others on its node have set it as well or have died: until then they
 * may store to it. The words themselves are never freed, since others read them. Ranks on other
 * nodes reach the window only through this process, which no longer serves it. The same applies to
 * a window whose creation this rank has abandoned, while others may have it. Thread-safe. */
#include "create/create.h"
#include "create/memory_handle.h"
#include "create/node_map.h"
#include "create/path_info.h"
#include "host/host.h"
#include "internode/origin/origin_sync.h"
#include "internode/target/am_dispatch.h"
#include "memory/peer.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <pthread.h>
#include <time.h>

enum { ABANDON_NS = 1000000000, LOOK_NS = 2000000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* windows that this process leads, or has abandoned, and that others have not left */
static struct oriel_window *leaving_windows;

static bool window_all_abandoned(const struct oriel_window *window)
{
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_peer *peer = window->group->peers[i];
        if (i != window->rank && peer != NULL &&
            oriel_load_acquire(&oriel_window_control(window, i)->abandoned) == 0 &&
            oriel_peer_alive(peer))
            return false;
    }
    return true;
}

static bool window_all_departed(const struct oriel_window *window)
{
    if (window->abandoned)
        return window_all_abandoned(window);
    return oriel_load_acquire(&window->common->departed.value) == (uint32_t)window->here - 1;
}

void oriel_window_reclaim(void)
{
    pthread_mutex_lock(&mutex);
    for (struct oriel_window **link = &leaving_windows; *link != NULL;) {
        struct oriel_window *window = *link;
        if (window_all_departed(window)) {
            *link = window->next_leaving;
            oriel_window_destroy(window);
        } else {
            link = &window->next_leaving;
        }
    }
    pthread_mutex_unlock(&mutex);
}

static void window_leave(struct oriel_window *window)
{
    pthread_mutex_lock(&mutex);
    window->next_leaving = leaving_windows;
    leaving_windows = window;
    pthread_mutex_unlock(&mutex);
    oriel_window_reclaim();
}

enum oriel_status oriel_window_free_handle(struct oriel_window *window, bool *gone)
{
    MPI_Win handle = window->host->handle;
    *gone = false;
    if (window->user_memory != NULL || window->attached != NULL)
        oriel_path_info_save_label(window);
    const uint32_t changes = atomic_load_explicit(&window->host->changes, memory_order_acquire);
    if (!oriel_host_carrier_free(&window->host->handle, changes))
        return oriel_fail(ORIEL_E_OTHER, "a delete callback failed: the window is not freed");
    *gone = true;
    oriel_handle_remove(handle, window);
    /* now, as the leader may destroy the window after the end of its session */
    oriel_window_release_host_group(window);
    return ORIEL_OK;
}

void oriel_window_abandon(struct oriel_window *window, int32_t dead, bool *gone)
{
    oriel_internode_window_break(window, dead);
    if (window->internode != NULL)
        (void)oriel_internode_flush(window, -1); /* late replies have no destination */
    if (oriel_window_free_handle(window, gone) == ORIEL_OK)
        oriel_window_abandon_local(window, dead);
}

void oriel_window_abandon_local(struct oriel_window *window, int32_t dead)
{
    oriel_am_dispatch_record_death(window, dead);
    oriel_store_release(&window->control->abandoned, (uint32_t)dead + 1);
    oriel_memory_handles_withdraw(window); /* holders that wait find abandoned */
    oriel_node_map_close(window);
    window->abandoned = true;
    window->control_offset = window->common_offset = -1;
    uint64_t begin_ns = oriel_now_ns();
    while (!window_all_abandoned(window) && oriel_now_ns() - begin_ns < ABANDON_NS)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    window_leave(window);
}

enum oriel_status oriel_window_free(struct oriel_window *window, bool *gone)
{
    enum oriel_status status = oriel_window_free_handle(window, gone);
    if (status != ORIEL_OK)
        return status;
    oriel_memory_handles_withdraw(window);
    oriel_window_release_memory(window); /* the program may free the memory from here on */
    if (window->flavour == ORIEL_FLAVOUR_SHARED)
        oriel_peer_set_core_dump(window->base, (uint64_t)window->host->size_bytes, false);
    oriel_node_map_close(window);
    if (window->rank != window->leader) {
        oriel_event_signal(&window->common->departed); /* the last access */
        oriel_window_destroy(window);
        return ORIEL_OK;
    }
    window_leave(window);
    return ORIEL_OK;
}
