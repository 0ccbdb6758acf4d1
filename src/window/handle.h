/* Maps the host's MPI_Win to Oriel's window: the thread's last window, found without a call, then a
 * table. A handle that Oriel created stays in the table until it is freed. A handle that was left
 * to the host has an entry as forwarded. Any other handle is not a window. */
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

/* Oriel's window of this handle; NULL if it is the host's or not a window. */
static inline struct oriel_window *oriel_handle_find(MPI_Win win)
{
    uint64_t key = oriel_handle_key(win);
    if (oriel_likely(oriel_tls_cache_is_valid() && oriel_tls_cache.window_key == key))
        return oriel_tls_cache.window;
    return oriel_handle_find_slow(key);
}

/* Whether calls on this handle go to the host: the host created it, or Oriel is bypassed. */
bool oriel_handle_is_forwarded(MPI_Win win);

/* The table's entry for a forwarded handle, otherwise NULL. Use it only for removal. */
struct oriel_window *oriel_handle_forwarded(MPI_Win win);

enum oriel_status oriel_handle_add(MPI_Win win, struct oriel_window *window);
enum oriel_status oriel_handle_add_forwarded(MPI_Win win);

/* Call after the host has freed the handle. window is the handle's former window: Oriel's, or the
 * entry of a forwarded one. */
void oriel_handle_remove(MPI_Win win, struct oriel_window *window);

/* Calls visit for each of Oriel's windows. It may use them: a window is removed before it is
 * destroyed, which waits for the visit. */
void oriel_handle_visit(void (*visit)(struct oriel_window *window, void *context), void *context);

/* The number of Oriel's existing windows. */
uint32_t oriel_handle_count(void);

/* In a forked child no handle is valid: every lookup fails. */
bool oriel_handle_in_child(void);
/* Call at startup. Returns ORIEL_E_NO_MEM if forked children cannot be detected. */
enum oriel_status oriel_handle_watch_fork(void);

#endif
