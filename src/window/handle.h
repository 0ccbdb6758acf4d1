/* From the host's MPI_Win to Oriel's window in two loads: what the thread used last, in front of a table.  A handle that
 * Oriel made stays in the table until it is freed; one that was left to the host is known as such; any other is not a
 * window.  api/ calls. */
#ifndef ORIEL_WINDOW_HANDLE_H
#define ORIEL_WINDOW_HANDLE_H

#include "base/tls_cache.h"
#include "window/window.h"

#include <mpi.h>

struct oriel_window *oriel_handle_find_slow(uint64_t key);

static inline uint64_t oriel_handle_key(MPI_Win win)
{
    return (uint64_t)(uintptr_t)win;
}

/* Oriel's window of this handle; NULL when it is the host's or none at all. */
static inline struct oriel_window *oriel_handle_find(MPI_Win win)
{
    uint64_t key = oriel_handle_key(win);
    if (oriel_likely(oriel_tls_cache_is_valid() && oriel_tls_cache.window_key == key))
        return oriel_tls_cache.window;
    return oriel_handle_find_slow(key);
}

/* Whether calls on this handle go to the host: it was made by the host, or Oriel is bypassed. */
bool oriel_handle_is_forwarded(MPI_Win win);

/* The table's entry for a handle that was left to the host, else NULL: only for its removal. */
struct oriel_window *oriel_handle_forwarded(MPI_Win win);

enum oriel_status oriel_handle_add(MPI_Win win, struct oriel_window *window);
enum oriel_status oriel_handle_add_forwarded(MPI_Win win);

/* After the host has freed the handle.  window is what it stood for before, Oriel's or the entry of a forwarded one. */
void oriel_handle_remove(MPI_Win win, struct oriel_window *window);

/* Calls visit for every one of Oriel's windows; none of them is freed meanwhile. */
void oriel_handle_visit(void (*visit)(struct oriel_window *window, void *context), void *context);

/* How many of Oriel's windows are alive. */
uint32_t oriel_handle_live(void);

/* In a forked child no handle is valid any more: every lookup fails. */
bool oriel_handle_in_child(void);
/* At the start; ORIEL_E_NO_MEM: a child would not be told apart. */
enum oriel_status oriel_handle_watch_fork(void);

#endif
