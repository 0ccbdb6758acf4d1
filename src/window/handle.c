/* The table of window handles.  A forwarded window is in the table under one marker that is no window.  A handle may be
 * given out again by the host before its removal here: removal therefore names the window it removes. */
#include "window/handle.h"

#include "base/options.h"
#include "base/table.h"

#include <pthread.h>

static struct oriel_table table = ORIEL_TABLE_INIT;
static struct oriel_window forwarded; /* the marker */
static _Atomic uint32_t live;
static _Atomic bool in_child;

struct oriel_window *oriel_handle_find_slow(uint64_t key)
{
    if (atomic_load_explicit(&in_child, memory_order_relaxed))
        return NULL;
    uint64_t generation = oriel_recent_begin();
    struct oriel_window *window = oriel_table_find(&table, key);
    if (window == NULL || window == &forwarded)
        return NULL;
    oriel_recent_keep_window(generation, key, window);
    return window;
}

bool oriel_handle_is_forwarded(MPI_Win win)
{
    if (atomic_load_explicit(&in_child, memory_order_relaxed))
        return false; /* the fork may have come while the table was being changed */
    return oriel_options()->bypass || oriel_table_find(&table, oriel_handle_key(win)) == &forwarded;
}

static enum oriel_status add(MPI_Win win, struct oriel_window *window)
{
    if (!oriel_table_set(&table, oriel_handle_key(win), window))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of windows");
    return ORIEL_OK;
}

enum oriel_status oriel_handle_add(MPI_Win win, struct oriel_window *window)
{
    enum oriel_status status = add(win, window);
    if (status == ORIEL_OK)
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return status;
}

enum oriel_status oriel_handle_add_forwarded(MPI_Win win)
{
    return add(win, &forwarded);
}

void oriel_handle_remove(MPI_Win win, struct oriel_window *window)
{
    bool removed = oriel_table_remove(&table, oriel_handle_key(win), window != NULL ? window : &forwarded);
    if (window != NULL) {
        /* also when the host has given the handle out again meanwhile */
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        removed = true;
    }
    if (removed)
        oriel_recent_invalidate();
}

struct visitor {
    void (*visit)(struct oriel_window *window, void *context);
    void *context;
};

static void visit_own(void *value, void *context)
{
    const struct visitor *visitor = context;
    if (value != &forwarded)
        visitor->visit(value, visitor->context);
}

void oriel_handle_visit(void (*visit)(struct oriel_window *window, void *context), void *context)
{
    struct visitor visitor = {visit, context};
    oriel_table_visit(&table, visit_own, &visitor);
}

uint32_t oriel_handle_live(void)
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
    oriel_recent_invalidate();
}

void oriel_handle_watch_fork(void)
{
    pthread_atfork(NULL, NULL, enter_child);
}
