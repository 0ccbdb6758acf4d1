/* The table of window handles. A forwarded window is in the table as a window without ranks. The
 * host may reuse a handle before it is removed here: removal therefore names the window that it
 * removes. */
#include "window/handle.h"

#include "base/fork.h"
#include "base/hash_table.h"
#include "base/options.h"
#include "gpu/gpu.h"

#include <stdlib.h>

static struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
static _Atomic uint32_t live;
static _Atomic bool in_child;

static bool is_forwarded(const struct oriel_window *window)
{
    return window->n == 0;
}

struct oriel_window *oriel_handle_find_slow(uint64_t key)
{
    if (atomic_load_explicit(&in_child, memory_order_relaxed))
        return NULL;
    uint64_t generation = oriel_tls_cache_begin();
    struct oriel_window *window = oriel_hash_table_find(&table, key);
    if (window == NULL || is_forwarded(window))
        return NULL;
    /* the fast paths take every buffer for host memory */
    if (oriel_gpu_is_loaded() && !window->only_host_buffers)
        return window;
    /* 0 ranks if operations may be outstanding: the fast paths of synchronisation complete none, so
     * no rank may be within their bound */
    const bool all_complete = window->internode == NULL && window->deferred == NULL;
    oriel_tls_cache_set_window(generation, key, window, all_complete ? (uint32_t)window->n : 0);
    return window;
}

bool oriel_handle_is_forwarded(MPI_Win win)
{
    if (atomic_load_explicit(&in_child, memory_order_relaxed))
        return false; /* the fork may have happened while the table was changing */
    return oriel_options()->bypass || oriel_handle_forwarded(win) != NULL;
}

struct oriel_window *oriel_handle_forwarded(MPI_Win win)
{
    struct oriel_window *window = oriel_hash_table_find(&table, oriel_handle_key(win));
    return window != NULL && is_forwarded(window) ? window : NULL;
}

static enum oriel_status handle_table_add(MPI_Win win, struct oriel_window *window)
{
    if (!oriel_hash_table_set(&table, oriel_handle_key(win), window))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of windows");
    /* this thread may have cached the previous window of this handle, which another thread has not
     * removed yet */
    oriel_tls_cache_invalidate();
    return ORIEL_OK;
}

enum oriel_status oriel_handle_add(MPI_Win win, struct oriel_window *window)
{
    enum oriel_status status = handle_table_add(win, window);
    if (status == ORIEL_OK)
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return status;
}

enum oriel_status oriel_handle_add_forwarded(MPI_Win win)
{
    struct oriel_window *window = malloc(sizeof *window);
    if (window == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window of the host");
    *window = (struct oriel_window){.n = 0};
    enum oriel_status status = handle_table_add(win, window);
    if (status != ORIEL_OK)
        free(window);
    return status;
}

void oriel_handle_remove(MPI_Win win, struct oriel_window *window)
{
    /* no effect if the host has reused the handle meanwhile */
    oriel_hash_table_remove(&table, oriel_handle_key(win), window);
    oriel_tls_cache_invalidate();
    if (is_forwarded(window))
        free(window);
    else
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

struct visitor {
    void (*visit)(struct oriel_window *window, void *context);
    void *context;
};

static void visit_if_own(void *value, void *context)
{
    const struct visitor *visitor = context;
    if (!is_forwarded(value))
        visitor->visit(value, visitor->context);
}

void oriel_handle_visit(void (*visit)(struct oriel_window *window, void *context), void *context)
{
    struct visitor visitor = {visit, context};
    oriel_hash_table_visit(&table, visit_if_own, &visitor);
}

uint32_t oriel_handle_count(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}

bool oriel_handle_in_child(void)
{
    return atomic_load_explicit(&in_child, memory_order_relaxed);
}

static void enter_child(void)
{
    atomic_store_explicit(&in_child, true, memory_order_relaxed);
    oriel_tls_cache_invalidate();
}

enum oriel_status oriel_handle_watch_fork(void)
{
    static _Atomic bool watches;
    return oriel_fork_register(&watches, NULL, NULL, enter_child);
}
