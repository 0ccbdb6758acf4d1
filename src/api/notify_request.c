/* MPIX_Win_notify_init: persistent requests that take notifications. The functions that complete
 * requests poll the counter; no other call takes notifications for them. */
#include "api/api.h"
#include "api/notified_operation.h"
#include "api/persistent_operation.h"
#include "api/requests.h"
#include "internode/origin/liveness.h"
#include "sync/notify.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOOK_NS = 100000000 };

struct notify_request {
    struct oriel_persistent request; /* first */
    uint32_t number;
    uint32_t count;
    uint64_t looked_ns;       /* when it was last checked that all ranks live */
    enum oriel_status status; /* of a failure, with its message */
    char text[200];
};

static enum oriel_status notify_start(struct oriel_persistent *request, struct oriel_window *window)
{
    struct notify_request *own = (struct notify_request *)request;
    (void)window;
    own->looked_ns = oriel_now_ns();
    return ORIEL_OK;
}

static enum oriel_persistent_state fail_with(struct notify_request *own, enum oriel_status status)
{
    own->status = status;
    snprintf(own->text, sizeof own->text, "%s", oriel_fail_message());
    return ORIEL_PERSISTENT_FAILED;
}

static enum oriel_persistent_state notify_poll(struct oriel_persistent *request)
{
    struct notify_request *own = (struct notify_request *)request;
    const struct oriel_window *window = oriel_handle_find(request->win);
    if (window == NULL || window->serial != request->window_serial)
        return fail_with(own, oriel_fail(ORIEL_E_WIN, "the window of the request was freed"));
    if (oriel_notify_take(window->notifications, own->number, own->count))
        return ORIEL_PERSISTENT_DONE;
    const uint64_t now_ns = oriel_now_ns();
    if (now_ns - own->looked_ns < LOOK_NS)
        return ORIEL_PERSISTENT_ACTIVE;
    own->looked_ns = now_ns;
    struct oriel_watched watched = {.window = window, .win_rank = -1};
    const enum oriel_status status = oriel_liveness_any(&watched);
    return status == ORIEL_OK ? ORIEL_PERSISTENT_ACTIVE : fail_with(own, status);
}

static enum oriel_status notify_failure(struct oriel_persistent *request,
                                        struct oriel_window *window)
{
    const struct notify_request *own = (const struct notify_request *)request;
    (void)window;
    return oriel_fail(own->status, "%s", own->text);
}

static void notify_cancel(struct oriel_persistent *request)
{
    (void)request; /* it has taken nothing */
}

static void notify_release(struct oriel_persistent *request)
{
    free(request);
}

static const struct oriel_persistent_kind notify_kind = {notify_start, notify_poll, notify_failure,
                                                         notify_cancel, notify_release};

static enum oriel_status request_create(const struct oriel_window *window, int number,
                                        MPI_Count count, MPI_Request *out)
{
    enum oriel_status status = oriel_notified_check_taking(window, number, count);
    if (status != ORIEL_OK)
        return status;
    struct notify_request *own = calloc(1, sizeof *own);
    if (own == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a request");
    own->request.kind = &notify_kind;
    own->request.counted = ORIEL_PERSISTENT_NOTIFICATION;
    own->request.win = window->host->handle;
    own->request.window_serial = window->serial;
    own->number = (uint32_t)number;
    own->count = (uint32_t)count;
    status = oriel_persistent_create(&own->request, false, out);
    if (status != ORIEL_OK)
        free(own);
    return status;
}

int oriel_entry_Win_notify_init(MPI_Win win, int number, MPI_Count count, MPI_Request *request)
{
    int code;
    static const char call[] = "MPIX_Win_notify_init";
    struct oriel_window *window = oriel_request_window(call, win, request, &code);
    if (window == NULL)
        return code;
    return oriel_error_raise(window, call, request_create(window, number, count, request));
}
