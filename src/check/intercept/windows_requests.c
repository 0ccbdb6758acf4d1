/* Operations with requests. The completion of the request frees the buffers and completes
 * operations that fetch; it does not complete the operation at the target. A flush does all of
 * this. Whichever comes first does it, and the other one finds nothing left. */
#include "check/intercept/request_table.h"
#include "check/intercept/wrap.h"
#include "check/remote/history_proxy.h"
#include "check/window/operation.h"
#include "check/window/thread_debts.h"

#include <stdlib.h>

struct oriel_window_request {
    struct oriel_window_request *next;  /* in the window's list, until it is complete */
    struct oriel_window_request **link; /* the pointer that refers to it */
    struct oriel_checked *window;       /* NULL: complete */
    int32_t target;
    bool fetches;
    oriel_shm_offset history;
    uint64_t ticket;
    oriel_local_group buffers;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all lists */

static void request_unlink_locked(struct oriel_window_request *asked)
{
    *asked->link = asked->next;
    if (asked->next != NULL)
        asked->next->link = asked->link;
    asked->window = NULL;
}

void oriel_window_request_end(struct oriel_window_request *asked)
{
    pthread_mutex_lock(&mutex);
    struct oriel_checked *window = asked->window;
    bool left = window != NULL;
    if (left)
        request_unlink_locked(asked);
    pthread_mutex_unlock(&mutex);
    if (left && asked->ticket != 0 && asked->fetches)
        oriel_part_complete_one(asked->history, asked->ticket, oriel_order_now());
    else if (left && asked->ticket != 0)
        oriel_part_request_done(asked->history, asked->ticket);
    if (left)
        oriel_local_complete(asked->buffers);
    oriel_debts_pay(); /* else a flush of another thread was first */
    if (left && asked->fetches)
        oriel_window_take_late(window, asked->target, false);
    free(asked);
}

/* A flush may have come first. */
void oriel_window_request_release(const struct oriel_window_request *asked)
{
    oriel_local_complete(asked->buffers);
}

static void operation_request_done(void *closure, const MPI_Status *status)
{
    (void)status;
    oriel_window_request_end(closure);
}

static void operation_buffers_release(void *closure)
{
    oriel_window_request_release(closure);
}

static const struct oriel_request_kind kind = {operation_request_done, operation_buffers_release};

void oriel_window_requested(struct oriel_operation *operation, int code)
{
    struct oriel_checked *window = operation->window;
    struct oriel_window_request *asked = code == MPI_SUCCESS ? malloc(sizeof *asked) : NULL;
    oriel_shm_offset history =
        operation->ticket == 0 ? 0 : oriel_window_history(window, operation->target_rank);
    if (asked == NULL) { /* nothing is active, or its end would not be seen */
        if (history != 0)
            oriel_part_complete_one(history, operation->ticket, oriel_order_now());
        oriel_local_complete(operation->buffers);
        return;
    }
    *asked = (struct oriel_window_request){.window = window,
                                           .target = operation->target_rank,
                                           .fetches = operation->kind == ORIEL_ACCESS_GET ||
                                                      operation->result_addr != NULL,
                                           .history = history,
                                           .ticket = operation->ticket,
                                           .buffers = operation->buffers};
    pthread_mutex_lock(&mutex);
    asked->next = window->asked;
    asked->link = &window->asked;
    if (asked->next != NULL)
        asked->next->link = &asked->next;
    window->asked = asked;
    pthread_mutex_unlock(&mutex);
    if (operation->persists)
        operation->asked = asked;
    else
        oriel_checked_request_add_own(operation->request, &kind, asked);
}

void oriel_window_requests_flushed(struct oriel_checked *window, int32_t target)
{
    pthread_mutex_lock(&mutex);
    struct oriel_window_request *next;
    for (struct oriel_window_request *asked = window->asked; asked != NULL; asked = next) {
        next = asked->next;
        if (target >= 0 && asked->target != target)
            continue;
        request_unlink_locked(asked);
        oriel_local_complete(asked->buffers);
    }
    pthread_mutex_unlock(&mutex);
}
