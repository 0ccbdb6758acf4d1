/* Creates, starts and ends the persistent requests of operations (persistent_operation.h). A
 * request keeps the descriptions of its datatypes. */
#include "api/persistent_operation.h"

#include "api/api.h"
#include "api/notified_operation.h"
#include "api/requests.h"
#include "internode/internode.h"
#include "rma/device_buffers.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <stdlib.h>

enum { TYPES = 3 };

static struct oriel_persistent_operation *operation_of(struct oriel_persistent *request)
{
    return (struct oriel_persistent_operation *)request;
}

static enum oriel_status nothing_start(struct oriel_persistent *request,
                                       struct oriel_window *window)
{
    (void)request;
    (void)window;
    return ORIEL_OK;
}

/* --- creation --- */

static bool is_prompt(const struct oriel_persistent_operation *operation,
                      const struct oriel_window *window, int target_rank)
{
    return !operation->returns_data || target_rank == MPI_PROC_NULL || window->internode == NULL ||
           !oriel_is_internode(window, target_rank);
}

enum oriel_status oriel_persistent_operation_create(struct oriel_persistent_operation *operation,
                                                    const struct oriel_window *window,
                                                    int target_rank, MPI_Aint target_disp,
                                                    enum oriel_status status, MPI_Request *request)
{
    static const struct oriel_persistent_kind nothing =
        ORIEL_PERSISTENT_OPERATION_KIND(nothing_start);
    if (target_rank == MPI_PROC_NULL) {
        operation->request.kind = &nothing;
        operation->request.counted = ORIEL_PERSISTENT_NOTHING;
    }
    operation->request.win = window->host->handle;
    operation->request.window_serial = window->serial;
    operation->request.target_rank = target_rank;
    operation->request.target_disp = target_disp;
    if (status == ORIEL_OK && operation->notifies && target_rank != MPI_PROC_NULL)
        status = oriel_notified_begin(window, operation->number, &operation->target);
    for (int i = 0; i < TYPES && status == ORIEL_OK; i++)
        if (operation->types[i] != NULL)
            oriel_type_retain(operation->types[i]);
    if (status != ORIEL_OK) {
        free(operation);
        return status;
    }
    status = oriel_persistent_create(&operation->request, is_prompt(operation, window, target_rank),
                                     request);
    if (status != ORIEL_OK)
        oriel_persistent_operation_release(&operation->request);
    return status;
}

char *oriel_persistent_direct(const struct oriel_window *window, const struct oriel_span *target,
                              int64_t low_bytes, int64_t span_bytes)
{
    const struct oriel_target *there = &window->targets[target->rank];
    const uint64_t start = target->offset_bytes + (uint64_t)low_bytes - there->direct_low;
    uint64_t end;
    if (oriel_device_buffers_occur(window))
        return NULL;
    if (__builtin_add_overflow(start, (uint64_t)span_bytes, &end) || end > there->direct_bytes)
        return NULL;
    return oriel_window_direct(window, target->rank, target->offset_bytes);
}

/* --- start and end --- */

static enum oriel_status issue(struct oriel_persistent_operation *operation,
                               struct oriel_window *window)
{
    if (!operation->notifies)
        return operation->issue(operation, window);
    enum oriel_status status = oriel_notified_begin(window, operation->number, &operation->target);
    if (status == ORIEL_OK)
        status = operation->issue(operation, window);
    return status != ORIEL_OK ? status
                              : oriel_notified_end(window, &operation->target, operation->moves);
}

/* An operation that returns data from another node. */
static enum oriel_status start_polled(struct oriel_persistent_operation *operation,
                                      struct oriel_window *window)
{
    operation->asked = oriel_request_begin_polled(window, operation->target.rank);
    if (operation->asked == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a request");
    oriel_check_passed(window);
    const enum oriel_status status = issue(operation, window);
    oriel_request_sent(operation->asked);
    if (status == ORIEL_OK)
        return ORIEL_OK;
    oriel_request_drop(operation->asked);
    operation->asked = NULL;
    return status;
}

enum oriel_status oriel_persistent_operation_start(struct oriel_persistent_operation *operation,
                                                   struct oriel_window *window)
{
    const struct oriel_persistent *request = &operation->request;
    const enum oriel_status status = oriel_check_target(
        window, request->target_rank, request->target_disp, ORIEL_ISSUE_NOW, &operation->target);
    if (status != ORIEL_OK)
        return status;
    if (!request->is_prompt)
        return start_polled(operation, window);
    oriel_check_passed(window);
    return issue(operation, window);
}

enum oriel_persistent_state oriel_persistent_operation_poll(struct oriel_persistent *request)
{
    struct oriel_persistent_operation *operation = operation_of(request);
    if (!oriel_request_has_ended(operation->asked))
        return ORIEL_PERSISTENT_ACTIVE;
    if (oriel_request_failure(operation->asked, NULL) != ORIEL_OK)
        return ORIEL_PERSISTENT_FAILED;
    oriel_request_drop(operation->asked);
    operation->asked = NULL;
    return ORIEL_PERSISTENT_DONE;
}

enum oriel_status oriel_persistent_operation_failure(struct oriel_persistent *request,
                                                     struct oriel_window *window)
{
    struct oriel_persistent_operation *operation = operation_of(request);
    const enum oriel_status status = oriel_request_failure(operation->asked, window);
    oriel_request_drop(operation->asked);
    operation->asked = NULL;
    return status;
}

void oriel_persistent_operation_release(struct oriel_persistent *request)
{
    struct oriel_persistent_operation *operation = operation_of(request);
    if (operation->asked != NULL)
        oriel_request_drop(operation->asked);
    for (int i = 0; i < TYPES; i++)
        if (operation->types[i] != NULL)
            oriel_type_release(operation->types[i]);
    free(operation);
}
