/* Requests of operations. The record of an outstanding one (struct oriel_request_state) has two
 * owners. One is the host, until it frees the request; some hosts do so when the program frees it,
 * complete or not. Without a request of the host it is the caller that asks for the end. The other
 * is the operation, until the host has been notified of its end. After a failure, the thread that
 * completes the request is a third owner until it has raised the error. */
#include "api/requests.h"

#include "internode/origin/flush_several.h"
#include "internode/origin/origin_sync.h"
#include "internode/origin/rma_requests.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct oriel_request_state {
    struct oriel_rma_request pending; /* first */
    _Atomic uint32_t owners;
    _Atomic bool has_ended;
    MPI_Request handle; /* MPI_REQUEST_NULL: the caller asks for its end */
    MPI_Win win;
    uint64_t window_id;
    bool noted; /* in this thread's list of failures */
    struct oriel_request_state *next_failed;
    struct oriel_internode_flush flush;
    struct oriel_request_state *next_flush;
};

static _Thread_local struct oriel_request_state *failed;
static pthread_mutex_t flushes_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct oriel_request_state *flushes; /* in progress; flushes_mutex */

static void request_drop_owner(struct oriel_request_state *asked)
{
    if (atomic_fetch_sub_explicit(&asked->owners, 1, memory_order_acq_rel) != 1)
        return;
    if (asked->pending.status != ORIEL_OK && asked->handle != MPI_REQUEST_NULL)
        atomic_fetch_sub_explicit(&oriel_requests_open, 1, memory_order_relaxed);
    free(asked);
}

/* --- callbacks of the host --- */

static int request_query_callback(void *whose, MPI_Status *status)
{
    struct oriel_request_state *asked = whose;
    oriel_host_fill_status(status);
    if (asked->pending.status == ORIEL_OK || asked->noted)
        return MPI_SUCCESS;
    atomic_fetch_add_explicit(&asked->owners, 1, memory_order_relaxed);
    asked->noted = true;
    asked->next_failed = failed;
    failed = asked;
    return MPI_SUCCESS; /* an error would be raised on a handler that the host chooses */
}

static int request_free_callback(void *whose)
{
    request_drop_owner(whose);
    return MPI_SUCCESS;
}

static void report_ended_request(struct oriel_request_state *asked)
{
    bool well = asked->pending.status == ORIEL_OK;
    if (asked->handle == MPI_REQUEST_NULL) {
        atomic_store_explicit(&asked->has_ended, true, memory_order_release);
        return;
    }
    oriel_host_request_complete(asked->handle);
    if (well)
        atomic_fetch_sub_explicit(&oriel_requests_open, 1, memory_order_relaxed);
}

/* Notifies the host of the operations that have ended. */
static void report_ended_requests(void)
{
    struct oriel_rma_request *next = oriel_rma_request_take_ended();
    while (next != NULL) {
        struct oriel_request_state *asked = (struct oriel_request_state *)next;
        next = next->next_ended;
        report_ended_request(asked);
        request_drop_owner(asked);
    }
}

/* --- making --- */

static struct oriel_request_state *state_make(const struct oriel_window *window)
{
    struct oriel_request_state *asked = calloc(1, sizeof *asked);
    if (asked == NULL)
        return NULL;
    atomic_init(&asked->owners, 2);
    asked->handle = MPI_REQUEST_NULL;
    asked->win = window->host->handle;
    asked->window_id = window->internode->id;
    return asked;
}

static enum oriel_status request_create(struct oriel_window *window,
                                        struct oriel_request_state **out)
{
    struct oriel_request_state *asked = state_make(window);
    if (asked == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a request");
    enum oriel_status status = oriel_host_request_start(
        request_query_callback, request_free_callback, asked, &asked->handle);
    if (status != ORIEL_OK)
        free(asked);
    else
        *out = asked;
    return status;
}

struct oriel_window *oriel_request_window(const char *call, MPI_Win win, const MPI_Request *request,
                                          int *code)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL) {
        *code = oriel_error_no_extension(call, win);
        return NULL;
    }
    if (request != NULL)
        return window;
    *code = oriel_error_no_request(window, call);
    return NULL;
}

int oriel_request_begin(struct oriel_window *window, const char *call, int target_rank, bool reads,
                        struct oriel_request_state **asked)
{
    *asked = NULL;
    if (!reads || window->internode == NULL || (uint32_t)target_rank >= (uint32_t)window->n ||
        !oriel_is_internode(window, target_rank))
        return MPI_SUCCESS;
    if (oriel_requests_are_open())
        report_ended_requests();
    enum oriel_status status = request_create(window, asked);
    if (status != ORIEL_OK)
        return oriel_error_raise(window, call, status);
    atomic_fetch_add_explicit(&oriel_requests_open, 1, memory_order_relaxed);
    oriel_rma_request_begin(&(*asked)->pending, target_rank);
    return MPI_SUCCESS;
}

/* Requests sent before the operation failed continue without an MPI request. */
static int request_abandon(struct oriel_request_state *asked, int code)
{
    if (asked == NULL)
        return code;
    MPI_Request unwanted = asked->handle;
    oriel_rma_request_sent(&asked->pending);
    oriel_host()->Request_free(&unwanted);
    return code;
}

int oriel_request_give(struct oriel_window *window, const char *call,
                       struct oriel_request_state *asked, int code, MPI_Request *request)
{
    if (code != MPI_SUCCESS)
        return request_abandon(asked, code);
    if (asked == NULL)
        return oriel_error_raise(window, call, oriel_host_completed_request(request));
    *request = asked->handle;
    oriel_rma_request_sent(&asked->pending);
    return MPI_SUCCESS;
}

/* --- without a request of the host --- */

struct oriel_request_state *oriel_request_begin_polled(const struct oriel_window *window,
                                                       int target_rank)
{
    struct oriel_request_state *asked = state_make(window);
    if (asked != NULL)
        oriel_rma_request_begin(&asked->pending, target_rank);
    return asked;
}

void oriel_request_sent(struct oriel_request_state *asked)
{
    oriel_rma_request_sent(&asked->pending);
}

bool oriel_request_has_ended(const struct oriel_request_state *asked)
{
    return atomic_load_explicit(&asked->has_ended, memory_order_acquire);
}

enum oriel_status oriel_request_failure(const struct oriel_request_state *asked,
                                        struct oriel_window *window)
{
    return asked->pending.status == ORIEL_OK ? ORIEL_OK
                                             : oriel_rma_request_tell(&asked->pending, window);
}

void oriel_request_drop(struct oriel_request_state *asked)
{
    request_drop_owner(asked);
}

/* --- flushes --- */

/* The window of the operation, if it still exists. */
static struct oriel_window *window_of(const struct oriel_request_state *asked)
{
    struct oriel_window *window = oriel_handle_find(asked->win);
    return window != NULL && window->internode != NULL && window->internode->id == asked->window_id
               ? window
               : NULL;
}

static void flush_end(struct oriel_request_state *asked, const struct oriel_first_failure *failure)
{
    asked->pending.status = failure->status;
    snprintf(asked->pending.text, sizeof asked->pending.text, "%.*s",
             (int)sizeof asked->pending.text - 1, failure->text);
    oriel_rma_request_end(&asked->pending);
}

/* With flushes_mutex held. */
static void flush_list_add(struct oriel_request_state *asked)
{
    asked->next_flush = flushes;
    flushes = asked;
}

int oriel_request_flush(struct oriel_window *window, const char *call, int32_t target,
                        MPI_Request *request)
{
    struct oriel_internode_flush flush;
    struct oriel_request_state *asked;
    struct oriel_first_failure failure = {.status = ORIEL_OK};
    enum oriel_status ended_with = ORIEL_OK;
    enum oriel_status status = oriel_internode_flush_begin(window, target, &flush);
    const bool ended =
        status == ORIEL_OK && oriel_internode_flush_has_ended(window, &flush, &ended_with);
    oriel_first_failure_record(&failure, ended_with);
    if (ended && failure.status == ORIEL_OK)
        return oriel_error_raise(window, call, oriel_host_completed_request(request));
    if (status == ORIEL_OK)
        status = request_create(window, &asked);
    if (status != ORIEL_OK)
        return oriel_error_raise(window, call, status);
    atomic_fetch_add_explicit(&oriel_requests_open, 1, memory_order_relaxed);
    oriel_rma_request_add(&asked->pending, target);
    asked->flush = flush;
    *request = asked->handle;
    pthread_mutex_lock(&flushes_mutex);
    if (ended)
        flush_end(asked, &failure);
    else
        flush_list_add(asked);
    pthread_mutex_unlock(&flushes_mutex);
    return MPI_SUCCESS;
}

/* Ends those that are over, and all of the window ending, if it is not NULL. With flushes_mutex
 * held. */
static void end_flushes(const struct oriel_window *ending)
{
    for (struct oriel_request_state **link = &flushes; *link != NULL;) {
        struct oriel_request_state *asked = *link;
        struct oriel_window *window = window_of(asked);
        struct oriel_first_failure failure = {.status = ORIEL_OK};
        enum oriel_status status = ORIEL_OK;
        const bool is_over =
            window == NULL || oriel_internode_flush_has_ended(window, &asked->flush, &status);
        if (!is_over && window != ending) {
            link = &asked->next_flush;
            continue;
        }
        oriel_first_failure_record(&failure, status);
        *link = asked->next_flush;
        flush_end(asked, &failure);
    }
}

void oriel_requests_window_ends(const struct oriel_window *window)
{
    pthread_mutex_lock(&flushes_mutex);
    end_flushes(window);
    pthread_mutex_unlock(&flushes_mutex);
}

/* --- completing --- */

void oriel_requests_progress(void)
{
    oriel_rma_request_progress();
    if (pthread_mutex_trylock(&flushes_mutex) == 0) { /* one thread at a time suffices */
        end_flushes(NULL);
        pthread_mutex_unlock(&flushes_mutex);
    }
    report_ended_requests();
    oriel_persistent_progress();
}

bool oriel_requests_failed(const char *call, int *error_class, MPI_Request *request)
{
    struct oriel_request_state *asked = failed;
    if (asked == NULL)
        return false;
    failed = asked->next_failed;
    asked->noted = false;
    struct oriel_window *window = window_of(asked);
    enum oriel_status status = oriel_rma_request_tell(&asked->pending, window);
    *request = asked->handle;
    request_drop_owner(asked);
    *error_class = window != NULL ? oriel_error_raise(window, call, status)
                                  : oriel_error_raise_nowhere(call, status);
    return true;
}

void oriel_requests_ignore_failed(void)
{
    while (failed != NULL) {
        struct oriel_request_state *asked = failed;
        failed = asked->next_failed;
        asked->noted = false;
        request_drop_owner(asked);
    }
}
